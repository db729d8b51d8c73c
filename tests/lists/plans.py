"""Plans of statements, and the steps in them that take long at a million rows."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import event

SORTED_MOST: Final = 20_000
"""Rows that a statement may gather before it returns the first one."""
GATHERS: Final = frozenset(
    {"Sort", "Incremental Sort", "Hash", "Aggregate", "Materialize", "WindowAgg", "Unique"}
)

List = Callable[[Any], object]
"""A function that makes the statements of one list."""


@contextmanager
def statements_of(deps: Any) -> Iterator[list[tuple[str, Any]]]:
    """The statements of the service's database while the block runs, with their values."""
    found: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, values: Any, context: Any, many: bool) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            found.append((statement, values))

    engine = deps.db._engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)


def faults(plan: Mapping[str, Any], large: tuple[str, ...]) -> Iterator[str]:
    """Returns the steps of the plan that take long at a million rows."""
    node, below = plan["Node Type"], plan.get("Plans", [])
    if node == "Seq Scan" and plan["Relation Name"] in large:
        yield f"reads all of {plan['Relation Name']}"
    if node in GATHERS and any(each["Plan Rows"] > SORTED_MOST for each in below):
        yield f"{node} of {max(each['Plan Rows'] for each in below)} rows"
    if node == "Bitmap Index Scan" and plan["Plan Rows"] > SORTED_MOST:
        yield f"a bitmap of {plan['Plan Rows']} rows of {plan['Index Name']}"
    for each in below:
        yield from faults(each, large)


def plans_of(deps: Any, run: List) -> dict[str, Mapping[str, Any]]:
    """The plan of each statement that is made."""
    with statements_of(deps) as made:
        run(deps)
    plans = {}
    with deps.db.autocommit() as connection:
        for statement, values in made:
            (plan,) = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", values).scalar_one()
            plans[statement] = plan["Plan"]
    return plans


def faults_of(plans: Mapping[str, Mapping[str, Any]], large: tuple[str, ...]) -> list[str]:
    return [f"{fault}: {statement}" for statement, plan in plans.items() for fault in faults(plan, large)]


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The parts of a plan that read a table."""
    if "Relation Name" in plan:
        yield plan
    for each in plan.get("Plans", ()):
        yield from nodes(each)

"""One round: load, one event, calm, and then what the books say."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.waiting import wait_until
from kit.base.clock import monotonic_seconds
from tests.e2e.market import Shop, patiently
from tests.failover.arena import Arena
from tests.failover.events import EVENTS
from tests.failover.figures import (
    KINDS,
    Course,
    calls,
    calm_failures,
    failing_seconds,
    late_seconds,
    late_share,
    longest_gap_seconds,
    lost_deals,
    lost_invoices,
    never_again,
    too_late,
)
from tests.failover.load import Load
from tests.faults import checker
from tests.faults.journal import Journal, NotingReceiver, lines
from tests.faults.rounds import SHOPS, after, settle
from tests.faults.shoppers import LATER, Shoppers
from tests.support.stack import CliRefused

BEFORE_SECONDS: Final = 8
CALM_SECONDS: Final = 10
"""With all nodes in step and the load as before: each kind of call has to be done again. Failures are counted."""
IN_STEP_SECONDS: Final = 150
AGAIN_SECONDS: Final = 0.5
STORIES: Final = {
    "confirm": 6,
    "confirm, take back": 1,
    "confirm, refund": 1,
    "another method, confirm": 2,
    "reject": 2,
    "forget": 4,
    "cancel": 4,
    "cancel a deal": 4,
}
"""Half of them reach the operator: more than ten a second would wait for the threads of the desk."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What one round came to. `violations` is what matters: empty when every promise was kept.

    created, marked, confirmed  the longest time without one
    failing                     from the event to the end of the last call that failed
    late                        the same from the end of the gap
    late_share                  part of the calls that failed of those later than LATE_SECONDS after the gap
    in_step                     from the event until three nodes were in step again
    calm_failed                 calls that failed after that
    """

    event: str
    created_seconds: float
    marked_seconds: float
    confirmed_seconds: float
    failing_seconds: float
    late_seconds: float
    late_share: float
    in_step_seconds: float
    calm_failed: int
    settled_seconds: float
    purchases: int
    sent: int
    failed: int
    lost_invoices: int
    lost_deals: int
    verified: bool
    violations: list[str]


def run_round(
    arena: Arena, folder: Path, event: str, *, seed: int, per_second: int, tell: Callable[[str], None]
) -> Figures:
    """Runs one event on a running stack; its journals stay in `folder`."""
    shops = [patiently(lambda: Shop.opened(arena.stack)) for _ in range(SHOPS)]
    names = ("clients", "steps", "receiver")
    journals = {name: Journal(folder / f"{seed}-{event}-{name}.jsonl") for name in names}
    with (
        NotingReceiver(journals["receiver"]) as endpoint,
        Shoppers(
            shops,
            services=arena.stack.addresses,
            callback=endpoint.url(),
            journal=journals["clients"],
            steps=journals["steps"],
            again_seconds=AGAIN_SECONDS,
            stories=STORIES,
        ) as shoppers,
    ):
        course = _course(arena, shoppers, shops, journals["clients"].path, event, seed, per_second, tell)
    for journal in journals.values():
        journal.close()
    seen = checker.evidence(
        arena.admin_url,
        secrets={shop.merchant_id: shop.secret for shop in shops},
        clients=journals["clients"].path,
        receiver=journals["receiver"].path,
    )
    steps = list(lines(journals["steps"].path))
    made = calls(seen.answers, steps)
    invoices, deals = lost_invoices(seen), lost_deals(seen, steps)
    unverified = _verify(arena)
    share = late_share(made, since_seconds=course.began)
    gaps = {
        what: longest_gap_seconds(made, what, load=course.load, since_seconds=course.began) for what in KINDS
    }
    return Figures(
        event=event,
        created_seconds=gaps["create"],
        marked_seconds=gaps["mark"],
        confirmed_seconds=gaps["confirm"],
        failing_seconds=failing_seconds(made, since_seconds=course.began),
        late_seconds=late_seconds(made, since_seconds=course.began),
        late_share=share,
        in_step_seconds=course.in_step - course.began,
        calm_failed=calm_failures(made, course),
        settled_seconds=course.settled_seconds,
        purchases=course.purchases,
        sent=len(made),
        failed=sum(call.failed for call in made),
        lost_invoices=len(invoices),
        lost_deals=len(deals),
        verified=not unverified,
        violations=[
            *course.found,
            *never_again(made, course),
            *too_late(share),
            *checker.violations(seen),
            *deals,
            *unverified,
            *_late(steps),
        ],
    )


def _course(
    arena: Arena,
    shoppers: Shoppers,
    shops: list[Shop],
    clients: Path,
    event: str,
    seed: int,
    per_second: int,
    tell: Callable[[str], None],
) -> Course:
    load_began = monotonic_seconds()
    with Load(shoppers, per_second=per_second, seed=seed) as load:
        threading.Event().wait(BEFORE_SECONDS)
        began = monotonic_seconds()
        found = EVENTS[event](arena, tell)
        found += _wait_for_nodes(arena)
        in_step = monotonic_seconds()
        tell(f"three nodes in step {in_step - began:.1f} s after the event began")
        threading.Event().wait(CALM_SECONDS)
        load_ended = monotonic_seconds()
    quiet = monotonic_seconds()
    left = settle(arena, [shop.merchant_id for shop in shops])
    settled_seconds = monotonic_seconds() - quiet
    tell(f"{load.begun} purchases, settled in {settled_seconds:.1f} s")
    left = left or after(arena, shoppers, shops, clients, seed=seed)
    if left:
        found.append(f"not settled: {left}")
    return Course(
        load=(load_began, load_ended),
        began=began,
        in_step=in_step,
        settled_seconds=settled_seconds,
        purchases=load.begun,
        found=found,
    )


def _wait_for_nodes(arena: Arena) -> list[str]:
    try:
        wait_until(
            arena.nodes.are_in_step, "three nodes in step", timeout_seconds=IN_STEP_SECONDS, every_seconds=0.2
        )
    except TimeoutError as late:
        return [str(late)]
    return []


def _verify(arena: Arena) -> list[str]:
    try:
        verified = arena.stack.cli("verify", "--grace-seconds", "0")
    except CliRefused as refused:
        return [f"fiatgate verify: {refused}"]
    return [] if verified["ok"] else [f"fiatgate verify: {verified['problems']}"]


def _late(steps: list[dict[str, object]]) -> list[str]:
    """Calls of customers and operators that failed after recovery; those over HTTP are the checker's."""
    late = [step for step in steps if step["phase"] == "after" and step["refused"] in LATER]
    return [f"after recovery {step['what']} of {step['id']} was refused: {step['refused']}" for step in late]

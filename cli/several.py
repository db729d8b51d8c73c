"""One call for each of several things. Each result is a line, and the exit code says whether one of them failed.

Nothing is half done in silence: after a service has failed, the others are not tried, and the lines say so.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import typer
from google.protobuf.message import Message
from rich.markup import escape

from cli import output, tables
from cli.connection import why_silent
from kit.rpc.errors import Refused

M = TypeVar("M", bound=Message)

_SERVICE_FAILS: Final = frozenset({"DB_UNAVAILABLE", "INTERNAL_ERROR", "ACTOR_INVALID", "NOT_PERMITTED"})
"""The reasons that concern every call, not the thing of one."""


def each(
    ids: Sequence[str],
    call: Callable[[str], M],
    sentence: Callable[[M], str],
    *next_commands: str,
) -> None:
    """Calls for each id and prints the results. For one id alone, as any other command: its sentence or the refusal.
    `{id}` in the next commands is that one id.

    Raises Refused for one id, typer.Exit(1) when one of several failed.
    """
    ids = list(dict.fromkeys(ids))
    if len(ids) == 1:
        made = call(ids[0])
        commands = [each.format(id=output.short(ids[0])) for each in next_commands]
        output.outcome(made, sentence(made), *commands)
        return
    shown = output.shortened(ids)
    rows = []
    for row in _tried(ids, call, sentence):
        rows.append(row)
        if not output.mode.json:
            _print_line(row, shown[row["id"]])
    done = sum(row["outcome"] == "done" for row in rows)
    if output.mode.json:
        output.print_json(rows)
    else:
        output.lead(f"{done} of {len(rows)} done.", *(each.format(id="ID") for each in next_commands))
    if done < len(rows):
        raise typer.Exit(1)


def _tried(
    ids: Sequence[str], call: Callable[[str], M], sentence: Callable[[M], str]
) -> Iterator[dict[str, Any]]:
    """Yields a row for each id. `outcome` is "done", the reason of a refusal, or "not tried" after a service failed."""
    failed = False
    for id in ids:
        if failed:
            yield {"id": id, "outcome": "not tried", "message": "A service failed before", "result": None}
            continue
        try:
            made = call(id)
            yield {"id": id, "outcome": "done", "message": sentence(made), "result": output.plain(made)}
        except Refused as refused:
            failed = refused.reason in _SERVICE_FAILS
            silent = why_silent(refused)
            reason, message = (silent.code, str(silent)) if silent else (refused.reason, refused.message)
            yield {"id": id, "outcome": reason, "message": message, "result": None}


def _print_line(row: dict[str, Any], id: str) -> None:
    message = escape(tables.printable(row["message"]))
    if row["outcome"] == "done":
        line = f"[green]done[/green]  {id}  {message}"
    else:
        line = f"[bold red]{escape(row['outcome'])}[/bold red]  {id}  {message}"
    output.console.print(line, soft_wrap=True)

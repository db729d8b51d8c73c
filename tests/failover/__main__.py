"""`python -m tests.failover [EVENT ...] [--per-second N] ...`: what `make failover` calls.

Exit code 0 when no promise was broken in any round, 1 otherwise; the logs and journals are kept then.
"""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog
from rich.console import Console
from rich.table import Table

from deploy.local.errors import CannotStart
from kit.base.clock import monotonic_seconds
from tests.failover import patroni
from tests.failover.arena import Arena
from tests.failover.events import EVENTS
from tests.failover.rounds import Figures, run_round
from tests.support.authors import act_as

COLUMNS: Final = {
    "event": "event",
    "created_seconds": "no 201, s",
    "marked_seconds": "no mark, s",
    "confirmed_seconds": "no confirm, s",
    "failing_seconds": "failing for, s",
    "late_seconds": "after gap (< 15), s",
    "in_step_seconds": "in step, s",
    "calm_failed": "calm failed",
    "settled_seconds": "settled, s",
    "purchases": "purchases",
    "sent": "requests",
    "failed": "failed",
    "lost_invoices": "invoices lost",
    "lost_deals": "deals lost",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.failover", description=__doc__)
    parser.add_argument(
        "events", nargs="*", metavar="EVENT", help=f"in this order (default all): {', '.join(EVENTS)}"
    )
    parser.add_argument("--per-second", type=int, default=20, help="purchases (default 20)")
    parser.add_argument("--seed", type=int, help="of the purchases (default: any)")
    parser.add_argument("--keep", type=Path, help="folder for logs and journals, kept in any case")
    given = parser.parse_args()
    if unknown := [each for each in given.events if each not in EVENTS]:
        parser.error(f"no such event: {', '.join(unknown)}; there are {', '.join(EVENTS)}")
    act_as("failover@harness")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stops everything on the way out, as Ctrl-C does
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.getLogger("nats").setLevel(logging.CRITICAL)  # its client tells of each server that is away
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1, 100_000)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    folder = given.keep or Path(tempfile.mkdtemp(prefix="fiatgate-failover-"))
    folder.mkdir(parents=True, exist_ok=True)
    figures: list[Figures] = []
    try:
        patroni.require()
        _run(given.events or list(EVENTS), folder, seed, given.per_second, console, figures)
    except CannotStart as reason:
        console.print(str(reason), markup=False, soft_wrap=True)
        return 1
    finally:
        if figures:
            console.print(_table(figures))
    broken = any(each.violations for each in figures)
    if broken:
        console.print(f"[bold red]Promises were broken.[/bold red] What was seen: {folder}", soft_wrap=True)
    elif not given.keep:
        shutil.rmtree(folder)
    return int(broken)


def _run(
    events: Sequence[str],
    folder: Path,
    seed: int,
    per_second: int,
    console: Console,
    figures: list[Figures],
) -> None:
    began = monotonic_seconds()

    def tell(text: str) -> None:
        console.print(f"  [dim]{monotonic_seconds() - began:6.1f} s  {text}[/dim]", soft_wrap=True)

    console.print(f"[bold]seed {seed}[/bold], {per_second} purchases a second; three nodes and a stack start")
    with Arena(folder) as arena:
        tell("ready")
        for number, event in enumerate(events, seed):
            console.print(f"[bold]{event}[/bold]")
            figures.append(run_round(arena, folder, event, seed=number, per_second=per_second, tell=tell))
            for violation in figures[-1].violations:
                console.print(f"  {violation}", style="bold red", markup=False, soft_wrap=True)


def _table(figures: Sequence[Figures]) -> Table:
    table = Table(title="Failover")
    for title in (*COLUMNS.values(), "verify", "verdict"):
        table.add_column(title, justify="right", no_wrap=title == "event")
    for each in figures:
        values = [getattr(each, name) for name in COLUMNS]
        texts = [f"{value:.1f}" if isinstance(value, float) else str(value) for value in values]
        verdict = f"{len(each.violations)} broken" if each.violations else "kept"
        table.add_row(*texts, "clean" if each.verified else "not clean", verdict)
    return table


if __name__ == "__main__":
    sys.exit(main())

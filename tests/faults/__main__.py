"""`python -m tests.faults [--seed N] [--rounds N] [--seconds N] ...`: what `make faults` calls.

Exit code 0 when no promise was broken in any round, 1 otherwise; what was seen is kept then, and where is told.
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

import structlog
from rich.console import Console
from rich.table import Table

from tests.faults.arena import Arena
from tests.faults.rounds import Figures, run_round
from tests.support.authors import act_as

COLUMNS = {
    "seed": "seed",
    "faults": "faults",
    "kills": "kills",
    "requests": "requests",
    "created": "201s",
    "unanswered": "no answer",
    "refused_5xx": "5xx",
    "delivered": "webhooks",
    "duplicates": "twice",
    "pages": "pages of people",
    "longest_without_create_seconds": "longest gap, s",
    "settled_seconds": "settled, s",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the first round; the next ones count on (default: any)")
    parser.add_argument("--rounds", type=int, default=5, help="how many seeds (default 5)")
    parser.add_argument("--seconds", type=float, default=20, help="of faults per round (default 20)")
    parser.add_argument("--keep", type=Path, help="folder for the stack and the journals, kept in any case")
    given = parser.parse_args()
    act_as("faults@harness")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stops the stack on the way out, as Ctrl-C does
    # Answers are noted.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1, 100_000)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    console.print(f"[bold]seed {seed}[/bold], {given.rounds} rounds of {given.seconds:g} s")
    folder = given.keep or Path(tempfile.mkdtemp(prefix="fiatgate-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    figures: list[Figures] = []
    try:
        with Arena(folder) as arena:
            for number in range(seed, seed + given.rounds):
                figures.append(_round(arena, folder, number, given.seconds, console))
    finally:
        console.print(_table(figures))
    broken = any(each.violations for each in figures)
    if broken:
        console.print(f"[bold red]Promises were broken.[/bold red] What was seen: {folder}", soft_wrap=True)
    elif not given.keep:
        shutil.rmtree(folder)
    return int(broken)


def _round(arena: Arena, folder: Path, seed: int, seconds: float, console: Console) -> Figures:
    console.print(f"\n[bold]round of seed {seed}[/bold]")
    figures = run_round(
        arena, folder, seed=seed, seconds=seconds, tell=lambda text: console.print(f"  [dim]{text}[/dim]")
    )
    for violation in figures.violations:
        console.print(f"  [bold red]{violation}[/bold red]", markup=True, soft_wrap=True)
    verdict = "[red]broken[/red]" if figures.violations else "[green]all promises kept[/green]"
    console.print(
        f"  {verdict}: {figures.requests} requests, {figures.kills} kills, settled in {figures.settled_seconds:.1f} s"
    )
    return figures


def _table(figures: Sequence[Figures]) -> Table:
    table = Table(title="Faults")
    for title in (*COLUMNS.values(), "verdict"):
        table.add_column(title, justify="right")
    for each in figures:
        values = [getattr(each, name) for name in COLUMNS]
        texts = [f"{value:.1f}" if isinstance(value, float) else str(value) for value in values]
        table.add_row(*texts, f"{len(each.violations)} broken" if each.violations else "kept")
    return table


if __name__ == "__main__":
    sys.exit(main())

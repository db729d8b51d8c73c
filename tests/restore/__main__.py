"""`python -m tests.restore [--losses disk mistake ...] [--seconds N] [--beyond N]`: what `make restore` calls.

Exit code 0 when each restore kept all that was answered before its time and `fiatgate verify` named all that others
knew beyond it, 1 otherwise.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import structlog
from rich.console import Console
from rich.table import Table

from kit.base.clock import monotonic_seconds
from tests.restore.rounds import Figures, Loss, World, run_round
from tests.support.authors import act_as


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.restore", description=__doc__)
    losses = list(map(str, Loss))
    parser.add_argument("--losses", nargs="+", choices=losses, default=losses, help="(default: all)")
    parser.add_argument(
        "--seconds", type=float, default=20, help="of load up to the restore point (default 20)"
    )
    parser.add_argument("--beyond", type=float, default=8, help="seconds of load after it (default 8)")
    parser.add_argument("--keep", type=Path, help="folder for stack, backups and journals, kept in any case")
    given = parser.parse_args()
    act_as("restore@harness")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stops the stack on the way out, as Ctrl-C does
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    folder = given.keep or Path(tempfile.mkdtemp(prefix="fiatgate-restore-"))
    folder.mkdir(parents=True, exist_ok=True)
    began = monotonic_seconds()

    def tell(text: str) -> None:
        console.print(f"  [dim]{monotonic_seconds() - began:5.1f} s  {text}[/dim]")

    figures: list[Figures] = []
    try:
        with World(folder) as world:
            for loss in map(Loss, given.losses):
                console.print(f"[bold]{loss}[/bold]")
                figures.append(
                    run_round(world, loss, seconds=given.seconds, beyond_seconds=given.beyond, tell=tell)
                )
                for violation in figures[-1].violations[:20]:
                    console.print(f"  {violation}", style="bold red", markup=False, soft_wrap=True)
    finally:
        console.print(_table(figures))
    broken = len(figures) < len(given.losses) or any(each.violations for each in figures)
    if broken:
        console.print(f"What was seen: {folder}", soft_wrap=True)
    elif not given.keep:
        shutil.rmtree(folder)
    return int(broken)


def _table(figures: Sequence[Figures]) -> Table:
    table = Table(title="Restores")
    table.add_column("lost")
    for title in (
        *(
            "backup, MiB",
            "behind, s",
            "restore, s",
            "invoices kept",
            "lost",
            "told beyond",
            "named",
            "restored",
            "by hand",
        ),
        *("webhooks again", "told two things", "to look up", "left"),
    ):
        table.add_column(title, justify="right")
    table.add_column("verdict")
    for each in figures:
        counts = (
            *(
                each.outcome.kept,
                len(each.outcome.lost),
                each.beyond,
                each.named,
                each.restored,
                each.by_hand,
            ),
            *(each.outcome.again, len(each.outcome.otherwise), each.looked_up, each.left),
        )
        table.add_row(
            each.loss,
            f"{each.backup_mib:.0f}",
            f"{each.behind_seconds:.1f}",
            f"{each.restore_seconds:.1f}",
            *map(str, counts),
            f"{len(each.violations)} broken" if each.violations else "kept",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())

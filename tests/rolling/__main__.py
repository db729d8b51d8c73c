"""`python -m tests.rolling [--seed N] [--rounds N] [--at-once N]`: what `make rolling` calls.

Exit code 0 when every request of every round came through and nothing was done twice, 1 otherwise.
"""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import structlog
from rich.console import Console
from rich.table import Table

from kit.base.clock import monotonic_seconds
from tests.rolling.cluster import Cluster
from tests.rolling.pods import Pace
from tests.rolling.rounds import Figures, run_round
from tests.support.authors import act_as


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rolling", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the first round; the next ones count on (default: any)")
    parser.add_argument("--rounds", type=int, default=2, help="how often every pod is replaced (default 2)")
    parser.add_argument("--per-second", type=int, default=200, help="requests (default 200)")
    parser.add_argument("--at-once", type=int, default=2, help="Deployments that roll at once (default 2)")
    parser.add_argument("--keep", type=Path, help="folder for logs and journals, kept in any case")
    given = parser.parse_args()
    act_as("rolling@harness")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stops the pods on the way out, as Ctrl-C does
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1, 100_000)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    folder = given.keep or Path(tempfile.mkdtemp(prefix="fiatgate-rolling-"))
    figures: list[Figures] = []
    began = monotonic_seconds()
    with Cluster(folder, pace=Pace()) as cluster:
        for number in range(seed, seed + given.rounds):
            console.print(f"[bold]round of seed {number}[/bold]")
            figures.append(
                run_round(
                    cluster,
                    seed=number,
                    per_second=given.per_second,
                    at_once=given.at_once,
                    tell=lambda text: console.print(
                        f"  [dim]{monotonic_seconds() - began:5.1f} s  {text}[/dim]"
                    ),
                )
            )
            _tell_what_went_wrong(console, figures[-1])
    console.print(_table(figures))
    console.print(_used(figures[-1]))
    broken = any(each.violations for each in figures)
    if broken:
        console.print(f"What was seen: {folder}", soft_wrap=True)
    elif not given.keep:
        shutil.rmtree(folder)
    return int(broken)


def _tell_what_went_wrong(console: Console, figures: Figures) -> None:
    for why, count in figures.load.retried.items():
        console.print(f"  tried again {count} times: {why}", markup=False, soft_wrap=True)
    for violation in figures.violations[:20]:
        console.print(f"  {violation}", style="bold red", markup=False, soft_wrap=True)


def _table(figures: list[Figures]) -> Table:
    table = Table(title="Rolling restarts")
    counts = (
        "seed",
        "restarts",
        "before migration",
        "requests",
        "a second",
        "tried again",
        "failed",
        "201s",
        "webhooks",
    )
    for title in (*counts, "p99, ms", "slowest, ms"):
        table.add_column(title, justify="right")
    table.add_column("verdict")
    for each in figures:
        table.add_row(
            *(
                str(n)
                for n in (
                    each.seed,
                    each.restarts,
                    each.early,
                    each.load.requests,
                    round(each.load.per_second),
                    each.retried,
                    len(each.load.failed),
                )
            ),
            *(str(n) for n in (each.created, each.webhooks)),
            *(f"{1000 * each.slowest_seconds(share):.0f}" for share in (0.99, 1)),
            f"{len(each.violations)} broken" if each.violations else "kept",
        )
    return table


def _used(figures: Figures) -> Table:
    """What requests and limits of deploy/k8s/base are chosen by."""
    table = Table(title="The most that a pod of each used, its start included")
    for title in ("Deployment", "cores", "MiB"):
        table.add_column(title, justify="left" if title == "Deployment" else "right")
    for name, (cores, memory) in sorted(figures.used.items()):
        table.add_row(name, f"{cores:.2f}", f"{memory:.0f}")
    return table


if __name__ == "__main__":
    sys.exit(main())

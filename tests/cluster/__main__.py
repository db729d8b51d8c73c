"""`python -m tests.cluster [IMAGE] [--namespace NAME] [--per-second N] [--at-once N]`: what `make cluster` calls.

Exit code 0 when every step kept what is promised, 1 when one did not, 2 when nothing could be tried here.
"""

import argparse
import signal
import sys
from typing import Final

from rich.console import Console
from rich.table import Table

from kit.base.clock import monotonic_seconds
from tests.cluster.kube import Failed, Refusal, require_cluster
from tests.cluster.overlay import Overlay
from tests.cluster.trial import Trial
from tests.cluster.verdicts import Row
from tests.k8s.manifests import VERSION

NEEDED: Final = ("apply", "first steps")  # by all that follow


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("image", nargs="?", default=f"fiatgate:{VERSION}", help="default: %(default)s")
    parser.add_argument(
        "--namespace", default="fiatgate-trial", help="made and deleted (default: %(default)s)"
    )
    parser.add_argument("--per-second", type=int, default=20, help="requests (default: %(default)s)")
    parser.add_argument(
        "--at-once", type=int, default=2, help="Deployments restarted at once (default: %(default)s)"
    )
    parser.add_argument(
        "--only", action="append", metavar="STEP", help="after the first two, as 'rolling restart'"
    )
    given = parser.parse_args(arguments)
    # Both delete the namespace on the way out. A shell starts what it runs behind with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    began = monotonic_seconds()

    def tell(text: str) -> None:
        console.print(f"  [dim]{monotonic_seconds() - began:5.0f} s[/dim]  {text}", soft_wrap=True)

    trial = Trial(
        Overlay(given.namespace, given.image), per_second=given.per_second, at_once=given.at_once, tell=tell
    )
    rows: list[Row] = []
    try:
        require_cluster()
        trial.claim()
        try:
            _take(trial, rows, console, given.only)
        finally:
            tell(f"deleting the namespace {given.namespace}")
            if left := trial.remove():
                tell(left)
    except Refusal as refusal:
        console.print(str(refusal), markup=False, soft_wrap=True)
        return 2
    except Failed as failure:
        console.print(f"Not all was deleted: {failure}", style="bold red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if rows:
            console.print(_table(rows))
    return int(any(each.wrong for each in rows))


def _take(trial: Trial, rows: list[Row], console: Console, only: list[str] | None) -> None:
    steps = trial.steps()
    if unknown := set(only or ()) - steps.keys():
        raise Refusal(f"No step {', '.join(unknown)}: {', '.join(steps)}")
    for name, does in steps.items():
        if only and name not in (*NEEDED, *only):
            continue
        console.print(f"[bold]{name}[/bold]")
        rows.append(trial.step(name, does))
        if rows[-1].seen:
            console.print(f"  {rows[-1].seen}: {rows[-1].verdict}", markup=False, soft_wrap=True)
        for each in rows[-1].wrong[:20]:
            console.print(f"  {each}", style="bold red", markup=False, soft_wrap=True)
        if rows[-1].wrong and name in NEEDED:
            return


def _table(rows: list[Row]) -> Table:
    table = Table(title="Fiatgate on this cluster")
    table.add_column("step")
    table.add_column("took, s", justify="right")
    table.add_column("seen")
    table.add_column("verdict")
    for each in rows:
        table.add_row(each.step, f"{each.seconds:.0f}", each.seen, each.verdict)
    return table


if __name__ == "__main__":
    sys.exit(main())

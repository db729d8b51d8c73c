"""The command of a harness: its options, what is printed meanwhile, the table of its rounds, and the exit code."""

import argparse
import logging
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import structlog
from rich.console import Console
from rich.table import Table

from kit.base.clock import monotonic_seconds
from tests.support.authors import act_as

Tell = Callable[[str], None]


class Figures(Protocol):
    """The result of one round. `violations` is empty when every promise was kept."""

    @property
    def violations(self) -> Sequence[str]: ...


F = TypeVar("F", bound=Figures)
Columns = Mapping[str, Callable[[F], object]]


def options(harness: str, description: str | None) -> argparse.ArgumentParser:
    """Returns a parser that knows --keep."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.{harness}", description=description)
    parser.add_argument("--keep", type=Path, help="folder for logs and journals, kept in any case")
    return parser


def add_seed(parser: argparse.ArgumentParser) -> None:
    any_seed = random.SystemRandom().randrange(1, 100_000)
    parser.add_argument(
        "--seed", type=int, default=any_seed, help="of the first round; the next ones count on (default: any)"
    )


def judge(
    harness: str,
    keep: Path | None,
    rounds: Callable[[Path, Tell], Iterator[F]],
    columns: Columns[F],
    *,
    count: int,
    more: Callable[[F], Table] | None = None,
) -> int:
    """Runs the rounds in a folder and returns the exit code: 0 when there were `count` and each kept every promise.

    The folder is kept when one did not. `more` is a second table, of the last round.
    """
    act_as(f"{harness}@harness")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stops all on the way out, as Ctrl-C does
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    folder = keep or Path(tempfile.mkdtemp(prefix=f"fiatgate-{harness}-"))
    folder.mkdir(parents=True, exist_ok=True)
    began = monotonic_seconds()

    def tell(text: str) -> None:
        console.print(
            f"{monotonic_seconds() - began:6.1f} s  {text}", style="dim", markup=False, soft_wrap=True
        )

    figures: list[F] = []
    try:
        for each in rounds(folder, tell):
            figures.append(each)
            for violation in each.violations[:20]:
                console.print(f"  {violation}", style="bold red", markup=False, soft_wrap=True)
            tell(f"round {len(figures)}: {_verdict(each)}")
    finally:
        if figures:
            console.print(_table(harness, figures, columns))
    if figures and more is not None:
        console.print(more(figures[-1]))
    broken = len(figures) < count or any(each.violations for each in figures)
    if broken:
        console.print(f"[bold red]Promises were broken.[/bold red] What was seen: {folder}", soft_wrap=True)
    elif not keep:
        shutil.rmtree(folder)
    return int(broken)


def _verdict(figures: Figures) -> str:
    return f"{len(figures.violations)} broken" if figures.violations else "kept"


def _table(title: str, figures: Sequence[F], columns: Columns[F]) -> Table:
    table = Table(title=title)
    for column in (*columns, "verdict"):
        table.add_column(column, justify="right")
    for each in figures:
        values = [value(each) for value in columns.values()]
        texts = [f"{value:.1f}" if isinstance(value, float) else str(value) for value in values]
        table.add_row(*texts, _verdict(each))
    return table

"""The options of a benchmark, and its table of figures with their limits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tests.support.authors import act_as


@dataclass(frozen=True)
class Row:
    """One figure. `limit` is empty where there is none; `met` says whether it holds."""

    what: str
    measured: str
    limit: str = ""
    met: bool = True


def options(description: str | None) -> argparse.ArgumentParser:
    """Returns the parser of a benchmark's options. From here on its calls have an author."""
    act_as("benchmarks@harness")
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def at_least(what: str, value: float, limit: float) -> Row:
    """A ratio that must not be smaller."""
    return Row(what, f"{value:.2f}", f">= {limit:.2f}", value >= limit)


def below(what: str, value: float, limit: float, unit: str) -> Row:
    """A figure that must stay smaller."""
    return Row(what, f"{value:.1f} {unit}", f"< {limit:g} {unit}", value < limit)


def show(title: str, rows: Sequence[Row]) -> int:
    """Print the table; the process's exit code: 1 when a limit is missed."""
    table = Table(title, "measured", "limit", "")
    for row in rows:
        table.add_row(row.what, row.measured, row.limit, ("ok" if row.met else "MISSED") if row.limit else "")
    Console(width=110).print(table)
    return 0 if all(row.met for row in rows) else 1

"""`make bench`: every benchmark, one after the other, each in a process of its own; exit code 1 when a limit is missed.

`--update` writes the tables into benchmarks/README.md, with the machine and the time that each took; `--only` runs some
of them, and `--update` leaves the tables of the others as they are.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil

from kit.base.clock import SystemClock, monotonic_seconds

BENCHMARKS = (
    "bench_api",
    "bench_webhooks",
    "bench_latency",
    "bench_chain",
    "bench_expiry",
    "bench_stack",
    "bench_walls",
    "bench_actors",
    "bench_desk",
    "bench_dashboard",
    "bench_lists",
)
README = Path(__file__).with_name("README.md")
RESULTS = re.compile(r"(<!-- results -->\n).*?(<!-- end of results -->)", re.DOTALL)
BENCHMARK_SECONDS = 900


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the tables into benchmarks/README.md")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS, metavar="NAME")
    given = parser.parse_args()
    tables, missed = {}, False
    for name in given.only:
        began = monotonic_seconds()
        sys.stderr.write(f"{name} ...\n")
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}"],
            stdout=subprocess.PIPE,
            text=True,
            timeout=BENCHMARK_SECONDS,
            check=False,
        )
        took = f"{monotonic_seconds() - began:.0f} s"
        sys.stdout.write(f"{done.stdout}{name} took {took}\n")
        sys.stdout.flush()
        missed = missed or done.returncode != 0
        tables[name] = f"`python -m benchmarks.{name}`, {took}\n\n```\n{done.stdout.strip()}\n```\n"
    if given.update:
        README.write_text(_updated(README.read_text(), tables))
    return 1 if missed else 0


def _updated(text: str, tables: Mapping[str, str]) -> str:
    if set(tables) == set(BENCHMARKS):
        return RESULTS.sub(
            lambda found: f"{found[1]}{_machine()}\n\n{''.join(tables.values())}{found[2]}", text
        )
    for name, table in tables.items():
        old = re.compile(
            rf"`python -m benchmarks\.{name}\b[^\n]*\n\n```\n.*?```\n|(?=<!-- end of results -->)", re.DOTALL
        )
        text = old.sub(table.replace("\\", r"\\"), text, count=1)  # one that has no table yet comes last
    return text


def _machine() -> str:
    memory_gib = psutil.virtual_memory().total / 1024**3
    return (
        f"Measured on {SystemClock().now():%Y-%m-%d}: {os.cpu_count()} cores, {memory_gib:.0f} GiB, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}; "
        "the load generator and all servers on the same machine."
    )


if __name__ == "__main__":
    sys.exit(main())

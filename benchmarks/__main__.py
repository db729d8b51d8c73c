"""`make bench`: every benchmark, one after the other, each in a process of its own; exit code 1 when a limit is missed.

`--only` runs some of them. benchmarks/README.md has the newest figures.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from kit.base.clock import monotonic_seconds

BENCHMARKS = (
    "bench_api",
    "bench_webhooks",
    "bench_latency",
    "bench_expiry",
    "bench_stack",
    "bench_walls",
    "bench_desk",
    "bench_dashboard",
    "bench_bank",
)
BENCHMARK_SECONDS = 900


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS, metavar="NAME")
    given = parser.parse_args()
    missed = False
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
        sys.stdout.write(f"{done.stdout}{name} took {monotonic_seconds() - began:.0f} s\n")
        sys.stdout.flush()
        missed = missed or done.returncode != 0
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

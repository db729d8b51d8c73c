"""What mTLS between the processes costs: create-invoice on two stacks, one with it, one without.

    python -m benchmarks.bench_mtls [--requests 2000] [--rounds 5]

The rounds alternate, so that a slow minute of the machine hits both; the medians are compared. Not part of
`make bench`: there is nothing to guard, it is the price of a setting.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import uvloop

from benchmarks.bench_api import CLIENTS, Load, one_round, orders, running_stack
from benchmarks.report import Row, show
from tests.support.certificates import PROCESSES, Authority, stack_settings
from tests.support.stack import Stack


def measure(per_round: int, rounds: int) -> list[Row]:
    """Rows: the rates and latencies without and with."""
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority()
        certificates = {name: authority.issue(Path(folder) / name, name) for name in PROCESSES}
        with running_stack() as plain, running_stack(**stack_settings(certificates)) as secured:
            loads = (_create("without", plain), _create("with mTLS", secured))
            for number in range(rounds + 1):
                for load in loads:
                    uvloop.run(one_round(load, orders(per_round)))
                    if number == 0:  # warms caches, connections and statements up
                        load.rates.clear()
                        load.latencies_ms.clear()
    without, with_mtls = loads
    return [
        *(Row(f"create-invoice, {load.name}", f"{load.per_second:,.0f}/s") for load in loads),
        Row("with / without", f"{with_mtls.per_second / without.per_second:.2f}"),
        *(
            Row(f"p50, {CLIENTS} clients, {load.name}", f"{statistics.median(load.latencies_ms):.0f} ms")
            for load in loads
        ),
    ]


def _create(name: str, stack: Stack) -> Load:
    key = {"X-Api-Key": stack.demo["api_key"]}
    return Load(name, "POST", f"{stack.url}/api/v1/create-invoice", key, 201)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=2000, help="per round")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    return show("mTLS", measure(given.requests, given.rounds))


if __name__ == "__main__":
    sys.exit(main())

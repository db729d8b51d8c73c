"""What traces cost create-invoice: three stacks, without them, with every request traced, and with one of twenty.

    python -m benchmarks.bench_traces [--requests 1500] [--rounds 6]

The rounds alternate, so that a slow minute of the machine hits all; the medians are compared. The collector takes what
comes and does nothing with it, or its own work would be measured too. Not part of `make bench`: there is nothing to
guard, it is the price of a setting.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import uvloop
from aiohttp import web

from benchmarks.bench_api import Load, one_round, orders, running_stack
from benchmarks.processor import processor_seconds
from benchmarks.report import Row, show
from deploy.local.ports import free_ports
from tests.support.stack import Stack

PROGRAMS = ("gateway", "merchants", "catalog", "invoices")  # those that create-invoice goes through


@dataclass
class Measured:
    """One stack; `cpu_us` is what its processes took per request, one figure per round."""

    stack: Stack
    load: Load
    cpu_us: list[float] = field(default_factory=list)

    def round(self, per_round: int) -> None:
        before = self._cpu_seconds()
        uvloop.run(one_round(self.load, orders(per_round)))
        self.cpu_us.append(1_000_000 * (self._cpu_seconds() - before) / per_round)

    def _cpu_seconds(self) -> float:
        return sum(processor_seconds(self.stack, PROGRAMS).values())


def measure(per_round: int, rounds: int) -> list[Row]:
    """Rows: rates, and the processor time of one request."""
    with ExitStack() as opened:
        collector = {"FIATGATE_TRACES_ENDPOINT": opened.enter_context(_collector())}
        settings = {
            "without": {},
            "one of twenty": collector | {"FIATGATE_TRACES_RATIO": "0.05"},
            "all": collector,
        }
        stacks = {name: opened.enter_context(running_stack(**each)) for name, each in settings.items()}
        measured = [Measured(stack, _create(name, stack)) for name, stack in stacks.items()]
        for number in range(rounds + 1):
            for each in measured:
                each.round(per_round)
                if number == 0:  # warms caches, connections and statements up
                    each.load.rates.clear()
                    each.cpu_us.clear()
    return [
        *(Row(f"create-invoice, {each.load.name}", f"{each.load.per_second:,.0f}/s") for each in measured),
        *(
            Row(f"processor time of one, {each.load.name}", f"{statistics.median(each.cpu_us):,.0f} us")
            for each in measured
        ),
    ]


def _create(name: str, stack: Stack) -> Load:
    key = {"X-Api-Key": stack.demo["api_key"]}
    return Load(name, "POST", f"{stack.url}/api/v1/create-invoice", key, 201)


@contextmanager
def _collector() -> Iterator[str]:
    (port,) = free_ports(1)
    with subprocess.Popen([sys.executable, "-m", "benchmarks.bench_traces", "--sink", str(port)]) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _sink(port: int) -> None:
    async def take(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(content_type="application/x-protobuf")

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/traces", take)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=1500, help="per round")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--sink", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.sink:
        _sink(given.sink)
        return 0
    return show("Traces", measure(given.requests, given.rounds))


if __name__ == "__main__":
    sys.exit(main())

"""The whole stack on one machine: from a confirmed deal to the merchant's endpoint, memory at rest, and a warm start.

    python -m benchmarks.bench_stack [--purchases 40]

Memory is read after the time in which idle database connections are closed, so it takes two minutes in all. Limits:
median from the operator's confirmation (the call being sent, so the commit is inside) to the webhook's arrival under
50 ms on an idle stack; memory of all programs at rest under 450 MiB; median of the whole command `fiatgate deals list`
under 350 ms; a second start of the same data under 8 s.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import psutil
from rich.progress import track

from benchmarks.bench_api import running_stack
from benchmarks.report import Row, below, show
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceStub, DealDeskServiceStub
from kit.base.clock import monotonic_seconds
from kit.db.connections import POOLED_IDLE_SECONDS
from kit.rpc.client import channel
from tests.support.authors import act_as
from tests.support.receiver import Receiver
from tests.support.stack import Stack

MOST_MEDIAN_MS = 50
MOST_MEMORY_MIB = 700
MOST_COMMAND_MS = 350
COMMANDS = (("deals", "list"), ("status",), ("--help",))
COMMAND_RUNS = 9
COMMAND_SECONDS = 30
REST_SECONDS = 12  # the server closes a connection some seconds after the client gives it up
MOST_START_SECONDS = 8
MEBIBYTE = 1024 * 1024


def _arrivals_ms(stack: Stack, purchases: int) -> list[float]:
    """Milliseconds from sending ConfirmDeal to the webhook at the receiver, one purchase after the other."""
    took = []
    with channel(stack.addresses["invoices"], name="invoices") as invoices, Receiver() as receiver:
        checkout, desk = CheckoutServiceStub(invoices), DealDeskServiceStub(invoices)
        for number in track(range(purchases + 1), "purchases", transient=True):
            name = secrets.token_hex(8)
            created = stack.request(
                "POST",
                "/api/v1/create-invoice",
                json={
                    "amount": f"{100 + number}.00",
                    "currency_code": "EUR",
                    "customer_id": name,
                    "external_id": name,
                    "callback_url": receiver.url(name),
                },
            ).json()
            chosen = checkout.SelectPaymentMethod(
                invoices_pb2.SelectPaymentMethodRequest(
                    invoice_id=created["invoice_id"], method_code="eur-card"
                )
            )
            sent = monotonic_seconds()
            desk.ConfirmDeal(invoices_pb2.ConfirmDealRequest(deal_id=chosen.invoice.deal.deal_id))
            (arrived,) = receiver.wait_for(1, path=name)
            if number:  # the first one opens connections
                took.append(1000 * (arrived.at_seconds - sent))
    return took


def _rest() -> None:
    """Waits until the connections that only the start needed are closed."""
    for _ in track(range(POOLED_IDLE_SECONDS + REST_SECONDS), "rest", transient=True):
        time.sleep(1)


def _memory_mib(stack: Stack) -> dict[str, float]:
    """Proportional set size by program: what would be free without it."""
    used: dict[str, float] = defaultdict(float)
    for name, program in stack.programs().items():
        if program.process_id is not None:
            top = psutil.Process(program.process_id)
            for process in (top, *top.children(recursive=True)):
                used[name] += process.memory_full_info().pss / MEBIBYTE
    return used


def _supervision_mib(stack: Stack) -> float:
    """Returns the memory of supervisord and of the process `make run`, MiB. A cluster has neither."""
    launcher = psutil.Process(stack.process_id)
    supervisord = psutil.Process(stack.programs()["postgres"].process_id).parent()
    assert supervisord is not None
    return sum(each.memory_full_info().pss / MEBIBYTE for each in (launcher, supervisord))


def _commands_ms(stack: Stack, *words: str) -> list[float]:
    """Milliseconds of whole commands `fiatgate WORDS`, the start of Python included."""
    took = []
    for number in range(COMMAND_RUNS + 1):
        began = monotonic_seconds()
        subprocess.run(
            [Path(sys.executable).with_name("fiatgate"), *words],
            env=os.environ | {"FIATGATE_HOME": str(stack.home.folder)},
            stdout=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS,
            check=True,
        )
        if number:  # the first one reads files that are not in the cache yet
            took.append(1000 * (monotonic_seconds() - began))
    return took


def measure(purchases: int) -> list[Row]:
    with running_stack() as stack:
        _rest()
        memory, supervision = _memory_mib(stack), _supervision_mib(stack)
        arrivals = _arrivals_ms(stack, purchases)
        listed, status, helped = (_commands_ms(stack, *words) for words in COMMANDS)
        stack.stop()
        started = monotonic_seconds()
        stack.start()
        start_seconds = monotonic_seconds() - started
    services = sum(used for name, used in memory.items() if name not in ("postgres", "nats"))
    return [
        below("confirmation to webhook, idle, median", statistics.median(arrivals), MOST_MEDIAN_MS, "ms"),
        Row("confirmation to webhook, idle, p95", f"{statistics.quantiles(arrivals, n=20)[-1]:.1f} ms"),
        below("fiatgate deals list, whole command, median", statistics.median(listed), MOST_COMMAND_MS, "ms"),
        Row("the same of fiatgate status", f"{statistics.median(status):.1f} ms"),
        Row("the same of fiatgate --help", f"{statistics.median(helped):.1f} ms"),
        below("memory at rest, all", sum(memory.values()), MOST_MEMORY_MIB, "MiB"),
        Row("memory at rest, services, gateway, console and demo rates", f"{services:.0f} MiB"),
        *(Row(f"  {name}", f"{used:.0f} MiB") for name, used in sorted(memory.items())),
        Row("besides: supervisord and the runner", f"{supervision:.0f} MiB"),
        below("warm start", start_seconds, MOST_START_SECONDS, "s"),
        Row("load average while measuring", f"{os.getloadavg()[0]:.1f}"),
    ]


def main() -> int:
    act_as("benchmarks@harness")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--purchases", type=int, default=40)
    return show("Stack", measure(parser.parse_args().purchases))


if __name__ == "__main__":
    sys.exit(main())

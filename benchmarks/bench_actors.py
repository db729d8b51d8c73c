"""The cost of the actor of a call and of its act for ConfirmDeal: the same service with both, and with neither.

    python -m benchmarks.bench_actors [--deals 200] [--rounds 8]

Two processes of invoices serve the database of one stack. `with` checks a person's token at each call and writes the
act; `without` lets every process pass and writes none. The rounds alternate, so that a slow minute of the machine hits
both; the medians are compared. Limit: at least 0.85 of the rate without.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import secrets
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import aiohttp
import psutil
import uvloop
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from benchmarks.bench_api import running_stack
from benchmarks.report import Row, at_least, show
from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceStub, DealDeskServiceStub
from kit.audit import acts
from kit.base.actors import Actor
from kit.base.clock import SystemClock, monotonic_seconds
from kit.base.config.variables import load
from kit.base.ids import new_id
from kit.observe import log
from kit.process.running import Process
from kit.rpc.actor_tokens import raw_public_key, write_token
from kit.rpc.actors import carry_token
from kit.rpc.client import aio_channel
from kit.rpc.permissions import machine
from services.invoices.__main__ import SERVICE
from services.invoices.config import InvoicesSettings
from tests.support.stack import Stack

LEAST: Final = 0.85
METHOD: Final = "eur-card"
AT_ONCE: Final = 4
KEY_ID: Final = "benchmark"
PUBLIC_KEY: Final = "BENCH_PUBLIC_KEY"
START_SECONDS: Final = 30


@dataclass
class Served:
    """One of the two processes. `per_second` has one figure for each round."""

    name: str
    address: str
    key: Ed25519PrivateKey | None = None
    per_second: list[float] = field(default_factory=list)

    def round(self, stack: Stack, deals: int) -> None:
        uvloop.run(self._round(stack, deals))

    async def _round(self, stack: Stack, deals: int) -> None:
        waiting = await _open_deals(stack, deals)
        if self.key is not None:
            carry_token(_token(self.key))
        async with aio_channel(self.address, name="invoices") as opened:
            desk: Any = DealDeskServiceStub(opened)
            started = monotonic_seconds()
            await asyncio.gather(*(_confirm(desk, waiting[number::AT_ONCE]) for number in range(AT_ONCE)))
            self.per_second.append(deals / (monotonic_seconds() - started))


async def _confirm(desk: Any, deal_ids: list[str]) -> None:
    for deal_id in deal_ids:
        await desk.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal_id))


async def _open_deals(stack: Stack, count: int) -> list[str]:
    """Opens deals of the demo merchant, each with an amount of its own, and returns their ids."""
    key = {"X-Api-Key": stack.demo["api_key"]}
    async with (
        aiohttp.ClientSession(headers=key) as http,
        aio_channel(stack.addresses["invoices"], name="invoices") as opened,
    ):
        checkout = CheckoutServiceStub(opened)

        async def open_one(number: int) -> str:
            name = secrets.token_hex(8)
            order = {
                "amount": f"{100 + number // 100}.{number % 100:02}",
                "currency_code": "EUR",
                "customer_id": name,
                "external_id": name,
            }
            async with http.post(f"{stack.url}/api/v1/create-invoice", json=order) as answer:
                created = await answer.json()
            request = pb.SelectPaymentMethodRequest(invoice_id=created["invoice_id"], method_code=METHOD)
            chosen = await checkout.SelectPaymentMethod(request)
            return str(chosen.invoice.deal.deal_id)

        found: list[str] = []
        for start in range(0, count, AT_ONCE):
            found += await asyncio.gather(*map(open_one, range(start, min(start + AT_ONCE, count))))
        return found


def _token(key: Ed25519PrivateKey) -> str:
    person = Actor(
        kind="person",
        name="bench@example.com",
        surface="desk",
        person_id=new_id(),
        session_id=new_id(),
        roles=frozenset({"desk"}),
    )
    return write_token(person, key_id=KEY_ID, private_key=key, now=SystemClock().now())


# -- the two processes


@contextmanager
def _served(stack: Stack, name: str, key: Ed25519PrivateKey | None) -> Iterator[Served]:
    """A further process of the stack's invoices, with its settings, on a port of its own."""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    environment = psutil.Process(stack.programs()["invoices"].process_id).environ()
    environment |= {"FIATGATE_INVOICES_BIND": address, "FIATGATE_INVOICES_METRICS_BIND": ""}
    environment |= {PUBLIC_KEY: base64.b64encode(raw_public_key(key)).decode() if key else ""}
    command = [sys.executable, "-m", "benchmarks.bench_actors", "--serve"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: _listens(port), f"{name} to serve", timeout_seconds=START_SECONDS)
            yield Served(name, address, key)
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@dataclass(frozen=True)
class _OneKey:
    key: Ed25519PublicKey

    def find(self, key_id: str) -> Ed25519PublicKey | None:
        return self.key if key_id == KEY_ID else None


def _serve() -> int:
    settings = load(InvoicesSettings)
    log.configure(SERVICE.name, settings)
    if given := os.environ[PUBLIC_KEY]:
        key = _OneKey(Ed25519PublicKey.from_public_bytes(base64.b64decode(given)))
        service = replace(SERVICE, actor_keys=lambda deps: key)
    else:
        acts.record = lambda *args, **options: None
        service = replace(SERVICE, permissions=dict.fromkeys(SERVICE.permissions, machine(changes=True)))
    return Process(service, settings, mode="serve").run()


def measure(deals: int, rounds: int) -> list[Row]:
    with (
        running_stack() as stack,
        _served(stack, "without", None) as without,
        _served(stack, "with", Ed25519PrivateKey.generate()) as with_actors,
    ):
        for number in range(rounds + 1):
            for each in (without, with_actors) if number % 2 else (with_actors, without):
                each.round(stack, deals)
                if number == 0:  # warms connections and statements up
                    each.per_second.clear()
    rates = {each.name: statistics.median(each.per_second) for each in (without, with_actors)}
    return [
        *(Row(f"ConfirmDeal, {name} actor and act", f"{rate:,.0f}/s") for name, rate in rates.items()),
        at_least("with / without", rates["with"] / rates["without"], LEAST),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--deals", type=int, default=200, help="per round")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        return _serve()
    return show("Actors", measure(given.deals, given.rounds))


if __name__ == "__main__":
    sys.exit(main())

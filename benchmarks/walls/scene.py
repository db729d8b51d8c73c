"""A fresh stack with two merchants: the attacker, and the victim beside it."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

import grpc
import psutil
import psycopg2
import requests

from benchmarks.walls.attackers import Target
from benchmarks.walls.victim import PER_SECOND, Request, Victim
from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceStub, DealDeskServiceStub
from kit.base.clock import monotonic_seconds
from kit.rpc.client import channel
from tests.console.house import PASSWORD, House, Person
from tests.e2e.market import METHOD, Shop
from tests.support.receiver import Answer, Receiver
from tests.support.stack import Stack

"""Open files of each process of the stack, unless it raises the limit itself: as systemd and many images have it."""
SETTINGS: Final = {"FIATGATE_GATEWAY_WORKERS": "2", "FIATGATE_WEBHOOK_RESEND_COOLDOWN_SECONDS": "0"}
MANY_INVOICES: Final = 200_000
CODES: Final = 40
LOOKED_AT: Final = 40
EVENTS: Final = 40
MEMBERS: Final = 4
CODES_OF_ONE: Final = 8
TARPIT: Final = "tarpit"
TARPIT_SECONDS: Final = 30
SAMPLE_SECONDS: Final = 0.1
CALM_MS: Final = 150
CALM_ANSWERS: Final = 10
CALM_SECONDS: Final = 90
MEBIBYTE: Final = 1024 * 1024


@dataclass
class Memory:
    """Memory of all workers of the attacked process together, MiB."""

    before: int
    peak: int


@dataclass
class Onslaught:
    """The report of an attacker at its end: the number of answers, by status."""

    answers: Counter[str] = field(default_factory=Counter)


class Scene:
    """Made by `opened`."""

    def __init__(self, stack: Stack, receiver: Receiver) -> None:
        self.stack = stack
        self._receiver = receiver
        self._emails: list[str] = []  # of the victim's members
        self._attacker, self._victim = Shop.opened(stack), Shop.opened(stack)
        with channel(stack.addresses["invoices"], name="invoices") as invoices:
            DealDeskServiceStub(invoices).AddRequisite(
                invoices_pb2.AddRequisiteRequest(
                    method_code=METHOD, holder="Walls", account="5555 5555 5555 4444", max_deals=10_000
                )
            )

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[Scene]:
        """The stack of `make run`, with durable data."""
        stack = Stack(folder / "home", settings=SETTINGS, durable=True)
        with ExitStack() as left:
            left.callback(stack.stop)
            stack.start()
            yield cls(stack, left.enter_context(Receiver()))

    # -- the victim

    def victim(self, kinds: tuple[str, ...], *, seconds: int) -> Victim:
        """Its requests for so many seconds; deals and webhooks that they need are made before."""
        made = {
            "create-invoice": self._creations,
            "I have paid": self._payments,
            "resend": self._resends,
            "dashboard page": self._pages,
            "sign-in": self._sign_ins,
        }
        return Victim(self.stack.url, {kind: made[kind](seconds * PER_SECOND[kind]) for kind in kinds})

    def _creations(self, _: int) -> Iterator[Request]:
        headers = {"X-Api-Key": self._victim.api_key}
        callback = self._receiver.url("shop")
        while True:
            yield Request(
                "POST", "/api/v1/create-invoice", headers, body=self._victim.body(callback_url=callback)
            )

    def _payments(self, count: int) -> Iterator[Request]:
        deals = [self._with_deal(self._victim) for _ in range(count)]
        return (
            Request("POST", f"/pay/{invoice_id}/paid", {}, form={"deal_id": deal_id})
            for invoice_id, deal_id in deals
        )

    def _resends(self, _: int) -> Iterator[Request]:
        invoices = [self._finished(self._victim, "shop") for _ in range(EVENTS)]
        self._wait_for_webhooks("shop", EVENTS)
        headers = {"X-Api-Key": self._victim.api_key, "Content-Type": "application/json"}
        return (
            Request("POST", f"/api/v1/invoices/{invoice_id}/webhooks/resend", headers)
            for invoice_id in itertools.cycle(invoices)
        )

    def _pages(self, _: int) -> Iterator[Request]:
        """The invoices of the merchant, read by its members in turn: each has a limit of requests."""
        cookies = [f"{name}={value}" for each in self._members for name, value in each.http.cookies.items()]
        return (
            Request("GET", f"{self._house.dashboard}/invoices", {"Cookie": cookie})
            for cookie in itertools.cycle(cookies)
        )

    def _sign_ins(self, count: int) -> Iterator[Request]:
        """Sign-ins of members who were there before, each with a recovery code. A person has ten, and may sign in ten
        times a minute.
        """
        people = [self._member() for _ in range(-(-count // CODES_OF_ONE))]
        codes = [_recovery_codes(each) for each in people]
        return (
            Request(
                "POST",
                f"{self._house.dashboard}/sign-in",
                {"Sec-Fetch-Site": "same-origin"},
                form={"email": each.email, "password": PASSWORD, "code": code},
            )
            for turn in zip(*codes, strict=True)
            for each, code in zip(people, turn, strict=True)
        )

    def _member(self) -> Person:
        member = self._house.person("owner", merchant=self._victim.merchant_id)
        member.add_factors()
        self._emails.append(member.email)
        return member

    @cached_property
    def _members(self) -> list[Person]:
        return [self._member() for _ in range(MEMBERS)]

    @cached_property
    def _house(self) -> House:
        urls = self.stack.home.running_stack()["consoles"]
        accounts = grpc.insecure_channel(self.stack.addresses["identity"])
        return House(urls["console-desk"], urls["console-dashboard"], self.stack, accounts)

    # -- the attacker

    @contextmanager
    def under_attack(self, name: str, *, networks: int) -> Iterator[Onslaught]:
        """Inside the block the attack is under way."""
        target = self._target(name, networks)
        onslaught = Onslaught()
        with ExitStack() as over:
            if name == "catalog-hangs":
                over.enter_context(self._hanging("catalog"))
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.walls.attackers", name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            over.callback(process.kill)
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(target.as_json())
            process.stdin.close()
            if process.stdout.readline() != "under way\n":
                raise RuntimeError(f"the attack {name} did not begin")
            yield onslaught
            process.terminate()
            onslaught.answers.update(json.loads(process.stdout.read()))
            process.wait()

    def _target(self, name: str, networks: int) -> Target:
        """Prepares what this attack needs, once."""
        if name == "deep-pages":
            assert self._many_invoices
        return Target(
            port=self.stack.port,
            api_key=self._attacker.api_key,
            networks=networks,
            invoices=self._waiting if name == "catalog-hangs" else [],
            deals=self._paying if name == "qr-codes" else [],
            events=self._hanging_events if name == "resends" else [],
            dashboard=self._house.dashboard,
            people=self._emails,
        )

    @cached_property
    def _waiting(self) -> list[str]:
        return [self._created(self._attacker, "shop") for _ in range(LOOKED_AT)]

    @cached_property
    def _paying(self) -> list[str]:
        return [self._with_deal(self._attacker)[0] for _ in range(CODES)]

    @cached_property
    def _hanging_events(self) -> list[str]:
        """Delivered once; only then the endpoint stops to answer, so that nothing but resends goes there."""
        events = [self._finished(self._attacker, TARPIT) for _ in range(EVENTS)]
        self._wait_for_webhooks(TARPIT, EVENTS)
        self._receiver.answer(Answer(delay_seconds=TARPIT_SECONDS), path=TARPIT)
        return events

    @cached_property
    def _many_invoices(self) -> int:
        """As many as a busy merchant has after some weeks, all canceled."""
        admin = str(self.stack.home.running_stack()["postgres_url"]).rpartition("/")[0]
        with closing(psycopg2.connect(f"{admin}/invoices")) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            cursor.execute(
                "INSERT INTO invoices (id, merchant_id, key_id, external_id, amount, currency_code, status,"
                " customer_id, created_at, expires_at, finished_at, event_id)"
                " SELECT gen_random_uuid(), %s, gen_random_uuid(), 'old-' || n, 10, 'EUR', 'canceled', 'c-' || n,"
                " now() - n * interval '10 seconds', now(), now(), gen_random_uuid() FROM generate_series(1, %s) n",
                (self._attacker.merchant_id, MANY_INVOICES),
            )
            cursor.execute("VACUUM ANALYZE invoices")
        return MANY_INVOICES

    @contextmanager
    def _hanging(self, program: str) -> Iterator[None]:
        """Inside the block its processes are stopped as by SIGSTOP."""
        process_id = self.stack.programs()[program].process_id
        assert process_id is not None
        top = psutil.Process(process_id)
        processes = [top, *top.children(recursive=True)]
        try:
            for process in processes:
                process.send_signal(signal.SIGSTOP)
            yield
        finally:
            for process in processes:
                process.send_signal(signal.SIGCONT)

    # -- the attacked process

    def with_a_fresh(self, program: str) -> None:
        """Memory that an earlier attack took would hide what the next one takes."""
        self.stack.restart(program)
        self.stack.wait_until_ready()
        self.wait_until_calm()

    def wait_until_calm(self) -> None:
        """Returns when creating is quick again: resends of the attack before may still hang."""
        quick = 0

        def is_calm() -> bool:
            nonlocal quick
            began_seconds = monotonic_seconds()
            with suppress(requests.RequestException):
                answer = self._victim.request(
                    "POST",
                    "/api/v1/create-invoice",
                    json=self._victim.body(callback_url=self._receiver.url("shop")),
                )
                is_quick = 1000 * (monotonic_seconds() - began_seconds) < CALM_MS
                quick = quick + 1 if is_quick and answer.status_code == 201 else 0
            return quick >= CALM_ANSWERS

        wait_until(is_calm, "the stack to be calm again", timeout_seconds=CALM_SECONDS)

    @contextmanager
    def memory(self, program: str) -> Iterator[Memory]:
        """The resident memory of the program's workers, from the beginning of the block to its end."""
        used = self._mebibytes(program)
        memory, over = Memory(used, used), threading.Event()

        def sample() -> None:
            while not over.wait(SAMPLE_SECONDS):
                memory.peak = max(memory.peak, self._mebibytes(program))

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            yield memory
        finally:
            over.set()
            thread.join()

    def _mebibytes(self, program: str) -> int:
        used_bytes = 0
        with suppress(psutil.NoSuchProcess):
            top = psutil.Process(self.stack.programs()[program].process_id)
            for worker in top.children(recursive=True) or [top]:
                with suppress(psutil.NoSuchProcess):
                    used_bytes += worker.memory_info().rss
        return used_bytes // MEBIBYTE

    # -- purchases

    def _created(self, shop: Shop, path: str) -> str:
        return shop.create(self._receiver.url(path)).id

    def _with_deal(self, shop: Shop) -> tuple[str, str]:
        """An invoice whose customer has an account to pay to, and the deal."""
        invoice_id = self._created(shop, "shop")
        request = invoices_pb2.SelectPaymentMethodRequest(invoice_id=invoice_id, method_code=METHOD)
        chosen = self._checkout.SelectPaymentMethod(request)
        return invoice_id, chosen.invoice.deal.deal_id

    def _finished(self, shop: Shop, path: str) -> str:
        invoice_id = self._created(shop, path)
        self._checkout.CancelCheckout(invoices_pb2.CancelCheckoutRequest(invoice_id=invoice_id))
        return invoice_id

    @cached_property
    def _checkout(self) -> CheckoutServiceStub:
        return CheckoutServiceStub(channel(self.stack.addresses["invoices"], name="invoices"))

    def _wait_for_webhooks(self, path: str, count: int) -> None:
        before = len(self._receiver.received(path))
        self._receiver.wait_for(max(count, before), path=path, timeout_seconds=CALM_SECONDS)


def _recovery_codes(person: Person) -> list[str]:
    page = person.post("/account/recovery-codes").text
    return re.findall(r"<li><code>([^<]+)</code>", page)[:CODES_OF_ONE]

"""The three who make a purchase on a running stack: a shop over HTTP, a customer at the page, an operator.

A call here may be repeated when nobody knows whether it was done: `patiently` does.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any, Protocol, Self, TypeVar
from urllib.parse import urljoin

import requests
from requests.exceptions import ChunkedEncodingError, ConnectionError, Timeout
from tenacity import retry as retrying
from tenacity import retry_if_exception, stop_after_delay, wait_fixed

from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.invoices.v1.invoices_pb2_grpc import DealDeskServiceStub, InvoicesServiceStub
from fiatgate.withdrawals.v1 import withdrawals_pb2
from fiatgate.withdrawals.v1.withdrawals_pb2_grpc import WithdrawalsServiceStub
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from tests.support.receiver import Received
from tests.support.stack import Stack

HTTP_SECONDS = 25
ARRIVAL_SECONDS = 60
FORM = {"Content-Type": "application/x-www-form-urlencoded"}  # browsers send it with an empty form, too
# Of the demo world: 2 % on top of the category's 4 %; 0.92 EUR to the USDT less 1 % markup are 0.91.
METHOD = "eur-card"

_amounts = itertools.count(10_000)  # cents: two open deals of one amount need two accounts
T = TypeVar("T")


class Away(Exception):
    """An answer that says: later."""


class Running(Protocol):
    @property
    def url(self) -> str: ...

    def cli(self, *arguments: str) -> Any: ...


def patiently(call: Callable[[], T]) -> T:
    """The call, again while a process is away, for a minute at most."""

    def is_temporary(error: BaseException) -> bool:
        refused = isinstance(error, Refused) and error.reason == "DB_UNAVAILABLE"
        return refused or isinstance(error, Away | ConnectionError | Timeout | ChunkedEncodingError)

    again = retrying(
        retry=retry_if_exception(is_temporary),
        stop=stop_after_delay(ARRIVAL_SECONDS),
        wait=wait_fixed(0.1),
        reraise=True,
    )
    return again(call)()


def settled(condition: Callable[[], bool], what: str) -> None:
    """Waits for what travels as an event."""
    wait_until(condition, what, timeout_seconds=ARRIVAL_SECONDS, every_seconds=0.1)


@dataclass(frozen=True)
class Shop:
    """A merchant's backend: its key and secret, JSON over HTTP."""

    url: str
    merchant_id: str
    api_key: str
    secret: str

    @classmethod
    def opened(cls, stack: Running) -> Self:
        """A merchant of its own in the demo world, made as an operator makes one; 40 % of commission for clients."""
        merchant = stack.cli(
            *("merchants", "create", "Lamp shop", "--owner", f"{new_id().hex}@shop.example", "--active"),
            *("--category", "standard", "--client-share", "40"),
            *("--success-url", "https://shop.example/thanks", "--fail-url", "https://shop.example/sorry"),
        )
        key = stack.cli("keys", "create", merchant["merchant_id"], "--name", "backend")
        return cls(stack.url, merchant["merchant_id"], key["api_key"], key["secret"])

    def request(self, method: str, path: str, **options: Any) -> requests.Response:
        headers = {"X-Api-Key": self.api_key}
        return requests.request(method, self.url + path, headers=headers, timeout=HTTP_SECONDS, **options)

    def body(self, **changes: Any) -> dict[str, Any]:
        """A body of create-invoice; everything in it is new."""
        cents = next(_amounts)
        return {
            "amount": f"{cents // 100}.{cents % 100:02}",
            "currency_code": "EUR",
            "customer_id": f"customer-{new_id().hex}",
            "external_id": f"order-{new_id().hex}",
            "purpose": "Two lamps",
        } | changes

    def create(self, callback_url: str, **changes: Any) -> Invoice:
        """An invoice, created."""
        answer = self.request(
            "POST", "/api/v1/create-invoice", json=self.body(callback_url=callback_url, **changes)
        )
        if answer.status_code == 503:
            raise Away
        assert answer.status_code == 201, answer.text
        return Invoice(self, answer.json())

    def verified(self, received: Received) -> dict[str, Any]:
        """Returns the payload of a webhook, after a check of the headers and the signature."""
        signed = received.headers["x-signature-timestamp"].encode() + b"." + received.body
        expected = hmac.new(self.secret.encode(), signed, hashlib.sha256).hexdigest()
        assert received.headers["x-signature"] == expected
        assert received.headers["content-type"] == "application/json"
        payload: dict[str, Any] = json.loads(received.body)
        assert received.headers["x-idempotency-key"] == payload["event_id"]
        return payload


@dataclass(frozen=True)
class Invoice:
    """One invoice, as its shop sees it. `created` is the answer of create-invoice."""

    shop: Shop
    created: dict[str, Any]

    @property
    def id(self) -> str:
        id: str = self.created["invoice_id"]
        return id

    def read(self) -> dict[str, Any]:
        data: dict[str, Any] = self._get(f"/api/v1/invoices/{self.id}")["data"]
        return data

    def history(self) -> dict[str, Any]:
        return self._get(f"/api/v1/invoices/{self.id}/webhooks")

    def event(self) -> dict[str, Any]:
        (event,) = self.history()["events"]
        assert isinstance(event, dict)
        return event

    def resend(self) -> requests.Response:
        return self.shop.request("POST", f"/api/v1/invoices/{self.id}/webhooks/resend")

    def wait_for_delivery(self) -> dict[str, Any]:
        """The event, once it is delivered and written down so."""

        def delivered() -> bool:
            history = patiently(self.history)
            return [event["status"] for event in history["events"]] == ["success"]

        settled(delivered, f"one delivered event of invoice {self.id}")
        return self.event()

    def expected_payload(self, event_id: str, **changes: Any) -> dict[str, Any]:
        """Returns every field of docs/api.md#payload: those of an invoice without a deal, with `changes` over them."""
        read = self.read()
        return {
            "event_id": event_id,
            "order_id": self.id,
            "external_id": self.created["external_id"],
            "status": read["status"],
            "sub_status": None,
            "finished_at": read["finished_at"],
            "expires_at": self.created["expires_at"],
            "amount": self.created["amount"],
            "currency": "EUR",
            "rate_usd": None,
            "success_url": "https://shop.example/thanks",
            "fail_url": "https://shop.example/sorry",
            "is_adjusted": False,
            "original_amount": None,
            "adjusted_amount": None,
            "reason": None,
        } | changes

    def _get(self, path: str) -> dict[str, Any]:
        answer = self.shop.request("GET", path)
        if answer.status_code == 503:
            raise Away
        assert answer.status_code == 200, answer.text
        value: dict[str, Any] = answer.json()
        return value


@dataclass
class _Form:
    action: str
    fields: dict[str, str] = field(default_factory=dict)
    button: str = ""


class _Forms(HTMLParser):
    """What a browser without scripts can do with a page: its forms, by the text of their button."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[_Form] = []
        self._in_button = False
        self._in_form = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self.forms.append(_Form(given["action"] or ""))
            self._in_form = True
        elif tag == "input" and self._in_form:
            self.forms[-1].fields[given["name"] or ""] = given.get("value") or ""
        elif tag == "button":
            self._in_button = self._in_form  # the others are for scripts

    def handle_endtag(self, tag: str) -> None:
        if tag == "button":
            self._in_button = False
        elif tag == "form":
            self._in_form = False

    def handle_data(self, data: str) -> None:
        if self._in_button:
            self.forms[-1].button += data


class Customer:
    def __init__(self, payment_link: str) -> None:
        self._link = payment_link
        self.page = ""
        self.open()

    def open(self) -> None:
        self._show(requests.get(self._link, timeout=HTTP_SECONDS))

    def follow(self, text: str) -> None:
        found = re.search(rf'<a[^>]*href="([^"]+)"[^>]*>{re.escape(text)}<', self.page)
        assert found, f"no link {text!r} on {self.page}"
        self._show(requests.get(urljoin(self._link, found[1]), timeout=HTTP_SECONDS))

    def submit(self, button: str, **fields: str) -> None:
        forms = [
            form
            for form in _Forms(self.page).forms
            if button in form.button and fields.items() <= form.fields.items()
        ]
        assert len(forms) == 1, f"{len(forms)} forms {button!r} {fields} on {self.page}"
        action = urljoin(self._link, forms[0].action)
        self._show(requests.post(action, data=forms[0].fields, headers=FORM, timeout=HTTP_SECONDS))

    def choose(self, method: str = METHOD) -> None:
        self.submit("", method_code=method)

    def choose_and_pay(self) -> None:
        """Up to "I have paid"; a form is sent again when no answer comes."""
        patiently(self.choose)
        patiently(lambda: self.submit("I have paid"))

    def _show(self, answer: requests.Response) -> None:
        if answer.status_code == 503:
            raise Away
        assert answer.status_code == 200, f"{answer.status_code} {answer.url} {answer.text}"
        self.page = answer.text


class Operator:
    """The deal desk and the books, by gRPC. Use as a context manager."""

    def __init__(self, stack: Stack) -> None:
        self._opened = ExitStack()
        invoices = self._opened.enter_context(stack.channel("invoices"))
        withdrawals = self._opened.enter_context(stack.channel("withdrawals"))
        self.invoices = InvoicesServiceStub(invoices)
        self.desk = DealDeskServiceStub(invoices)
        self.withdrawals = WithdrawalsServiceStub(withdrawals)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def confirm(self, invoice: Invoice) -> None:
        """Confirm its deal. Safe to repeat: a deal that is done already counts as done."""
        deal_id = patiently(invoice.read)["deal"]["deal_id"]
        try:
            self.desk.ConfirmDeal(invoices_pb2.ConfirmDealRequest(deal_id=deal_id))
        except Refused as refused:
            if refused.reason != "DEAL_STATE_CONFLICT":
                raise

    def available(self, shop: Shop) -> Decimal:
        """The merchant's balance, USDT."""
        request = withdrawals_pb2.GetBalanceRequest(merchant_id=shop.merchant_id)
        return Decimal(self.withdrawals.GetBalance(request).available)

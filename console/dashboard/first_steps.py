"""The first steps of a new merchant, done or next, as the services know it. No step is ticked by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from console.calls import or_none
from console.exchange import Request
from console.page import Page
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from kit.rpc.errors import Refused

ENOUGH_PAID: Final = 10
"""Paid invoices of the period shown: a merchant with as many needs no first steps, and no call is made for them."""


@dataclass(frozen=True)
class Step:
    """One step.

    about  what to do, or what is missing
    path   of the page that does it; empty: the operator does it
    curl   a line that shows it; empty: none
    """

    title: str
    done: bool
    about: str
    path: str = ""
    button: str = ""
    curl: str = ""


async def first_steps(
    page: Page,
    req: Request,
    report: invoices_pb2.GetReportResponse | None,
    *,
    merchant: merchants_pb2.Merchant | None,
    keys: merchants_pb2.ListApiKeysResponse | None,
    public_url: str,
) -> Sequence[Step]:
    """Returns the steps for the person's roles; none when all are done, or a service does not answer.

    merchant  None while identity is away; empty: it does not know the merchant that stood in an invitation
    keys      None while identity is away, and for a person who does not read them
    """
    if report is None or report.all.confirmed >= ENOUGH_PAID or not page.may(req, "developer", "finance"):
        return ()
    makes_keys = page.may(req, "developer")
    if merchant is None or not merchant.merchant_id or (makes_keys and keys is None):
        return ()
    merchant_id, success = merchant.merchant_id, webhooks_pb2.EVENT_STATUS_SUCCESS
    newest = invoices_pb2.ListAllInvoicesRequest(merchant_id=merchant_id, limit=1)
    answered = webhooks_pb2.ListEventsRequest(merchant_id=merchant_id, status=success, limit=1)
    invoices, delivered = await asyncio.gather(
        or_none(page.deps.deals.ListAllInvoices(newest)), or_none(page.deps.webhooks.ListEvents(answered))
    )
    if invoices is None or delivered is None:
        return ()
    checks = False
    if makes_keys:
        asked = webhooks_pb2.GetSignatureCheckRequest(merchant_id=merchant_id)
        checked = await or_none(page.deps.webhooks.GetSignatureCheck(asked))
        if checked is None:
            return ()
        checks = checked.refuses
    shows_line = makes_keys and not invoices.invoices and not _of_operator(merchant)
    currency = await _currency(page, merchant) if shows_line else ""
    activation, address = _activation(merchant), _address(merchant, sets_addresses=makes_keys)
    invoice = _invoice(merchant, bool(invoices.invoices), public_url, currency)
    steps = [activation, address, invoice]
    if keys is not None:
        key = _key(merchant, any(each.active for each in keys.keys), public_url)
        steps = [
            activation,
            key,
            address,
            invoice,
            _webhook(merchant, invoices.invoices, bool(delivered.events), checks, public_url),
        ]
    return () if all(each.done for each in steps) else steps


async def _currency(page: Page, merchant: merchants_pb2.Merchant) -> str:
    """Returns a currency that the merchant's invoices can have now; empty: none is known."""
    request = catalog_pb2.ListMerchantCurrenciesRequest(merchant=merchant)
    try:
        offers = await or_none(page.deps.catalog.ListMerchantCurrencies(request))
    except Refused:  # no rate is fresh
        return ""
    return offers.currencies[0].currency.code if offers and offers.currencies else ""


def _curl(path: str, public_url: str, body: str = "") -> str:
    line = f'curl -sS {public_url}/api/v1{path} -H "X-Api-Key: $KEY"'
    return f"{line} -H 'Content-Type: application/json' -d '{body}'" if body else line


def _is_inactive(merchant: merchants_pb2.Merchant) -> bool:
    """Whether the API refuses its keys because it was never activated."""
    return merchant.status == merchants_pb2.MERCHANT_STATUS_INACTIVE


def _of_operator(merchant: merchants_pb2.Merchant) -> list[str]:
    """Returns what only the operator can add before an invoice can be paid."""
    return [
        words
        for words, is_there in (
            ("the activation", not _is_inactive(merchant)),
            ("a category with its commission", merchant.HasField("category_commission")),
        )
        if not is_there
    ]


def _activation(merchant: merchants_pb2.Merchant) -> Step:
    missing = _of_operator(merchant)
    asked = f"Ask the operator for {' and '.join(missing)}."
    if _is_inactive(merchant):
        about = f"You are not active yet. {asked} Until then your keys are refused, and no payment link can be made."
    else:
        about = f"{asked} Until then no payment method is offered, and no invoice can be paid."
    return Step("Get activated", not missing, about)


def _key(merchant: merchants_pb2.Merchant, has_key: bool, public_url: str) -> Step:
    """An inactive merchant sees no line: it would be refused."""
    return Step(
        "Make an API key",
        has_key,
        "Your program sends it with each request. With it comes the secret that signs webhooks.",
        "/keys#new",
        "Make a key",
        "" if _is_inactive(merchant) else _curl("/currencies", public_url),
    )


def _address(merchant: merchants_pb2.Merchant, *, sets_addresses: bool) -> Step:
    author = "Give" if sets_addresses else "An owner or developer gives"
    return Step(
        "Set the address for webhooks",
        bool(merchant.callback_url),
        f"{author} the address of your server that receives the result of each invoice.",
        "/settings" if sets_addresses else "",
        "Set the address",
    )


def _invoice(merchant: merchants_pb2.Merchant, has_invoice: bool, public_url: str, currency: str) -> Step:
    """Without a currency or an address for its webhook there is no line: an invented one would mislead."""
    body = {
        "amount": "50.00",
        "currency_code": currency,
        "customer_id": "test-customer",
        "external_id": "test-1",
        "purpose": "Test",
    }
    for field in ("success_url", "fail_url"):
        if not getattr(merchant, field):
            body[field] = f"https://shop.example/{field.removesuffix('_url')}"
    return Step(
        "Create the first invoice",
        has_invoice,
        "By your program, or here by hand. A test invoice that is not paid expires by itself and costs nothing.",
        "/links/new",
        "Make a payment link",
        _curl("/create-invoice", public_url, json.dumps(body)) if currency and merchant.callback_url else "",
    )


def _webhook(
    merchant: merchants_pb2.Merchant,
    newest: Sequence[invoices_pb2.Invoice],
    has_delivered: bool,
    checks: bool,
    public_url: str,
) -> Step:
    """The line is of the newest invoice; without one there is none."""
    received = (
        "Your server has answered 2xx to the webhook of an invoice."
        if has_delivered
        else (
            "Let your server answer 2xx to the webhook of an invoice: one is sent when you cancel your test invoice."
        )
    )
    refused = (
        "It has refused a wrong signature."
        if checks
        else ("Send a test event with a wrong signature, which your server must refuse (4xx).")
    )
    return Step(
        "Receive a webhook and check its signature",
        has_delivered and checks,
        f"{received} {refused}",
        "/webhooks/test",
        "Send a test event",
        _curl(f"/invoices/{newest[0].invoice_id}/webhooks", public_url) if newest else "",
    )

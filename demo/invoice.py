"""The demo merchant's own invoice, made and read over the public API like any merchant's."""

from __future__ import annotations

import json
import secrets
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

_TIMEOUT_SECONDS = 10


class Refusal(Exception):
    """The API refused; the text is its error code."""


def pending_invoice(url: str, demo: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the demo invoice if it still waits for a customer, else a new one; raises Refusal.

    `url` is the gateway's, `demo` the content of `demo.json`. Returns the invoice as in the API.
    """
    known = demo.get("invoice_id")
    if known is not None:
        try:
            invoice = _call(f"{url}/api/v1/invoices/{known}", api_key=demo["api_key"])["data"]
        except Refusal:
            invoice = {}
        if invoice.get("status") == "pending":
            return dict(invoice)
    unique = secrets.token_hex(4)
    return _call(
        f"{url}/api/v1/create-invoice",
        api_key=demo["api_key"],
        body={
            "amount": "100.00",
            "currency_code": "EUR",
            # A customer may have one pending invoice at a time, and a few an hour: so each has a new customer.
            "customer_id": f"demo-customer-{unique}",
            "external_id": f"demo-order-{unique}",
            "purpose": "A first look at Fiatgate",
        },
    )


def refuses_key(url: str, api_key: str) -> bool:
    """Returns whether the gateway does not know the key, or it is deactivated."""
    try:
        _call(f"{url}/api/v1/currencies", api_key=api_key)
    except Refusal as refusal:
        return str(refusal) == "API_KEY_INVALID"
    return False


def curl_line(url: str, api_key: str) -> str:
    """Returns a shell command that creates another invoice each time it is run."""
    body = (
        '{"amount":"100.00","currency_code":"EUR",'
        """"customer_id":"customer-'$(date +%s)'","external_id":"order-'$(date +%s)'"}"""
    )
    headers = f"-H 'X-Api-Key: {api_key}' -H 'Content-Type: application/json'"
    return f"curl -sS {url}/api/v1/create-invoice {headers} -d '{body}'"


def _call(url: str, *, api_key: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 (our own gateway)
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"X-Api-Key": api_key, "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310
            return dict(json.load(response))
    except urllib.error.HTTPError as refusal:
        with refusal:
            raise Refusal(_code(refusal.read())) from None
    except OSError as trouble:
        raise Refusal(str(trouble)) from None


def _code(answer: bytes) -> str:
    try:
        error = json.loads(answer)["error"]
        return str(error["code"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        return answer[:200].decode(errors="replace")

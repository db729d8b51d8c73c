"""Makes what `fiatgate demo` needs where no local stack runs: the invented world of demo/, a key, a receiver.

`FIATGATE_DEMO_URL` is the address of the demo pod (demo/__main__.py). Only an installation for trials has one.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

import requests

from cli import connection
from cli.receiving import PodReceiver
from cli.stack import NoAddress
from demo import people, seeding
from demo.invoice import curl_line
from demo.world import CURRENCIES, METHODS
from fiatgate.merchants.v1 import merchants_pb2

Report = Callable[[str, str], None]
OPERATIONS = "docs/operations.md#try-it"


class OthersThere(Exception):
    """The installation has data that the demo did not make; the text names it and says what to do."""


@dataclass(frozen=True)
class Prepared:
    """The demo merchant with a new key, and its receiver."""

    merchant_id: str
    api_key: str
    secret: str
    receiver: PodReceiver


def demo_url() -> str:
    """Returns the address of the demo pod. Raises NoAddress without one."""
    url = os.environ.get("FIATGATE_DEMO_URL", "").rstrip("/")
    if not url:
        raise NoAddress(
            "The demo makes invented data, so it runs in an installation for trials only, which has "
            f"FIATGATE_DEMO_URL: the overlay `local` ({OPERATIONS}), or the local stack of make run",
            code="NO_DEMO_HERE",
        )
    return url


def prepare(report: Report, *, anyway: bool) -> Prepared:
    """Makes the world unless its merchant exists, then a new key. Raises NoAddress, OthersThere, Refused, and
    requests.RequestException.
    """
    url = demo_url()
    merchant = _merchant(url, report, anyway=anyway)
    key = seeding.new_key(connection.merchants(), merchant)
    receiver = PodReceiver(url)
    receiver.trust(key.secret)
    report("A new key of the demo shop", f"{key.api_key}\nsigning secret {key.secret}")
    links = people.links(
        connection.people(), merchant_id=merchant.merchant_id, owner_email=merchant.owner_email
    )
    shown = [f"{surface}: {link}" for surface, link in links.items() if link]
    report("Links by which the demo people sign in", "\n".join(shown) or "none: they can sign in already")
    return Prepared(merchant.merchant_id, key.api_key, key.secret, receiver)


def another(api_key: str) -> str:
    """Returns the command that makes another invoice, by the address that customers have."""
    return curl_line(connection.gateway_url(), api_key)


def _merchant(url: str, report: Report, *, anyway: bool) -> merchants_pb2.Merchant:
    merchant = seeding.demo_merchant(connection.merchants())
    others = "; ".join(seeding.others(connection.merchants(), connection.catalog(), connection.desk()))
    if merchant is None:
        if others:
            raise OthersThere(
                f"This installation has data of its own: {others}. The demo would offer invented accounts to its "
                "customers. Use an empty installation"
            )
        _require_pod(url)
        seeding.seed_catalog(connection.catalog())
        seeding.seed_requisites(connection.desk())
        merchant = seeding.seed_merchant(connection.merchants(), callback_url=f"{url}/webhooks")
        accounts = sum(len(method.accounts) for method in METHODS)
        report(
            "Invented data is made",
            f"{len(CURRENCIES)} currencies with rates, {len(METHODS)} methods, {accounts} accounts, "
            f"category {seeding.CATEGORY}, merchant {merchant.name} {merchant.merchant_id}",
        )
    elif others and not anyway:
        raise OthersThere(
            f"Beside the demo's data this installation has {others}. The demo pays an invented invoice and a "
            "withdrawal, which stay in the books. To do so: fiatgate demo --anyway"
        )
    return merchant


def _require_pod(url: str) -> None:
    """Raises requests.RequestException while the pod is away, before anything is made."""
    requests.get(f"{url}/healthz", timeout=5).raise_for_status()

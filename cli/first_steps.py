"""Makes what `fiatgate demo` needs where no local stack runs: the invented world of demo/, a key, a receiver.

`FIATGATE_DEMO_URL` is the address of the demo pod (demo/__main__.py). Only an installation for trials has one.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
OPERATIONS = "docs/operations/kubernetes.md#try-it"


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


@contextmanager
def prepared(report: Report, *, anyway: bool, keep_key: bool) -> Iterator[Prepared]:
    """Makes the world unless its merchant exists, then a new key, which is deactivated at the end unless `keep_key`.
    Raises NoAddress, OthersThere, Refused, and requests.RequestException.

    Beside data of others nobody gets a link to the desk: it would open their data, too.
    """
    url = demo_url()
    others = _others()
    merchant = _merchant(url, report, others, anyway=anyway)
    key = seeding.new_key(connection.merchants(), merchant)
    try:
        receiver = PodReceiver(url)
        receiver.trust(key.secret)
        shown = f"{key.api_key}\nsigning secret {key.secret}" if keep_key else "for this run only"
        report("A new key of the demo shop", shown)
        _invite(merchant, report, to_desk=not others)
        yield Prepared(merchant.merchant_id, key.api_key, key.secret, receiver)
    finally:
        if not keep_key:
            request = merchants_pb2.DeactivateApiKeyRequest(key_id=key.key_id)
            connection.merchants().DeactivateApiKey(request)


def require_alone(*, anyway: bool) -> None:
    """Raises OthersThere beside data that the demo did not make, unless `anyway`."""
    others = "" if anyway else _others()
    if others:
        raise OthersThere(
            f"Beside the demo's data this installation has {others}. The demo pays an invented invoice and a "
            "withdrawal, which stay in the books. To do so: fiatgate demo --anyway"
        )


def another(api_key: str) -> str:
    """Returns the command that makes another invoice, by the address that customers have."""
    return curl_line(connection.gateway_url(), api_key)


def _others() -> str:
    return "; ".join(seeding.others(connection.merchants(), connection.catalog(), connection.desk()))


def _invite(merchant: merchants_pb2.Merchant, report: Report, *, to_desk: bool) -> None:
    links = people.links(
        connection.people(),
        merchant_id=merchant.merchant_id,
        owner_email=merchant.owner_email,
        to_desk=to_desk,
    )
    shown = [f"{surface}: {link}" for surface, link in links.items() if link]
    report("Links by which the demo people sign in", "\n".join(shown) or "none: they can sign in already")


def _merchant(url: str, report: Report, others: str, *, anyway: bool) -> merchants_pb2.Merchant:
    merchant = seeding.demo_merchant(connection.merchants())
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
    else:
        require_alone(anyway=anyway)
    return merchant


def _require_pod(url: str) -> None:
    """Raises requests.RequestException while the pod is away, before anything is made."""
    requests.get(f"{url}/healthz", timeout=5).raise_for_status()

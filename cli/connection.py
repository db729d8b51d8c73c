"""The addresses of the services: `FIATGATE_<SERVICE>_ADDRESS`, else the local stack that runs in `FIATGATE_HOME`.

Where services require a certificate, the command shows that of kit.base.config.processes.CliSettings.
"""

from __future__ import annotations

import functools
import importlib
import json
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from cli import stack
from cli.stack import NoAddress
from kit.rpc.client import channel
from kit.rpc.errors import Refused

if TYPE_CHECKING:  # a command needs one or two of them
    from fiatgate.accounts.v1.accounts_pb2_grpc import (
        ActorKeysServiceStub,
        PeopleServiceStub,
    )
    from fiatgate.approvals.v1.approvals_pb2_grpc import ApprovalsServiceStub
    from fiatgate.audit.v1.audit_pb2_grpc import AuditServiceStub
    from fiatgate.bank.v1.bank_pb2_grpc import BankServiceStub
    from fiatgate.bank.v1.feed_pb2_grpc import FeedServiceStub
    from fiatgate.books.v1.books_pb2_grpc import BooksServiceStub
    from fiatgate.catalog.v1.catalog_pb2_grpc import CatalogServiceStub
    from fiatgate.find.v1.find_pb2_grpc import FindServiceStub
    from fiatgate.invoices.v1.invoices_pb2_grpc import (
        CheckoutServiceStub,
        DealDeskServiceStub,
        InvoicesServiceStub,
        ReportsServiceStub,
    )
    from fiatgate.invoices.v1.lines_pb2_grpc import LinePaymentsServiceStub
    from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
    from fiatgate.parked.v1.parked_pb2_grpc import ParkedServiceStub
    from fiatgate.status.v1.status_pb2_grpc import StatusServiceStub
    from fiatgate.webhooks.v1.webhooks_pb2_grpc import WebhooksServiceStub
    from fiatgate.withdrawals.v1.corrections_pb2_grpc import CorrectionsServiceStub
    from fiatgate.withdrawals.v1.refunds_pb2_grpc import RefundsServiceStub
    from fiatgate.withdrawals.v1.withdrawals_pb2_grpc import WithdrawalsServiceStub
    from kit.base.tls import Identity

T = TypeVar("T")


def _stub(package: str, name: str, service: str = "", *, file: str = "") -> Any:
    """Returns a stub on the channel to the service. The generated code of all services takes longer to import than most
    commands.
    """
    module = importlib.import_module(f"fiatgate.{package}.v1.{file or package}_pb2_grpc")
    return getattr(module, name)(_channel(service or package))


people: Callable[[], PeopleServiceStub] = partial(_stub, "accounts", "PeopleServiceStub", "identity")
actor_keys: Callable[[], ActorKeysServiceStub] = partial(
    _stub, "accounts", "ActorKeysServiceStub", "identity"
)
merchants: Callable[[], MerchantsServiceStub] = partial(
    _stub, "merchants", "MerchantsServiceStub", "identity"
)
catalog: Callable[[], CatalogServiceStub] = partial(_stub, "catalog", "CatalogServiceStub")
invoices: Callable[[], InvoicesServiceStub] = partial(_stub, "invoices", "InvoicesServiceStub")
checkout: Callable[[], CheckoutServiceStub] = partial(_stub, "invoices", "CheckoutServiceStub")
desk: Callable[[], DealDeskServiceStub] = partial(_stub, "invoices", "DealDeskServiceStub")
reports: Callable[[], ReportsServiceStub] = partial(_stub, "invoices", "ReportsServiceStub")
withdrawals: Callable[[], WithdrawalsServiceStub] = partial(
    _stub, "withdrawals", "WithdrawalsServiceStub", "withdrawals"
)
corrections: Callable[[], CorrectionsServiceStub] = partial(
    _stub, "withdrawals", "CorrectionsServiceStub", "withdrawals", file="corrections"
)
refunds: Callable[[], RefundsServiceStub] = partial(
    _stub, "withdrawals", "RefundsServiceStub", "withdrawals", file="refunds"
)
bank: Callable[[], BankServiceStub] = partial(_stub, "bank", "BankServiceStub")
feed: Callable[[], FeedServiceStub] = partial(_stub, "bank", "FeedServiceStub", file="feed")
line_payments: Callable[[], LinePaymentsServiceStub] = partial(
    _stub, "invoices", "LinePaymentsServiceStub", "invoices", file="lines"
)
webhooks: Callable[[], WebhooksServiceStub] = partial(_stub, "webhooks", "WebhooksServiceStub")

# of each service
status: Callable[[str], StatusServiceStub] = partial(_stub, "status", "StatusServiceStub")
audit: Callable[[str], AuditServiceStub] = partial(_stub, "audit", "AuditServiceStub")
books: Callable[[str], BooksServiceStub] = partial(_stub, "books", "BooksServiceStub")
parked: Callable[[str], ParkedServiceStub] = partial(_stub, "parked", "ParkedServiceStub")
approvals: Callable[[str], ApprovalsServiceStub] = partial(_stub, "approvals", "ApprovalsServiceStub")
find: Callable[[str], FindServiceStub] = partial(_stub, "find", "FindServiceStub")


def gateway_url() -> str:
    """Returns the gateway's base URL: `FIATGATE_PUBLIC_URL`, else the local stack's."""
    given = os.environ.get("FIATGATE_PUBLIC_URL")
    if given:
        return given.rstrip("/")
    described = stack.found()
    if described is None:
        raise stack.why_none("Elsewhere: set FIATGATE_PUBLIC_URL")
    return str(described["url"])


def internal_gateway_url() -> str:
    """Returns the address of the gateway for this process: `FIATGATE_INTERNAL_GATEWAY_URL`, else the base URL.

    In a cluster the base URL leads out of it and back.
    """
    return os.environ.get("FIATGATE_INTERNAL_GATEWAY_URL", "").rstrip("/") or gateway_url()


def internal_console_urls() -> dict[str, str]:
    """Returns the addresses at which this process reaches the consoles that are known here, by name:
    `FIATGATE_INTERNAL_DESK_URL` and `FIATGATE_INTERNAL_DASHBOARD_URL`, else those without `INTERNAL_`, else the local
    stack's.
    """
    described = (stack.found() or {}).get("consoles", {})
    urls = {
        surface: os.environ.get(f"FIATGATE_INTERNAL_{variable}")
        or os.environ.get(f"FIATGATE_{variable}")
        or described.get(surface, "")
        for surface, variable in (("console-desk", "DESK_URL"), ("console-dashboard", "DASHBOARD_URL"))
    }
    return {surface: url.rstrip("/") for surface, url in urls.items() if url}


def demo_credentials() -> dict[str, Any]:
    """Returns demo.json, written by the local stack's first start: merchant_id, key_id, api_key, secret."""
    try:
        found: dict[str, Any] = json.loads((stack.home() / "demo.json").read_text())
    except FileNotFoundError:
        raise NoAddress(f"No demo merchant in {stack.home()}. Start the stack: make run") from None
    return found


def _channel(service: str) -> grpc.Channel:
    return _channel_to(_address(service), service)


@functools.cache
def _channel_to(address: str, service: str) -> grpc.Channel:
    return channel(address, name=service, identity=_identity())


@functools.cache
def _identity() -> Identity | None:
    if not any(name.startswith("FIATGATE_") and "TLS_" in name for name in os.environ):
        return None
    # Imported here: the classes of all settings take a quarter of the time of a command.
    import structlog  # noqa: PLC0415

    from kit.base.config.processes import CliSettings  # noqa: PLC0415
    from kit.base.config.variables import load  # noqa: PLC0415

    # The certificate is logged when it is taken; the output of a command is for people.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    return load(CliSettings).identity


def _address(service: str) -> str:
    variable = f"FIATGATE_{service.upper()}_ADDRESS"
    given = os.environ.get(variable)
    if given:
        return given
    described = stack.found()
    if described is None:
        raise stack.why_none(f"Elsewhere: set {variable}")
    return str(described["services"][service]["address"])


def answers(services: Sequence[str], call: Callable[[str], T]) -> tuple[Sequence[T], Sequence[str]]:
    """Makes the call to all services at a time. Returns their answers in the order of the services, and the services
    that did not answer. Raises the reason when none did, and any other refusal.
    """
    with ThreadPoolExecutor(len(services)) as threads:
        calls = {each: threads.submit(copy_context().run, call, each) for each in services}
    away = [service for service, made in calls.items() if is_away(made.exception())]
    if len(away) == len(services):
        calls[away[0]].result()
    return [made.result() for service, made in calls.items() if service not in away], away


def is_away(error: BaseException | None) -> bool:
    """Returns whether the call failed because the service, or its database, does not answer."""
    return isinstance(error, Refused) and (error.reason == "DB_UNAVAILABLE" or why_silent(error) is not None)


def why_silent(refused: Refused) -> NoAddress | None:
    """Returns the error to show when the service did not answer at its address; None when it refused the call."""
    return (
        stack.why_silent(refused.silent_peer, _address(refused.silent_peer)) if refused.silent_peer else None
    )

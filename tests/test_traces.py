"""One trace from the HTTP request to the merchant's endpoint, over real processes and a real collector."""

import json
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import requests

from deploy.local.waiting import wait_until
from kit.base.services import SERVICES
from tests.e2e.market import FORM, Customer, Invoice, Operator, Shop
from tests.faults.arena import Arena
from tests.support.collector import Collected, Collector
from tests.support.receiver import Receiver
from tests.support.stack import Stack

SUBJECT = "fiatgate.invoices.finished"
CANCEL = "fiatgate.invoices.v1.CheckoutService/CancelCheckout"
ATTEMPT = "webhook attempt"


@pytest.fixture(scope="module")
def traced(arena: Arena) -> Stack:
    return arena.stack


@pytest.fixture(scope="module")
def shop(traced: Stack) -> Shop:
    return Shop.opened(traced)


def cancelled(invoice: Invoice) -> str:
    """The customer's form, sent; the X-Request-Id of the request."""
    answer = requests.post(
        f"{invoice.created['payment_link']}/cancel", data={}, headers=FORM, timeout=15, allow_redirects=False
    )
    assert answer.status_code in (200, 303), answer.text
    return answer.headers["X-Request-Id"]


def about(request_id: str, name: str) -> Callable[[Collected], bool]:
    """Whether a span has this name and goes back to that request."""
    return lambda span: span.name == name and span.attributes.get("fiatgate.request_id") == request_id


def steps(way: Sequence[Collected]) -> list[tuple[str, str, str]]:
    return [(span.service.removeprefix("fiatgate-"), span.kind, span.name) for span in way]


def test_a_customer_who_cancels_makes_one_trace_from_the_request_to_the_merchants_endpoint(
    collector: Collector, shop: Shop, receiver: Receiver
) -> None:
    invoice = shop.create(receiver.url("cancel"))
    request_id = cancelled(invoice)

    (attempt,) = collector.wait_for(about(request_id, ATTEMPT), "of the attempt")
    until_sent = [
        ("gateway", "server", "POST /pay/{invoice_id}/cancel"),
        ("gateway", "client", CANCEL),
        ("invoices", "server", CANCEL),
        ("invoices", "client", "transaction"),
        ("invoices", "producer", f"send {SUBJECT}"),
    ]
    assert steps(collector.way_to(attempt)) == [
        *until_sent,
        ("webhooks", "consumer", f"process {SUBJECT}"),
        ("webhooks", "client", ATTEMPT),
    ]
    effects = collector.wait_for(about(request_id, f"process {SUBJECT}"), "of both consumers", count=2)
    assert {span.service for span in effects} == {"fiatgate-webhooks", "fiatgate-withdrawals"}
    assert [steps(collector.way_to(each))[:-1] for each in effects] == [until_sent] * 2

    assert attempt.attributes["http.response.status_code"] == 200
    assert attempt.attributes["server.address"] == "127.0.0.1"
    (received,) = receiver.received("cancel")
    assert "traceparent" not in received.headers  # docs/api.md#webhook-headers lists all there are


def test_a_purchase_is_one_trace_per_request_and_its_delivery_belongs_to_the_confirmation(
    traced: Stack, collector: Collector, shop: Shop, receiver: Receiver
) -> None:
    invoice = shop.create(receiver.url("purchase"))
    Customer(invoice.created["payment_link"]).choose_and_pay()
    with Operator(traced) as operator:
        operator.confirm(invoice)
    event = invoice.wait_for_delivery()

    sent = event["request_payload"]["event_id"]
    (attempt,) = collector.wait_for(lambda span: span.attributes.get("fiatgate.event_id") == sent, "of it")
    assert steps(collector.way_to(attempt)) == [
        ("invoices", "server", "fiatgate.invoices.v1.DealDeskService/ConfirmDeal"),
        ("invoices", "client", "transaction"),
        ("invoices", "producer", f"send {SUBJECT}"),
        ("webhooks", "consumer", f"process {SUBJECT}"),
        ("webhooks", "client", ATTEMPT),
    ]
    choice = "fiatgate.catalog.v1.CatalogService/GetQuote"
    (quote,) = collector.wait_for(lambda span: span.name == choice and span.kind == "server", "of the quote")
    assert steps(collector.way_to(quote)) == [
        ("gateway", "server", "POST /pay/{invoice_id}/methods"),
        ("gateway", "client", "fiatgate.invoices.v1.CheckoutService/SelectPaymentMethod"),
        ("invoices", "server", "fiatgate.invoices.v1.CheckoutService/SelectPaymentMethod"),
        ("invoices", "client", choice),
        ("catalog", "server", choice),
    ]


def test_a_manual_resend_belongs_to_the_request_that_asks_for_it(
    collector: Collector, shop: Shop, receiver: Receiver
) -> None:
    invoice = shop.create(receiver.url("resend"))
    cancelled(invoice)
    invoice.wait_for_delivery()
    request_id = invoice.resend().headers["X-Request-Id"]
    (attempt,) = collector.wait_for(about(request_id, ATTEMPT), "of the attempt")
    assert attempt.attributes["fiatgate.trigger"] == "manual"
    assert steps(collector.way_to(attempt))[0] == (
        "gateway",
        "server",
        "POST /api/v1/invoices/{invoice_ref}/webhooks/resend",
    )


def test_a_client_decides_nothing_about_our_traces(collector: Collector, shop: Shop) -> None:
    """Its own trace is linked to; that it says "sampled" or "not sampled" means nothing here."""
    theirs, unsampled = secrets.token_hex(16), secrets.token_hex(16)
    for trace_id, flags in ((theirs, "01"), (unsampled, "00")):
        header = {"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-{flags}"}
        answer = requests.get(f"{shop.url}/api/v1/currencies", headers=header, timeout=15)
        name = "GET /api/v1/currencies"
        (first,) = collector.wait_for(about(answer.headers["X-Request-Id"], name), "of the request")
        assert first.linked == [trace_id]
        assert first.trace_id != trace_id and not first.parent_id
        assert first.attributes["fiatgate.code"] == "API_KEY_MISSING"
        assert not first.failed


def test_log_lines_say_which_request_and_trace_they_belong_to(
    traced: Stack, collector: Collector, shop: Shop, receiver: Receiver
) -> None:
    invoice = shop.create(receiver.url("logged"))
    request_id = cancelled(invoice)
    (attempt,) = collector.wait_for(about(request_id, ATTEMPT), "of the attempt")

    def line(program: str, event: str) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            lines = traced.programs()[program].log.read_text().splitlines()
            told = [json.loads(each) for each in lines if request_id in each]
            return [each for each in told if each["event"] == event and each["request_id"] == request_id]

        wait_until(lambda: bool(found()), f"{event} in the log of {program}", timeout_seconds=15)
        return found()[0]

    written = line("webhooks", "webhook_attempted")
    assert (written["trace_id"], written["span_id"]) == (attempt.trace_id, attempt.span_id)
    for program, event in (
        ("gateway", "request_answered"),
        ("invoices", "rpc_answered"),
        ("webhooks", "event_handled"),
        ("withdrawals", "event_handled"),
    ):
        assert line(program, event)["trace_id"] == attempt.trace_id
    called = [(each["service"], each["method"]) for each in line("gateway", "request_answered")["calls"]]
    assert ("invoices", f"/{CANCEL}") in called


def test_every_process_sends_for_itself_and_nothing_begins_a_trace_by_itself(
    collector: Collector, shop: Shop
) -> None:
    def workers() -> int:
        shop.request("GET", "/api/v1/currencies")
        of_gateway = (span for span in collector.spans if span.service == "fiatgate-gateway")
        return len({span.resource["service.instance.id"] for span in of_gateway})

    wait_until(lambda: workers() == 2, "spans of both of the gateway's workers", timeout_seconds=15)
    services = {f"fiatgate-{name}" for name in ("gateway", *SERVICES)} - {
        "fiatgate-bank"
    }  # no request of a shop reaches it
    assert {span.service for span in collector.spans} >= services
    assert collector.paths == {"/v1/traces"}
    firsts = [span for span in collector.spans if not span.parent_id]
    assert {span.kind for span in firsts} == {"server"}
    asked_by_loops = (
        *("/GetSigningSecrets", "/GetCatalog", "/ListActorKeys", "/ExchangeHeads"),
        *("/Check", "/GetStatus", "/readyz"),
    )
    assert not [span.name for span in firsts if span.name.endswith(asked_by_loops)]


def test_nothing_that_is_secret_or_personal_is_in_a_span(
    collector: Collector, shop: Shop, receiver: Receiver
) -> None:
    told = {name: secrets.token_hex(8) for name in ("customer_id", "external_id", "purpose")}
    token = secrets.token_hex(8)
    invoice = shop.create(f"{receiver.url('private')}?token={token}", **told)
    shop.request("GET", f"/api/v1/invoices/{told['external_id']}?of={token}")
    shop.request(f"BREW{token.upper()}", f"/nobody-s/{token}")
    request_id = cancelled(invoice)
    (attempt,) = collector.wait_for(about(request_id, ATTEMPT), "of the attempt")
    collector.way_to(attempt)

    sent = b"".join(collector.bodies)
    assert attempt.span_id in {span.span_id for span in collector.spans}
    for value in (
        *told.values(),
        token,
        shop.api_key,
        shop.secret,
        "postgresql://",
        "SELECT",
        "shop.example",
    ):
        assert value.encode() not in sent, value


def test_requests_do_not_feel_that_the_collector_is_gone(
    traced: Stack, collector: Collector, shop: Shop, receiver: Receiver
) -> None:
    def told() -> int:
        return traced.programs()["gateway"].log.read_text().count("traces_not_sent")

    before = told()
    with collector.away():
        invoice = shop.create(receiver.url("alone"))
        cancelled(invoice)
        receiver.wait_for(1, path="alone")
        wait_until(lambda: told() > before, "a line in the log", timeout_seconds=30)
        assert {shop.request("GET", f"/api/v1/invoices/{invoice.id}").status_code for _ in range(50)} == {200}
        traced.restart("identity")
    traced.wait_until_ready()

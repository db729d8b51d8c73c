"""Webhook history and the manual resend over HTTP."""

import json
from datetime import datetime
from typing import Any

import pytest

from fiatgate.webhooks.v1 import webhooks_pb2
from gateway.api.webhooks import event_to_json
from tests.gateway.desk import Desk, Shop, code_of, settled
from tests.support.receiver import Answer, Receiver


def canceled(desk: Desk, shop: Shop, callback_url: str) -> dict[str, Any]:
    invoice = shop.create(callback_url=callback_url)
    desk.cancel(invoice["invoice_id"])
    return invoice


def history_of(shop: Shop, invoice: dict[str, Any]) -> dict[str, Any]:
    history: dict[str, Any] = shop.get(f"/api/v1/invoices/{invoice['invoice_id']}/webhooks").json()
    return history


def attempts_of(shop: Shop, invoice: dict[str, Any]) -> list[dict[str, Any]]:
    events = history_of(shop, invoice)["events"]
    return events[0]["attempts"] if events else []


def test_an_invoice_without_webhook_has_an_empty_history(shop: Shop) -> None:
    invoice = shop.create()
    assert history_of(shop, invoice) == {
        "successful": True,
        "invoice_id": invoice["invoice_id"],
        "external_id": invoice["external_id"],
        "events_count": 0,
        "events": [],
    }


@pytest.mark.parametrize("written", [b"no JSON", b"\xff", rb'{"x": "\ud800"}'])
def test_a_payload_that_sql_wrote_does_not_end_the_answer(written: bytes) -> None:
    event = webhooks_pb2.WebhookEvent(status=webhooks_pb2.EVENT_STATUS_DEAD, request_payload=written)
    assert event_to_json(event)["request_payload"] == {}


def test_metadata_comes_back_in_its_order_everywhere(desk: Desk, shop: Shop, receiver: Receiver) -> None:
    given = {"basket": "7", "a": "ü"}
    created = shop.create(callback_url=receiver.url(), metadata=given)
    path = f"/api/v1/invoices/{created['invoice_id']}"
    listed = shop.get(f"/api/v1/invoices?customer_id={created['customer_id']}").json()["data"][0]
    shop.post(f"{path}/cancel")
    (sent,) = receiver.wait_for(1)
    for each in (created, shop.get(path).json()["data"], listed, json.loads(sent.body)):
        assert list(each["metadata"].items()) == list(given.items())
    assert shop.create(metadata={})["metadata"] is None
    most = {f"{number:02}" + "💡" * 38: "💡" * 500 for number in range(20)}
    body = json.dumps(shop.body(callback_url=receiver.url(), metadata=most), ensure_ascii=False).encode()
    large = shop.post(
        "/api/v1/create-invoice", data=body, headers={"Content-Type": "application/json"}
    ).json()
    assert large["metadata"] == most
    shop.post(f"/api/v1/invoices/{large['invoice_id']}/cancel")
    assert json.loads(receiver.wait_for(2)[-1].body)["metadata"] == most


def test_a_delivered_webhook_is_in_the_history(desk: Desk, shop: Shop, receiver: Receiver) -> None:
    receiver.answer(Answer(status=201, body=b"thanks", headers={"X-Shop": "lamps"}))
    invoice = canceled(desk, shop, receiver.url())
    settled(lambda: len(attempts_of(shop, invoice)) == 1, "the delivery")
    history = history_of(shop, invoice)
    assert history["events_count"] == 1
    event = history["events"][0]
    assert isinstance(event["event_id"], int)
    assert (event["event_type"], event["status"]) == ("invoice.canceled", "success")
    assert event["callback_url"] == receiver.url()
    assert [event[f"{kind}_attempts"] for kind in ("auto", "manual", "total")] == [1, 0, 1]
    assert (event["next_retry_at"], event["locked_at"], event["locked_by"]) == (None, None, None)
    sent = receiver.received()[0]
    assert event["request_payload"] == json.loads(sent.body)
    assert list(event["request_payload"]) == list(json.loads(sent.body))
    assert event["request_payload"]["event_id"] == sent.headers["x-idempotency-key"]
    attempt = event["attempts"][0]
    assert (attempt["try_number"], attempt["trigger"], attempt["attempt_status"]) == (1, "auto", "success")
    shown = [attempt[name] for name in ("http_status", "response_body", "error_message")]
    assert shown == [201, "thanks", None]
    assert {name.lower(): value for name, value in attempt["response_headers"].items()}["x-shop"] == "lamps"
    assert attempt["duration_ms"] >= 0
    assert datetime.fromisoformat(attempt["created_at"]).utcoffset() is not None


def test_a_receiver_that_is_away_leaves_nulls_and_a_resend_says_so(desk: Desk, shop: Shop) -> None:
    invoice = canceled(desk, shop, "http://127.0.0.1:1/hook")
    settled(lambda: len(attempts_of(shop, invoice)) == 1, "the failed delivery")
    event = history_of(shop, invoice)["events"][0]
    assert event["status"] == "pending"
    assert event["next_retry_at"] is not None
    attempt = event["attempts"][0]
    assert attempt["attempt_status"] == "failure"
    assert [attempt[name] for name in ("http_status", "response_headers", "response_body")] == [None] * 3
    assert attempt["error_message"]
    body = shop.post(f"/api/v1/invoices/{invoice['invoice_id']}/webhooks/resend").json()
    assert body["successful"] is True
    assert (body["resend"]["ok"], body["resend"]["http_status"]) == (False, None)


def test_a_resend_is_one_more_attempt(desk: Desk, shop: Shop, receiver: Receiver) -> None:
    receiver.answer_next(Answer(status=500))
    invoice = canceled(desk, shop, receiver.url())
    settled(lambda: len(attempts_of(shop, invoice)) == 1, "the failed delivery")
    answer = shop.post(f"/api/v1/invoices/{invoice['external_id']}/webhooks/resend")
    assert answer.status_code == 200
    body = answer.json()
    assert (body["successful"], body["invoice_id"]) == (True, invoice["invoice_id"])
    assert (body["resend"]["ok"], body["resend"]["http_status"]) == (True, 200)
    event = history_of(shop, invoice)["events"][0]
    assert body["event_id"] == event["event_id"]
    assert (event["status"], event["manual_attempts"], event["total_attempts"]) == ("success", 1, 2)
    attempts = [(each["try_number"], each["trigger"]) for each in event["attempts"]]
    assert attempts == [(1, "auto"), (2, "manual")]
    first, second = receiver.received()
    assert first.body == second.body


def test_a_resend_waits_longer_than_other_requests(desk: Desk, shop: Shop, receiver: Receiver) -> None:
    """Other requests have 5 seconds; a receiver has 15."""
    receiver.answer_next(Answer(status=500), Answer(status=200, delay_seconds=6))
    invoice = canceled(desk, shop, receiver.url())
    settled(lambda: len(attempts_of(shop, invoice)) == 1, "the failed delivery")
    body = shop.post(f"/api/v1/invoices/{invoice['invoice_id']}/webhooks/resend").json()
    assert body["resend"]["ok"] is True
    assert body["resend"]["duration_ms"] >= 6000


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_resend_takes_no_body_of_another_type(shop: Shop, content_type: str) -> None:
    path = f"/api/v1/invoices/{shop.create()['invoice_id']}/webhooks/resend"
    refused = shop.post(path, data=b"a=1", headers={"Content-Type": content_type})
    assert (refused.status_code, code_of(refused)) == (400, "VALIDATION_ERROR")
    assert code_of(shop.post(path, headers={"Content-Type": content_type})) == "WEBHOOK_NOT_FOUND"
    assert code_of(shop.post(path, json={})) == "WEBHOOK_NOT_FOUND"

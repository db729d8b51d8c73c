"""GET /api/v1/events: webhooks in their order, for servers that were away or have no address."""

import json
from base64 import b64decode, b64encode
from concurrent.futures import ThreadPoolExecutor
from hmac import digest
from typing import Any

import pytest

from tests.gateway.desk import Desk, Shop, settled
from tests.support.receiver import Receiver

AWAY = "http://127.0.0.1:1/hook"


@pytest.fixture
def newcomer(desk: Desk, shop: Shop, method: str) -> Shop:
    """A merchant without events. The session's shop has waited until its currency can be sold in."""
    return desk.shop(shop.currency, allowed_methods=[method])


def events(shop: Shop, **query: Any) -> dict[str, Any]:
    answer = shop.get("/api/v1/events", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ended(desk: Desk, shop: Shop, callback_url: str = AWAY) -> str:
    invoice = shop.create(callback_url=callback_url)
    desk.cancel(invoice["invoice_id"])
    return str(invoice["invoice_id"])


def test_a_server_that_was_away_reads_all_in_order_page_by_page(desk: Desk, newcomer: Shop) -> None:
    assert events(newcomer) == {"successful": True, "data": [], "next_after": "0"}
    made = [ended(desk, newcomer) for _ in range(3)]
    settled(lambda: len(events(newcomer)["data"]) == 3, "three events")
    read, after = [], "0"
    for size in (2, 1, 0):
        page = events(newcomer, after=after, limit=2)
        assert len(page["data"]) == size
        read += [each["invoice_id"] for each in page["data"]]
        after = page["next_after"]
    assert read == made


def test_the_body_is_the_webhooks_to_the_byte_and_the_signatures_hold(
    desk: Desk, newcomer: Shop, receiver: Receiver
) -> None:
    ended(desk, newcomer, receiver.url())
    settled(lambda: bool(receiver.received()), "the webhook")
    [event] = events(newcomer, wait=5)["data"]
    assert event["event_type"] == "invoice.canceled"
    assert event["body"].encode() == receiver.received()[0].body
    secret, headers, body = newcomer.secret.encode(), event["headers"], event["body"].encode()
    timestamp = headers["X-Signature-Timestamp"].encode()
    assert headers["X-Signature"] == digest(secret, timestamp + b"." + body, "sha256").hex()
    assert headers["webhook-id"] == json.loads(body)["event_id"]
    # As a library of Standard Webhooks does with this secret.
    key = b64decode(("whsec_" + b64encode(secret).decode()).removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    assert headers["webhook-signature"] == "v1," + b64encode(digest(key, signed, "sha256")).decode()


def test_a_request_that_waits_is_answered_by_the_event(desk: Desk, newcomer: Shop) -> None:
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(events, newcomer, wait=25)
        invoice_id = ended(desk, newcomer)
        assert [each["invoice_id"] for each in answer.result()["data"]] == [invoice_id]


def test_another_merchant_sees_none_of_them(desk: Desk, newcomer: Shop, method: str) -> None:
    other = desk.shop(newcomer.currency, allowed_methods=[method])
    ended(desk, newcomer)
    settled(lambda: bool(events(newcomer)["data"]), "the event")
    assert events(other)["data"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"after": "x"}, "after"),
        ({"after": "-1"}, "after"),
        ({"after": str(2**63)}, "after"),
        ({"limit": "101"}, "limit"),
        ({"limit": "0"}, "limit"),
        ({"wait": "26"}, "wait"),
        ({"since": "1"}, "since"),
    ],
)
def test_values_out_of_bounds_are_refused(newcomer: Shop, query: dict[str, str], field: str) -> None:
    answer = newcomer.get("/api/v1/events", params=query)
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["details"]] == [field]

"""The payload, the signature, the retry schedule and the resend's rules are those of docs/api.md#events."""

import hashlib
import hmac
import json
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.webhooks.domain import (
    RETRY_DELAYS_SECONDS,
    Dead,
    Delivered,
    ResendAllowed,
    ResendConflict,
    ResendTooSoon,
    RetryAt,
    Unchanged,
    after_automatic,
    after_manual,
    destination_of,
    is_success,
    may_resend,
    payload_of,
    signature,
    signed_headers,
    standard_signature,
)
from tests.support.clock import START
from tests.webhooks.house import finished

MEMBERS = [
    *("event_id", "order_id", "external_id", "status", "sub_status", "finished_at", "expires_at", "amount"),
    *("currency", "rate_usd", "success_url", "fail_url", "is_adjusted", "original_amount", "adjusted_amount"),
    "reason",
]


def test_the_payload_has_every_documented_member_in_its_order_and_no_other() -> None:
    invoice = finished()
    assert list(json.loads(payload_of(invoice))) == MEMBERS
    kept = payload_of(
        finished(event_id=invoice.event_id, invoice_id=invoice.invoice_id, metadata={"b": "ü", "a": ""})
    )
    assert kept.endswith(b'"reason":null,"metadata":{"b":"\xc3\xbc","a":""}}')
    assert payload_of(invoice, is_test=True) == payload_of(invoice)[:-1] + b',"test":true}'
    assert payload_of(invoice, is_test_event=True) == payload_of(invoice)[:-1] + b',"test_event":true}'


def test_the_payload_says_what_the_invoice_says() -> None:
    invoice = finished(
        finished_at=datetime(2026, 1, 15, 12, 0, 0, 123000, tzinfo=UTC),
        is_adjusted=True,
        amount="80.00",
        original_amount="100.00",
        adjusted_amount="80.00",
    )
    assert json.loads(payload_of(invoice)) == {
        "event_id": str(invoice.event_id),
        "order_id": str(invoice.invoice_id),
        "external_id": "order-1 ü/%?",
        "status": "success",
        "sub_status": "successfully_paid",
        "finished_at": "2026-01-15T12:00:00.123000+00:00",
        "expires_at": "2026-01-15T12:00:00+00:00",
        "amount": "80.00",
        "currency": "EUR",
        "rate_usd": "0.92",
        "success_url": "https://shop.example.com/thanks",
        "fail_url": None,
        "is_adjusted": True,
        "original_amount": "100.00",
        "adjusted_amount": "80.00",
        "reason": None,
    }


def test_the_payload_is_compact_utf8() -> None:
    body = payload_of(finished(external_id="ü"))
    assert '"external_id":"ü","status"'.encode() in body


def test_the_signature_is_the_hex_hmac_of_timestamp_period_and_body() -> None:
    expected = hmac.new(b"s3cret", b'1700000000.{"a":1}', hashlib.sha256).hexdigest()
    assert signature("s3cret", "1700000000", b'{"a":1}') == expected


def test_the_second_signature_is_that_of_standard_webhooks() -> None:
    """The example of the specification."""
    key = b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    found = standard_signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_an_attempt_has_both_signatures_over_one_time() -> None:
    event_id, at = UUID(int=7), datetime(2026, 1, 2, 3, 4, 5, 678, UTC)
    headers = signed_headers(event_id, at, "s3cret", b"{}")
    timestamp = headers["X-Signature-Timestamp"]
    assert timestamp == headers["webhook-timestamp"] == "1767323045"
    assert headers["webhook-id"] == headers["X-Idempotency-Key"] == str(event_id)
    assert headers["X-Signature"] == signature("s3cret", timestamp, b"{}")
    assert headers["webhook-signature"] == standard_signature(b"s3cret", str(event_id), timestamp, b"{}")


@pytest.mark.parametrize(
    ("url", "destination"),
    [
        ("https://Shop.Example.com/hook?x=1", "shop.example.com:443"),
        ("http://127.0.0.1:8080/a", "127.0.0.1:8080"),
        ("http://shop.example.com/", "shop.example.com:80"),
        ("https://[2001:DB8::1]/", "2001:db8::1:443"),
        ("https://me:secret@shop.example.com:99999/hook?token=secret", "shop.example.com:99999"),
        ("https://me:secret@[::1/hook?token=secret#secret", "[::1"),
        ("no address", ":0"),
    ],
)
def test_the_destination_is_host_and_port_and_tells_nothing_else(url: str, destination: str) -> None:
    assert destination_of(url) == destination


@pytest.mark.parametrize(
    ("status", "success"),
    [(200, True), (201, True), (204, True), (299, True), (199, False), (300, False), (302, False), (404, False),
     (500, False), (None, False)],
)  # fmt: skip
def test_any_2xx_is_a_success_and_nothing_else(status: int | None, success: bool) -> None:
    assert is_success(status) is success


@pytest.mark.parametrize(
    ("retry", "delay_seconds"), [(1, 30), (2, 60), (3, 120), (4, 240), (5, 480), (6, 960), (7, 1800)]
)
def test_each_retry_comes_after_its_documented_delay(retry: int, delay_seconds: int) -> None:
    verdict = after_automatic(succeeded=False, attempts_before=retry - 1, ended_at=START, jitter_seconds=0)
    assert verdict == RetryAt(START + timedelta(seconds=delay_seconds))


def test_the_eighth_failure_is_the_end() -> None:
    assert after_automatic(succeeded=False, attempts_before=7, ended_at=START, jitter_seconds=0) == Dead()


@given(attempts_before=st.integers(0, 6), jitter_seconds=st.floats(0, 1))
def test_a_retry_is_never_early_and_at_most_a_second_late(
    attempts_before: int, jitter_seconds: float
) -> None:
    verdict = after_automatic(
        succeeded=False, attempts_before=attempts_before, ended_at=START, jitter_seconds=jitter_seconds
    )
    assert isinstance(verdict, RetryAt)
    late = verdict.at - START - timedelta(seconds=RETRY_DELAYS_SECONDS[attempts_before])
    assert timedelta(0) <= late <= timedelta(seconds=1)


@given(attempts_before=st.integers(0, 7))
def test_a_success_ends_it_at_any_attempt(attempts_before: int) -> None:
    verdict = after_automatic(
        succeeded=True, attempts_before=attempts_before, ended_at=START, jitter_seconds=0
    )
    assert verdict == Delivered()


def test_a_manual_success_ends_it_and_a_manual_failure_changes_nothing() -> None:
    assert after_manual(succeeded=True) == Delivered()
    assert after_manual(succeeded=False) == Unchanged()


def _ago(seconds: float) -> datetime:
    return START - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("lease_until", "last_manual_at", "decision"),
    [
        (None, None, ResendAllowed()),
        (_ago(-1), None, ResendConflict()),
        (_ago(-1), _ago(1), ResendConflict()),
        (_ago(0), None, ResendAllowed()),
        (None, _ago(59.5), ResendTooSoon(1)),
        (None, _ago(0), ResendTooSoon(60)),
        (None, _ago(60), ResendAllowed()),
    ],
)
def test_a_resend_is_refused_while_an_attempt_runs_then_until_the_cooldown_is_over(
    lease_until: datetime | None, last_manual_at: datetime | None, decision: object
) -> None:
    asked = may_resend(now=START, lease_until=lease_until, last_manual_at=last_manual_at, cooldown_seconds=60)
    assert asked == decision

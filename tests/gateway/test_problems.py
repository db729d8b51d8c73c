"""The table from reasons to HTTP has every reason, with the documented status and details."""

import pytest

from fiatgate.errors.v1.error_reason_pb2 import ErrorReason
from gateway.json.problems import PROBLEMS, envelope

FIRST_OF_PEOPLE = ErrorReason.Value("NOT_PERMITTED")
"""From here on reasons are about people who sign in: no call of the gateway is refused with one of them."""


def test_every_reason_has_a_row_and_every_row_a_reason() -> None:
    assert set(PROBLEMS) == {name for name, number in ErrorReason.items() if number < FIRST_OF_PEOPLE}


def test_every_503_says_when_to_come_back() -> None:
    """Clients are told to try again after 5 to 30 seconds."""
    waits = {reason: row.retry_after_seconds for reason, row in PROBLEMS.items() if row.status == 503}
    assert all(wait is not None and 5 <= wait <= 30 for wait in waits.values()), waits


def test_details_are_typed_and_in_the_documented_order() -> None:
    metadata = {
        "customer_id": "c-1",
        "next_allowed_at": "2026-01-15T12:00:00+00:00",
        "limit": "5",
        "window_minutes": "60",
        "something_new": "not for merchants",
    }
    error = envelope("CUSTOMER_RATE_LIMIT", request_id="r", metadata=metadata)["error"]
    assert list(error["details"].items()) == [
        ("window_minutes", 60),
        ("limit", 5),
        ("next_allowed_at", "2026-01-15T12:00:00+00:00"),
        ("customer_id", "c-1"),
    ]


def test_what_a_service_leaves_out_is_left_out() -> None:
    assert envelope("DUPLICATE_EXTERNAL_ID", request_id="r")["error"]["details"] == {}


def test_a_reason_nobody_declared_is_an_internal_error() -> None:
    error = envelope("OF_A_NEWER_SERVICE", request_id="r", message="secret inner words")["error"]
    assert error["code"] == "INTERNAL_ERROR"
    assert "secret" not in error["message"]


@pytest.mark.parametrize("reason", ["INTERNAL_ERROR", "DB_UNAVAILABLE"])
def test_inner_words_do_not_reach_the_outside(reason: str) -> None:
    error = envelope(reason, request_id="r", message="connection to 10.0.0.7 refused")["error"]
    assert "10.0.0.7" not in error["message"]

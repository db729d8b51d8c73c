"""What was begun before the first of these tests and takes minutes: see `long_waits`."""

from contextlib import ExitStack
from functools import partial

import jwt
import pytest

from deploy.local.waiting import wait_until
from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.status.v1 import status_pb2
from kit.rpc.errors import Refused
from tests.e2e.long_waits import LongWaits
from tests.e2e.market import Shop
from tests.e2e.people import House, named
from tests.support.stack import CliRefused, Stack


def test_the_first_two_retries_come_30_and_60_seconds_later_and_not_before(long_waits: LongWaits) -> None:
    first, second, third = long_waits.failing_twice.wait_for(3, timeout_seconds=120)
    assert second.at_seconds - first.at_seconds >= 30
    assert third.at_seconds - second.at_seconds >= 60
    assert first.body == second.body == third.body
    event = long_waits.retried.wait_for_delivery()
    assert (event["auto_attempts"], event["manual_attempts"], event["next_retry_at"]) == (3, 0, None)
    assert [(each["attempt_status"], each["http_status"]) for each in event["attempts"]] == [
        ("failure", 500),
        ("failure", 500),
        ("success", 200),
    ]


def test_a_deal_that_is_not_paid_in_time_expires(long_waits: LongWaits, shop: Shop) -> None:
    (received,) = long_waits.patient.wait_for(1, timeout_seconds=120)
    payload = shop.verified(received)
    assert payload == long_waits.unpaid.expected_payload(
        received.headers["x-idempotency-key"],
        status="expired",
        sub_status="payment_window_expired",
        rate_usd="0.91",
        test=True,  # the stack is in test mode
    )
    assert long_waits.unpaid.wait_for_delivery()["event_type"] == "invoice.expired"
    deal = long_waits.unpaid.read()["deal"]
    assert (deal["status"], deal["sub_status"]) == ("expired", "payment_window_expired")
    assert deal["finished_at"] >= deal["expires_at"]


def test_a_token_that_is_older_than_a_minute_opens_nothing_and_is_recorded(
    long_waits: LongWaits, stack: Stack
) -> None:
    list_deals = invoices_pb2.ListDealsRequest(limit=1)
    with ExitStack() as opened:
        house = House(stack, opened)

        def is_refused() -> bool:
            try:
                named(long_waits.token, lambda: house.desk.ListDeals(list_deals))
            except Refused as refused:
                return refused.metadata == {"problem": "age"}
            return False

        wait_until(is_refused, "the token to expire", timeout_seconds=70, every_seconds=0.5)
        refused = house.acts("invoices", "refused = 'ACTOR_INVALID' AND note = 'problem: age'")
        assert refused[-1][1] == "call:DealDeskService/ListDeals"


def test_after_a_rotation_every_service_knows_the_key_of_new_tokens(stack: Stack) -> None:
    """The key before signs until every service has fetched the new one. The key of the test above goes here."""
    with ExitStack() as opened:
        house = House(stack, opened)
        eve = house.staff("viewer")
        before = eve.token()
        made = house.keys.RotateActorKey(pb.RotateActorKeyRequest()).key_id
        after = eve.token()
        assert jwt.get_unverified_header(after)["kid"] == jwt.get_unverified_header(before)["kid"] != made
        for service, stub in house.statuses.items():
            for token in (after, before):
                answer = named(token, partial(stub.GetStatus, status_pb2.GetStatusRequest()))
                assert answer.service == service


def test_the_books_are_right_in_the_end(stack: Stack) -> None:
    def proved() -> bool:
        try:
            stack.cli("verify", "--grace-seconds", "0")  # what is still on its way counts as missing
        except CliRefused as wrong:
            told.append(str(wrong))
            return False
        return True

    told: list[str] = []
    try:
        wait_until(proved, "everything to be settled", timeout_seconds=60, every_seconds=0.5)
    except TimeoutError:
        pytest.fail(told[-1])

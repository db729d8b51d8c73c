"""The test event of a merchant: one in ten seconds, whichever processes are asked."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg2
from sqlalchemy import text

from kit.base.clock import SystemClock
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from services.webhooks.operations.testing import get_signature_check, send_test
from tests.support.clock import ManualClock
from tests.support.databases import past_all_rules
from tests.support.receiver import Answer, Receiver
from tests.webhooks.house import House, signed_by

_WAITING = text(
    "SELECT count(*) FROM pg_locks"
    " WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def test_of_two_tests_at_once_one_waits_for_the_cooldown(
    make_house: Callable[..., House], receiver: Receiver
) -> None:
    live_house = make_house(webhook_timeout_seconds=25)
    event_id = live_house.event(live_house.queue(receiver.url())).id

    def tested() -> str:
        try:
            send_test(live_house.deps, merchant_id=str(live_house.merchant_id), event_id=event_id)
        except Refused as refused:
            return refused.reason
        return "sent"

    def are_both_waiting() -> bool:
        with live_house.deps.db.autocommit() as connection:
            return bool(connection.scalar(_WAITING) == 2)

    with ThreadPoolExecutor(2) as threads:
        with (
            closing(psycopg2.connect(past_all_rules(live_house.deps.settings.database_url))) as connection,
            connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("LOCK TABLE acts IN EXCLUSIVE MODE")  # who has read waits here before writing
            answers = [threads.submit(tested) for _ in range(2)]
            live_house.wait(are_both_waiting, "two tests that wait", timeout_seconds=10)
        assert sorted(each.result() for each in answers) == ["WEBHOOK_RESEND_COOLDOWN", "sent"]
    assert len(receiver.received()) == 1


def test_a_server_checks_signatures_when_it_refused_the_newest_wrong_one(
    make_house: Callable[..., House], receiver: Receiver
) -> None:
    house = make_house(clock=ManualClock(SystemClock().now()))
    merchant, event_id = str(house.merchant_id), house.event(house.queue(receiver.url())).id
    assert not get_signature_check(house.deps, merchant_id=merchant)
    for status, refuses in ((200, False), (401, True), (500, False), (400, True), (302, False)):
        receiver.answer_next(Answer(status=status))
        send_test(house.deps, merchant_id=merchant, event_id=event_id, wrong_signature=True)
        assert not signed_by(receiver.received()[-1], house.secret)
        assert get_signature_check(house.deps, merchant_id=merchant) == refuses, status
        house.clock.advance(days=1)  # acts have the time of the real clock
    receiver.answer_next(Answer(status=401))
    send_test(house.deps, merchant_id=merchant, event_id=event_id)
    assert not get_signature_check(house.deps, merchant_id=merchant), "a right signature proves nothing"
    assert not get_signature_check(house.deps, merchant_id=str(new_id()))

"""Attempts that were written down though PostgreSQL's answer never came: known as ours, not taken for another's."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from uuid import UUID

import pytest
from sqlalchemy import make_url

from kit.observe.metrics import REGISTRY
from kit.rpc.errors import Refused
from services.webhooks.operations.resending import Resent
from services.webhooks.store import results
from tests.faults.proxy import Proxies
from tests.support.receiver import Answer, Receiver
from tests.webhooks.house import House

LINK = "database"
UNDER_WAY = Answer(delay_seconds=0.3)


@pytest.fixture
def link(database_url: Callable[[str], str]) -> Iterator[Proxies]:
    """A way to the database that loses answers."""
    port = make_url(database_url("webhooks")).port
    assert port is not None
    with Proxies({LINK: lambda: port}) as proxies:
        yield proxies


@pytest.fixture
def beyond(
    make_house: Callable[..., House], house: House, database_url: Callable[[str], str], link: Proxies
) -> House:
    """A process of the service that goes this way, for the same merchant as `house`, which does not."""
    database = make_url(database_url("webhooks")).set(port=link.port(LINK))
    beyond = make_house(database=database.render_as_string(hide_password=False), clock=house.clock)
    beyond.merchant_id, beyond.key_id = house.merchant_id, house.key_id
    # These connections stay open in the pool, with the statement planned: without answers none is opened or planned.
    with ExitStack() as opened:
        for _ in range(3):
            connection = opened.enter_context(beyond.deps.db.autocommit())
            results.record(connection, [], now=house.clock.now())
    return beyond


@pytest.fixture
def invoice_id(house: House, receiver: Receiver) -> UUID:
    """Whose webhook takes its time."""
    receiver.answer(UNDER_WAY)
    return house.queue(receiver.url())


@pytest.fixture
def resent(beyond: House, invoice_id: UUID, receiver: Receiver) -> Iterator[Future[Resent]]:
    with ThreadPoolExecutor(1) as threads:
        made = threads.submit(beyond.resend, invoice_id)
        receiver.wait_for(1)
        yield made


def test_a_resend_that_was_written_down_is_told_to_be(
    house: House, invoice_id: UUID, resent: Future[Resent], link: Proxies
) -> None:
    link.lose_answers(LINK)
    [attempt] = house.wait_for_attempts(invoice_id, 1)
    link.cut(LINK)

    assert resent.result().attempt_id == attempt.id
    assert (len(house.attempts(invoice_id)), house.event(invoice_id).manual_attempts) == (1, 1)


def test_a_resend_that_lost_its_lease_while_nobody_answered_is_a_conflict_still(
    house: House, invoice_id: UUID, resent: Future[Resent], link: Proxies
) -> None:
    link.hold(LINK)
    house.clock.advance(seconds=house.deps.settings.lease_seconds)
    house.resend(invoice_id)
    link.cut(LINK)
    link.flow(LINK)

    with pytest.raises(Refused, match="WEBHOOK_RESEND_CONFLICT"):
        resent.result()
    assert len(house.attempts(invoice_id)) == 1


def test_what_the_engine_wrote_down_counts_as_delivered(
    house: House, beyond: House, link: Proxies, receiver: Receiver
) -> None:
    before = _counted("delivered"), _counted("lease_lost")
    receiver.answer(UNDER_WAY)
    invoice_id = house.queue(receiver.url())
    with beyond.engine():
        receiver.wait_for(1)
        link.lose_answers(LINK)
        house.wait_for_attempts(invoice_id, 1)
        link.cut(LINK)
        house.wait(lambda: (_counted("delivered"), _counted("lease_lost")) != before, "the engine to know")
    assert (_counted("delivered"), _counted("lease_lost")) == (before[0] + 1, before[1])


def _counted(verdict: str) -> float:
    labels = {"trigger": "auto", "verdict": verdict}
    return REGISTRY.get_sample_value("fiatgate_webhook_attempts_total", labels) or 0.0

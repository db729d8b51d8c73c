"""Finished invoices become credits, over real NATS."""

import random
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select, text

from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.ids import new_id
from kit.events.bus.connection import Bus
from kit.events.bus.messages import Outgoing
from kit.observe import metrics
from kit.work.worker import Stop
from services.invoices.events import FINISHED
from services.withdrawals.config import WithdrawalsSettings
from services.withdrawals.events import invoice_paid_from_message
from services.withdrawals.models import Inbox, Parked
from services.withdrawals.operations import ledger
from services.withdrawals.wiring import Deps, wire
from services.withdrawals.workers import CONSUMER, consumer, gauges, workers
from tests.support.clock import ManualClock
from tests.support.signing import PUBLIC_KEYS, SEAL_KEY, delivered, signed
from tests.withdrawals.conftest import all_at_once


@pytest.fixture(scope="module")
def settings(database_url: Callable[[str], str], nats_url: str, invoices_bus: Bus) -> WithdrawalsSettings:
    """`invoices_bus` has made the stream."""
    return WithdrawalsSettings(
        seal_keys=(SEAL_KEY,),
        database_url=database_url("withdrawals"),
        nats_url=nats_url,
        bind="127.0.0.1:0",
        fact_public_keys=PUBLIC_KEYS,
    )


@contextmanager
def working(settings: WithdrawalsSettings) -> Iterator[Deps]:
    """A process's workers, in threads."""
    deps, stop = wire(settings, clock=ManualClock()), Stop()
    deps.bus.start()
    assert deps.bus.wait_ready(10)
    threads = [threading.Thread(target=each.run, args=(stop,), daemon=True) for each in workers(deps)]
    for thread in threads:
        thread.start()
    yield deps
    stop.set()
    for thread in threads:
        thread.join(15)
        assert not thread.is_alive()
    deps.bus.close()
    deps.db.dispose()


@pytest.fixture(scope="module")
def processes(settings: WithdrawalsSettings) -> Iterator[list[Deps]]:
    """Two of them, that share the events."""
    with ExitStack() as stack:
        yield [stack.enter_context(working(settings)) for _ in range(2)]


@pytest.fixture
def deps(processes: list[Deps]) -> Deps:
    return processes[0]


def finished(merchant_id: str, merchant_usdt: str | None, **values: Any) -> pb.InvoiceFinished:
    message = pb.InvoiceFinished(
        event_id=str(new_id()),
        event_type="invoice.success",
        invoice_id=str(new_id()),
        merchant_id=merchant_id,
        status=pb.INVOICE_STATUS_SUCCESS,
        merchant_usdt=merchant_usdt,
    )
    message.MergeFrom(pb.InvoiceFinished(**values))
    return message


def publish(bus: Bus, *messages: pb.InvoiceFinished, event_id: uuid.UUID | None = None) -> list[uuid.UUID]:
    facts = [
        signed(Outgoing(event_id or new_id(), FINISHED, message.SerializeToString())) for message in messages
    ]
    assert bus.publish(facts) == [fact.event_id for fact in facts]
    return [fact.event_id for fact in facts]


def wait_handled(deps: Deps, event_ids: list[uuid.UUID]) -> None:
    def all_in() -> bool:
        with deps.db.transaction() as tx:
            known = tx.scalars(select(Inbox.event_id).where(Inbox.event_id.in_(event_ids))).all()
        return set(known) == set(event_ids)

    wait_until(all_in, "the events in the inbox", timeout_seconds=20)


def handled() -> float:
    labels = {"consumer": CONSUMER, "outcome": "handled"}
    return metrics.REGISTRY.get_sample_value("fiatgate_events_total", labels) or 0


def failures(deps: Deps, event_id: uuid.UUID) -> Parked | None:
    with deps.db.transaction() as tx:
        return tx.scalar(select(Parked).where(Parked.event_id == event_id))


def credited(deps: Deps, merchant_id: str) -> str:
    return f"{ledger.get_balance(deps, merchant_id=merchant_id).credited:.6f}"


def test_a_successful_invoice_is_credited(deps: Deps) -> None:
    merchant = str(uuid.uuid4())
    wait_handled(deps, publish(deps.bus, finished(merchant, "12.345678"), finished(merchant, "0.654322")))
    assert credited(deps, merchant) == "13.000000"


@pytest.mark.parametrize(
    "status", [pb.INVOICE_STATUS_FAIL, pb.INVOICE_STATUS_EXPIRED, pb.INVOICE_STATUS_CANCELED]
)
def test_an_invoice_that_was_not_paid_moves_nothing(deps: Deps, status: pb.InvoiceStatus.ValueType) -> None:
    merchant, before = str(uuid.uuid4()), handled()
    publish(deps.bus, finished(merchant, "7.000000", status=status))
    wait_until(lambda: handled() > before, "the event to be acknowledged", timeout_seconds=20)
    assert credited(deps, merchant) == "0.000000"


def test_an_invoice_worth_nothing_is_handled_and_has_no_credit(deps: Deps) -> None:
    merchant = str(uuid.uuid4())
    wait_handled(deps, publish(deps.bus, finished(merchant, "0.000000")))
    assert credited(deps, merchant) == "0.000000"


def test_an_invoice_announced_again_under_any_event_id_is_credited_once(deps: Deps) -> None:
    merchant = str(uuid.uuid4())
    message = finished(merchant, "5.000000")
    wait_handled(deps, publish(deps.bus, *[message] * 10))
    assert credited(deps, merchant) == "5.000000"


def test_processes_that_credit_the_same_merchants_at_once_do_not_deadlock(processes: list[Deps]) -> None:
    merchants = [str(uuid.uuid4()) for _ in range(8)]
    before = deadlocks(processes)
    messages = [finished(merchant, "1.000000") for _ in range(50) for merchant in merchants]
    random.Random(7).shuffle(messages)
    facts = [signed(Outgoing(new_id(), FINISHED, message.SerializeToString())) for message in messages]
    assert len(processes[0].bus.publish(facts)) == len(facts)
    wait_handled(processes[0], [fact.event_id for fact in facts])
    assert {credited(processes[0], merchant) for merchant in merchants} == {"50.000000"}
    assert deadlocks(processes) == before


def deadlocks(processes: list[Deps]) -> int:
    """How many the database has resolved so far. Its processes tell what they counted when they end."""

    def ask(query: str) -> int:
        with processes[0].db.autocommit() as connection:
            answer: int = connection.execute(text(query)).scalar_one()
        return answer

    for each in processes:
        each.db.dispose()
    others = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    wait_until(lambda: ask(others) == 0, "the connections to close", timeout_seconds=20)
    return ask("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")


def test_one_event_consumed_by_many_at_once_is_credited_once(deps: Deps) -> None:
    merchant = str(uuid.uuid4())
    acknowledged: list[None] = []
    fact = Outgoing(new_id(), FINISHED, finished(merchant, "5.000000").SerializeToString())
    event = delivered(
        signed(fact),
        acknowledge=lambda: acknowledged.append(None),
        retry_after=lambda _seconds: pytest.fail("put off"),
    )
    consumers = [consumer(deps) for _ in range(8)]
    all_at_once([partial(each.handle, event) for each in consumers])
    assert len(acknowledged) == 8
    assert credited(deps, merchant) == "5.000000"


@pytest.mark.parametrize(
    "wrong",
    [
        {"merchant_usdt": "5.000001"},
        {"merchant_id": str(uuid.UUID(int=9))},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_an_invoice_announced_otherwise_than_credited_is_told(deps: Deps, wrong: dict[str, Any]) -> None:
    merchant = str(uuid.uuid4())
    message = finished(merchant, "5.000000")
    wait_handled(deps, publish(deps.bus, message))
    message.MergeFrom(pb.InvoiceFinished(**wrong))
    (event_id,) = publish(deps.bus, message)
    wait_until(lambda: failures(deps, event_id) is not None, "the failure", timeout_seconds=20)
    noted = failures(deps, event_id)
    assert noted is not None
    assert noted.error.startswith("CreditDiffers: ")
    assert credited(deps, merchant) == "5.000000"


@pytest.mark.parametrize(
    "wrong",
    [
        {"merchant_id": "x"},
        {"invoice_id": "x"},
        {"merchant_usdt": ""},
        {"merchant_usdt": "1e3"},
        {"merchant_usdt": "-1.000000"},
        {"merchant_usdt": "0.0000001"},
        {"merchant_usdt": "9" * 30},
        {"status": pb.INVOICE_STATUS_PENDING},
        {"status": 99},
    ],
    ids=str,
)
def test_an_event_that_invoices_never_says_is_no_credit(wrong: dict[str, Any]) -> None:
    message = finished(str(uuid.uuid4()), "5.000000")
    for field in wrong:
        message.ClearField(field)  # type: ignore[arg-type]
    message.MergeFrom(pb.InvoiceFinished(**wrong))
    with pytest.raises(ValueError):
        invoice_paid_from_message(message)


def test_a_successful_invoice_without_amount_is_no_credit() -> None:
    with pytest.raises(ValueError):
        invoice_paid_from_message(finished(str(uuid.uuid4()), None))


def test_the_gauges_count_what_waits_for_people(deps: Deps) -> None:
    assert {gauge.name: gauge.value for gauge in gauges(deps)} == {
        "withdrawals_pending": 0,
        "withdrawals_processing": 0,
        "refunds_ready": 0,
        "refunds_sent": 0,
        "parked": 0,
        "approvals_pending": 0,
        "approvals_oldest_seconds": 0.0,
    }


def test_the_books_are_right_after_all_of_that(deps: Deps) -> None:
    assert ledger.check_ledger(deps).problems == []

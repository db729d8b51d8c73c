"""Forged facts on NATS make no money, and a busy database loses none."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from sqlalchemy import text

from deploy.local.waiting import wait_until
from kit.base.ids import new_id
from kit.db.database import Database
from kit.events.bus.connection import Bus
from kit.events.bus.messages import Outgoing
from services.invoices.events import FINISHED
from services.withdrawals.config import WithdrawalsSettings
from services.withdrawals.operations import ledger
from services.withdrawals.wiring import Deps
from services.withdrawals.workers import consumer, gauges
from tests.support.servers import PostgresServer
from tests.support.signing import PUBLIC_KEYS, SEAL_KEY, delivered, signed
from tests.withdrawals.test_workers import credited, finished, wait_handled, working


@pytest.fixture(scope="module")
def deps(database_url: Callable[[str], str], nats_url: str, invoices_bus: Bus) -> Iterator[Deps]:
    """On NATS it may do everything. `invoices_bus` has made the stream."""
    settings = WithdrawalsSettings(
        seal_keys=(SEAL_KEY,),
        database_url=database_url("withdrawals"),
        nats_url=nats_url,
        bind="127.0.0.1:0",
        fact_public_keys=PUBLIC_KEYS,
    )
    with working(settings) as deps:
        yield deps


def parked(deps: Deps) -> int:
    return next(int(gauge.value) for gauge in gauges(deps) if gauge.name == "parked")


def test_a_forged_invoice_is_no_credit_and_the_true_one_of_the_same_id_is_credited_once(deps: Deps) -> None:
    merchant, before = str(uuid.uuid4()), parked(deps)
    forged, true = finished(merchant, "1000000.000000"), finished(merchant, "5.000000")
    event_id = new_id()
    fact = Outgoing(event_id, FINISHED, forged.SerializeToString())
    assert deps.bus.publish([fact]) == [event_id]
    wait_until(lambda: parked(deps) == before + 1, "the forged event to be parked", timeout_seconds=20)
    assert credited(deps, merchant) == "0.000000"

    assert deps.bus.publish([signed(replace(fact, payload=true.SerializeToString()))]) == [event_id]
    wait_handled(deps, [event_id])
    assert credited(deps, merchant) == "5.000000"
    retried = consumer(deps).retry_parked()
    assert (retried.retried, retried.mended) == (before + 1, 0)
    assert credited(deps, merchant) == "5.000000"
    assert ledger.check_ledger(deps).problems == []


@pytest.mark.parametrize(
    ("lock_seconds", "statement_seconds"), [(0.02, 10), (10, 0.05)], ids=["55P03", "57014"]
)
def test_a_busy_database_parks_no_credit_however_often(
    deps: Deps, postgres: PostgresServer, lock_seconds: float, statement_seconds: float
) -> None:
    merchant, before = str(uuid.uuid4()), parked(deps)
    fact = signed(Outgoing(new_id(), FINISHED, finished(merchant, "5.000000").SerializeToString()))
    pauses: list[float] = []
    impatient = Database(
        deps.settings.database_url,
        name="tests",
        seals=deps.settings.seals,
        pool_size=1,
        lock_timeout_seconds=lock_seconds,
        statement_timeout_seconds=statement_seconds,
    )
    crediting = consumer(replace(deps, db=impatient))
    database = deps.settings.database_url.rpartition("/")[2]
    superuser = Database(f"{postgres.admin_url.rpartition('/')[0]}/{database}", name="tests", pool_size=1)
    with superuser.transaction() as tx:
        tx.execute(text("LOCK TABLE accounts"))
        for _ in range(25):
            crediting.handle(
                delivered(fact, acknowledge=lambda: pytest.fail("it was given up"), retry_after=pauses.append)
            )
    assert len(pauses) == 25
    assert parked(deps) == before
    for _ in range(2):
        crediting.handle(delivered(fact))
    impatient.dispose()
    superuser.dispose()
    assert credited(deps, merchant) == "5.000000"

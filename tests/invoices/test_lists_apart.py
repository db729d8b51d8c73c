"""Lists and pictures have threads of their own; one list of a merchant is read at a time, and merchants take turns."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import psycopg2
import pytest
from sqlalchemy import text

from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2_grpc as pb_grpc
from fiatgate.merchants.v1 import merchants_pb2
from kit.base.ids import new_id
from kit.db.database import Database
from kit.rpc.errors import Refused
from services.invoices import rpc
from services.invoices.domain.states import DealStatus
from services.invoices.models import Deal
from services.invoices.wiring import Deps
from tests.invoices.conftest import World, make_merchant, waiting_for_a_lock
from tests.support.contracts import permissions_of
from tests.support.databases import past_all_rules
from tests.support.serving import connected, serving

INVOICES = 10_000
LISTS = 8
PER_PAGE = 20
PICTURES = 8
PATIENCE_SECONDS = 60


@pytest.fixture
def stub(world: World) -> Iterator[pb_grpc.InvoicesServiceStub]:
    with (
        serving(rpc.add_to, world.deps, service="invoices", slots=rpc.SLOTS) as address,
        connected(address) as channel,
    ):
        yield pb_grpc.InvoicesServiceStub(channel)


def page(stub: pb_grpc.InvoicesServiceStub, merchant: merchants_pb2.Merchant, number: int) -> str:
    asked = pb.ListInvoicesRequest(merchant_id=merchant.merchant_id, page=number, per_page=PER_PAGE)
    try:
        stub.ListInvoices(asked, timeout=PATIENCE_SECONDS)
    except Refused as refused:
        return refused.reason
    return "listed"


def fill(world: World) -> None:
    new = world.create()
    with world.deps.db.autocommit() as connection:
        columns = connection.execute(
            text(
                "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns "
                "WHERE table_name = 'invoices' AND column_name NOT IN ('id', 'external_id', 'customer_id')"
            )
        ).scalar_one()
        connection.execute(
            text(
                f"INSERT INTO invoices (id, external_id, customer_id, {columns}) "
                f"SELECT gen_random_uuid(), 'many-' || number, 'many-' || number, {columns} "
                "FROM invoices, generate_series(1, :most) AS number WHERE id = :id"
            ),
            {"most": INVOICES, "id": new.id},
        )


def test_many_deep_lists_of_one_merchant_hold_up_no_other(
    world: World, stub: pb_grpc.InvoicesServiceStub
) -> None:
    fill(world)
    other, key_id = make_merchant(world.merchants)
    world.create(merchant=other, key_id=key_id)
    answers: Counter[str] = Counter()
    stop = threading.Event()

    def keep_listing() -> None:
        while not stop.is_set():
            answers[page(stub, world.merchant, INVOICES // PER_PAGE)] += 1

    with ThreadPoolExecutor(LISTS) as threads:
        listing = [threads.submit(keep_listing) for _ in range(LISTS)]
        try:
            for _ in range(10):
                assert page(stub, other, 1) == "listed"
                create(stub, other, key_id)
        finally:
            stop.set()
        for each in listing:
            each.result()
    assert answers["listed"] > 0
    assert set(answers) <= {"listed", "RATE_LIMITED"}


@pytest.fixture
def patient(world: World) -> Iterator[Deps]:
    """Of the world, with statements that wait for a lock as long as a busy machine may need."""
    settings = world.deps.settings
    db = Database(
        settings.database_url,
        name="patient",
        seals=settings.seals,
        pool_size=settings.connections,
        statement_timeout_seconds=PATIENCE_SECONDS,
        lock_timeout_seconds=PATIENCE_SECONDS,
    )
    try:
        yield replace(world.deps, db=db)
    finally:
        db.dispose()


def test_of_many_lists_of_one_merchant_one_is_in_work_some_wait_and_the_rest_is_refused(
    world: World, patient: Deps
) -> None:
    world.create()
    with (
        serving(rpc.add_to, patient, service="invoices", slots=rpc.SLOTS) as address,
        connected(address) as channel,
        ThreadPoolExecutor(2 * LISTS) as threads,
    ):
        stub = pb_grpc.InvoicesServiceStub(channel)
        url = past_all_rules(world.deps.settings.database_url)
        with closing(psycopg2.connect(url)) as owner, owner, owner.cursor() as cursor:
            cursor.execute("LOCK TABLE invoices")
            asked = [threads.submit(page, stub, world.merchant, 1) for _ in range(2 * LISTS)]
            wait_until(
                lambda: sum(each.done() for each in asked) >= LISTS and waiting_for_a_lock(world) > 0,
                "a list to work and others to be refused",
                timeout_seconds=15,
            )
            assert waiting_for_a_lock(world) == 1
        answers = Counter(each.result() for each in asked)
    assert answers["listed"] > 0
    assert answers["RATE_LIMITED"] >= LISTS
    assert set(answers) == {"listed", "RATE_LIMITED"}


def test_customers_mark_as_paid_while_all_threads_of_pictures_wait(world: World, patient: Deps) -> None:
    appealed, paid = world.with_deal(), world.with_deal()
    appeal = pb.OpenCustomerAppealRequest(invoice_id=str(appealed.invoice_id), note="I paid")
    lock = text("SELECT FROM invoices WHERE id = :id FOR UPDATE")
    with (
        serving(rpc.add_to, patient, service="invoices", slots=rpc.SLOTS) as address,
        connected(address) as channel,
    ):
        checkout = pb_grpc.CheckoutServiceStub(channel)

        def mark_paid(deal: Deal) -> None:
            marked = pb.MarkPaidRequest(invoice_id=str(deal.invoice_id), deal_id=str(deal.id))
            checkout.MarkPaid(marked, timeout=PATIENCE_SECONDS)

        mark_paid(appealed)
        with ThreadPoolExecutor(PICTURES) as threads:
            with world.deps.db.transaction() as tx:
                tx.execute(lock, {"id": appealed.invoice_id})
                asked = [
                    threads.submit(checkout.OpenCustomerAppeal, appeal, timeout=PATIENCE_SECONDS)
                    for _ in range(PICTURES)
                ]
                wait_until(
                    lambda: waiting_for_a_lock(world) >= 2, "appeals to wait for the row", timeout_seconds=15
                )
                mark_paid(paid)
                assert not any(each.done() for each in asked), "it waited for the appeals"
            for each in asked:
                assert each.result().invoice.invoice_id == str(appealed.invoice_id)
    assert world.newest_deal(appealed.invoice_id).status == DealStatus.APPEAL


def test_creating_an_invoice_shares_its_threads_with_no_other_call() -> None:
    rows = permissions_of("invoices")
    kind = rows["InvoicesService/CreateInvoice"].kind
    assert [method for method, row in rows.items() if row.kind == kind] == ["InvoicesService/CreateInvoice"]


def create(stub: pb_grpc.InvoicesServiceStub, merchant: merchants_pb2.Merchant, key_id: str) -> None:
    id = str(new_id())
    stub.CreateInvoice(
        pb.CreateInvoiceRequest(
            merchant=merchant,
            key_id=key_id,
            amount="100.00",
            currency_code="EUR",
            customer_id=id,
            external_id=id,
        )
    )

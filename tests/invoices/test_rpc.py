"""The service as its callers see it: over gRPC, with messages."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from sqlalchemy import text

from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2_grpc as pb_grpc
from services.invoices import rpc
from services.invoices.operations import verification
from tests.invoices.conftest import World
from tests.support.acting import BEN, refusal
from tests.support.serving import connected, serving


@pytest.fixture
def grpc_channel(world: World) -> Iterator[grpc.Channel]:
    with serving(rpc.add_to, world.deps) as address, connected(address) as opened:
        yield opened


@pytest.fixture
def invoices(grpc_channel: grpc.Channel) -> pb_grpc.InvoicesServiceStub:
    return pb_grpc.InvoicesServiceStub(grpc_channel)


@pytest.fixture
def checkout(grpc_channel: grpc.Channel) -> pb_grpc.CheckoutServiceStub:
    return pb_grpc.CheckoutServiceStub(grpc_channel)


@pytest.fixture
def desk(grpc_channel: grpc.Channel) -> pb_grpc.DealDeskServiceStub:
    return pb_grpc.DealDeskServiceStub(grpc_channel)


def create(world: World, invoices: pb_grpc.InvoicesServiceStub, **changes: Any) -> pb.Invoice:
    values: dict[str, Any] = {
        "merchant": world.merchant,
        "key_id": world.key_id,
        "amount": "100",
        "currency_code": "EUR",
        "customer_id": "c",
        "external_id": "e",
    }
    return invoices.CreateInvoice(pb.CreateInvoiceRequest(**(values | changes))).invoice


def test_a_purchase_from_creation_to_the_announced_credit(
    world: World,
    invoices: pb_grpc.InvoicesServiceStub,
    checkout: pb_grpc.CheckoutServiceStub,
    desk: pb_grpc.DealDeskServiceStub,
) -> None:
    created = create(world, invoices, purpose="Tea")
    assert not created.HasField("deal")
    assert not created.HasField("finished_at")
    page = checkout.GetCheckout(pb.GetCheckoutRequest(invoice_id=created.invoice_id))
    assert page.merchant_name == "Corner Shop"
    assert [(each.offer.method.method_code, each.amount_fiat) for each in page.methods] == [
        ("card_eur", "102.50"),
        ("sepa_eur", "102.50"),
    ]
    chosen = checkout.SelectPaymentMethod(
        pb.SelectPaymentMethodRequest(invoice_id=created.invoice_id, method_code="card_eur")
    )
    assert chosen.invoice.deal.amount_fiat == "102.50"
    assert chosen.requisite.holder == "A. Holder"
    marked = checkout.MarkPaid(
        pb.MarkPaidRequest(invoice_id=created.invoice_id, deal_id=chosen.invoice.deal.deal_id)
    ).invoice
    assert marked.deal.HasField("mark_paid_at")
    page = checkout.GetCheckout(pb.GetCheckoutRequest(invoice_id=created.invoice_id))
    assert not page.methods
    assert page.requisite.account == chosen.requisite.account
    done = desk.ConfirmDeal(pb.ConfirmDealRequest(deal_id=marked.deal.deal_id)).deal
    assert (done.status, done.merchant_usdt) == (pb.DEAL_STATUS_COMPLETED, "105.978260")
    read = invoices.GetInvoice(
        pb.GetInvoiceRequest(merchant_id=world.merchant.merchant_id, invoice_ref="e")
    ).invoice
    assert read.status == pb.INVOICE_STATUS_SUCCESS
    assert read.deal == done
    (finished,) = invoices.ListFinishedInvoices(pb.ListFinishedInvoicesRequest()).invoices
    assert (finished.invoice_id, finished.merchant_usdt, finished.has_callback) == (
        created.invoice_id,
        "105.978260",
        True,
    )
    (fact,) = world.announced(created.invoice_id)
    assert fact.event_id == finished.event_id


def test_an_invoices_own_id_goes_before_an_external_id_that_looks_like_it(
    world: World, invoices: pb_grpc.InvoicesServiceStub
) -> None:
    first = create(world, invoices)
    create(world, invoices, external_id=first.invoice_id, customer_id="d")
    free = "0197a000-0000-7000-8000-00000000beef"
    third = create(world, invoices, external_id=free, customer_id="f")
    owner = world.merchant.merchant_id
    by_id = invoices.GetInvoice(pb.GetInvoiceRequest(merchant_id=owner, invoice_ref=first.invoice_id))
    assert by_id.invoice.external_id == "e"
    by_external = invoices.GetInvoice(pb.GetInvoiceRequest(merchant_id=owner, invoice_ref=free))
    assert by_external.invoice.invoice_id == third.invoice_id


def test_the_largest_page_fits_into_an_answer_however_long_its_invoices_are(
    world: World, invoices: pb_grpc.InvoicesServiceStub
) -> None:
    owner = world.merchant.merchant_id
    url = "https://shop.example/" + "x" * 2027
    first = create(
        world,
        invoices,
        purpose="\N{GRINNING FACE}" * 512,
        callback_url=url,
        success_url=url,
        fail_url=url,
    )
    copies = """
        INSERT INTO invoices
        SELECT (jsonb_populate_record(invoice, jsonb_build_object(
            'id', gen_random_uuid(), 'external_id', n, 'customer_id', n))).*
        FROM invoices AS invoice, generate_series(1, 499) AS n
    """
    with world.deps.db.autocommit() as connection:
        connection.execute(text(copies))
    page = invoices.ListInvoices(pb.ListInvoicesRequest(merchant_id=owner, page=1, per_page=500))
    assert page.total == len(page.invoices) == 500
    assert {invoice.purpose for invoice in page.invoices} == {first.purpose}


def test_pages_have_exact_totals_and_may_lie_beyond_the_last(
    world: World, invoices: pb_grpc.InvoicesServiceStub
) -> None:
    owner = world.merchant.merchant_id
    for number in range(5):
        create(world, invoices, external_id=f"e{number}", customer_id=f"c{number}")
        world.clock.advance(seconds=1)

    def page(**query: Any) -> tuple[list[str], int]:
        values: dict[str, Any] = {"merchant_id": owner, "per_page": 2} | query
        answer = invoices.ListInvoices(pb.ListInvoicesRequest(**values))
        return [each.external_id for each in answer.invoices], answer.total

    assert page(page=1) == (["e4", "e3"], 5)
    assert page(page=3, order=pb.SORT_ORDER_ASC) == (["e4"], 5)
    assert page(page=4) == ([], 5)
    assert page(page=2**62, per_page=500) == ([], 5)
    assert page(page=1, currency_code="EUR", status=pb.INVOICE_STATUS_PENDING)[1] == 5
    nothing: dict[str, Any]
    for nothing in ({"currency_code": "JPY"}, {"status": pb.INVOICE_STATUS_FAIL}):
        assert refusal(page, page=1, **nothing).reason == "INVOICES_NOT_FOUND"


def test_requisites_are_added_listed_switched_and_checked(desk: pb_grpc.DealDeskServiceStub) -> None:
    added = desk.AddRequisite(
        pb.AddRequisiteRequest(method_code="bank_jpy", holder="B", account="777", max_deals=3)
    ).requisite
    assert (added.enabled, added.open_deals, added.HasField("bank")) == (True, 0, False)
    off = desk.DisableRequisite(pb.DisableRequisiteRequest(requisite_id=added.requisite_id)).requisite
    assert not off.enabled
    (listed,) = desk.ListRequisites(pb.ListRequisitesRequest(method_code="bank_jpy")).requisites
    assert listed == off
    assert desk.EnableRequisite(pb.EnableRequisiteRequest(requisite_id=added.requisite_id)).requisite.enabled


def test_a_requisite_can_be_added_right_after_its_method(
    world: World, desk: pb_grpc.DealDeskServiceStub
) -> None:
    world.deps.catalog.catalog()  # a copy that does not know the method yet
    method = catalog_pb2.PaymentMethod(
        method_code="brand_new",
        currency_code="EUR",
        name="New",
        min_sum="1",
        max_sum="5",
        payment_minutes=5,
        commission="0",
        active=False,
    )
    world.catalog.SetPaymentMethod(catalog_pb2.SetPaymentMethodRequest(method=method))
    added = desk.AddRequisite(pb.AddRequisiteRequest(method_code="brand_new", holder="B", account="1"))
    assert added.requisite.method_code == "brand_new"


def test_resolving_needs_an_outcome_and_a_deal(
    world: World, invoices: pb_grpc.InvoicesServiceStub, desk: pb_grpc.DealDeskServiceStub
) -> None:
    deal = world.with_deal()
    desk.OpenAppeal(pb.OpenAppealRequest(deal_id=str(deal.id)))
    assert (
        refusal(desk.ResolveAppeal, pb.ResolveAppealRequest(deal_id=str(deal.id))).reason
        == "VALIDATION_ERROR"
    )
    lower = pb.ResolveAppealRequest(deal_id=str(deal.id), adjusted_amount="50")
    refused = refusal(desk.ResolveAppeal, lower)
    assert refused.reason == "APPROVAL_REQUIRED"
    world.approvals.approve(BEN, refused.metadata["approval_id"])
    resolved = desk.GetDeal(pb.GetDealRequest(deal_id=str(deal.id))).deal
    assert (resolved.sub_status, resolved.adjusted_amount) == ("completed_with_adjustment", "50.00")
    asked = pb.GetInvoiceRequest(merchant_id=str(deal.merchant_id), invoice_ref=str(deal.invoice_id))
    ended = invoices.GetInvoice(asked).invoice
    assert (ended.amount, ended.final_amount, ended.is_adjusted) == (
        f"{deal.invoice_amount:f}",
        "50.00",
        True,
    )
    story = desk.GetDeal(pb.GetDealRequest(deal_id=str(deal.id)))
    assert [step.sub_status for step in story.history] == [
        "awaiting_payment",
        "opened_by_operator",
        "completed_with_adjustment",
    ]
    (listed,) = desk.ListDeals(pb.ListDealsRequest(status=pb.DEAL_STATUS_COMPLETED)).deals
    assert listed == resolved


def test_the_switch_is_read_and_set(desk: pb_grpc.DealDeskServiceStub) -> None:
    assert desk.GetDealsSystem(pb.GetDealsSystemRequest()).enabled
    assert not desk.SetDealsSystem(pb.SetDealsSystemRequest(enabled=False)).enabled
    assert not desk.GetDealsSystem(pb.GetDealsSystemRequest()).enabled


def test_announcing_again_says_the_same_to_the_byte_and_only_of_finished_invoices(
    world: World, invoices: pb_grpc.InvoicesServiceStub
) -> None:
    finished = world.with_deal()
    pending = create(world, invoices)
    invoices.CancelInvoice(pb.CancelInvoiceRequest(invoice_id=str(finished.invoice_id)))
    before = world.announced(finished.invoice_id)
    answer = invoices.ReannounceInvoices(
        pb.ReannounceInvoicesRequest(invoice_ids=[str(finished.invoice_id), pending.invoice_id])
    )
    assert list(answer.invoice_ids) == [str(finished.invoice_id)]
    # A row of its own: under the first one's id JetStream and every inbox would drop it, and repair nothing.
    assert world.announced(finished.invoice_id) == before * 2
    _empty_outbox(world)
    verification.reannounce_invoices(world.deps, invoice_ids=[str(finished.invoice_id)])
    assert world.announced(finished.invoice_id) == before


def _empty_outbox(world: World) -> None:
    from sqlalchemy import delete

    from services.invoices.models import Outbox

    with world.deps.db.transaction() as tx:
        tx.execute(delete(Outbox))

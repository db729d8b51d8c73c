"""The statement, all corrections, the address book and the cancellation over HTTP, on the whole stack."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import corrections_pb2, withdrawals_pb2
from kit.base.clock import SystemClock
from kit.base.ids import new_id
from tests.gateway.desk import Desk, Shop, code_of, settled
from tests.support.acting import second_person

TRON_ADDRESS = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"


@pytest.fixture(scope="module")
def books(desk: Desk, shop: Shop, method: str) -> Iterator[Shop]:
    """A merchant with a paid invoice, a surplus of it, a credit and a debit by hand, and a refund."""
    merchant = desk.shop(shop.currency)
    invoice_id = merchant.create(amount="9000.00")["invoice_id"]
    desk.confirm(invoice_id, method)
    settled(lambda: desk.available(merchant) != "0.000000", "the credit")
    with second_person(desk.stack.addresses["withdrawals"]) as by_two:
        for kind, of in (
            (corrections_pb2.CORRECTION_KIND_SURPLUS, {"invoice_id": invoice_id, "received_amount": "90.00"}),
            (
                corrections_pb2.CORRECTION_KIND_MANUAL_CREDIT,
                {"merchant_id": merchant.merchant_id, "amount": "5"},
            ),
            (
                corrections_pb2.CORRECTION_KIND_MANUAL_DEBIT,
                {"merchant_id": merchant.merchant_id, "amount": "7"},
            ),
        ):
            wanted = corrections_pb2.MakeCorrectionRequest(
                kind=kind, reason="Agreed", evidence="E-1", request_key=str(new_id()), **of
            )
            by_two(partial(desk.corrections.MakeCorrection, wanted))
    refunded = merchant.post(
        f"/api/v1/invoices/{invoice_id}/refunds", json={"external_id": "r-1", "amount": "9"}
    )
    assert refunded.status_code == 201, refunded.text
    yield merchant


def pages(shop: Shop, path: str, per_page: int) -> Iterator[list[dict[str, Any]]]:
    """The pages of a list with a cursor."""
    after = ""
    while after is not None:
        body = shop.get(f"{path}per_page={per_page}{after and f'&after={after}'}").json()
        yield body["data"]
        after = body["next_after"]


def test_a_statement_adds_up_to_the_balance_whatever_its_pages_hold(books: Shop) -> None:
    whole = books.get("/api/v1/statement").json()
    assert (whole["month"], whole["next_after"]) == (f"{SystemClock().now():%Y-%m}", None)
    lines = whole["data"]
    assert [each["kind"] for each in lines] == [
        *("credit", "correction_credit", "correction_credit", "correction_debit", "refund_reserve")
    ]
    assert books.get("/api/v1/balance").json()["data"] == lines[-1]["after"]
    held = dict.fromkeys(("available", "reserved", "owed"), Decimal(0))
    for each in lines:
        held = {name: held[name] + Decimal(each["change"][name]) for name in held}
        assert {name: Decimal(value) for name, value in each["after"].items()} == held
        assert (
            sum(1 for name in ("invoice_id", "withdraw_uuid", "correction_id", "refund_id") if each[name])
            == 1
        )
    assert [len(page) for page in pages(books, "/api/v1/statement?", 2)] == [2, 2, 1]
    assert [line for page in pages(books, "/api/v1/statement?", 2) for line in page] == lines
    assert books.get("/api/v1/statement?month=2020-01").json()["data"] == []


def test_all_corrections_are_listed_with_their_invoice(books: Shop) -> None:
    found = [each for page in pages(books, "/api/v1/corrections?", 1) for each in page]
    assert [each["kind"] for each in found] == ["manual_debit", "manual_credit", "surplus"]
    assert [each["invoice_id"] is None for each in found] == [True, True, False]
    of_invoice = books.get(f"/api/v1/invoices/{found[-1]['invoice_id']}/corrections").json()["data"]
    assert of_invoice == found[-1:]


@pytest.mark.parametrize("path", ["statement", "corrections"])
def test_a_page_does_not_begin_after_anothers_item(books: Shop, shop: Shop, path: str) -> None:
    item = books.get(f"/api/v1/{path}").json()["data"][0]
    for after in (item.get("transfer_id") or item["correction_id"], str(new_id())):
        refused = shop.get(f"/api/v1/{path}?after={after}")
        assert refused.status_code == 422
        assert refused.json()["details"] == [{"field": "after", "message": "is no item of this list"}]


def test_the_address_book_says_from_when_an_address_can_be_used(desk: Desk, books: Shop, shop: Shop) -> None:
    request = withdrawals_pb2.AddAddressRequest(
        merchant_id=books.merchant_id, withdrawal_method_id=1, address=TRON_ADDRESS, name="exchange"
    )
    added = desk.withdrawals.AddAddress(request).address
    (address,) = books.get("/api/v1/addresses").json()["data"]
    assert {name: address[name] for name in ("address_id", "address", "network", "status")} == {
        "address_id": added.address_id,
        "address": TRON_ADDRESS,
        "network": "TRC20",
        "status": "waiting",
    }
    assert datetime.fromisoformat(address["usable_at"]) == added.usable_at.ToDatetime(UTC)
    assert shop.get("/api/v1/addresses").json()["data"] == []


def test_an_invoice_is_canceled_once_by_its_own_merchant(
    desk: Desk, shop: Shop, books: Shop, method: str
) -> None:
    created = shop.create()
    path = f"/api/v1/invoices/{created['external_id']}/cancel"
    for foreign in (path, f"/api/v1/invoices/{created['invoice_id']}/cancel"):
        assert code_of(books.post(foreign)) == "INVOICE_NOT_FOUND"
    desk.choose(created["invoice_id"], method)
    first, again = shop.post(path), shop.post(path)
    assert (first.status_code, first.json()) == (200, again.json())
    canceled = first.json()["data"]
    assert (canceled["status"], canceled["deal"]["sub_status"]) == ("canceled", "canceled_by_operator")
    assert shop.get(f"/api/v1/invoices/{created['invoice_id']}").json()["data"] == canceled


def test_an_invoice_that_is_marked_paid_or_finished_is_not_canceled(
    desk: Desk, shop: Shop, method: str
) -> None:
    invoice_id = shop.create()["invoice_id"]
    deal = desk.mark_paid(invoice_id, method)
    refused = shop.post(f"/api/v1/invoices/{invoice_id}/cancel")
    assert (refused.status_code, code_of(refused)) == (409, "DEAL_STATE_CONFLICT")
    assert refused.json()["error"]["details"] == {"status": "pending", "sub_status": "awaiting_confirmation"}
    desk.deals.ConfirmDeal(invoices_pb2.ConfirmDealRequest(deal_id=deal.deal_id))
    refused = shop.post(f"/api/v1/invoices/{invoice_id}/cancel")
    assert (refused.status_code, code_of(refused)) == (409, "INVOICE_FINISHED")
    assert refused.json()["error"]["details"] == {"status": "success"}

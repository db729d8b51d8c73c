"""Refunds, corrections and the balance over HTTP, on the whole stack."""

from collections.abc import Iterator
from typing import Any

import pytest

from fiatgate.withdrawals.v1 import corrections_pb2, refunds_pb2
from kit.base.ids import new_id
from tests.gateway.desk import Desk, Shop, code_of, settled, unique
from tests.support.acting import second_person

IBAN = "DE89370400440532013000"
ACCOUNT = {"account_kind": "iban", "account": "DE89 3704 0044 0532 0130 00", "account_holder": "Mia Muster"}


@pytest.fixture(scope="module")
def rich(desk: Desk, shop: Shop, method: str) -> Shop:
    """A merchant with 975 USDT of an invoice of 90000.00, for which the customer sent 92250.00."""
    merchant = desk.shop(shop.currency)
    pay(desk, merchant, method, "90000.00")
    return merchant


def pay(desk: Desk, shop: Shop, method: str, amount: str) -> str:
    """A paid invoice, credited; its id."""
    before = desk.available(shop)
    invoice_id: str = shop.create(amount=amount)["invoice_id"]
    desk.confirm(invoice_id, method)
    settled(lambda: desk.available(shop) != before, "the credit")
    return invoice_id


@pytest.fixture
def paid(desk: Desk, rich: Shop, method: str) -> Iterator[str]:
    """The path of a further paid invoice of 900.00, of which 922.50 came."""
    yield f"/api/v1/invoices/{pay(desk, rich, method, '900.00')}"


def refund(shop: Shop, path: str, **body: Any) -> Any:
    return shop.post(f"{path}/refunds", json={"external_id": unique("refund")} | body)


def balance(shop: Shop) -> tuple[str, str, str]:
    data = shop.get("/api/v1/balance").json()["data"]
    return data["available"], data["reserved"], data["owed"]


def test_a_refund_reserves_its_usdt_and_is_listed_with_a_masked_account(rich: Shop, paid: str) -> None:
    before = balance(rich)
    external_id = unique("refund")
    response = refund(rich, paid, external_id=external_id, amount="22.50", reason="Broken", **ACCOUNT)
    assert response.status_code == 201
    made = response.json()["data"]
    assert {
        name: made[name] for name in ("status", "origin", "amount", "amount_usdt", "account", "reason")
    } == {
        "status": "ready",
        "origin": "credited",
        "amount": "22.50",
        "amount_usdt": "0.250000",
        "account": "···3000",
        "reason": "Broken",
    }
    assert made["external_id"] == external_id
    assert IBAN not in response.text
    again = refund(rich, paid, external_id=external_id, amount="22.5", reason="Broken", **ACCOUNT)
    assert (again.status_code, again.json()["data"]) == (201, made)
    other = refund(rich, paid, external_id=external_id, amount="22.51", reason="Broken", **ACCOUNT)
    assert (other.status_code, code_of(other)) == (409, "REFUND_EXISTS")
    assert other.json()["error"]["details"] == {"refund_id": made["refund_id"]}
    rest = refund(rich, paid).json()["data"]
    assert (rest["amount"], rest["status"], rest["account"]) == ("900.00", "waiting_for_account", None)
    assert rich.get(f"{paid}/refunds").json()["data"] == [rest, made]
    assert [float(each) for each in balance(rich)] == [float(before[0]) - 10.25, float(before[1]) + 10.25, 0]


def test_what_cannot_be_refunded_is_refused(
    desk: Desk, rich: Shop, shop: Shop, method: str, paid: str
) -> None:
    too_much = refund(rich, paid, amount="922.51")
    assert (too_much.status_code, code_of(too_much)) == (422, "REFUND_INVALID")
    assert too_much.json()["error"]["details"] == {"refundable": "922.50", "currency": rich.currency}
    pending = f"/api/v1/invoices/{rich.create()['invoice_id']}"
    assert code_of(refund(rich, pending)) == "REFUND_INVALID"
    poor = desk.shop(shop.currency)
    own = f"/api/v1/invoices/{pay(desk, poor, method, '900.00')}"
    short = refund(poor, own)  # the commission stays with the operator: the refund takes more than the credit
    assert (short.status_code, code_of(short)) == (409, "INSUFFICIENT_BALANCE")
    error = short.json()["error"]
    assert error["details"] == {
        "available": "9.750000",
        "requested": "10.250000",
        "refundable": "877.50",
        "currency": rich.currency,
    }
    assert "The commission stays with the operator" in error["message"]
    assert code_of(refund(poor, own, amount="877.51")) == "INSUFFICIENT_BALANCE"
    assert refund(poor, own, amount="877.50").json()["data"]["amount_usdt"] == "9.750000"
    assert code_of(refund(poor, paid)) == "INVOICE_NOT_FOUND"
    assert code_of(poor.get(f"{paid}/refunds")) == "INVOICE_NOT_FOUND"


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"external_id": ""}, ["external_id"]),
        ({"amount": "0"}, ["amount"]),
        ({"amount": "1.005"}, ["amount"]),
        ({"account": IBAN}, ["account_kind", "account_holder"]),
        ({"account_bank": "Bank"}, ["account_kind", "account", "account_holder"]),
        ({**ACCOUNT, "account": "DE00"}, ["account"]),
        ({**ACCOUNT, "account_kind": "gold"}, ["account_kind"]),
        ({**ACCOUNT, "account": "x", "account_holder": " "}, ["account", "account_holder"]),
    ],
)
def test_each_fault_of_the_body_is_named(
    rich: Shop, paid: str, body: dict[str, Any], places: list[str]
) -> None:
    response = refund(rich, paid, **body)
    assert (response.status_code, code_of(response)) == (400, "VALIDATION_ERROR")
    assert [each["loc"] for each in response.json()["error"]["details"]] == [
        ["body", each] for each in places
    ]


def test_a_reversal_is_a_correction_and_what_is_missing_is_owed(desk: Desk, shop: Shop, method: str) -> None:
    merchant = desk.shop(shop.currency)
    first, second = (pay(desk, merchant, method, "900.00") for _ in range(2))
    refund(merchant, f"/api/v1/invoices/{second}", amount="900.00")
    request = corrections_pb2.MakeCorrectionRequest(
        kind=corrections_pb2.CORRECTION_KIND_REVERSAL,
        invoice_id=first,
        amount="9.74",
        reason="The bank recalled the transfer",
        evidence="BR-7",
        request_key=str(new_id()),
    )
    with second_person(desk.stack.addresses["withdrawals"]) as by_two:
        by_two(lambda: desk.corrections.MakeCorrection(request))
    assert balance(merchant) == ("0.000000", "10.000000", "0.240000")
    path = f"/api/v1/invoices/{first}"
    (made,) = merchant.get(f"{path}/corrections").json()["data"]
    assert (made["kind"], made["amount_usdt"], made["owed_usdt"], made["reason"]) == (
        "reversal",
        "9.740000",
        "0.240000",
        "The bank recalled the transfer",
    )
    assert "BR-7" not in str(made)
    assert merchant.get(f"/api/v1/invoices/{second}/corrections").json()["data"] == []
    in_part = refund(merchant, path).json()["error"]
    assert (in_part["code"], in_part["details"]) == ("REFUND_INVALID", {})
    assert "was taken back, in whole or in part" in in_part["message"]
    assert code_of(shop.get(f"{path}/corrections")) == "INVOICE_NOT_FOUND"


def test_refunds_of_one_merchant_end_as_the_desk_says(desk: Desk, rich: Shop, paid: str) -> None:
    made = refund(rich, paid, amount="9.00", **ACCOUNT).json()["data"]
    desk.refunds.SendRefund(refunds_pb2.SendRefundRequest(refund_id=made["refund_id"], bank_reference="BR-9"))
    desk.refunds.CompleteRefund(refunds_pb2.CompleteRefundRequest(refund_id=made["refund_id"]))
    failing = refund(rich, paid, amount="9.00", **ACCOUNT).json()["data"]
    desk.refunds.FailRefund(
        refunds_pb2.FailRefundRequest(refund_id=failing["refund_id"], failure="The account is closed")
    )
    failed, done = rich.get(f"{paid}/refunds").json()["data"]
    assert (done["status"], done["bank_reference"]) == ("succeeded", "BR-9")
    assert (failed["status"], failed["failure"]) == ("failed", "The account is closed")
    assert failed["finished_at"] and done["finished_at"]

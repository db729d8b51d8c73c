"""The main job, by the ways its users have: HTTP, the page, the command line; and each other end of an invoice."""

import re
from decimal import Decimal
from typing import Any

import pytest

from tests.e2e.market import Customer, Invoice, Operator, Shop, settled
from tests.support.receiver import Received, Receiver
from tests.support.stack import CliRefused, Stack

TRON_ADDRESS = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"


def assert_exactly(payload: dict[str, Any], expected: dict[str, Any]) -> None:
    """The same members, values, types and order of nothing: a bool is no number, a text no null."""
    expected = expected | {"test": True}  # the stack is in test mode
    assert payload == expected
    assert {name: type(value) for name, value in payload.items()} == {
        name: type(value) for name, value in expected.items()
    }


def the_webhook_of(invoice: Invoice, receiver: Receiver) -> tuple[Received, dict[str, Any]]:
    """The one request that came, and its verified payload, which is the one that the history shows."""
    (received,) = receiver.wait_for(1)
    payload = invoice.shop.verified(received)
    event = invoice.wait_for_delivery()
    assert event["request_payload"] == payload
    assert (event["total_attempts"], event["next_retry_at"]) == (1, None)
    assert len(receiver.received()) == 1
    return received, payload


def test_a_purchase_goes_from_the_first_request_to_the_payout(
    stack: Stack, shop: Shop, operator: Operator, receiver: Receiver
) -> None:
    before = operator.available(shop)
    invoice = shop.create(receiver.url(), amount="100.50")
    assert invoice.created["status"] == "pending"

    customer = Customer(invoice.created["payment_link"])
    assert "100.50" in customer.page
    assert "Two lamps" in customer.page
    customer.choose()
    assert "102.92" in customer.page, "100.50 and 2.4 % of it, rounded up"
    assert re.search(r"4000.*(0025|0038|0027|0082)", customer.page), "the account to pay to"
    customer.submit("I have paid")

    deal = invoice.read()["deal"]
    assert deal["mark_paid_at"] is not None
    assert (deal["amount_fiat"], deal["conversion_rate"]) == ("102.92", "0.91")
    (listed,) = [each for each in stack.cli("deals", "list") if each["deal_id"] == deal["deal_id"]]
    assert (listed["status"], listed["sub_status"]) == ("pending", "awaiting_confirmation")
    confirmed = stack.cli("deals", "confirm", deal["deal_id"], "--as", "eve@example.com")
    assert (confirmed["status"], confirmed["merchant_usdt"]) == ("completed", "106.463736")

    first, payload = the_webhook_of(invoice, receiver)
    assert_exactly(
        payload,
        invoice.expected_payload(
            first.headers["x-idempotency-key"],
            status="success",
            sub_status="successfully_paid",
            rate_usd="0.91",
        ),
    )
    customer.open()
    assert "https://shop.example/thanks" in customer.page

    resent = invoice.resend().json()
    assert resent["successful"] is True
    assert (resent["resend"]["ok"], resent["resend"]["http_status"]) == (True, 200)
    second = receiver.wait_for(2)[1]
    assert second.body == first.body
    assert shop.verified(second) == payload
    event = invoice.event()
    assert event["event_type"] == "invoice.success"
    assert [(each["try_number"], each["trigger"], each["attempt_status"]) for each in event["attempts"]] == [
        (1, "auto", "success"),
        (2, "manual", "success"),
    ]

    settled(lambda: operator.available(shop) != before, "the credit")
    balance = stack.cli("balance", shop.merchant_id)
    assert Decimal(balance["available"]) == before + Decimal("106.463736")

    withdrawal = stack.cli(
        *("withdrawals", "create", shop.merchant_id, "--method", "1"),
        *("--address", TRON_ADDRESS, "--amount", "25"),
    )
    id = withdrawal["withdraw_uuid"]
    read = shop.request("GET", f"/api/v1/withdrawals/{id}").json()["data"]
    assert (read["status"], read["external_tx_id"]) == ("pending", None)
    assert stack.cli("withdrawals", "process", id)["substatus"] == "processing"
    stack.cli("withdrawals", "complete", id, "--tx", f"tx-{id}", "--yes")
    listed = shop.request("GET", "/api/v1/withdrawals/").json()
    (read,) = [each for each in listed["data"] if each["withdraw_uuid"] == id]
    assert read["processed_at"] is not None
    assert read == {
        "withdraw_uuid": id,
        "withdrawal_method_id": 1,
        "address": TRON_ADDRESS,
        "address_memo": None,
        "amount": "25.000000",
        "network_fee": "1.000000",
        "amount_to_receive": "24.000000",
        "status": "success",
        "substatus": None,
        "external_tx_id": f"tx-{id}",
        "created_at": withdrawal["created_at"],
        "updated_at": read["processed_at"],
        "processed_at": read["processed_at"],
        "test": True,
    }
    assert Decimal(stack.cli("balance", shop.merchant_id)["withdrawn"]) >= 25

    verified = stack.cli("verify")
    assert verified["ok"], verified["problems"]


def test_a_rejected_deal_fails_the_invoice(stack: Stack, shop: Shop, receiver: Receiver) -> None:
    invoice = shop.create(receiver.url())
    customer = Customer(invoice.created["payment_link"])
    customer.choose_and_pay()
    stack.cli("deals", "reject", invoice.read()["deal"]["deal_id"], "--note", "nothing came")
    received, payload = the_webhook_of(invoice, receiver)
    assert_exactly(
        payload,
        invoice.expected_payload(
            received.headers["x-idempotency-key"],
            status="fail",
            sub_status="rejected_by_operator",
            rate_usd="0.91",
        ),
    )
    assert invoice.event()["event_type"] == "invoice.fail"
    customer.open()
    assert "https://shop.example/sorry" in customer.page


@pytest.mark.parametrize("chosen", [False, True], ids=["before a method is chosen", "after"])
def test_a_customer_who_cancels_cancels_the_invoice(shop: Shop, receiver: Receiver, chosen: bool) -> None:
    invoice = shop.create(receiver.url())
    customer = Customer(invoice.created["payment_link"])
    if chosen:
        customer.choose()
    customer.follow("Cancel the payment")
    customer.submit("Yes, cancel it")
    received, payload = the_webhook_of(invoice, receiver)
    outcome: dict[str, Any] = (
        {"sub_status": "canceled_by_customer", "rate_usd": "0.91"} if chosen else {"reason": "user_canceled"}
    )
    assert_exactly(
        payload,
        invoice.expected_payload(received.headers["x-idempotency-key"], status="canceled", **outcome),
    )
    assert invoice.event()["event_type"] == "invoice.canceled"


def test_an_appeal_that_ends_with_less_adjusts_the_amount(
    stack: Stack, shop: Shop, operator: Operator, receiver: Receiver
) -> None:
    before = operator.available(shop)
    invoice = shop.create(receiver.url(), amount="120.00")
    Customer(invoice.created["payment_link"]).choose_and_pay()
    deal_id = invoice.read()["deal"]["deal_id"]
    stack.cli("deals", "appeal", deal_id, "--note", "90 came")
    assert invoice.read()["status"] == "pending"
    assert receiver.received() == [], "no webhook on the way"
    with pytest.raises(CliRefused, match="APPROVAL_REQUIRED"):
        stack.cli("deals", "resolve", deal_id, "--amount", "90.00")
    (asked,) = stack.cli("approvals", "list", "--object", f"deal:{deal_id}")
    stack.cli("approvals", "approve", asked["approval_id"], "--yes", "--as", "second@example.com")
    received, payload = the_webhook_of(invoice, receiver)
    assert_exactly(
        payload,
        invoice.expected_payload(
            received.headers["x-idempotency-key"],
            status="success",
            sub_status="completed_with_adjustment",
            amount="90.00",
            rate_usd="0.91",
            is_adjusted=True,
            original_amount="120.00",
            adjusted_amount="90.00",
        ),
    )
    read = invoice.read()
    assert (read["amount"], read["final_amount"], read["is_adjusted"]) == ("120.00", payload["amount"], True)
    assert invoice.event()["event_type"] == "invoice.adjusted"
    due = Decimal("95.340659")  # 90.00 / 0.91 less 3.6 %, rounded down
    settled(lambda: operator.available(shop) == before + due, f"a credit of {due} USDT")

"""Refunds on the customer's page: the form for the account, and what becomes of the money."""

import re
from typing import Any

import pytest
import requests

from deploy.local.waiting import wait_until
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.withdrawals.v1 import corrections_pb2
from fiatgate.withdrawals.v1 import refunds_pb2 as pb
from kit.base.ids import new_id
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop, settled, unique
from tests.gateway.pay.pages import text_of

IBAN = "DE89370400440532013000"
GIVEN = {"kind": "iban", "account": "DE89 3704 0044 0532 0130 00", "holder": "Mia Muster", "bank": ""}


def refunded(desk: Desk, currency: str, method: str) -> tuple[str, dict[str, Any]]:
    """The page of a paid invoice, and its refund of 9.00, which waits for an account."""
    shop: Shop = desk.shop(currency, allowed_methods=[method])
    made: dict[str, Any] = {}

    def sells() -> bool:
        response = shop.post("/api/v1/create-invoice", json=shop.body(amount="900.00"))
        made.update(response.json())
        return response.status_code == 201

    settled(sells, "invoices to know the method")
    desk.confirm(made["invoice_id"], method)
    settled(lambda: desk.available(shop) != "0.000000", "the credit")
    body = {"external_id": unique("refund"), "amount": "9.00"}
    response = shop.post(f"/api/v1/invoices/{made['invoice_id']}/refunds", json=body)
    assert response.status_code == 201, response.text
    return made["payment_link"], response.json()["data"]


@pytest.fixture(scope="module")
def waiting(desk: Desk, currency: str, method: str) -> tuple[str, dict[str, Any]]:
    return refunded(desk, currency, method)


def shown(page: str) -> str:
    response = requests.get(page, timeout=HTTP_SECONDS)
    assert response.status_code == 200
    return response.text


def give(page: str, refund_id: str, **changes: str) -> requests.Response:
    form = {"refund_id": refund_id} | GIVEN | changes
    return requests.post(f"{page}/refund", data=form, timeout=HTTP_SECONDS, allow_redirects=False)


def test_a_wrong_account_is_refused_and_what_was_typed_stays(waiting: tuple[str, dict[str, Any]]) -> None:
    page, refund = waiting
    html = shown(page)
    assert "You get" in text_of(html) and 'name="kind"' in html and "<select" in html
    assert 'http-equiv="refresh"' not in html  # it does not lead away from the form
    for changes in ({"account": "DE00 <b>"}, {"holder": ""}, {"kind": "gold"}):
        refused = give(page, refund["refund_id"], **changes)
        assert refused.status_code == 422
        assert "could not accept that account" in text_of(refused.text)
        assert 'value="Mia Muster"' in refused.text or changes.get("holder") == ""
    assert "DE00 &lt;b&gt;" in give(page, refund["refund_id"], account="DE00 <b>").text
    other_site = {"Sec-Fetch-Site": "cross-site"}
    form = {"refund_id": refund["refund_id"]} | GIVEN
    forged = requests.post(f"{page}/refund", data=form, headers=other_site, timeout=HTTP_SECONDS)
    assert forged.status_code == 400


def test_each_step_of_it_is_told_with_a_masked_account(
    desk: Desk, waiting: tuple[str, dict[str, Any]]
) -> None:
    page, refund = waiting
    id = refund["refund_id"]
    given = give(page, id)
    assert (given.status_code, given.headers["Location"].partition("?")[2]) == (303, "")
    assert give(page, id).status_code == 303  # a second tap
    told = f"Refund of 9.00 {refund['currency']} to ···3000:"

    def tells(step: str) -> None:
        html = shown(page)
        said = text_of(html).replace("\xa0", " ")
        assert re.search(rf"Refund of .*9\.00.* to ···3000: {step}", said), (told, said)
        assert IBAN not in html and "Mia Muster" not in html and "<form" not in html

    tells("requested")
    other = give(page, id, account="GB82WEST12345698765432")
    assert other.headers["Location"].endswith("?notice=refund_state_conflict")
    assert "This refund has changed" in shown(f"{page}?notice=refund_state_conflict")
    desk.refunds.SendRefund(pb.SendRefundRequest(refund_id=id, bank_reference="BR-of-the-page"))
    tells("on its way")
    assert "data-events" in shown(page)
    desk.refunds.CompleteRefund(pb.CompleteRefundRequest(refund_id=id))
    tells("done")
    assert "BR-of-the-page" not in shown(page)


def test_a_method_with_a_form_of_accounts_asks_for_that_form(
    desk: Desk, currency: str, waiting: tuple[str, dict[str, Any]]
) -> None:
    method = desk.method(currency, account_kind=catalog_pb2.ACCOUNT_KIND_IBAN)
    desk.requisite(method, account=IBAN, bank=None)
    page, refund = refunded(desk, currency, method)
    html = ""

    def knows() -> bool:
        nonlocal html
        html = shown(page)
        return '<input type="hidden" name="kind" value="iban">' in html

    wait_until(knows, "invoices to know the form", timeout_seconds=15)
    assert "<select" not in html
    foreign = give(waiting[0], refund["refund_id"])
    assert foreign.headers["Location"].endswith("?notice=refund_not_found")
    assert give(f"{page[:-36]}{new_id()}", refund["refund_id"]).status_code == 404
    desk.refunds.CancelRefund(pb.CancelRefundRequest(refund_id=refund["refund_id"]))
    assert "You get" not in text_of(shown(page))
    failed = give(page, refund["refund_id"])
    assert failed.headers["Location"].endswith("?notice=refund_state_conflict")


def test_the_receipt_names_what_came_beyond_the_amount(desk: Desk, currency: str, method: str) -> None:
    page, _ = refunded(desk, currency, method)
    credit = corrections_pb2.MakeCorrectionRequest(
        kind=corrections_pb2.CORRECTION_KIND_SURPLUS,
        invoice_id=page[-36:],
        received_amount="5.00",
        reason="More came",
        evidence="BR-of-a-surplus",
        request_key=str(new_id()),
    )
    desk.corrections.MakeCorrection(credit)
    assert re.search(r"Overpayment, credited to the shop\D*5\.00", text_of(shown(page)))
    page, _ = refunded(desk, currency, method)
    account = pb.RefundAccount(kind="iban", account=IBAN, holder="Mia Muster")
    back = pb.RequestRefundRequest(
        invoice_id=page[-36:],
        external_id=unique("surplus"),
        origin=pb.REFUND_ORIGIN_SURPLUS,
        refund_amount="6.00",
        account=account,
    )
    id = desk.refunds.RequestRefund(back).refund.refund_id
    desk.refunds.SendRefund(pb.SendRefundRequest(refund_id=id, bank_reference="BR-of-what-goes-back"))
    assert "Overpayment" not in text_of(shown(page))
    desk.refunds.CompleteRefund(pb.CompleteRefundRequest(refund_id=id))
    assert re.search(r"Overpayment, sent back\D*6\.00", text_of(shown(page)))

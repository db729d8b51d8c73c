"""Currencies, payment methods and withdrawals over HTTP."""

import json
import re
from datetime import datetime
from typing import Any
from urllib.request import Request, urlopen

import pytest

from fiatgate.withdrawals.v1 import withdrawals_pb2
from gateway.openapi.document import operations
from kit.base.ids import new_id
from tests.gateway.conformance import documented
from tests.gateway.desk import Desk, Shop, code_of, settled

TRON_ADDRESS = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"


def test_currencies_have_their_rates(shop: Shop) -> None:
    response = shop.get("/api/v1/currencies")
    assert response.status_code == 200
    assert response.json() == {
        "successful": True,
        "data": [
            {"currency": shop.currency, "decimal": 2, "symbol": "¤", "name": "Test money", "rate": "90.00"}
        ],
    }


@pytest.mark.parametrize("change", [str.lower, str.upper, str.title])
def test_methods_are_found_by_currency_in_any_case(shop: Shop, method: str, change: Any) -> None:
    body = shop.get(f"/api/v1/payment-methods?currency={change(shop.currency)}").json()
    assert body["successful"] is True
    item = body["data"][0]
    assert list(item.items()) == [
        ("name", "Card to card"),
        ("method_code", method),
        ("min_sum", "10.00"),
        ("max_sum", "100000.00"),
        ("logo_url", None),
        ("payment_time", 15),
        ("currency", {"code": shop.currency, "name": "Test money", "symbol": "¤"}),
        ("max_commission", "5.00"),
        ("client_commission", "2.50"),
        ("merchant_commission", "2.50"),
    ]


def test_a_currency_without_active_methods_has_an_empty_list(desk: Desk) -> None:
    currency = desk.currency()
    body = desk.shop(currency).get(f"/api/v1/payment-methods?currency={currency}").json()
    assert body == {"successful": True, "data": []}


def test_methods_without_a_currency_are_all_of_the_merchants(shop: Shop) -> None:
    data = shop.get("/api/v1/payment-methods").json()["data"]
    assert {item["currency"]["code"] for item in data} == {shop.currency}


# -- withdrawals


@pytest.fixture(scope="module")
def rich(desk: Desk, shop: Shop, method: str) -> Shop:
    """A merchant with 975 USDT less two withdrawals: 10 sent, 20 waiting."""
    merchant = desk.shop(shop.currency)
    invoice = merchant.create(amount="90000.00")
    desk.confirm(invoice["invoice_id"], method)
    settled(lambda: desk.available(merchant) == "975.000000", "the credit")
    first = withdraw(desk, merchant, "10")
    desk.withdrawals.ProcessWithdrawal(withdrawals_pb2.ProcessWithdrawalRequest(withdraw_uuid=first))
    desk.withdrawals.CompleteWithdrawal(
        withdrawals_pb2.CompleteWithdrawalRequest(withdraw_uuid=first, external_tx_id=first.replace("-", ""))
    )
    withdraw(desk, merchant, "20")
    return merchant


def withdraw(desk: Desk, shop: Shop, amount: str) -> str:
    methods = desk.withdrawals.ListWithdrawalMethods(withdrawals_pb2.ListWithdrawalMethodsRequest()).methods
    tron = next(each for each in methods if each.network == "TRC20")
    request = withdrawals_pb2.CreateWithdrawalRequest(
        merchant_id=shop.merchant_id,
        withdrawal_method_id=tron.method_id,
        address=TRON_ADDRESS,
        amount=amount,
        request_key=str(new_id()),
    )
    return desk.withdrawals.CreateWithdrawal(request).withdrawal.withdraw_uuid


def test_withdrawals_are_listed_newest_first(rich: Shop) -> None:
    body = rich.get("/api/v1/withdrawals/").json()
    assert (body["successful"], body["total"], body["total_pages"]) == (True, 2, 1)
    assert [(item["amount"], item["status"]) for item in body["data"]] == [
        ("20.000000", "pending"),
        ("10.000000", "success"),
    ]
    assert rich.get("/api/v1/withdrawals?order=asc").json()["data"] == body["data"][::-1]


def test_withdrawals_are_filtered_and_paged(rich: Shop) -> None:
    assert rich.get("/api/v1/withdrawals?status=success").json()["total"] == 1
    assert code_of(rich.get("/api/v1/withdrawals?status=cancelled")) == "WITHDRAWALS_NOT_FOUND"
    second = rich.get("/api/v1/withdrawals?per_page=1&page=2").json()
    assert (second["total_pages"], [item["amount"] for item in second["data"]]) == (2, ["10.000000"])
    assert rich.get(f"/api/v1/withdrawals?page={10**30}").json()["data"] == []


def test_a_withdrawal_is_read_by_its_id(rich: Shop) -> None:
    listed = rich.get("/api/v1/withdrawals?status=success").json()["data"][0]
    response = rich.get(f"/api/v1/withdrawals/{listed['withdraw_uuid']}")
    assert response.json() == {"successful": True, "data": listed}
    assert isinstance(listed["withdrawal_method_id"], int)
    assert listed["address"] == TRON_ADDRESS
    assert (listed["address_memo"], listed["substatus"]) == (None, None)
    assert listed["external_tx_id"] == listed["withdraw_uuid"].replace("-", "")
    for name in ("created_at", "updated_at", "processed_at"):
        assert datetime.fromisoformat(listed[name]).utcoffset() is not None
    again = rich.get(f"/api/v1/withdrawals/{listed['withdraw_uuid'].upper()}/")
    assert again.json()["data"] == listed


def test_lists_go_on_after_an_item_and_are_of_a_span_of_time(rich: Shop, shop: Shop) -> None:
    for path, id_name in (("withdrawals", "withdraw_uuid"), ("invoices", "invoice_id")):
        whole = rich.get(f"/api/v1/{path}").json()
        newest, oldest = whole["data"][0], whole["data"][-1]
        assert "next_after" not in whole
        rest = rich.get(f"/api/v1/{path}?after={newest[id_name]}&per_page=1").json()
        assert (rest["total"], rest["data"]) == (whole["total"] - 1, whole["data"][1:2])
        assert rest["next_after"] is None
        none = rich.get(f"/api/v1/{path}?after={oldest[id_name]}")
        assert (none.status_code, none.json()["data"], none.json()["total"]) == (200, [], 0)
        foreign = shop.get(f"/api/v1/{path}?after={newest[id_name]}")
        assert (foreign.status_code, foreign.json()["details"][0]["field"]) == (422, "after")
        at = newest["created_at"]  # its plus is not encoded
        assert rich.get(f"/api/v1/{path}?created_from={at}").json()["data"] == [newest]
        before = rich.get(f"/api/v1/{path}?created_to={at}").json()
        assert before.get("data", []) == whole["data"][1:]


def test_a_withdrawal_is_found_by_its_id_percent_encoded(rich: Shop) -> None:
    """With urllib, for requests takes such an encoding off again."""
    id = rich.get("/api/v1/withdrawals").json()["data"][0]["withdraw_uuid"]
    url = f"{rich.url}/api/v1/withdrawals/{id.replace('-', '%2D')}"
    with urlopen(Request(url, headers={"X-Api-Key": rich.api_key}), timeout=5) as response:
        assert json.load(response)["data"]["withdraw_uuid"] == id


def test_on_no_path_is_anything_of_another_merchant(desk: Desk, rich: Shop, shop: Shop) -> None:
    """It is answered exactly as what does not exist."""
    (invoice,) = rich.get("/api/v1/invoices?status=success").json()["data"]
    withdrawal = rich.get("/api/v1/withdrawals").json()["data"][0]["withdraw_uuid"]
    theirs = {"invoice_ref": [invoice["invoice_id"], invoice["external_id"]], "withdraw_uuid": [withdrawal]}
    other = desk.shop(shop.currency)
    for path, method, _ in operations(documented()):
        name = "".join(re.findall(r"\{(invoice_ref|withdraw_uuid)\}", path))
        for value in theirs.get(name, ()):
            refused = other.request(method, path.format(**{"step": "confirm", name: value}))
            nothing = other.request(method, path.format(**{"step": "confirm", name: new_id()}))
            assert (refused.status_code, code_of(refused)) == (404, code_of(nothing)), path
    assert code_of(other.get("/api/v1/invoices")) == "INVOICES_NOT_FOUND"
    assert code_of(other.get("/api/v1/withdrawals")) == "WITHDRAWALS_NOT_FOUND"

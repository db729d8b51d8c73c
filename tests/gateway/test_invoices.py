"""Create, get and list invoices over HTTP."""

from datetime import datetime
from urllib.parse import quote
from uuid import UUID

import pytest

from tests.gateway.desk import Desk, Shop, code_of, unique

CREATE = "/api/v1/create-invoice"


def test_a_created_invoice_is_answered_bare(shop: Shop) -> None:
    body = shop.body(amount="100.5")
    response = shop.post(CREATE, json=body)
    created = response.json()
    assert response.status_code == 201
    assert str(UUID(created["invoice_id"])) == created["invoice_id"]
    assert created["amount"] == "100.50"
    assert created["currency"] == shop.currency
    assert created["status"] == "pending"
    assert created["finished_at"] is None
    assert created["payment_link"] == f"{shop.url}/pay/{created['invoice_id']}"
    assert response.headers["Location"] == f"/api/v1/invoices/{created['invoice_id']}"
    assert len(response.headers["X-Request-Id"]) >= 16
    for name in ("external_id", "customer_id", "purpose", "callback_url", "success_url", "fail_url"):
        assert created[name] == body[name]
    for name in ("created_at", "expires_at"):
        assert datetime.fromisoformat(created[name]).utcoffset() is not None


def test_omitted_urls_are_the_merchants(desk: Desk, shop: Shop) -> None:
    urls = {f"{name}_url": f"https://lamps.example/{name}" for name in ("callback", "success", "fail")}
    other = desk.shop(shop.currency, **urls)
    created = other.create(callback_url=None, success_url=None, fail_url="https://lamps.example/own")
    assert created["callback_url"] == urls["callback_url"]
    assert created["success_url"] == urls["success_url"]
    assert created["fail_url"] == "https://lamps.example/own"


def test_location_leads_to_the_invoice(shop: Shop) -> None:
    response = shop.post(CREATE, json=shop.body())
    found = shop.get(response.headers["Location"])
    assert found.status_code == 200
    data = found.json()["data"]
    assert found.json()["successful"] is True
    assert response.json().items() <= data.items()
    assert (data["method_selected"], data["deal"]) == (False, None)


def test_a_chosen_method_shows_as_a_deal(desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create(amount="512.34")
    desk.mark_paid(invoice["invoice_id"], method)
    data = shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").json()["data"]
    deal = data["deal"]
    assert data["status"] == "pending"
    assert data["method_selected"] is True
    assert (deal["status"], deal["sub_status"]) == ("pending", "awaiting_confirmation")
    assert deal["payment_method_code"] == method
    assert deal["payment_method_name"] == "Card to card"
    assert deal["amount_fiat"] == "525.15"  # 2.5 % are the client's, rounded up
    assert deal["conversion_rate"] == "90.00"
    assert deal["merchant_usdt"] is None
    assert deal["finished_at"] is None
    assert datetime.fromisoformat(deal["mark_paid_at"]).utcoffset() is not None


def test_a_paid_invoice_shows_what_is_credited(desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create(amount="900.00")
    desk.confirm(invoice["invoice_id"], method)
    data = shop.get(f"/api/v1/invoices/{invoice['external_id']}").json()["data"]
    assert data["status"] == "success"
    assert data["finished_at"] is not None
    assert data["deal"]["status"] == "completed"
    assert data["deal"]["merchant_usdt"] == "9.750000"


# -- references


TAILS = [
    "/", "a/b", "a//b", "%", "%2F", "?x=1", "#top", "a b", "+", "a+b", "&=;,:@!$'()*", "/webhooks", "/webhooks/resend",
    "ünïcødé", "订单", "💡", 'quote"s', "\\", "line\nbreak", "..", "/../x", "<script>",
]  # fmt: skip


@pytest.mark.parametrize("tail", TAILS)
def test_every_external_id_can_be_read_back(shop: Shop, tail: str) -> None:
    external_id = unique() + tail
    invoice = shop.create(external_id=external_id)
    ref = quote(external_id, safe="")
    assert shop.get(f"/api/v1/invoices/{ref}").json()["data"]["external_id"] == external_id
    assert shop.get(f"/api/v1/invoices/{ref}/").json()["data"]["invoice_id"] == invoice["invoice_id"]
    history = shop.get(f"/api/v1/invoices/{ref}/webhooks").json()
    assert (history["invoice_id"], history["external_id"]) == (invoice["invoice_id"], external_id)
    assert code_of(shop.post(f"/api/v1/invoices/{ref}/webhooks/resend")) == "WEBHOOK_NOT_FOUND"


def found(shop: Shop, ref: str) -> str:
    invoice_id: str = shop.get(f"/api/v1/invoices/{quote(ref, safe='')}").json()["data"]["invoice_id"]
    return invoice_id


def test_an_external_id_is_decoded_once(shop: Shop) -> None:
    plain = f"{unique()}/"
    for external_id in (plain, quote(plain, safe="")):
        assert shop.create(external_id=external_id)["invoice_id"] == found(shop, external_id)


def test_an_id_goes_before_an_external_id_that_looks_like_it(shop: Shop) -> None:
    first = shop.create()["invoice_id"]
    shop.create(external_id=first)
    assert found(shop, first) == first


def test_anothers_id_as_external_id_is_ones_own(desk: Desk, shop: Shop) -> None:
    theirs = shop.create()["invoice_id"]
    other = desk.shop(shop.currency)
    mine = other.create(external_id=theirs)["invoice_id"]
    assert found(other, theirs) == mine


# -- the list


@pytest.fixture(scope="module")
def busy(desk: Desk, shop: Shop) -> Shop:
    """A merchant with seven invoices, the first two canceled."""
    merchant = desk.shop(shop.currency)
    for number in range(7):
        invoice = merchant.create(purpose=str(number))
        if number < 2:
            desk.cancel(invoice["invoice_id"])
    return merchant


def purposes(shop: Shop, query: str) -> str:
    return "".join(item["purpose"] for item in shop.get(f"/api/v1/invoices?{query}").json()["data"])


def test_a_list_has_its_totals_and_whole_invoices(busy: Shop) -> None:
    body = busy.get("/api/v1/invoices").json()
    totals = {"successful": True, "page": 1, "per_page": 20, "total": 7, "total_pages": 1}
    assert totals.items() <= body.items()


def test_a_list_is_newest_first_unless_asked(busy: Shop) -> None:
    assert purposes(busy, "") == "6543210"
    assert purposes(busy, "order=desc") == "6543210"
    assert purposes(busy, "order=asc") == "0123456"


def test_a_list_goes_page_by_page(busy: Shop) -> None:
    assert [purposes(busy, f"per_page=3&page={page}") for page in (1, 2, 3)] == ["654", "321", "0"]
    assert busy.get("/api/v1/invoices?per_page=3").json()["total_pages"] == 3


def test_a_list_is_filtered(busy: Shop) -> None:
    assert purposes(busy, "status=canceled") == "10"
    assert purposes(busy, f"status=pending&currency={busy.currency.lower()}") == "65432"
    assert busy.get("/api/v1/invoices?status=canceled").json()["total"] == 2
    assert code_of(busy.get("/api/v1/invoices?status=success")) == "INVOICES_NOT_FOUND"


@pytest.mark.parametrize("page", [2, 10**6, 2**63, 10**30])
def test_a_page_past_the_last_is_empty(busy: Shop, page: int) -> None:
    body = busy.get(f"/api/v1/invoices?page={page}").json()
    assert (body["page"], body["total"], body["data"]) == (page, 7, [])


def test_a_page_past_the_last_of_nothing_is_not_found(desk: Desk, shop: Shop) -> None:
    assert code_of(desk.shop(shop.currency).get("/api/v1/invoices?page=2")) == "INVOICES_NOT_FOUND"


@pytest.mark.parametrize("path", ["/api/v1/invoices", "/api/v1/currencies", "/api/v1/payment-methods"])
def test_a_trailing_slash_makes_no_difference(busy: Shop, path: str) -> None:
    plain, slashed = busy.get(path), busy.get(f"{path}/")
    assert plain.status_code == slashed.status_code == 200
    assert plain.json() == slashed.json()


def test_create_may_have_a_trailing_slash_too(shop: Shop) -> None:
    assert shop.post(f"{CREATE}/", json=shop.body()).status_code == 201


def test_every_request_has_an_id_of_its_own(shop: Shop) -> None:
    ids = {
        shop.get("/api/v1/currencies", headers={"X-Request-Id": "mine"}).headers["X-Request-Id"]
        for _ in range(5)
    }
    assert len(ids) == 5
    assert "mine" not in ids

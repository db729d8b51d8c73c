"""Logos come from us: no other host learns that somebody pays here, whatever operators and merchants have set."""

import hashlib

import pytest
import requests
from playwright.sync_api import Page

from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.merchants.v1 import merchants_pb2
from tests.gateway.conftest import PAGES
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop
from tests.gateway.strangers import Watched
from tests.support.pictures import JPEG, PNG

ELSEWHERE = "https://cdn.example/logo.png"
SHOWN = "(images) => images.map((image) => image.complete && image.naturalWidth)"


@pytest.fixture(scope="module")
def pictured(desk: Desk, currency: str) -> Shop:
    """A shop and a method with logos of ours, and another method whose logo is only told to merchants."""
    codes = []
    for name, logo in (("With", PNG), ("Without", None)):
        method = catalog_pb2.PaymentMethod(
            method_code=desk.method(currency, name=name),
            currency_code=currency,
            name=name,
            min_sum="10",
            max_sum="100000",
            payment_minutes=15,
            commission="0.01",
            logo_url=None if logo else ELSEWHERE,
            active=True,
        )
        desk.catalog.SetPaymentMethod(catalog_pb2.SetPaymentMethodRequest(method=method, logo=logo))
        desk.requisite(method.method_code)
        codes.append(method.method_code)
    shop = desk.shop(currency, allowed_methods=codes)
    desk.merchants.ConfigureMerchant(
        merchants_pb2.ConfigureMerchantRequest(
            merchant_id=shop.merchant_id, logo=JPEG, logo_url="https://shop.example/logo.png"
        )
    )
    return shop


def test_the_page_shows_logos_and_asks_nobody_else(page: Page, pictured: Shop) -> None:
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(pictured.create()["payment_link"])
    page.wait_for_load_state("networkidle")
    assert page.locator("img").evaluate_all(SHOWN) == [4, 4]
    assert page.locator(".initial").all_inner_texts() == ["W"]
    assert all(url.startswith(f"{pictured.url}/") for url in asked)
    assert sum("/pay-logo/" in url for url in asked) == 2


def test_no_other_host_is_allowed_to_be_asked(pictured: Shop) -> None:
    response = requests.get(pictured.create()["payment_link"], timeout=HTTP_SECONDS)
    assert "img-src 'self';" in response.headers["Content-Security-Policy"]
    assert "cdn.example" not in response.text
    assert "shop.example/logo" not in response.text


def test_a_logo_is_named_by_its_content_and_kept_for_ever(pictured: Shop) -> None:
    digest = hashlib.sha256(PNG).hexdigest()
    for _ in range(2):
        response = requests.get(f"{pictured.url}/pay-logo/methods/{digest}", timeout=HTTP_SECONDS)
        assert (response.content, response.headers["Content-Type"]) == (PNG, "image/png")
        assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_merchants_are_told_where_a_logo_is(pictured: Shop) -> None:
    """`logo_url` is the address that the operator set, else that of the logo we serve."""
    methods = pictured.get("/api/v1/payment-methods", params={"currency": pictured.currency}).json()["data"]
    logos = {method["name"]: method["logo_url"] for method in methods}
    digest = hashlib.sha256(PNG).hexdigest()
    assert logos == {"With": f"{pictured.url}/pay-logo/methods/{digest}", "Without": ELSEWHERE}


@pytest.mark.parametrize(
    "path",
    ["methods/" + "0" * 64, "merchants/" + "0" * 64, "methods/x", "owners/" + "0" * 64, "methods/..%2Fx"],
)
def test_an_unknown_logo_is_not_found(pictured: Shop, path: str) -> None:
    assert requests.get(f"{pictured.url}/pay-logo/{path}", timeout=HTTP_SECONDS).status_code == 404


def test_a_flood_of_unknown_logos_is_stopped_and_known_ones_are_still_shown(
    pictured: Shop, strict: Watched
) -> None:
    """Each unknown one costs a query."""

    def asked(name: str) -> requests.Response:
        headers = {"X-Forwarded-For": "192.0.2.40"}
        return requests.get(f"{strict.url}/pay-logo/methods/{name}", headers=headers, timeout=HTTP_SECONDS)

    known = hashlib.sha256(PNG).hexdigest()
    assert asked(known).status_code == 200
    answers = [asked(f"{number:064x}") for number in range(2 * PAGES)]
    assert {answer.status_code for answer in answers} == {404, 429}
    assert next(each for each in answers if each.status_code == 429).headers["Retry-After"] == "6"
    assert asked(known).status_code == 200

"""Logos come from us: no other host learns that somebody pays here, whatever operators and merchants have set."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Page

from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.merchants.v1 import merchants_pb2
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop
from tests.gateway.pay.conftest import Open
from tests.gateway.process import gateway_process
from tests.support.pictures import JPEG, PNG
from tests.support.stack import Stack

ELSEWHERE = "https://cdn.example/logo.png"
SHOWN = "(images) => images.map((image) => image.complete && image.naturalWidth)"


@pytest.fixture(scope="module")
def pictured(desk: Desk) -> Shop:
    """A shop and a method with logos of ours, and another method whose logo is only told to merchants."""
    currency = desk.currency()
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
    shop = desk.open_shop(currency)
    desk.merchants.ConfigureMerchant(
        merchants_pb2.ConfigureMerchantRequest(
            merchant_id=shop.merchant_id, logo=JPEG, logo_url="https://shop.example/logo.png"
        )
    )
    return shop


def test_the_page_shows_logos_and_asks_nobody_else(open_page: Open, pictured: Shop) -> None:
    page: Page = open_page()
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
    pictured: Shop, stack: Stack, tmp_path: Path
) -> None:
    """Each unknown one costs a query."""
    known = f"/pay-logo/methods/{hashlib.sha256(PNG).hexdigest()}"
    settings = {"FIATGATE_PAGE_REQUESTS_PER_MINUTE": "10"}
    with gateway_process(stack.addresses, tmp_path / "gateway.log", **settings) as url:

        def status(path: str) -> int:
            return requests.get(url + path, timeout=HTTP_SECONDS).status_code

        assert status(known) == 200
        assert [status(f"/pay-logo/methods/{number:064x}") for number in range(9)] == [404] * 9
        flooded = requests.get(f"{url}/pay-logo/merchants/{'0' * 64}", timeout=HTTP_SECONDS)
        assert (flooded.status_code, flooded.headers["Retry-After"]) == (429, "6")
        assert status(known) == 200

"""What a first visit costs: under 60 KB over the wire, whatever operators, merchants and shops have set."""

from typing import Final

import pytest
import requests

from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.merchants.v1 import merchants_pb2
from gateway.pay.view import METHOD_LOGOS_MAX
from kit.web.compression import takes_gzip
from services.catalog.domain import LOGO_MAX_BYTES as METHOD_LOGO_MAX_BYTES
from services.identity.domain.merchants import LOGO_MAX_BYTES as MERCHANT_LOGO_MAX_BYTES
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop
from tests.gateway.pay.conftest import Open
from tests.support.pictures import noise

FIRST_LOAD_MAX_BYTES: Final = 60_000
METHODS: Final = METHOD_LOGOS_MAX + 3
# No two names alike, three bytes a letter, as long as names and purposes may be.
LONGEST = "".join(chr(0x4E00 + 97 * number % 20_000) for number in range(512))


@pytest.fixture(scope="module")
def largest(desk: Desk) -> tuple[Shop, str]:
    """A shop and one of its methods: everything that a page can show is as large as it may be."""
    currency = desk.currency()
    for number in range(METHODS):
        method = catalog_pb2.PaymentMethod(
            method_code=f"{currency}-{number}",
            currency_code=currency,
            name=LONGEST[number * 24 :][:128],
            min_sum="10",
            max_sum="100000",
            payment_minutes=15,
            commission="0.01",
            active=True,
        )
        logo = noise(METHOD_LOGO_MAX_BYTES)
        desk.catalog.SetPaymentMethod(catalog_pb2.SetPaymentMethodRequest(method=method, logo=logo))
    desk.requisite(method.method_code, bank=LONGEST[:128])
    shop = desk.open_shop(currency, name=LONGEST[200:328])
    desk.merchants.ConfigureMerchant(
        merchants_pb2.ConfigureMerchantRequest(
            merchant_id=shop.merchant_id, logo=noise(MERCHANT_LOGO_MAX_BYTES), colour="#1d5bb8"
        )
    )
    return shop, method.method_code


def test_a_first_load_is_small_whatever_is_shown(
    open_page: Open, desk: Desk, largest: tuple[Shop, str]
) -> None:
    """Counted by the browser, headers and all; a fresh one each time, with nothing kept from before."""
    shop, method = largest
    choosing, paying = (shop.create(purpose=LONGEST) for _ in range(2))
    desk.choose(paying["invoice_id"], method)
    for invoice, images, button in ((choosing, METHOD_LOGOS_MAX + 1, ".method"), (paying, 1, ".primary")):
        page = open_page()
        network = page.context.new_cdp_session(page)
        came: list[int] = []
        network.on("Network.loadingFinished", lambda event: came.append(event["encodedDataLength"]))  # noqa: B023
        network.send("Network.enable")
        with page.expect_response(lambda response: "/events" in response.url and response.ok):
            page.goto(invoice["payment_link"], wait_until="load")
        assert page.locator(f"button{button}").count() == (METHODS if invoice is choosing else 1)
        assert page.locator("img:visible").evaluate_all(SHOWN) == [True] * images
        assert len(came) > images
        assert 10_000 < sum(came) < FIRST_LOAD_MAX_BYTES, f"{sum(came)} bytes"


SHOWN = "(images) => images.map((image) => image.complete && image.naturalWidth > 1000)"


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("gzip, deflate, br, zstd", True),
        ("br;q=1.0, GZIP ;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, br", False),
        ("br", False),
        ("x-gzip", False),
        ("", False),
    ],
)
def test_only_who_takes_gzip_gets_it(accepted: str, takes: bool) -> None:
    assert takes_gzip(accepted) is takes


def test_what_is_compressed_is_the_same(shop: Shop) -> None:
    page = shop.create()["payment_link"]
    plain = requests.get(page, headers={"Accept-Encoding": "identity"}, timeout=HTTP_SECONDS)
    (sheet,) = [part.split('"')[0] for part in plain.text.split('"') if part.endswith("/pay.css")]
    for url in (page, f"{shop.url}{sheet}", f"{shop.url}/pay-modal.js"):
        plain, packed = (
            requests.get(url, headers={"Accept-Encoding": accepted}, timeout=HTTP_SECONDS)
            for accepted in ("identity", "gzip")
        )
        assert (plain.headers.get("Content-Encoding"), packed.headers["Content-Encoding"]) == (None, "gzip")
        assert packed.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
        assert int(packed.headers["Content-Length"]) < int(plain.headers["Content-Length"]) / 2
        assert packed.content == plain.content

"""The merchant's colour, logo and frames: as wished where it can be read, and nowhere that nobody allowed."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page, expect

from fiatgate.merchants.v1 import merchants_pb2 as pb
from gateway.pay import brand
from gateway.pay.brand import DARK_GROUNDS, LIGHT_GROUNDS, WHITE, contrast, readable, stylesheet
from gateway.pay.files import STATIC
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop
from tests.gateway.pay.conftest import Open
from tests.gateway.pay.test_looks import complaints
from tests.support import axe

GUIDE = (Path(__file__).parents[3] / "docs/integrate.md").read_text()


class ShopPages(BaseHTTPRequestHandler):
    """A shop's own web site: one page with a link to the payment, and one that says thanks."""

    html = ""
    policy = ""

    def do_GET(self) -> None:
        body = b"<title>Thanks</title>" if self.path == "/thanks" else self.html.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Security-Policy", self.policy)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""

    @classmethod
    def sell(cls, shop: Shop, payment_link: str) -> None:
        """The page holds what the guide says, and its policy allows what the guide says and nothing else."""
        (snippet,) = re.findall(r"^```html\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
        (policy,) = re.findall(r"`(script-src [^`]*)`", " ".join(GUIDE.split()))
        snippet = snippet.replace("https://pay.example", shop.url).replace("PAYMENT_LINK", payment_link)
        cls.html = f"<!doctype html><title>Shop</title><link rel=icon href='data:,'>{snippet}<h1>Basket</h1>"
        cls.policy = f"default-src 'none'; img-src data:; {policy.replace('https://pay.example', shop.url)}"


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), ShopPages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def branded(desk: Desk, currency: str, method: str, site: str) -> Shop:
    """A shop with a colour that nobody could read on white, and with frames on its own site."""
    shop = desk.shop(currency, allowed_methods=[method])
    origins = pb.AllowedOrigins(origins=[site, "https://shop.example:8443"])
    change = pb.ConfigureMerchantRequest(
        merchant_id=shop.merchant_id, colour="#FFD400", frame_origins=origins
    )
    desk.merchants.ConfigureMerchant(change)
    return shop


@given(st.integers(0, 0xFFFFFF).map("#{:06x}".format))
def test_any_colour_can_be_read(colour: str) -> None:
    light = readable(colour, LIGHT_GROUNDS, WHITE, "#000000")
    dark = readable(colour, DARK_GROUNDS, brand.INK, WHITE)
    assert all(contrast(light, other) >= brand.LEAST_CONTRAST for other in (*LIGHT_GROUNDS, WHITE))
    assert all(contrast(dark, other) >= brand.LEAST_CONTRAST for other in (*DARK_GROUNDS, brand.INK))


def test_a_colour_that_can_be_read_stays_as_it_is() -> None:
    assert readable("#1d5bb8", LIGHT_GROUNDS, WHITE, "#000000") == "#1d5bb8"
    assert b"--accent: #1d5bb8; --on-accent: #ffffff" in (stylesheet("1d5bb8.css") or b"")


def test_the_grounds_are_those_of_the_stylesheet() -> None:
    css = (STATIC / "pay.css").read_text()
    for ground in (*LIGHT_GROUNDS, *DARK_GROUNDS):
        assert f": {ground};" in css or f": {ground[:4]};" in css  # #fff


@pytest.mark.parametrize("name", ["", "red.css", "1D5BB8.css", "1d5bb8", "1d5bb8.css}body{", "../pay.css"])
def test_what_is_no_colour_is_no_stylesheet(shop: Shop, name: str) -> None:
    assert stylesheet(name) is None
    assert requests.get(f"{shop.url}/pay-brand/{name}", timeout=HTTP_SECONDS).status_code == 404


def test_only_the_shops_own_pages_may_frame_it(branded: Shop, site: str) -> None:
    headers = requests.get(branded.create()["payment_link"], timeout=HTTP_SECONDS).headers
    policy = headers["Content-Security-Policy"]
    assert policy.endswith(f"frame-ancestors {site} https://shop.example:8443")
    assert "X-Frame-Options" not in headers


def test_a_branded_page_stands_in_nobodys_way(page: Page, branded: Shop) -> None:
    page.goto(branded.create()["payment_link"])
    assert not complaints(page, "light")
    page.emulate_media(color_scheme="dark")
    assert not complaints(page, "dark", axe.CONTRAST)
    page.get_by_role("button", name="Card to card").click()
    expect(page.get_by_role("button", name="I have paid")).to_be_visible()
    assert not complaints(page, "pay", axe.CONTRAST)


def test_a_shop_shows_the_page_above_its_own(
    open_page: Open, desk: Desk, branded: Shop, method: str, site: str
) -> None:
    page = open_page(viewport={"width": 800, "height": 900})
    invoice = branded.create(success_url=f"{site}/thanks")
    ShopPages.sell(branded, invoice["payment_link"])
    page.goto(site)
    page.get_by_role("link", name="Pay").click()
    expect(page.get_by_role("dialog", name="Payment of basket 7")).to_be_visible()
    frame = page.frame_locator("dialog iframe")
    frame.get_by_role("button", name="Card to card").click()
    frame.get_by_role("button", name="I have paid").click()
    expect(frame.get_by_role("heading", level=1)).to_have_text("We are checking your payment")
    desk.confirm(invoice["invoice_id"], method)
    expect(frame.get_by_role("heading", level=1)).to_have_text("Payment received")
    page.wait_for_url(f"{site}/thanks")


def test_a_shop_may_keep_its_customer_where_it_is(
    open_page: Open, desk: Desk, branded: Shop, method: str, site: str
) -> None:
    page = open_page()
    invoice = branded.create(success_url=f"{site}/thanks")
    ShopPages.sell(branded, invoice["payment_link"])
    page.goto(site)
    page.evaluate(
        """() => {
            window.told = [];
            for (const name of ["finished", "closed"]) document.addEventListener(`fiatgate:${name}`, (event) => {
                event.preventDefault();
                window.told.push([name, event.detail.status]);
            });
        }"""
    )
    page.get_by_role("link", name="Pay").click()
    page.get_by_role("button", name="Close").click()
    desk.confirm(invoice["invoice_id"], method)
    page.get_by_role("link", name="Pay").press("Enter")
    expect(page.frame_locator("dialog iframe").get_by_role("heading", level=1)).to_have_text(
        "Payment received"
    )
    expect(page.get_by_role("dialog")).to_have_count(0, timeout=10_000)
    assert page.evaluate("window.told") == [["closed", None], ["finished", "success"], ["closed", "success"]]
    expect(page.get_by_role("link", name="Pay")).to_be_focused()
    assert page.url.rstrip("/") == site


def test_where_frames_are_not_allowed_the_link_is_a_link(browser: Browser, shop: Shop, site: str) -> None:
    context = browser.new_context()  # whose console may complain of the frame
    page = context.new_page()
    link = shop.create()["payment_link"]
    ShopPages.sell(shop, link)
    page.goto(site)
    page.get_by_role("link", name="Pay").click()
    page.wait_for_url(link)
    expect(page.get_by_role("heading", level=1)).to_have_text("Choose how to pay")
    context.close()

"""The customer's page without a browser: headers, forged forms, hostile texts, addresses that are none."""

from html.parser import HTMLParser
from typing import Any, Final

import pytest
import requests

from fiatgate.invoices.v1.invoices_pb2 import GetDealRequest
from fiatgate.merchants.v1 import merchants_pb2
from gateway.pay.notices import NOTICES
from gateway.pay.qr import svg_of
from kit.base.ids import new_id
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop, settled
from tests.gateway.pay.pages import until_expiry
from tests.gateway.strangers import Watched
from tests.support.stack import Stack

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Elements(HTMLParser):
    """The elements of a page: [(tag, attributes)]."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.stylesheets: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.found.append((tag, attributes))
        if attributes.get("rel") == "stylesheet":
            self.stylesheets.append(attributes["href"] or "")

    def attributes(self, tag: str, name: str) -> list[str]:
        return [attrs[name] or "" for found, attrs in self.found if found == tag and name in attrs]


def page_of(invoice: dict[str, Any], step: str = "") -> str:
    return f"{invoice['payment_link']}{step}"


def get(url: str, **options: Any) -> requests.Response:
    return requests.get(url, timeout=HTTP_SECONDS, allow_redirects=False, **options)


def post(url: str, fields: dict[str, str] | bytes | str, **headers: str) -> requests.Response:
    return requests.post(url, data=fields, headers=headers, timeout=HTTP_SECONDS, allow_redirects=False)


def assert_a_page(response: requests.Response, status: int) -> None:
    assert response.status_code == status
    assert response.headers["Content-Type"].startswith("text/html")
    assert "{" not in response.text
    assert len(Elements(response.text).attributes("html", "lang")) == 1


# -- what keeps the page to itself


def test_every_page_is_kept_to_itself(shop: Shop, stack: Stack) -> None:
    invoice = shop.create()
    for url in (page_of(invoice), page_of(invoice, "/cancel"), f"{stack.url}/pay/none", f"{stack.url}/pay"):
        headers = get(url).headers
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert (policy["default-src"], policy["frame-ancestors"]) == ("'none'", "'none'")
        assert {policy[f"{kind}-src"] for kind in ("style", "script", "connect")} == {"'self'"}
        assert policy["form-action"] == "'self'"
        assert "unsafe" not in headers["Content-Security-Policy"]
        expected = {
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Cache-Control": "no-store",
            "X-Frame-Options": "DENY",
        }
        assert {name: headers[name] for name in expected} == expected


def test_the_page_has_nothing_inline_and_nothing_of_others(shop: Shop) -> None:
    elements = Elements(get(page_of(shop.create())).text)
    assert not [tag for tag, _ in elements.found if tag in ("style", "iframe")]
    assert [attributes.get("type") for tag, attributes in elements.found if tag == "script"] == ["module"]
    assert all(source.startswith("/pay-static/") for source in elements.attributes("script", "src"))
    names = {name for _, attributes in elements.found for name in attributes}
    assert not [name for name in names if name.startswith("on") or name == "style"]
    for url in elements.stylesheets + elements.attributes("form", "action"):
        assert url.startswith("/")


def test_the_stylesheet_may_be_kept_for_ever(shop: Shop, stack: Stack) -> None:
    (href,) = Elements(get(page_of(shop.create())).text).stylesheets
    sheet = get(stack.url + href)
    assert sheet.headers["Content-Type"] == "text/css; charset=utf-8"
    assert "immutable" in sheet.headers["Cache-Control"]
    assert b"://" not in sheet.content
    folder = href.rpartition("/")[0]
    for other in (
        "/pay-static/0/pay.css",
        "/pay-static/pay.css",
        f"{folder}/..%2Fpage.py",
        f"{folder}/nope.js",
    ):
        assert get(stack.url + other).status_code == 404


# -- forged forms


FORGED: Final = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": ""},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
)


@pytest.mark.parametrize("step", ["/cancel", "/methods", "/paid", "/appeal", "/late"])
def test_a_form_of_another_site_does_nothing(shop: Shop, method: str, step: str) -> None:
    invoice = shop.create()
    for headers in FORGED:
        response = post(page_of(invoice, step), {"method_code": method, "deal_id": str(new_id())}, **headers)
        assert_a_page(response, 400)
    data = shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").json()["data"]
    assert (data["status"], data["deal"]) == ("pending", None)


@pytest.mark.parametrize(
    "own", [{"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Origin": "self"}, {}]
)
def test_a_form_of_our_own_does(shop: Shop, own: dict[str, str]) -> None:
    invoice = shop.create()
    headers = {"Origin": shop.url} if "Origin" in own else own
    response = post(page_of(invoice, "/cancel"), "", **FORM, **headers)
    assert response.status_code == 303
    assert response.headers["Location"] == f"/pay/{invoice['invoice_id']}"
    assert shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").json()["data"]["status"] == "canceled"


# -- safe to repeat, never wrong


def test_each_step_may_be_sent_twice(desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create()
    for _ in range(2):
        chosen = post(page_of(invoice, "/methods"), {"method_code": method})
        assert (chosen.status_code, chosen.headers["Location"]) == (303, f"/pay/{invoice['invoice_id']}")
    deal_id = deal_of(shop, invoice)["deal_id"]
    for _ in range(2):
        assert (
            post(page_of(invoice, "/paid"), {"deal_id": deal_id}).headers["Location"]
            == f"/pay/{invoice['invoice_id']}"
        )
    assert deal_of(shop, invoice)["deal_id"] == deal_id
    for _ in range(2):
        asked = post(page_of(invoice, "/appeal"), {"note": "I did pay"})
        assert asked.headers["Location"] == f"/pay/{invoice['invoice_id']}"
    assert deal_of(shop, invoice)["status"] == "appeal"


def deal_of(shop: Shop, invoice: dict[str, Any]) -> dict[str, Any]:
    deal: dict[str, Any] = shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").json()["data"]["deal"]
    return deal


def test_a_stale_page_cannot_mark_another_deal_paid(desk: Desk, shop: Shop, method: str) -> None:
    other = desk.method(shop.currency)
    desk.requisite(other, account="1234567890123456")
    shop = desk.shop(shop.currency, allowed_methods=[method, other])
    invoice = shop.create()
    post(page_of(invoice, "/methods"), {"method_code": method})
    stale = deal_of(shop, invoice)["deal_id"]
    post(page_of(invoice, "/methods"), {"method_code": other})
    response = post(page_of(invoice, "/paid"), {"deal_id": stale})
    assert response.headers["Location"].endswith("?notice=deal_state_conflict")
    assert deal_of(shop, invoice)["mark_paid_at"] is None
    assert NOTICES["DEAL_STATE_CONFLICT"] in get(shop.url + response.headers["Location"]).text


@pytest.mark.parametrize("fields", [{}, {"deal_id": ""}, {"other": "x"}])
def test_paid_without_saying_what_does_nothing(shop: Shop, method: str, fields: dict[str, str]) -> None:
    invoice = shop.create()
    post(page_of(invoice, "/methods"), {"method_code": method})
    assert_a_page(post(page_of(invoice, "/paid"), fields, **FORM), 400)
    assert deal_of(shop, invoice)["mark_paid_at"] is None


@pytest.mark.parametrize("code", ["", "no-such", "a\0b", "x" * 5000, "💡"])
def test_a_method_that_does_not_fit_leads_back_to_the_choice(shop: Shop, code: str) -> None:
    invoice = shop.create()
    response = post(page_of(invoice, "/methods"), {"method_code": code})
    assert (
        response.headers["Location"]
        == f"/pay/{invoice['invoice_id']}/methods?notice=payment_method_not_found"
    )
    page = get(shop.url + response.headers["Location"])
    assert NOTICES["PAYMENT_METHOD_NOT_FOUND"] in page.text
    assert page.status_code == 200


def test_busy_accounts_are_explained(desk: Desk, currency: str) -> None:
    """Two open deals of one amount never share an account."""
    method = desk.method(currency, name="Bank <b>")
    desk.requisite(method)
    shop = desk.shop(currency, allowed_methods=[method])
    first, second = shop.create(amount="77.00"), shop.create(amount="77.00")
    post(page_of(first, "/methods"), {"method_code": method})
    response = post(page_of(second, "/methods"), {"method_code": method})
    assert response.headers["Location"].endswith(f"/methods?notice=no_available_requisites&method={method}")
    again = "are in use. Choose another method, or try again later."
    named = f"All accounts for <bdi>Bank &lt;b&gt;</bdi> {again}"
    assert named in get(shop.url + response.headers["Location"]).text
    assert f"All accounts for that method {again}" == NOTICES["NO_AVAILABLE_REQUISITES"]


def test_no_payment_begins_with_a_method_that_is_gone_or_at_a_shop_that_was_banned(
    desk: Desk, currency: str, method: str
) -> None:
    gone = desk.method(currency)
    desk.requisite(gone)
    shops = [desk.shop(currency, allowed_methods=[each]) for each in (gone, method)]
    invoices = [shop.create() for shop in shops]
    ban = merchants_pb2.BanMerchantRequest(merchant_id=shops[1].merchant_id)
    assert all('name="method_code"' in get(page_of(invoice)).text for invoice in invoices)
    desk.method(currency, method_code=gone, active=False)
    desk.merchants.BanMerchant(ban)

    def are_offered() -> bool:
        return any('name="method_code"' in get(page_of(invoice)).text for invoice in invoices)

    settled(lambda: not are_offered(), "the pages to know")
    notices = ("payment_method_not_found", "merchant_blocked")
    for invoice, code, notice in zip(invoices, (gone, method), notices, strict=True):
        response = post(page_of(invoice, "/methods"), {"method_code": code})
        assert response.headers["Location"].endswith(f"/methods?notice={notice}")
        told = NOTICES[notice.upper()]
        assert get(shops[0].url + response.headers["Location"]).text.count(told) == 1


def test_a_rate_that_is_gone_meanwhile_is_explained(desk: Desk) -> None:
    """And nothing is half done: once it's back, the same page goes on."""
    currency = desk.currency()
    method = desk.method(currency)
    desk.requisite(method)
    shop = desk.open_shop(currency)
    invoice = shop.create()
    desk.currency(code=currency, markup="1", rate=None)  # no number above zero is left of it
    response = post(page_of(invoice, "/methods"), {"method_code": method})
    assert response.headers["Location"].endswith("/methods?notice=rate_invalid")
    settled(lambda: f'value="{method}"' not in get(page_of(invoice)).text, "the page to know")
    page = get(shop.url + response.headers["Location"]).text
    assert page.count(NOTICES["RATE_INVALID"]) == 1
    assert f'href="/pay/{invoice["invoice_id"]}">Try again</a>' in page
    assert shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").json()["data"]["deal"] is None
    desk.currency(code=currency)
    assert f'value="{method}"' in get(page_of(invoice)).text
    assert post(page_of(invoice, "/methods"), {"method_code": method}).headers["Location"] == (
        f"/pay/{invoice['invoice_id']}"
    )


def test_the_code_says_where_to_pay(desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create()
    assert get(page_of(invoice, "/qr.svg")).status_code == 404
    desk.choose(invoice["invoice_id"], method)
    code = get(page_of(invoice, "/qr.svg"))
    assert code.headers["Content-Type"] == "image/svg+xml"
    assert code.content == svg_of("4000002500003155")


@pytest.mark.parametrize("step", ["/methods", "/paid", "/cancel", "/appeal", "/late"])
def test_a_finished_invoice_shows_its_outcome_whatever_is_sent(
    desk: Desk, shop: Shop, method: str, step: str
) -> None:
    invoice = shop.create()
    desk.confirm(invoice["invoice_id"], method)
    fields = {"method_code": method, "deal_id": deal_of(shop, invoice)["deal_id"], "note": "x"}
    response = post(page_of(invoice, step), fields)
    assert (response.status_code, response.headers["Location"]) == (303, f"/pay/{invoice['invoice_id']}")
    page = get(page_of(invoice)).text
    assert "Payment received" in page and "Your payment is confirmed." in page
    assert "notifying" not in page, "true whether the shop takes the webhook or not"
    assert get(page_of(invoice, step)).headers["Location"] == f"/pay/{invoice['invoice_id']}"


@pytest.mark.parametrize("step", ["/paid", "/cancel", "/methods", "/appeal"])
def test_a_step_that_comes_when_time_is_up_leads_to_what_can_still_be_done(
    desk: Desk, shop: Shop, method: str, step: str
) -> None:
    """The form was open all the while."""
    invoice = shop.create()
    deal = desk.choose(invoice["invoice_id"], method)
    until_expiry(desk, deal.deal_id, -1)
    response = post(page_of(invoice, step), {"deal_id": deal.deal_id, "method_code": "another", "note": "x"})
    assert (response.status_code, response.headers["Location"]) == (303, f"/pay/{invoice['invoice_id']}")
    page = get(page_of(invoice)).text
    assert "Time ran out" in page
    assert f'href="/pay/{invoice["invoice_id"]}/late">I have already paid</a>' in page


def test_a_payment_that_is_marked_cannot_be_canceled(shop: Shop, method: str) -> None:
    invoice = shop.create()
    post(page_of(invoice, "/methods"), {"method_code": method})
    post(page_of(invoice, "/paid"), {"deal_id": deal_of(shop, invoice)["deal_id"]})
    response = post(page_of(invoice, "/cancel"), "", **FORM)
    assert response.headers["Location"].endswith("?notice=deal_state_conflict")
    assert deal_of(shop, invoice)["sub_status"] == "awaiting_confirmation"
    assert get(page_of(invoice, "/cancel")).status_code == 303


# -- what customers and merchants may write

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}\u202e'


def test_hostile_texts_are_shown_as_text(desk: Desk, shop: Shop) -> None:
    other = desk.shop(shop.currency, name='Shop "><svg onload=alert(1)>')
    html = get(page_of(other.create(purpose=HOSTILE))).text
    elements = Elements(html)
    assert not {tag for tag, _ in elements.found} & {"svg"}
    assert len(elements.attributes("script", "src")) == len(
        [tag for tag, _ in elements.found if tag == "script"]
    )
    assert "&lt;script&gt;" in html
    assert "{{ 7*7 }}" in html


def test_a_hostile_return_address_stays_inside_its_attribute(desk: Desk, shop: Shop) -> None:
    url = "https://shop.example/?a='onload=alert(1)&b=;url=javascript:alert(1)"
    invoice = shop.create(fail_url=url)
    desk.cancel(invoice["invoice_id"])
    elements = Elements(get(page_of(invoice)).text)
    assert url in elements.attributes("a", "href")
    assert any(content.endswith(f"; url={url}") for content in elements.attributes("meta", "content"))


def test_an_unknown_notice_says_nothing(shop: Shop) -> None:
    html = get(f"{page_of(shop.create())}?notice=%3Cb%3EYou+won%3C/b%3E").text
    assert "You won" not in html
    assert 'class="notice"' not in html


def test_an_appeals_text_reaches_the_operator(desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create()
    deal = desk.mark_paid(invoice["invoice_id"], method)
    post(page_of(invoice, "/appeal"), {"note": " paid at noon\r\nfrom <b>Bank</b> \0💡 " + "x" * 3000})
    history = desk.deals.GetDeal(GetDealRequest(deal_id=deal.deal_id)).history
    note = history[-1].note
    assert note.startswith("paid at noon\nfrom <b>Bank</b> 💡 xxx")
    assert len(note) == 2000


# -- what is no payment


@pytest.mark.parametrize(
    "path", ["", "/", "/nope", "/{new_id}", "/{new_id}/cancel", "/%00", "/%FF", "/{new_id}/nowhere"]
)
def test_an_unknown_payment_is_a_friendly_page(stack: Stack, path: str) -> None:
    response = get(f"{stack.url}/pay{path.format(new_id=new_id())}")
    assert_a_page(response, 404)
    assert "Payment not found" in response.text


def test_a_wrong_method_is_a_page_too(shop: Shop) -> None:
    response = requests.delete(page_of(shop.create()), timeout=HTTP_SECONDS)
    assert_a_page(response, 405)
    assert "GET" in response.headers["Allow"]


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b'{"method_code": "x"}', "application/json", 400),
        (b"method_code=%FF", "application/x-www-form-urlencoded", 400),
        (b"\xff\xfe", "application/x-www-form-urlencoded", 400),
        (b"&a=b" * 1000, "application/x-www-form-urlencoded", 400),
        (b"note=" + b"a" * 6_000_000, "application/x-www-form-urlencoded", 413),
        (b"--x\r\n\r\nno end", "multipart/form-data; boundary=x", 400),
        (b"--x--\r\n", "multipart/form-data", 400),
        (b"--x--\r\n", "multipart/form-data; boundary=" + "x" * 71, 400),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_what_is_no_form_gets_a_page(shop: Shop, body: bytes, content_type: str, status: int) -> None:
    response = post(page_of(shop.create(), "/cancel"), body, **{"Content-Type": content_type})
    assert_a_page(response, status)
    assert "To the payment page" in response.text


def test_the_page_can_be_asked_for_its_head(shop: Shop) -> None:
    """What link previews and monitors do."""
    response = requests.head(page_of(shop.create()), timeout=HTTP_SECONDS)
    assert (response.status_code, response.content) == (200, b"")


def test_a_prefix_of_the_public_address_is_kept(shop: Shop, lenient: Watched) -> None:
    invoice_id = shop.create()["invoice_id"]
    elements = Elements(get(f"{lenient.url}/pay/{invoice_id}").text)
    assert all(action.startswith("/fiat/pay/") for action in elements.attributes("form", "action"))
    assert all(href.startswith("/fiat/pay") for href in elements.stylesheets)
    invoice = get(f"{lenient.url}/api/v1/invoices/{invoice_id}", headers={"X-Api-Key": shop.api_key})
    assert invoice.json()["data"]["payment_link"] == f"https://pay.example/fiat/pay/{invoice_id}"
    canceled = post(f"{lenient.url}/pay/{invoice_id}/cancel", "", Origin="https://pay.example", **FORM)
    assert canceled.headers["Location"] == f"/fiat/pay/{invoice_id}"

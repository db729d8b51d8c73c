"""Payment links by hand: a member makes an invoice without a key, once for each form, and it has its author."""

import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

import pytest
import requests

from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.merchants.v1 import merchants_pb2
from kit.web.qr import svg_of
from tests.console.conftest import Open, with_cookies
from tests.console.house import House, Person, text_of_html, title_of
from tests.console.looks import looks_right
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop, unique
from tests.support.receiver import Receiver
from tests.support.stack import Stack


@dataclass(frozen=True)
class Stall:
    """A shop whose webhooks go to its default address, and a member."""

    desk: Desk
    method: str
    shop: Shop
    finance: Person
    receiver: Receiver

    def form(self, **changes: str) -> dict[str, str]:
        """A form that is accepted, as the page has it."""
        (made_order,) = re.findall(r'name="made_order" value="([^"]+)"', self.finance.get("/links/new").text)
        typed = {"currency": self.shop.currency, "purpose": "Two <b>lamps</b>", "customer": unique("zoe")}
        return {"amount": self.shop.body()["amount"], "order": "", "made_order": made_order} | typed | changes

    def made(self, form: dict[str, str]) -> str:
        """The id of the invoice that the form makes."""
        answer = self.finance.post("/links/new", form, allow_redirects=False)
        assert answer.status_code == 303, answer.text
        return answer.headers["Location"].removeprefix("/links/")


@pytest.fixture(scope="module")
def stall(stack: Stack, house: House) -> Iterator[Stall]:
    with Desk(stack) as desk, Receiver() as receiver:
        currency = desk.currency()
        method = desk.method(currency, name="Bank transfer")
        desk.requisite(method)
        shop = desk.open_shop(currency, name="Stall", callback_url=receiver.url())
        receiver.wait_for(0)
        finance = house.person("finance", merchant=shop.merchant_id, name="Mary")
        yield Stall(desk, method, shop, finance, receiver)


def test_a_link_is_made_once_paid_as_any_invoice_and_has_its_author(
    stall: Stall, house: House, open_page: Open
) -> None:
    finance, form = stall.finance, stall.form(amount=f"{stall.shop.body()['amount'].replace('.', ',')} €")
    id = stall.made(form)
    assert stall.made(form) == id, "a form that is sent twice makes one invoice"
    url = f"{stall.shop.url}/pay/{id}"
    page = finance.get(f"/links/{id}").text
    assert f'value="{url}"' in page
    assert '<span class="badge wait">open</span>' in page, "the word of the list"
    assert 'data-key="x"' not in page, "no key cancels"
    assert "Two &lt;b&gt;lamps&lt;/b&gt;" in page
    assert finance.get(f"/links/{id}/qr.svg").content == svg_of(url)
    assert requests.get(url, timeout=HTTP_SECONDS).status_code == 200
    of_api = stall.shop.get(f"/api/v1/invoices/{form['made_order']}").json()["data"]
    assert (of_api["invoice_id"], of_api["payment_link"]) == (id, url)
    assert (of_api["callback_url"], of_api["success_url"]) == (stall.receiver.url(), None)

    browser = with_cookies(open_page(), finance)
    for name, address in (("links", "/links"), ("links-new", "/links/new"), ("links-link", f"/links/{id}")):
        browser.goto(house.dashboard + address)
        looks_right(browser, f"dashboard-{name}")
    browser.context.grant_permissions(["clipboard-read", "clipboard-write"])
    browser.get_by_role("button", name="Copy the link").click()
    browser.get_by_role("button", name="Copied").wait_for()
    assert browser.evaluate("navigator.clipboard.readText()") == url

    # The newest active key signs: there is no key of the invoice.
    secret = stall.desk.merchants.CreateApiKey(
        merchants_pb2.CreateApiKeyRequest(merchant_id=stall.shop.merchant_id, name="newest")
    ).secret
    before = len(stall.receiver.received())
    stall.desk.confirm(id, stall.method)
    sent = stall.receiver.wait_for(before + 1)[-1]
    signed = sent.headers["x-signature-timestamp"].encode() + b"." + sent.body
    assert sent.headers["x-signature"] == hmac.digest(secret.encode(), signed, "sha256").hex()

    ended = finance.get(f"/links/{id}").text
    assert "The payment has ended" in ended
    assert "Send this to your customer" not in ended
    assert "qr.svg" not in ended

    owner = house.person("owner", merchant=stall.shop.merchant_id)
    (event,) = re.findall(r'href="/webhooks/([0-9]+)"', owner.get(f"/webhooks?state=all&invoice={id}").text)
    webhook = " ".join(unescape(re.sub("<[^>]+>", "", owner.get(f"/webhooks/{event}").text)).split())
    assert "Signing keynewest It is the newest active key" in webhook
    shown = unescape(re.sub("<[^>]+>", "", owner.get(f"/invoices/{id}").text))
    assert f"Invoice created by {finance.email}, by hand" in " ".join(shown.split())
    acts = unescape(re.sub("<[^>]+>", "", owner.get("/audit").text))
    assert "invoice.create" in acts and finance.email in acts


def test_a_link_that_was_paid_in_part_says_what_was_paid(stall: Stall, house: House) -> None:
    form = stall.form()
    id = stall.made(form)
    for step, body in (("select", {}), ("resolve", {"amount": "17.00"})):
        answer = stall.shop.post(f"/api/v1/test/invoices/{id}/{step}", json=body)
        assert answer.status_code == 200, answer.text
    paid = answer.json()["data"]["final_amount"]
    said = re.compile(rf"paid\s+{re.escape(paid)}\s+{stall.shop.currency}")
    operator = house.person("viewer")
    for person, path in (
        (stall.finance, f"/links/{id}"),
        (stall.finance, f"/links?customer={form['customer']}&state=success"),
        (operator, f"/merchants/{stall.shop.merchant_id}/view"),
    ):
        assert said.search(text_of_html(person.get(path).text)), path
    (row,) = stall.finance.rows("/links.csv", customer=form["customer"], state="success")
    assert (row["amount"], row["final_amount"]) == (answer.json()["data"]["amount"], paid)


def test_a_link_for_any_number_of_payments_is_made_paid_twice_and_canceled(
    stall: Stall, house: House, open_page: Open
) -> None:
    finance, amount = stall.finance, stall.shop.body()["amount"]
    form = {"amount": amount, "currency": stall.shop.currency, "purpose": "Entry", "note": unique("the fair")}
    form["valid_days"] = "0"
    refused = finance.post("/links/many/new", form | {"amount": "0.50"})
    assert (
        refused.status_code == 422 and "The least amount is " in refused.text and form["note"] in refused.text
    )
    made = finance.post("/links/many/new", form, allow_redirects=False)
    path = made.headers["Location"]
    url = f"{stall.shop.url}/pay/links/{path.removeprefix('/links/many/')}"
    assert f'value="{url}"' in finance.get(path).text
    assert finance.get(f"{path}/qr.svg").content == svg_of(url)

    paid = []
    for _ in range(2):
        page = requests.get(url, timeout=HTTP_SECONDS).text
        assert '<p class="purpose">' in page and f'action="{url.removeprefix(stall.shop.url)}"' in page
        chosen = requests.post(url, headers={"Origin": stall.shop.url}, timeout=HTTP_SECONDS)
        assert chosen.status_code == 200 and "Choose how to pay" in chosen.text
        paid.append(chosen.url.rpartition("/pay/")[2])
        stall.desk.confirm(paid[-1], stall.method)
    assert paid[0] != paid[1]

    browser = with_cookies(open_page(), finance)
    for name, address in (("many", "/links/many"), ("many-new", "/links/many/new"), ("many-link", path)):
        browser.goto(house.dashboard + address)
        looks_right(browser, f"dashboard-links-{name}")
    (row,) = re.findall(r"<tr data-row>.*?</tr>", finance.get("/links/many").text, re.DOTALL)
    (code,) = re.findall("link-[0-9A-Z]{8}", row)[:1]
    assert form["note"] in row and " open " in text_of_html(row)
    (line,) = finance.rows("/links/many.csv")
    assert (line["orders"], line["payments"], line["payment_link"]) == (code, "2", url)
    invoice = finance.get(f"/invoices/{paid[0]}").text
    assert f"Order {code}-" in text_of_html(invoice) and f'href="{path}"' in invoice
    assert "a customer, by a payment link" in invoice
    assert paid[0] not in finance.get("/links").text

    assert "The link is canceled" in finance.post(f"{path}/cancel").text
    ended = requests.get(url, timeout=HTTP_SECONDS)
    assert (ended.status_code, "This link takes no more payments." in ended.text) == (200, True)
    again = requests.post(url, headers={"Origin": stall.shop.url}, timeout=HTTP_SECONDS)
    assert "This link takes no more payments." in again.text and again.url.startswith(url)
    foreign = requests.post(url, headers={"Origin": "https://evil.example"}, timeout=HTTP_SECONDS)
    assert foreign.status_code == 400
    missing = requests.get(f"{stall.shop.url}/pay/links/{paid[0]}", timeout=HTTP_SECONDS)
    assert (missing.status_code, "Payment not found" in missing.text) == (404, True)
    acts = text_of_html(house.person("owner", merchant=stall.shop.merchant_id).get("/audit").text)
    assert f"{finance.email} created" in acts and "link" in acts


def test_a_refused_form_says_what_to_change_and_keeps_what_was_typed(stall: Stall) -> None:
    finance = stall.finance
    taken = stall.shop.create()
    for changes, sentence in (
        ({"amount": "0.50"}, "The least amount is "),
        ({"amount": "12 or so"}, "not a plain decimal number"),
        ({"currency": "XXX"}, "Your invoices can’t have this currency."),
        ({"order": taken["external_id"]}, "You have an invoice of this order already."),
        ({"customer": taken["customer_id"]}, "This customer has an invoice that waits for payment."),
        ({"customer": ""}, "Customer"),
        ({"customer": "x" * 129}, "Customer has 1 to 128 characters"),
        ({"order": ".."}, "Order"),
        ({"note": "x" * 501}, "Note"),
    ):
        form = stall.form(**changes)
        answer = finance.post("/links/new", form)
        page = unescape(answer.text)
        assert answer.status_code == 422, (changes, title_of(answer))
        assert sentence in page, (changes, page)
        assert form["purpose"] in page
        assert form["made_order"] in page, "the same form, sent again"
        names_other = {taken["external_id"], taken["customer_id"]} & {*changes.values()}
        assert (f'href="/links/{taken["invoice_id"]}"' in page) == bool(names_other), changes


def test_links_are_listed_by_state_canceled_and_valid_for_days(stall: Stall, house: House) -> None:
    finance, note = stall.finance, unique("for the invoice of March")
    canceled = stall.made(stall.form(note=note, valid_days="30"))
    paid, usual, program = (
        stall.made(stall.form()),
        stall.made(stall.form(valid_days="0")),
        stall.shop.create(),
    )
    stall.desk.confirm(paid, stall.method)

    def listed(**filters: str) -> dict[str, str]:
        rows = re.findall(r"<tr data-row>.*?</tr>", finance.get("/links", params=filters).text, re.DOTALL)
        return {re.findall(r'href="/links/([^"]+)"', row)[0]: text_of_html(row) for row in rows}

    def days_of(id: str) -> float:
        invoice = stall.desk.deals.GetInvoiceStory(invoices_pb2.GetInvoiceStoryRequest(invoice_id=id)).invoice
        return (invoice.expires_at.seconds - invoice.created_at.seconds) / 86_400

    assert days_of(canceled) == 30 and days_of(usual) < 1
    links = listed()
    assert list(links)[:3] == [usual, paid, canceled] and program["invoice_id"] not in links
    assert " open until " in links[canceled] and " paid " in links[paid]
    assert {*listed(state="pending")} >= {usual, canceled} and paid not in listed(state="pending")
    assert note in finance.get(f"/invoices/{canceled}").text
    assert note not in requests.get(f"{stall.shop.url}/pay/{canceled}", timeout=HTTP_SECONDS).text

    done = finance.post(f"/links/{canceled}/cancel")
    assert "The link is canceled: it takes no money any more." in done.text
    assert "/cancel" not in done.text
    assert list(listed(state="canceled")) == [canceled]
    assert "has ended already" in finance.post(f"/links/{paid}/cancel").text
    marked = stall.made(stall.form())
    stall.desk.mark_paid(marked, stall.method)
    assert "/cancel" not in finance.get(f"/links/{marked}").text
    assert "has said that it is paid" in finance.post(f"/links/{marked}/cancel").text
    viewer = house.person("viewer", merchant=stall.shop.merchant_id)
    stranger = house.person("owner", merchant=stall.desk.open_shop(stall.shop.currency).merchant_id)
    assert viewer.post(f"/links/{usual}/cancel").status_code == 403
    assert stranger.post(f"/links/{usual}/cancel").status_code == 404
    assert usual not in stranger.get("/links").text and usual in listed(state="pending")
    lines = {line["invoice_id"]: line for line in finance.rows("/links.csv")}
    assert lines[paid]["payment_link"] == f"{stall.shop.url}/pay/{paid}"


def test_an_order_of_another_merchant_is_free_here_and_says_nothing(stall: Stall, house: House) -> None:
    other = stall.desk.open_shop(stall.shop.currency, name="Other")
    theirs, form = other.create(), stall.form()
    viewer = house.person("viewer", merchant=stall.shop.merchant_id)
    id = stall.made(form | {"order": theirs["external_id"], "customer": theirs["customer_id"]})
    assert id != theirs["invoice_id"]
    assert 'href="/links/' not in viewer.get(f"/invoices/{id}").text
    assert f'href="/links/{id}"' in stall.finance.get(f"/invoices/{id}").text


def test_a_merchant_without_addresses_makes_a_link(stall: Stall, house: House) -> None:
    shop = stall.desk.open_shop(stall.shop.currency, name="Bare")
    developer = house.person("developer", merchant=shop.merchant_id)
    form = stall.form()
    assert "so your server is told nothing" in developer.get("/links/new").text
    made = developer.post("/links/new", form, allow_redirects=False)
    id = made.headers["Location"].removeprefix("/links/")
    stall.desk.confirm(id, stall.method)
    story = stall.desk.deals.GetInvoiceStory(invoices_pb2.GetInvoiceStoryRequest(invoice_id=id))
    assert story.invoice.status == invoices_pb2.INVOICE_STATUS_SUCCESS
    assert not story.invoice.callback_url and not story.invoice.key_id
    assert [(each.act, each.actor.name) for each in story.acts][:1] == [("invoice.create", developer.email)]

"""The page in a real browser with its scripts: it follows the payment, helps, and never gets in the way."""

import re
from typing import Literal

from playwright.sync_api import Page, Route, expect

from fiatgate.invoices.v1 import invoices_pb2 as pb
from tests.gateway.desk import Desk, Shop
from tests.gateway.pay.conftest import Open
from tests.gateway.pay.pages import follow, heading, press, seen, status_of, until_expiry

LONG_AGO = "UPDATE deals SET mark_paid_at = now() - interval '16 minutes' WHERE id = %s"


def listening(page: Page, link: str) -> None:
    """Loads the page and waits until it hears what happens."""
    with page.expect_response(lambda response: "/events" in response.url and response.ok):
        page.goto(link)


# -- it follows the payment


def test_the_outcome_shows_within_a_second(page: Page, desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create()
    deal = desk.mark_paid(invoice["invoice_id"], method)
    listening(page, invoice["payment_link"])
    heading(page, "We are checking your payment")
    desk.deals.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal.deal_id))
    expect(page.get_by_role("heading", level=1)).to_have_text("Payment received", timeout=1000)
    expect(page.get_by_role("heading", level=1)).to_be_focused()  # so it's read out
    expect(page).to_have_title("Payment received · \u2068Lamp shop\u2069")


def test_a_change_before_the_page_was_listening_is_not_missed(
    page: Page, desk: Desk, shop: Shop, method: str
) -> None:
    """Between the page and its stream a slow network puts seconds."""
    invoice = shop.create()
    deal = desk.mark_paid(invoice["invoice_id"], method)

    def confirm_first(route: Route) -> None:
        desk.deals.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal.deal_id))
        route.continue_()

    page.route("**/events*", confirm_first, times=1)
    page.goto(invoice["payment_link"])
    heading(page, "Payment received")


def test_it_follows_without_a_stream_too(page: Page, desk: Desk, shop: Shop, method: str) -> None:
    """Proxies that hold streams back, NATS away, too many tabs: then it looks every few seconds."""
    page.clock.install()
    invoice = shop.create()
    deal = desk.mark_paid(invoice["invoice_id"], method)
    page.route("**/events*", lambda route: route.fulfill(status=204))
    page.goto(invoice["payment_link"])
    heading(page, "We are checking your payment")
    desk.deals.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal.deal_id))
    page.clock.run_for(9_000)
    heading(page, "Payment received")


def test_the_other_tab_follows(page: Page, shop: Shop) -> None:
    invoice = shop.create()
    listening(page, invoice["payment_link"])
    other = page.context.new_page()
    listening(other, invoice["payment_link"])
    press(page, "Card to card")
    heading(other, "Pay with Card to card")
    press(page, "I have paid")
    heading(other, "We are checking your payment")


def test_the_end_of_the_time_shows_by_itself(page: Page, desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create()
    until_expiry(desk, desk.choose(invoice["invoice_id"], method).deal_id, 3)
    page.goto(invoice["payment_link"])
    expect(page.locator(".countdown")).to_have_class("countdown near")
    expect(page.locator(".hurry")).to_contain_text("Not much time is left")
    heading(page, "Time ran out")
    expect(page.get_by_role("link", name="I have already paid")).to_be_visible()


def test_a_check_that_takes_long_says_so_by_itself(page: Page, desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create()
    deal = desk.mark_paid(invoice["invoice_id"], method)
    page.goto(invoice["payment_link"])
    expect(page.locator(".progress")).to_contain_text("usually takes about 15 minutes")
    expect(page.locator(".notice")).to_have_count(0)
    desk.database("invoices", LONG_AGO, deal.deal_id)
    page.evaluate("document.dispatchEvent(new Event('fiatgate:look'))")
    expect(page.locator(".notice")).to_contain_text("longer than usual")


# -- it helps


def test_the_countdown_is_quiet_at_first(page: Page, desk: Desk, shop: Shop, method: str) -> None:
    page.clock.install()
    invoice = shop.create()
    desk.choose(invoice["invoice_id"], method)
    page.goto(invoice["payment_link"])
    expect(page.locator(".countdown")).to_have_class("countdown")
    expect(page.locator("[data-clock]")).to_have_text(re.compile(r"(15:00|14:5\d) left"))
    expect(page.locator(".hurry")).to_be_empty()
    page.clock.run_for(12 * 60_000 + 1000)
    expect(page.locator("[data-clock]")).to_have_text(re.compile(r"2:[0-5]\d left"))
    expect(page.locator(".countdown")).to_have_class("countdown near")


def test_what_has_to_be_typed_elsewhere_can_be_copied(page: Page, desk: Desk, referenced: Shop) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    invoice = referenced.create(amount="1500.00")
    (offer,) = referenced.get("/api/v1/payment-methods").json()["data"]
    deal = desk.choose(invoice["invoice_id"], offer["method_code"])
    asked = pb.GetCheckoutRequest(invoice_id=invoice["invoice_id"])
    requisite = desk.checkout.GetCheckout(asked).requisite
    page.goto(invoice["payment_link"])
    for name, text in (
        ("Copy the amount", "1537.50"),
        ("Copy the account", requisite.account),
        ("Copy the recipient", "Alex Tester"),
        ("Copy the bank", "Test Bank"),
        ("Copy the reference", deal.reference),  # without the gap that it is shown with
    ):
        button = page.get_by_role("button", name=name)
        button.click()
        expect(button).to_have_text("Copied")
        expect(page.get_by_role("status")).to_have_text("Copied")  # what is read out
        assert page.evaluate("navigator.clipboard.readText()") == text
    expect(button).to_have_text("Copy")


def test_the_account_is_there_as_a_qr_code(open_page: Open, desk: Desk, shop: Shop, method: str) -> None:
    """It's for the phone beside a desktop, which shows it at once; a phone can't scan itself."""
    invoice = shop.create()
    desk.choose(invoice["invoice_id"], method)
    for width, shown in ((1280, True), (390, False)):
        page = open_page(viewport={"width": width, "height": 800})
        page.goto(invoice["payment_link"])
        picture = page.get_by_alt_text("QR code of the account")
        expect(picture).to_be_visible(visible=shown)
        if not shown:
            page.get_by_text("Show as a QR code").click()
        page.wait_for_function("picture => picture.naturalWidth > 0", arg=picture.element_handle())


def test_times_are_the_customers_own(open_page: Open, desk: Desk, shop: Shop, method: str) -> None:
    page = open_page(timezone_id="Asia/Almaty", locale="de-DE")
    page.goto(shop.create()["payment_link"])
    shown = page.locator("time").first
    expect(shown).not_to_contain_text("UTC")
    moment = page.evaluate(
        "at => new Intl.DateTimeFormat('de', {timeStyle: 'short', timeZone: 'Asia/Almaty'}).format(new Date(at))",
        shown.get_attribute("datetime"),
    )
    expect(shown).to_contain_text(moment)
    receipt = shop.create()
    desk.confirm(receipt["invoice_id"], method)
    page = open_page(timezone_id="Asia/Almaty", locale="en-GB")
    page.goto(receipt["payment_link"])
    expect(page.locator(".receipt time")).to_have_text(re.compile(r"^\d+ \w+ \d{4}, \d\d:\d\d:\d\d GMT\+5$"))


def test_the_customer_may_stay_with_the_receipt(page: Page, desk: Desk, shop: Shop, method: str) -> None:
    page.clock.install()
    invoice = shop.create(success_url=f"{shop.url}/healthz")
    desk.confirm(invoice["invoice_id"], method)
    page.goto(invoice["payment_link"])
    press(page, "Stay here")
    page.clock.run_for(60_000)
    heading(page, "Payment received")
    expect(page.locator(".receipt")).to_contain_text(invoice["invoice_id"])
    page.evaluate("window.print = () => { document.title = 'printed' }")
    press(page, "Print the receipt")
    expect(page).to_have_title("printed")


def test_the_customer_is_sent_back_to_the_shop(page: Page, desk: Desk, shop: Shop, method: str) -> None:
    page.clock.install()
    elsewhere = f"{shop.create()['payment_link']}?from=page"
    invoice = shop.create(success_url=elsewhere)
    desk.confirm(invoice["invoice_id"], method)
    page.goto(invoice["payment_link"])
    expect(page.get_by_role("button", name="Stay here")).to_be_visible()
    page.clock.run_for(7_000)
    page.wait_for_url(elsewhere)


# -- it never gets in the way


def test_a_double_click_is_one(page: Page, shop: Shop) -> None:
    invoice = shop.create()
    page.goto(invoice["payment_link"])
    page.get_by_role("button", name="Card to card").dblclick()
    heading(page, "Pay with Card to card")
    page.get_by_role("button", name="I have paid").dblclick()
    heading(page, "We are checking your payment")
    assert status_of(shop, invoice) == "pending awaiting_confirmation"


def test_everything_works_from_the_keyboard(page: Page, shop: Shop) -> None:
    """With each step the focus can be seen, and goes on from where the customer was."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    def tab_to(name: str, role: Literal["button", "link", "textbox"] = "button") -> None:
        wanted = page.get_by_role(role, name=name)
        for _ in range(12):
            page.keyboard.press("Tab")
            if wanted.evaluate("each => each === document.activeElement"):
                break
        expect(wanted).to_be_focused()
        assert wanted.evaluate("each => getComputedStyle(each).outlineStyle") == "solid"

    invoice = shop.create()
    page.goto(invoice["payment_link"])
    tab_to("Card to card")
    page.keyboard.press("Enter")
    heading(page, "Pay with Card to card")
    tab_to("Copy the account")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Copy the account")).to_have_text("Copied")
    tab_to("I have paid")
    page.keyboard.press("Enter")
    heading(page, "We are checking your payment")
    tab_to("Report a problem", "link")
    page.keyboard.press("Enter")
    tab_to("Your message", "textbox")
    page.keyboard.type("Paid at noon")
    tab_to("Send the report")
    page.keyboard.press("Enter")
    heading(page, "Our team is checking your payment")


def test_the_page_does_not_wait_for_its_scripts(page: Page, shop: Shop) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/*.js", hold)
    invoice = shop.create()
    page.goto(invoice["payment_link"], wait_until="commit")
    press(page, "Card to card")
    heading(page, "Pay with Card to card")
    press(page, "I have paid")
    heading(page, "We are checking your payment")
    assert held
    for route in held:
        route.fulfill(body="", content_type="text/javascript")


STILL = """async () => {
    let shifted = 0;
    const seen = new PerformanceObserver((list) => list.getEntries().forEach((each) => shifted += each.value));
    seen.observe({ type: "layout-shift", buffered: true });
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return shifted;
}"""


def test_nothing_moves_when_the_scripts_arrive(open_page: Open, desk: Desk, shop: Shop, method: str) -> None:
    """They come after the first paint, and by then a finger may be on its way to a button."""
    choosing, paying, waiting, done = (shop.create() for _ in range(4))
    desk.choose(paying["invoice_id"], method)
    desk.mark_paid(waiting["invoice_id"], method)
    desk.confirm(done["invoice_id"], method)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    for width, language in ((320, "de"), (1280, "ru")):
        page = open_page(viewport={"width": width, "height": 800}, locale=language)
        page.route("**/page.js", hold)
        for invoice in (choosing, paying, waiting, done):
            with page.expect_request("**/page.js"):
                page.goto(invoice["payment_link"], wait_until="commit")
            page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
            held.pop().continue_()
            expect(page.locator("html")).to_have_class("scripted")
            assert page.evaluate(STILL) < 0.02, f"{page.title()} at {width}"


def test_a_step_that_was_stopped_on_its_way_can_be_taken_again(page: Page, shop: Shop) -> None:
    """A second tap at once is one too many; a while after, somebody has stopped the browser."""
    page.clock.install()
    invoice = shop.create()
    page.goto(invoice["payment_link"])
    page.evaluate("document.addEventListener('submit', (event) => event.preventDefault(), { once: true })")
    press(page, "Card to card")
    press(page, "Card to card")
    heading(page, "Choose how to pay")
    page.clock.run_for(16_000)
    press(page, "Card to card")
    heading(page, "Pay with Card to card")


def test_the_way_back_leads_to_the_state_as_it_is(page: Page, shop: Shop) -> None:
    invoice = shop.create()
    page.goto(invoice["payment_link"])
    press(page, "Card to card")
    press(page, "I have paid")
    heading(page, "We are checking your payment")
    page.go_back()
    heading(page, "We are checking your payment")


def test_what_is_being_written_is_not_taken_away(page: Page, desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create()
    deal = desk.mark_paid(invoice["invoice_id"], method)
    listening(page, invoice["payment_link"] + "/appeal")
    page.get_by_label("Your message").fill("Paid at noon")
    desk.database("invoices", LONG_AGO, deal.deal_id)  # when most begin to write
    page.evaluate("document.dispatchEvent(new Event('fiatgate:look'))")
    with page.expect_response(invoice["payment_link"] + "/appeal"):
        pass
    expect(page.get_by_label("Your message")).to_have_value("Paid at noon")


# -- late money, and pictures


def test_late_money_becomes_a_case_and_its_answer_arrives(
    page: Page, desk: Desk, shop: Shop, method: str
) -> None:
    invoice = shop.create()
    desk.choose(invoice["invoice_id"], method)
    desk.cancel(invoice["invoice_id"])
    page.goto(invoice["payment_link"])
    follow(page, "I have already paid")
    page.get_by_label("Your message").fill("At noon, from my bank")
    press(page, "Find my money")
    heading(page, "Payment canceled")
    number = int(page.locator(".case .number").inner_text())
    assert desk.deals.GetCase(pb.GetCaseRequest(number=number)).case.note == "At noon, from my bank"
    assert status_of(shop, invoice) == "canceled canceled_by_operator"
    with page.expect_response(lambda response: "/events" in response.url):
        page.reload()
    desk.deals.ResolveCase(
        pb.ResolveCaseRequest(number=number, outcome="Sent back to your account", ended_as="answer_only")
    )
    expect(page.locator("blockquote")).to_have_text("Sent back to your account")
    seen(page, "case-answered")


def test_a_picture_that_is_too_large_is_told_of_before_it_travels(
    page: Page, desk: Desk, shop: Shop, method: str
) -> None:
    invoice = shop.create()
    desk.mark_paid(invoice["invoice_id"], method)
    page.goto(invoice["payment_link"] + "/appeal")
    large = {"name": "a.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n" + bytes(6_000_000)}
    page.get_by_label("A picture of your receipt").set_input_files(large)  # type: ignore[arg-type]
    press(page, "Send the report")
    assert page.evaluate("document.querySelector('#picture').validationMessage") == (
        "That picture is larger than 5 MB."
    )
    heading(page, "What went wrong?")

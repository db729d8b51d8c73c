"""A merchant's first day in browsers: from the operator's form to the first withdrawal."""

import re
import shlex
from decimal import Decimal

import requests
from playwright.sync_api import Page, expect

from tests.console.conftest import Open, Staff
from tests.console.house import House, new_email
from tests.console.passkeys import heading, press, with_passkey
from tests.console.payouts import TRON_ADDRESS, wait_is_over
from tests.e2e.market import METHOD, Customer
from tests.gateway.desk import HTTP_SECONDS, settled
from tests.support.receiver import Answer, Receiver
from tests.webhooks.house import signed_by

MONEY = re.compile(r"([0-9.]+)\s+USDT")


def run(line: str, api_key: str) -> requests.Response:
    """Sends what the printed line for the shell would."""
    words = shlex.split(line.replace("$KEY", api_key))
    (url,) = (each for each in words if each.startswith("http"))
    headers = dict(words[at + 1].split(": ") for at, each in enumerate(words) if each == "-H")
    return requests.post(url, words[words.index("-d") + 1], headers=headers, timeout=HTTP_SECONDS)


def new_merchant(desk: Page, callback_url: str) -> tuple[str, str]:
    """The id of a merchant that the operator makes and activates, and the link for its owner."""
    owner = new_email()
    desk.keyboard.press("n")
    desk.get_by_label("Name").fill("Lamps & Sons")
    desk.get_by_label("Owner’s e-mail address").fill(owner)
    desk.get_by_label("Category").select_option("standard")
    desk.get_by_label("Address for webhooks").fill(callback_url)
    desk.get_by_text("Activate at once").click()
    press(desk, "Create the merchant")
    expect(desk.get_by_role("status")).to_contain_text("The merchant is created.")
    merchant = desk.url.partition("?")[0].rpartition("/")[2]
    desk.get_by_role("link", name="Invite its owner").click()
    desk.get_by_label("Name").fill("Mary Somerville")
    press(desk, "Make the invitation")
    return merchant, desk.get_by_label("Link").input_value()


def steps(page: Page, **states: str) -> None:
    """The first steps are in these states."""
    for title, state in states.items():
        step = page.locator(".first-steps li").filter(has_text=title.replace("_", " "))
        expect(step.locator(".badge")).to_have_text(state)


def shows(page: Page, words: str) -> bool:
    """Whether the page, read again, has them."""
    page.reload()
    return page.get_by_text(words, exact=True).count() > 0


def balance(page: Page) -> Decimal:
    """What the start page says."""
    page.reload()
    found = MONEY.search(page.locator("div:has(> dt:text-is('Balance')) dd").first.inner_text())
    assert found is not None
    return Decimal(found[1])


def test_a_new_merchant_sells_is_told_and_asks_for_its_money(
    house: House, staff: Staff, open_page: Open
) -> None:
    with Receiver() as receiver:
        desk = staff.page(open_page, "admin")
        desk.goto(f"{house.desk}/merchants")
        merchant, link = new_merchant(desk, receiver.url())

        page = open_page()
        with_passkey(page, link)
        page.goto(house.dashboard)
        expect(page.locator("main")).to_contain_text("Lamps & Sons")
        steps(page, Get_activated="done", Make_an_API_key="to do", Set_the_address_for_webhooks="done")
        steps(page, Create_the_first="to do", Receive_a_webhook="to do")
        line = page.locator(".first-steps li").filter(has_text="Create the first").locator("pre").inner_text()
        assert balance(page) == 0

        house.database(
            "UPDATE sessions SET stepped_up_at = now() - interval '6 minutes' WHERE person_id IN "
            "(SELECT person_id FROM memberships WHERE merchant_id = %s)",
            merchant,
        )
        page.get_by_role("link", name="Make a key").click()
        page.get_by_label("Name").fill("shop")
        press(page, "Make a key")
        heading(page, "Confirm that it is you")
        press(page, "Use a passkey")
        api_key, secret = (page.get_by_label(name).input_value() for name in ("API key", "Signing secret"))

        made = run(line, api_key)
        assert made.status_code == 201, made.text
        page.goto(house.dashboard)
        steps(page, Make_an_API_key="done", Create_the_first="done", Receive_a_webhook="to do")

        customer = Customer(made.json()["payment_link"])
        assert "Lamps &amp; Sons" in customer.page
        customer.choose(METHOD)
        customer.submit("I have paid")

        desk.goto(f"{house.desk}/deals?state=marked&merchant={merchant}")
        for key in ("c", "Enter"):
            desk.keyboard.press(key)
        expect(desk.locator("[data-row]")).to_have_count(0)

        (webhook,) = receiver.wait_for(1)
        assert signed_by(webhook, secret)
        settled(lambda: balance(page) > 40, "the credit")
        received = "Your server has answered 2xx to the webhook of an invoice. Send a test event with a wrong signature"
        settled(
            lambda: shows(page, f"{received}, which your server must refuse (4xx)."), "the webhook's delivery"
        )
        steps(page, Receive_a_webhook="to do")
        page.goto(f"{house.dashboard}/webhooks/test")
        for status, state in ((200, "not refused"), (401, "refused, as it must be")):
            receiver.answer(Answer(status=status))
            button = page.get_by_role("button", name="Send one with a wrong signature")
            expect(button).to_be_enabled(timeout=15_000)
            button.click()
            expect(page.locator("h2 .badge")).to_have_text(state)
            assert not signed_by(receiver.received()[-1], secret)
        page.goto(house.dashboard)
        expect(page.locator("main")).not_to_contain_text("First steps")
        receiver.answer(Answer(status=200))

        page.goto(f"{house.dashboard}/addresses")
        page.get_by_label("Address", exact=True).fill(TRON_ADDRESS)
        page.get_by_label("Name").fill("cold wallet")
        press(page, "Add the address")
        expect(page.get_by_role("status")).to_contain_text("The address is added.")
        remove = page.locator("form[action$='/remove']").get_attribute("action") or ""
        wait_is_over(house.stack, remove.split("/")[2])
        page.reload()
        page.get_by_role("link", name="Withdraw", exact=True).click()
        page.get_by_label("Amount in USDT").fill("20")
        press(page, "Look at it")
        press(page, "Request the withdrawal")
        expect(page.get_by_role("status")).to_contain_text("the operator is asked to send it")
        page.goto(house.dashboard)
        expect(page.locator("main")).to_contain_text("held for withdrawals")
        desk.goto(f"{house.desk}/withdrawals?stage=requested&merchant={merchant}")
        expect(desk.locator("[data-row]")).to_have_count(1)

"""Every page of both surfaces, as axe-core and the eye see it: light, dark, on a small phone, with large text."""

from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page

from console.page import Page as Resource
from tests.console.conftest import Open, with_cookies
from tests.console.house import House, Person, new_email, new_merchant
from tests.console.looks import looks_right
from tests.console.routes import SETTINGS, routes_of
from tests.support import axe


@pytest.fixture(scope="module")
def merchant() -> str:
    return new_merchant()


@pytest.fixture(scope="module")
def admin(house: House) -> Person:
    """An administrator with factors, two sessions and a colleague."""
    admin = house.person("admin", "auditor", name="Ada Lovelace")
    admin.add_factors()
    admin.post("/account/recovery-codes")
    Person(admin.url, admin.email, totp=admin.totp).sign_in()
    house.person("desk", "prices", name="Grace Brewster Murray Hopper")
    house.invited("viewer", email="a-very-long-address-of-a-person@subsidiary.of-a-company.example.com")
    return admin


@pytest.fixture(scope="module")
def owner(house: House, merchant: str) -> Person:
    email = new_email()
    owner = house.person("owner", merchant=merchant, email=email, name="Mary Somerville")
    owner.accept(house.invited("finance", merchant=new_merchant(), email=email))
    owner.post("/merchant", {"merchant_id": merchant})
    house.invited("developer", merchant=merchant, name="Emmy Noether")
    return owner


def colleague(admin: Person) -> str:
    page = admin.get("/people").text
    at = page.index("Grace")
    return page[page.rindex('href="', 0, at) + 6 : page.rindex('"', 0, at)]


OPEN_PAGES: Final = {"sign-in": "/sign-in", "bad-link": "/invitation?token=none"}
DESK_PAGES: Final = {
    "home": "/",
    "account": "/account",
    "sessions": "/account/sessions",
    "password": "/account/password",
    "totp-start": "/account/totp",
    "step-up": "/step-up?to=/account",
    "people": "/people?limit=10",
    "person": "/people/{person_id}",
    "invite": "/people/invite",
    "audit": "/audit?limit=10",
    "reports": "/reports",
    "balances": "/reports/balances",
    "health": "/health",
    "not-found": "/nowhere",
    "notice": "/account?notice=password-set",
    "problem": "/account?problem=last_factor",
}
DASHBOARD_PAGES: Final = {"home": "/", "merchant": "/merchant"}
ANSWERS: Final = frozenset(
    {
        "/account/totp/confirm",
        "/account/recovery-codes",
        "/live",
        "/health/fresh",
        "/deals/states",
        "/deals/{deal_id}/pictures/{kind}",
        "/links/{invoice_id}/qr.svg",
        "/links/many/{link_id}/qr.svg",
        "/settings/logos/{logo}",
        "/settings/colours/{name}",
        "/settings/preview/{colour}/{logo}",
    }
)
"""Answers to forms, which lead elsewhere as addresses, to scripts, pictures, and the payment page in a frame."""
IN_ROOMS: Final = {
    "test_merchants.py": "/merchants /merchants/new /merchants/logos/{logo} /merchants/{merchant_id} "
    "/merchants/{merchant_id}/keys /merchants/{merchant_id}/logo /merchants/{merchant_id}/people "
    "/merchants/{merchant_id}/people/invite /merchants/{merchant_id}/people/{person_id} "
    "/merchants/{merchant_id}/view /owners/{owner_id} /categories",
    "test_working_day.py": "/deals /deals/{deal_id} /cases /cases/{number} /rates /rates/{currency_code} "
    "/rates/{currency_code}/accepted",
    "test_invoices.py": "/invoices /invoices/{invoice_id} /find /deals-system",
    "test_withdrawals.py": "/withdrawals /withdrawals/new /withdrawals/{withdraw_uuid} /withdrawal-methods "
    "/withdrawal-methods/new /withdrawal-methods/{code} /merchants/{merchant_id}/statement "
    "/merchants/{merchant_id}/statement/print /approvals /approvals/{service}/{approval_id}",
    "test_corrections.py": "/corrections /corrections/new /debts",
    "test_bank.py": "/bank /bank/connectors /bank/rules /bank/days /bank/unlinked /bank/files /bank/files/{import_id} "
    "/bank/{line_id}",
    "test_bank_csv.py": "/bank/files/{import_id}/csv /bank/profiles",
    "test_refunds.py": "/refunds /refunds/new /refunds/{refund_id}",
    "test_webhooks.py": "/webhooks /webhooks/{event_id} /parked",
    "test_links.py": "/links /links/new /links/{invoice_id} /links/many /links/many/new /links/many/{link_id}",
    "test_dashboard.py": "/webhooks/test /balance /keys",
    "test_late_money.py": "/cases /cases/{number}",
    "test_statements.py": "/balance/print /balance/changes",
    "test_own_withdrawals.py": "/addresses",
    "test_settings.py": "/settings /settings/logo",
    "test_prices.py": "/currencies /currencies/{currency_code} /new-currency /methods /methods/{method_code} "
    "/methods/{method_code}/logo /method-logos/{logo} /new-method",
    "test_own_refunds.py": "/refunds /refunds/new /refunds/{refund_id}",
    "test_requisites.py": "/requisites /requisites/{requisite_id} /new-requisite /new-requisites",
}
"""By the test of their room: pages that it looks at with things on them (`looks_right`)."""
HERE: Final = Path(__file__).parent


@pytest.mark.parametrize("surface", SETTINGS)
def test_every_page_is_looked_at(surface: str) -> None:
    """Pages that both surfaces have are looked at on the desk."""
    named = [*OPEN_PAGES.values(), *DESK_PAGES.values(), *DASHBOARD_PAGES.values()]
    pages = {
        path
        for method, path, resource in routes_of(surface)
        if method == "GET" and isinstance(resource, Resource)
    }
    pages = {path for path in pages if not path.endswith(".csv")}
    looked_at = {
        path
        for file, paths in IN_ROOMS.items()
        if "looks_right(" in (HERE / file).read_text()
        for path in paths.split()
    }
    assert pages - ANSWERS - looked_at - {address.partition("?")[0] for address in named} == set()


def desk_pages(admin: Person) -> dict[str, str]:
    return DESK_PAGES | {"person": colleague(admin)}


def follow(page: Page, url: str) -> None:
    """Opens the address as a link of the page does: a notice counts only on the way from an own page."""
    with page.expect_navigation():
        page.evaluate("url => { location.href = url }", url)


def test_every_page_of_the_desk_looks_right(house: House, admin: Person, open_page: Open) -> None:
    stranger = open_page()
    for name, address in OPEN_PAGES.items():
        stranger.goto(house.desk + address)
        looks_right(stranger, f"desk-{name}")
    stranger.goto(house.invited("viewer"))
    looks_right(stranger, "desk-invitation")
    page = with_cookies(open_page(), admin)
    page.goto(house.desk)
    for name, address in desk_pages(admin).items():
        follow(page, house.desk + address)
        looks_right(page, f"desk-{name}")


def test_every_answer_to_a_form_looks_right(house: House, open_page: Open) -> None:
    """Pages without an address of their own: secrets that are shown once, and forms that come back."""
    page = with_cookies(open_page(), house.person("admin"))
    page.goto(f"{house.desk}/account/totp")
    page.get_by_role("button", name="Show the QR code").click()
    looks_right(page, "desk-totp")
    page.goto(f"{house.desk}/account")
    page.get_by_role("button", name="Make ten codes").click()
    looks_right(page, "desk-recovery-codes")
    page.goto(f"{house.desk}/people/invite")
    page.get_by_label("E-mail address").fill(new_email())
    page.get_by_label("Name").fill("Grace Hopper")
    page.get_by_role("button", name="Make the invitation").click()
    looks_right(page, "desk-invite-again")
    page.get_by_label("desk deals, cases, requisites").check()
    page.get_by_role("button", name="Make the invitation").click()
    looks_right(page, "desk-invited")


def test_every_page_of_the_dashboard_looks_right(house: House, owner: Person, open_page: Open) -> None:
    page = with_cookies(open_page(), owner)
    for name, address in DASHBOARD_PAGES.items():
        page.goto(house.dashboard + address)
        looks_right(page, f"dashboard-{name}")


def test_faults_are_found(open_page: Open) -> None:
    page = open_page()
    page.set_content("<img><p style='color: #aaa; background: #bbb'>Grey on grey</p>")
    assert {"image-alt", "color-contrast"} <= {each["id"] for each in axe.violations(page)}
    assert {each["id"] for each in axe.violations(page, axe.CONTRAST)} == {"color-contrast"}


def test_the_focus_is_seen_and_goes_to_the_content_first(
    house: House, admin: Person, open_page: Open
) -> None:
    page = with_cookies(open_page(), admin)
    page.goto(house.desk)
    page.keyboard.press("Tab")
    focused = page.evaluate("document.activeElement.textContent")
    assert focused == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineWidth") == "3px"

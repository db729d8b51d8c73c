"""A member of two merchants, a window for each: a form acts for the merchant that it was shown for, or not at all."""

import re

import pytest

from console.page import Page
from tests.console.conftest import Open, with_cookies
from tests.console.house import House, Person, new_email, text_of, title_of
from tests.console.looks import looks_right
from tests.console.routes import address_of, routes_of

STAYS = "Nothing was done"


def created(house: House, name: str) -> str:
    merchant_id: str = house.stack.cli("merchants", "create", name, "--owner", new_email())["merchant_id"]
    return merchant_id


@pytest.fixture(scope="module")
def merchants(house: House) -> tuple[str, str]:
    return created(house, "Lamps of A"), created(house, "Chairs of B")


@pytest.fixture(scope="module")
def member(house: House, merchants: tuple[str, str]) -> Person:
    email, (first, second) = new_email(), merchants
    member = house.person("owner", merchant=first, email=email)
    member.accept(house.invited("owner", merchant=second, email=email))
    member.post("/merchant", {"merchant_id": second})
    house.step_up(member)
    return member


def acts(house: House, merchant_id: str) -> list[str]:
    listed = house.stack.cli("audit", "--merchant", merchant_id, "--limit", "1000")
    return [each["act_id"] for each in listed if each["actor"]["surface"] == "dashboard"]


def test_every_form_of_another_merchant_is_refused_and_nothing_is_done(
    house: House, member: Person, merchants: tuple[str, str]
) -> None:
    first, second = merchants
    before = [acts(house, each) for each in merchants]
    tried = 0
    for method, path, resource in routes_of("dashboard"):
        if method != "POST" or not isinstance(resource, Page):
            continue
        if not (resource.needs_session and resource.needs_merchant):
            continue
        for fields in ({"for_merchant": first}, {"for_merchant": [first, second]}, {"for_merchant": ""}):
            answer = member.post(address_of(path), fields)
            assert (answer.status_code, title_of(answer)) == (409, STAYS), (path, fields)
        tried += 1
    assert tried >= 15
    answer = member.http.post(f"{member.url}/keys", timeout=15)
    assert (answer.status_code, title_of(answer)) == (409, STAYS), "a form without the field"
    assert [acts(house, each) for each in merchants] == before
    assert "No keys yet." in text_of(member.get("/keys"))


def test_every_form_that_is_shown_names_its_merchant(
    house: House, member: Person, merchants: tuple[str, str]
) -> None:
    _, second = merchants
    member.post("/merchant", {"merchant_id": second})
    seen = 0
    for method, path, resource in routes_of("dashboard"):
        if method != "GET" or "{" in path or not isinstance(resource, Page) or not resource.needs_merchant:
            continue
        page = member.get(path)
        if not resource.needs_session or "text/html" not in page.headers["Content-Type"]:
            continue
        if page.status_code == 404:  # a form for an invoice, whose address names none
            continue
        for form in re.findall(r'<form [^>]*method="post".*?</form>', page.text, re.DOTALL):
            assert form.count(f'name="for_merchant" value="{second}"') == 1, (path, form)
            seen += 1
    assert seen > 20
    alone = house.person("owner", merchant=second)
    header = text_of(alone.get("/keys")).partition("Sign out")[0]
    assert "Chairs of B" not in header, "who has one merchant needs no name"


def test_the_page_says_which_merchant_is_chosen_and_leads_back(
    member: Person, merchants: tuple[str, str], open_page: Open
) -> None:
    """In a browser: the form of the first merchant is still open when the second one is chosen in another window."""
    first, second = merchants
    member.post("/merchant", {"merchant_id": first})
    form = with_cookies(open_page(), member)
    form.goto(f"{member.url}/keys")
    assert form.locator("header").get_by_text("Lamps of A").count() == 1
    form.get_by_label("Name").fill("window of A")
    other = form.context.new_page()
    other.goto(f"{member.url}/merchant")
    other.get_by_role("button", name="Chairs of B").click()
    assert other.locator("header").get_by_text("Chairs of B").count() == 1
    looks_right(other, "dashboard-of-two")
    form.get_by_role("button", name="Make a key").click()
    refusal = form.get_by_role("alert")
    refusal.get_by_text("This form was opened for Lamps of A. Now you act for Chairs of B").wait_for()
    for merchant in merchants:
        member.post("/merchant", {"merchant_id": merchant})
        assert "No keys yet." in text_of(member.get("/keys"))
    form.get_by_role("button", name="Act for Lamps of A").click()
    form.goto(f"{member.url}/keys")
    form.get_by_label("Name").fill("window of A")
    form.get_by_role("button", name="Make a key").click()
    form.get_by_label("API key").wait_for()
    assert "window of A" in member.get("/keys").text
    member.post("/merchant", {"merchant_id": second})
    assert "window of A" not in member.get("/keys").text

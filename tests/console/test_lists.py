"""Lists show their filters and remove them, take merchants by name, and have keys."""

import re
from html import unescape
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from deploy.local.waiting import wait_until
from tests.console.conftest import Open, Staff
from tests.console.house import House, Person, new_email


@pytest.fixture(scope="module")
def admin(staff: Staff) -> Person:
    return staff("admin")


@pytest.fixture(scope="module")
def merchants(house: House) -> dict[str, str]:
    """Two merchants with names that begin alike: name -> id."""
    word = f"Lantern{uuid4().hex[:8]}"
    names = [f"{word} North", f"{word} South"]
    create = house.stack.cli
    return {
        name: create("merchants", "create", name, "--owner", new_email())["merchant_id"] for name in names
    }


def chips(page: str) -> dict[str, str]:
    """The filters above the list, with the address without each."""
    found = re.findall(r'<li>([\w ]+): <strong>.*?</strong> <a href="([^"]+)"', page)
    return {label: unescape(without) for label, without in found}


def test_what_is_filtered_is_shown_and_removed_one_by_one(admin: Person) -> None:
    page = admin.get("/audit?author=nobody@example.com&act=person&since=2026-01-01&limit=20").text
    assert chips(page).keys() == {"Author", "Act", "From day"}
    without = admin.get(chips(page)["Author"])
    assert chips(without.text).keys() == {"Act", "From day"}
    assert "limit=20" in without.url
    cleared = unescape(re.findall(r'<a href="([^"]+)">Clear all</a>', page)[0])
    assert cleared == "/audit?limit=20"
    assert chips(admin.get(cleared).text) == {}


def test_a_merchant_is_found_by_name_and_by_the_beginning_of_the_id(
    admin: Person, merchants: dict[str, str]
) -> None:
    north, merchant_id = next(iter(merchants.items()))
    for text in (north, merchant_id, merchant_id[:18]):
        rows = admin.get("/audit.csv", params={"merchant": text}).text
        assert merchant_id in rows, text
        assert not [other for other in merchants.values() if other != merchant_id and other in rows]


def test_a_name_of_several_merchants_is_refused_with_their_names(
    admin: Person, merchants: dict[str, str]
) -> None:
    answer = admin.get("/audit", params={"merchant": next(iter(merchants)).partition(" ")[0]})
    assert answer.status_code == 422
    fault = answer.text.partition('id="merchant-error" role="alert">')[2].partition("</p>")[0]
    assert all(name in fault for name in merchants)
    assert "no merchant" in admin.get("/audit?merchant=Nobody%20At%20All").text.lower()


def test_the_number_of_rows_of_a_page_is_in_its_address(admin: Person) -> None:
    for number in range(12):
        admin.post("/people/invite", {"email": new_email(), "name": f"P{number}", "role:viewer": "on"})
    query = {"limit": "10", "author": admin.email}
    page, seen = admin.get("/audit", params=query).text, 10
    assert page.count("<li data-row>") == 10
    while following := re.findall(r'rel="next" href="([^"]+)"', page):
        assert "limit=10" in following[0]
        page = admin.get(unescape(following[0])).text
        seen += page.count("<li data-row>")
    assert seen == len(admin.get("/audit.csv", params=query).text.splitlines()) - 1, "no gap, and none twice"
    assert admin.get("/audit?after=x").status_code == 422


# -- keys


@pytest.fixture
def people(house: House, staff: Staff, open_page: Open) -> Page:
    house.person("viewer", name="Grace Hopper")
    page = staff.page(open_page, "admin")
    page.goto(f"{house.desk}/people")
    return page


def selected(page: Page) -> int:
    """The number of the selected row, from 0; -1: none."""
    number: int = page.evaluate(
        "[...document.querySelectorAll('[data-row]')].findIndex((each) => each.matches('.is-selected'))"
    )
    return number


def test_keys_move_over_rows_and_enter_opens_one(people: Page) -> None:
    for key, row in (("j", 0), ("j", 1), ("k", 0), ("k", 0)):
        people.keyboard.press(key)
        assert selected(people) == row
    people.keyboard.press("Enter")
    people.wait_for_url(re.compile("/people/[0-9a-f-]{36}$"))


def test_the_help_lists_the_keys_of_the_page_and_switches_them_off(people: Page) -> None:
    people.keyboard.press("?")
    dialog = people.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_contain_text("next and previous row")
    expect(dialog).to_contain_text("Invite a person")
    dialog.get_by_label("Single keys work in this browser").uncheck()
    dialog.get_by_role("button", name="Close").click()
    people.reload()
    people.keyboard.press("j")
    assert selected(people) == -1
    people.keyboard.press("?")
    people.get_by_label("Single keys work in this browser").check()
    people.keyboard.press("Escape")
    expect(dialog).to_have_count(0)

    def select_by_key() -> bool:
        people.keyboard.press("j")
        return selected(people) >= 0

    # The page gets the focus a moment after the dialog has gone.
    wait_until(select_by_key, "a row to be selected by its key", timeout_seconds=10, every_seconds=0.2)


def test_a_key_of_a_button_presses_it_and_none_does_while_a_person_types(people: Page) -> None:
    people.keyboard.press("n")
    people.wait_for_url(re.compile("/people/invite$"))
    people.get_by_label("Name").press_sequentially("jn?/")
    expect(people.get_by_label("Name")).to_have_value("jn?/")

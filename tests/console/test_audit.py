"""The acts of all services in one list, by people without scripts: filters, pages, CSV, the own merchant only."""

import re

import pytest
from playwright.sync_api import expect

from deploy.local.waiting import wait_until
from kit.base.ids import new_id
from tests.console.conftest import Open
from tests.console.house import House, Person, new_email, title_of


@pytest.fixture(scope="module")
def admin(house: House) -> Person:
    return house.person("admin")


@pytest.fixture(scope="module")
def merchant(house: House) -> str:
    """A merchant with acts: its own, and its members'."""
    created = house.stack.cli("merchants", "create", "Lamp shop", "--owner", new_email())
    merchant_id: str = created["merchant_id"]
    house.stack.cli("merchants", "ban", merchant_id)
    return merchant_id


def acts_of(page: str) -> list[str]:
    """The names of acts, as shown."""
    return re.findall(r"act <code>([a-z_.]+)</code>", page)


def test_an_act_is_shown_with_its_author_object_and_change(admin: Person) -> None:
    email = new_email()
    admin.post("/people/invite", {"email": email, "name": "Grace Hopper", "role:desk": "on"})
    page = admin.get("/audit", params={"author": admin.email, "act": "person.invite"}).text
    assert acts_of(page) == ["person.invite"]
    assert admin.email in page
    assert email in page
    assert "service identity, author person at desk" in page
    assert re.search(r"</strong>\s*<bdi>invited a person</bdi>", page), (
        "a sentence that begins with the author"
    )


def test_acts_of_all_services_are_one_list_by_time(house: House, admin: Person, merchant: str) -> None:
    house.person("owner", merchant=merchant)
    rows = admin.rows("/audit.csv")
    assert {"identity", "catalog"} <= {row["service"] for row in rows}
    times = [row["at"] for row in rows]
    assert times == sorted(times, reverse=True)
    assert [row["id"] for row in rows] == sorted((row["id"] for row in rows), reverse=True)


def test_each_filter_leaves_only_what_it_names(admin: Person, merchant: str) -> None:
    by_act = admin.rows("/audit.csv", act="merchant")
    assert by_act and {row["act"].partition(".")[0] for row in by_act} == {"merchant"}
    by_object = admin.rows("/audit.csv", object=f"merchant:{merchant}")
    assert by_object and {row["object"] for row in by_object} == {f"merchant:{merchant}"}
    assert admin.rows("/audit.csv", until="2020-01-01") == []
    assert admin.rows("/audit.csv", since="2999-01-01") == []
    assert admin.rows("/audit.csv", since="2020-01-01", merchant=merchant)


@pytest.mark.parametrize(
    "query", ["merchant=none", "since=yesterday", "until=2026-13-01", f"merchant={'a' * 300}"]
)
def test_a_filter_with_a_fault_is_named(admin: Person, query: str) -> None:
    answer = admin.get(f"/audit?{query}")
    assert (answer.status_code, title_of(answer)) == (422, "Audit")
    assert 'role="alert"' in answer.text
    assert admin.get(f"/audit.csv?{query}").status_code == 400


def test_a_cell_that_a_spreadsheet_would_compute_is_text(admin: Person) -> None:
    admin.post("/people/invite", {"email": new_email(), "name": "=1+1", "role:viewer": "on"})
    assert "\r\n=" not in admin.get("/audit.csv", params={"author": admin.email}).text
    cells = [cell for row in admin.rows("/audit.csv", author=admin.email) for cell in row.values()]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]


def test_a_service_that_is_away_is_named_and_its_acts_are_not_left_out_of_a_file(
    house: House, admin: Person
) -> None:
    with house.stack.without("webhooks"):
        page = admin.get("/audit")
        assert page.status_code == 200
        assert "webhooks does not answer" in page.text
        assert admin.get("/audit.csv").status_code == 503


def test_an_owner_learns_no_operator_of_an_act(house: House, merchant: str) -> None:
    house.stack.cli("merchants", "unban", merchant)
    owner = house.person("owner", merchant=merchant)
    rows = owner.rows("/audit.csv")
    (unban,) = [row for row in rows if row["act"] == "merchant.unban"]
    hidden = ("author_kind", "author", "on_behalf_of", "surface", "note", "session_id", "request_id")
    assert [unban[each] for each in hidden] == ["operator", "the operator", "", "", "", "", ""]
    page = owner.get("/audit").text
    assert "the operator" in page
    assert "eve@laptop" not in page + owner.get("/audit.csv").text
    assert owner.rows("/audit.csv", author="eve@laptop") == []
    assert owner.email in {row["author"] for row in rows}  # members see each other


def test_a_refused_attempt_is_an_act(house: House, admin: Person) -> None:
    person = house.person("desk")

    def recorded() -> bool:
        """A service writes ten refusals a second at most; other tests may have used them up."""
        assert person.post(f"/people/{new_id()}/disable").status_code == 403
        page = admin.get("/audit", params={"author": person.email}).text
        return "refused: NOT_PERMITTED" in page

    wait_until(recorded, "the act", timeout_seconds=10)


def test_in_the_browser_a_filter_becomes_an_address(house: House, open_page: Open) -> None:
    page = open_page(scripts=False)
    page.goto(house.invited("auditor"))
    page.get_by_role("button", name="Accept and sign in").click()
    page.get_by_role("link", name="Audit", exact=True).click()
    page.get_by_label("Act", exact=True).fill("person")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_label("Act", exact=True)).to_have_value("person")
    assert "act=person" in page.url
    shown = page.locator(".acts details p").all_text_contents()
    assert shown and all(each.strip().startswith("act person.") for each in shown)
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "acts.csv"

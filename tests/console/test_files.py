"""The files of pages: what each table has, however long it is, and nothing that only looks complete."""

import asyncio
import csv
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import NO_NAMES
from console.ui.file_turns import CALLS_AT_A_TIME, FILES_OF_ONE, FileTurns
from kit.rpc.errors import Refused
from tests.console.conftest import Staff
from tests.console.house import House, Person, new_email, title_of
from tests.console.routes import apart
from tests.e2e.market import Shop

CALLS = 2500


class Numbers(ListPage):
    """A list of the numbers below CALLS, one for each call. `names` are missing from the call at `without_names`."""

    without_names = CALLS
    stops_at = CALLS

    async def rows(self, req: Request, asked: Asked) -> Found:
        number = int(asked.after or 0)
        names = NO_NAMES if number == self.without_names else {}
        after = str(min(number + 1, self.stops_at)) if number + 1 < CALLS else ""
        return Found([number], after, values={"names": names})

    def cells(self, row: int, found: Found) -> list[str]:
        return [str(row)]


def lines_of(page: ListPage) -> list[str]:
    async def read() -> list[str]:
        return [cell async for lines in page.lines(cast("Request", None)) for (cell,) in lines]

    return apart(read())


def numbers(kind: type[Numbers] = Numbers) -> Numbers:
    deps = SimpleNamespace(surface=SimpleNamespace(has_merchants=False), files=FileTurns())
    return kind(cast("Any", deps))


def test_a_file_ends_with_its_list_however_many_calls_it_takes() -> None:
    assert lines_of(numbers()) == [str(number) for number in range(CALLS)]


def of_person(page: ListPage, person: str) -> AsyncGenerator[Any]:
    signed_in = SimpleNamespace(person=SimpleNamespace(person_id=person), merchant_id="")
    req = SimpleNamespace(exchange=SimpleNamespace(signed_in=signed_in))
    return page._in_turns(cast("Request", req), page.lines(cast("Request", None)))


def test_a_person_has_two_files_at_once_and_colleagues_have_theirs() -> None:
    async def sent() -> None:
        page = numbers()
        opened = [of_person(page, "ada") for _ in range(FILES_OF_ONE)]
        for each in opened:
            await anext(each)
        with pytest.raises(Refused, match="RATE_LIMITED"):
            await anext(of_person(page, "ada"))
        await anext(of_person(page, "ben"))
        await opened.pop().aclose()
        assert await anext(of_person(page, "ada")) == [["0"]]

    apart(sent())


class Counted(Numbers):
    """Fails when more calls are under way than may be."""

    under_way = 0

    async def rows(self, req: Request, asked: Asked) -> Found:
        self.under_way += 1
        assert self.under_way <= CALLS_AT_A_TIME
        await asyncio.sleep(0)
        self.under_way -= 1
        return await super().rows(req, asked)


def test_the_calls_of_all_files_take_turns() -> None:
    page = numbers(Counted)
    parts: list[str] = []

    async def read(person: str) -> None:
        file = of_person(page, person)
        for _ in range(6):
            await anext(file)
            parts.append(person)

    async def sent() -> None:
        await asyncio.gather(*(read(person) for person in ("ada", "ada", "ben")))

    apart(sent())
    assert parts[:3].count("ben") == parts[3:6].count("ben") == 1


def test_a_file_breaks_off_without_the_names_of_its_merchants() -> None:
    page = numbers()
    page.without_names = 3
    with pytest.raises(Refused, match="DB_UNAVAILABLE"):
        lines_of(page)


def test_a_file_breaks_off_when_a_service_ignores_the_place_of_a_page() -> None:
    page = numbers()
    page.stops_at = 3
    with pytest.raises(RuntimeError, match="does not move on"):
        lines_of(page)


@pytest.fixture(scope="module")
def shop(house: House) -> Shop:
    return Shop.opened(house.stack)


def rows_of(person: Person, path: str) -> list[dict[str, str]]:
    answer = person.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Disposition"].startswith("attachment")
    return list(csv.DictReader(answer.text.splitlines()))


def test_tables_without_filters_have_files_too(staff: Staff, house: House, shop: Shop) -> None:
    admin = staff("admin")
    rates = {row["currency"]: row for row in rows_of(admin, "/rates.csv")}
    assert rates["EUR"]["rate"]
    assert rates["EUR"]["state"] in admin.get("/rates").text
    assert {"code", "commission"} <= rows_of(admin, "/categories.csv")[0].keys()
    merchant = f"/merchants/{shop.merchant_id}"
    (key,) = rows_of(admin, f"{merchant}/keys.csv")
    assert (key["state"], key["deactivated_at"]) == ("active", "")
    assert key["begins_with"] in admin.get(f"{merchant}/keys").text
    offered = rows_of(admin, f"{merchant}/view.csv")
    assert {row["offered"] for row in offered} <= {"yes", "no"}
    assert all(bool(row["obstacles"]) == (row["offered"] == "no") for row in offered)


def test_the_file_of_members_has_members_and_open_invitations(staff: Staff, house: House, shop: Shop) -> None:
    member = house.person("finance", merchant=shop.merchant_id)
    invited = new_email()
    house.invited("viewer", merchant=shop.merchant_id, email=invited)
    path = f"/merchants/{shop.merchant_id}/people.csv"
    rows = {row["email"]: row for row in rows_of(staff("auditor"), path)}
    assert (rows[member.email]["roles"], rows[member.email]["state"]) == ("finance", "without factors")
    assert (rows[invited]["roles"], rows[invited]["state"]) == ("viewer", "invited")
    assert rows[invited]["invited_until"]
    assert title_of(staff("desk").get(path)) == "Not permitted"


def test_the_file_of_a_search_has_its_hits_also_a_single_one(staff: Staff, shop: Shop) -> None:
    invoice = shop.create("http://127.0.0.1:9/").id
    (row,) = rows_of(staff("desk"), f"/find.csv?q={invoice}")
    assert (row["kind"], row["id"], row["merchant_id"]) == ("invoice", invoice, shop.merchant_id)
    assert row["merchant"]
    assert rows_of(staff("desk"), "/find.csv?q=") == []

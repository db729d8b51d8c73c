"""No value of a query, a form or an address makes a fault of ours: every field of every address of both surfaces."""

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any, Final

import pytest

from console.page import Page
from tests.console.house import HTTP_SECONDS, House, Person, new_merchant
from tests.console.routes import SETTINGS, address_of, fields_read, routes_of

VALUES: Final = (
    "%00",
    "x%00%0d%0ay",
    "%ff%fe",  # no UTF-8
    "%ed%a0%80",  # half a surrogate pair
    "%ef%bf%bf%e2%80%ae",
    "-1",
    "9" * 40,
    "NaN",
    "%5B%7B" * 300,
    "a" * 3000,
)
"""As they stand in an address."""
OF_LISTS: Final = {
    "month": ("month=0001-01", "month=9999-12", "month=1999-12"),
    "since": (
        "since=0001-01-01&until=0001-01-01",
        "since=9999-12-31&until=9999-12-31",
        "since=0001-01-01&until=9999-12-31",
        "since=2026-02-30&until=2026-W53-7&limit=-1",
    ),
    "after": ("after=0001-01-01", f"after={'0' * 8}-0000-0000-0000-{'0' * 12}&limit=99999"),
}
"""By a field that a list has: bounds of time, and places that no list has."""
UNTRIED: Final = ("/sign-out", "/deals-system")
"""The first ends the session, the second switches new payments of the whole stack off."""
STRANGERS: Final = ("/sign-in", "/invitation", "/step-up", "/people", "/audit")
"""Their fields get all values; those of the other pages take turns, because they share the checks."""

Try = tuple[str, str, str]
"""Method, address, body."""


def pages(surface: str, method: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the addresses that answer the method, with the fields that their code reads; of files the longest one."""
    for allowed, path, resource in routes_of(surface):
        is_tried = path not in UNTRIED and (not path.endswith(".csv") or path == "/audit.csv")
        if allowed == method and isinstance(resource, Page) and is_tried:
            yield path, sorted(fields_read(resource, method))


def turns() -> Callable[[int], list[str]]:
    """`take(3)`: the next three values."""
    values = cycle(VALUES)
    return lambda number: list(islice(values, number))


def queries(surface: str) -> Iterator[Try]:
    take = turns()
    for path, fields in pages(surface, "GET"):
        for name in fields:
            values = VALUES if path.startswith(STRANGERS) else take(1)
            for query in (*OF_LISTS.get(name, ()), *(f"{name}={each}" for each in values)):
                yield "GET", f"{address_of(path)}?{query}", ""
    for value in VALUES:
        yield "GET", f"/?notice={value}&problem={value}&asked={value}", ""


def addresses(surface: str) -> Iterator[Try]:
    take = turns()
    for method, number in (("GET", 2), ("POST", 1)):
        for path, _ in pages(surface, method):
            for value in take(number if "{" in path else 0):
                yield method, address_of(path, value), ""


def forms(surface: str) -> Iterator[Try]:
    take = turns()
    for path, fields in pages(surface, "POST"):
        for value in VALUES if path.startswith(STRANGERS) else take(2):
            yield "POST", address_of(path), "&".join(f"{name}={value}" for name in fields)
        for name in fields:
            yield "POST", address_of(path), f"{name}=%00"


@pytest.mark.parametrize("surface", SETTINGS)
@pytest.mark.parametrize("tries", [queries, addresses, forms])
def test_no_value_is_a_fault_of_ours(
    house: House, surface: str, tries: Callable[[str], Iterator[Try]]
) -> None:
    merchant = "" if surface == "desk" else new_merchant()
    person = house.person("owner" if merchant else "admin", merchant=merchant)
    faults = [each for each in (fault_of(person, *each) for each in tries(surface)) if each]
    assert faults == []
    assert len([*tries(surface)]) > 25


def fault_of(person: Person, method: str, address: str, body: str) -> str:
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    options: dict[str, Any] = {"data": body} if method == "POST" else {}
    answer = person.http.request(
        method,
        person.url + address,
        headers=headers,
        timeout=HTTP_SECONDS,
        allow_redirects=False,
        **options,
    )
    is_signed_out = "/sign-in?" in answer.headers.get("Location", "")
    is_fault = answer.status_code >= 500 or answer.status_code == 429 or is_signed_out
    return f"{answer.status_code} {method} {address[:120]} {body[:120]}" if is_fault else ""


def test_a_month_without_a_statement_is_refused_with_the_reason(house: House) -> None:
    owner = house.person("owner", merchant=new_merchant())
    for query, why in zip(
        OF_LISTS["month"], ("year 2000 or later", "has not begun", "year 2000"), strict=True
    ):
        refused = owner.get(f"/balance?{query}")
        assert (refused.status_code, why in refused.text) == (422, True), query
        for file in ("/balance/print", "/balance.csv"):
            assert owner.get(f"{file}?{query}").status_code == 400, query

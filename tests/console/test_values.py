"""No value of a query, of a form or of an address makes a fault of ours: every field of every address of both surfaces.

Addresses are read from the routes and fields from the code, so a new one can't be forgotten.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from itertools import cycle, islice, product
from typing import Any, Final

import pytest

from console.list_page import ListPage
from console.page import Page
from tests.console.house import HTTP_SECONDS, House, Person, new_merchant
from tests.console.test_requests import routes_of

ID: Final = "00000000-0000-7000-8000-000000000000"
VALUES: Final = (
    "%00",
    "x%00%0d%0ay",
    "%ff%fe",  # no UTF-8
    "%ed%a0%80",  # half a surrogate pair
    "%ef%bf%bf%e2%80%ae",
    "0001-01-01",
    "9999-12-31",
    "-1",
    "9" * 40,
    "NaN",
    "%5B%7B" * 300,
    "a" * 3000,
)
"""As they stand in an address."""
YEARS: Final = ("0001", "9999")
"""The years of the days among the values. No form has a day, so forms are tried without these."""
UNTRIED: Final = ("/sign-out", "/deals-system")
"""The first ends the session, the second switches new payments of the whole stack off."""
FIELD: Final = re.compile(r'(?:get_param|\.text|\.prose|\.line)\("(\w+)"').findall


class Tried:
    """The answers to a person's requests; keeps those that are faults."""

    def __init__(self, person: Person) -> None:
        self._person = person
        self.answered = 0
        self.faults: list[str] = []

    def request(self, method: str, path: str, **options: Any) -> None:
        headers = {"Sec-Fetch-Site": "same-origin", **options.pop("headers", {})}
        answer = self._person.http.request(
            method,
            self._person.url + path,
            headers=headers,
            timeout=HTTP_SECONDS,
            allow_redirects=False,
            **options,
        )
        self.answered += 1
        if answer.status_code >= 500 or (
            "Location" in answer.headers and "/sign-in?" in answer.headers["Location"]
        ):
            self.faults.append(
                f"{answer.status_code} {method} {path[:120]} {options.get('data', b'')[:120]!r}"
            )


@pytest.fixture(scope="module", params=["desk", "dashboard"])
def surface(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tried(surface: str, house: House) -> Tried:
    merchant = "" if surface == "desk" else new_merchant()
    return Tried(house.person("owner" if merchant else "admin", merchant=merchant))


def pages(surface: str, method: str) -> list[tuple[str, list[str]]]:
    """The addresses that answer the method, with the fields that their code reads."""
    found = []
    for allowed, path, resource in routes_of(surface):
        if allowed != method or not isinstance(resource, Page) or path in UNTRIED:
            continue
        fields = set(FIELD(inspect.getsource(inspect.getmodule(type(resource)) or Page)))
        if isinstance(resource, ListPage):
            fields |= {each.name for each in resource.filters} | {"after", "limit"}
        found.append((path, sorted(fields)))
    return found


def address(path: str, value: str = ID) -> str:
    return re.sub(r"{\w+}", value, path)


def turns() -> Callable[[int], list[str]]:
    """`take(3)`: the next three values. Fields and addresses share the checks, so each gets some of them."""
    values = cycle(VALUES)
    return lambda number: list(islice(values, number))


def test_no_value_of_a_query_is_a_fault_of_ours(surface: str, tried: Tried) -> None:
    take = turns()
    for path, fields in pages(surface, "GET"):
        if path.endswith(".csv") and path != "/audit.csv":  # a file has the address of its list
            continue
        everywhere = path in ("/audit", "/sign-in", "/invitation")
        for name in fields:
            for value in VALUES if everywhere else take(1):
                tried.request("GET", f"{address(path)}?{name}={value}")
    for name, value in product(("notice", "problem", "asked"), VALUES):
        tried.request("GET", f"/?{name}={value}")
    assert tried.faults == []
    assert tried.answered > 200


def test_no_value_in_an_address_is_a_fault_of_ours(surface: str, tried: Tried) -> None:
    take = turns()
    for method in ("GET", "POST"):
        for path, _ in pages(surface, method):
            if "{" in path:
                for value in take(3):
                    tried.request(method, address(path, value))
    assert tried.faults == []
    assert tried.answered > 30


def test_no_value_of_a_form_is_a_fault_of_ours(surface: str, tried: Tried) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    take = turns()
    for path, fields in pages(surface, "POST"):
        everywhere = path.startswith(("/sign-in", "/invitation", "/people", "/step-up"))
        values = [each for each in (VALUES if everywhere else take(2)) if each[:4] not in YEARS]
        bodies = ["&".join(f"{name}={value}" for name in fields) for value in values]
        bodies += [f"{name}=%00" for name in fields]
        for body in bodies:
            tried.request("POST", address(path), data=body, headers=headers)
    assert tried.faults == []
    assert tried.answered > 200

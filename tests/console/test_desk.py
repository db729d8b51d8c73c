"""The start page of the desk: what waits, and its live updates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
import requests

from tests.console.conftest import Staff
from tests.console.house import HTTP_SECONDS, House, Person
from tests.e2e.market import Customer, Shop


@pytest.fixture(scope="module")
def shop(house: House) -> Shop:
    return Shop.opened(house.stack)


def marked(shop: Shop) -> Customer:
    """A customer who says that the money is sent: it waits for the operator."""
    customer = Customer(shop.create("https://shop.example/hook").created["payment_link"])
    customer.choose_and_pay()
    return customer


@contextmanager
def listening(person: Person) -> Iterator[Iterator[dict[str, Any]]]:
    """The states that an open page receives."""
    answer = person.get("/live", stream=True)
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.headers["X-Accel-Buffering"] == "no", (
        "a proxy that collects the answer would hold updates back"
    )

    def states() -> Iterator[dict[str, Any]]:
        for line in answer.iter_lines():
            if line.startswith(b"data:"):
                yield json.loads(line.removeprefix(b"data:"))

    with closing(answer):
        yield states()


def test_a_page_that_stays_open_learns_of_each_change(staff: Staff, shop: Shop) -> None:
    with listening(staff("desk")) as one, listening(staff("viewer")) as other:
        before = next(one)
        assert before["away"] == []
        assert next(other)["queues"].keys() == before["queues"].keys()
        marked(shop)
        for states in (one, other):
            after = next(each for each in states if each["queues"] != before["queues"])
            was, now = (each["queues"]["deals_marked"] for each in (before, after))
            assert now["count"] == was["count"] + 1
            assert now["newest"] > (was["newest"] or "")


def test_an_open_page_does_not_keep_its_session_alive(house: House) -> None:
    """The live updates connect anew all day; the person may be away."""
    person = house.person("viewer")
    away = "UPDATE sessions SET last_seen_at = now() - interval '29 minutes' WHERE person_id = "
    house.database(f"{away} (SELECT id FROM people WHERE email = %s)", person.email)
    with listening(person) as states:
        assert next(states)["queues"]
    house.database(
        "UPDATE sessions SET last_seen_at = last_seen_at - interval '1 minute 1 second' WHERE person_id = "
        "(SELECT id FROM people WHERE email = %s)",
        person.email,
    )
    ended = requests.get(f"{person.url}/live", cookies=person.http.cookies, timeout=HTTP_SECONDS)
    assert (ended.status_code, ended.content) == (204, b"")

"""The start page of the desk: what waits, and its live updates."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import expect

from console.desk.queues import KINDS, Row, rows_of
from fiatgate.queues.v1 import queues_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.ids import new_id
from kit.base.proto import timestamp_from
from kit.base.services import SERVICES
from tests.console.conftest import Open, Staff
from tests.console.house import HTTP_SECONDS, House, Person
from tests.console.looks import looks_right
from tests.console.second import hanging, just_started, second_console
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
    assert person.get("/deals/states?state=marked&ids=").json() == {"gone": {}}
    house.database(
        "UPDATE sessions SET last_seen_at = last_seen_at - interval '1 minute 1 second' WHERE person_id = "
        "(SELECT id FROM people WHERE email = %s)",
        person.email,
    )
    ended = requests.get(f"{person.url}/live", cookies=person.http.cookies, timeout=HTTP_SECONDS)
    assert (ended.status_code, ended.content) == (204, b"")


def test_the_start_page_shows_what_waits_and_first_what_the_person_can_do(
    staff: Staff, shop: Shop, open_page: Open
) -> None:
    marked(shop)
    page = staff.page(open_page, "desk")
    page.goto(f"{staff('desk').url}/")
    row = page.locator(".queue", has_text="Deals marked paid")
    count = int(row.locator("[data-count]").inner_text())
    assert count > 0
    expect(row.locator("time")).to_have_attribute("datetime", re.compile(r"\dZ$"))
    expect(row).not_to_have_class(re.compile("is-quiet"))
    marked(shop)
    expect(row.locator("[data-count]")).to_have_text(str(count + 1))
    expect(page.locator(".figures")).to_contain_text(
        re.compile(r"Payments confirmed\s*\d+\s*of \d+ invoices")
    )
    looks_right(page, "desk-now")
    page = staff.page(open_page, "prices", scripts=False)
    page.goto(f"{staff('prices').url}/")
    expect(page.locator("h2", has_text="For others")).to_be_visible()
    expect(page.locator(".queue", has_text="Deals marked paid")).to_have_class(re.compile("is-quiet"))


def test_where_nothing_waits_the_page_says_so_and_what_is_overdue_stands_out() -> None:
    now = SystemClock().now()

    def rows(**ages: timedelta) -> list[Row]:
        queues = [
            pb.Queue(name=name, count=2, oldest_at=timestamp_from(now - age)) for name, age in ages.items()
        ]
        return rows_of(queues, now=now, may=lambda *roles: "desk" in roles)

    assert [row.count for row in rows()] == [0] * len(KINDS)
    found = rows(
        rates_held=timedelta(hours=1), deals_marked=timedelta(minutes=31), appeals=timedelta(minutes=40)
    )
    assert [(row.kind.name, row.overdue, row.mine) for row in found[:3]] == [
        ("deals_marked", True, True),
        ("appeals", False, True),
        ("rates_held", True, False),
    ]
    assert [row.kind.name for row in found if row.known] == ["deals_marked", "appeals", "rates_held"]


def test_a_queue_is_empty_only_where_all_its_services_answered() -> None:
    queues = [pb.Queue(name=each.name) for each in KINDS if not each.name.startswith("withdrawals")]
    rows = rows_of(queues, now=SystemClock().now(), may=lambda *roles: True, complete=False)
    unknown = {"withdrawals_pending", "withdrawals_processing", "approvals", "parked"}
    assert {row.kind.name for row in rows if not row.known} == unknown


def test_a_service_that_hangs_or_has_just_started_is_named_and_the_rest_is_shown(
    house: House, staff: Staff, tmp_path: Path
) -> None:
    """Catalog and withdrawals accept calls and answer none; webhooks has no key of identity yet."""
    operator = staff("admin")
    typed = {
        "merchant": str(new_id()),
        "book": "",
        "method": "1",
        "address": "T<b>ypo",
        "memo": "",
        "amount": "25",
        "reason": "",
        "request_key": str(new_id()),
        "agreed": "on",
    }
    with hanging() as hung, just_started() as fresh, ThreadPoolExecutor() as browsers:
        away = {f"FIATGATE_{each}_ADDRESS": hung for each in ("CATALOG", "WITHDRAWALS")}
        away |= {"FIATGATE_WEBHOOKS_ADDRESS": fresh, "FIATGATE_DESK_URL": house.desk}
        away |= {"FIATGATE_INTERNAL_GATEWAY_URL": "http://127.0.0.1:1", "FIATGATE_INTERNAL_DASHBOARD_URL": ""}
        with second_console("desk", house, tmp_path / "log", **away) as url:
            there = Person(url, operator.email, http=operator.http)
            paths = ("/", "/health", "/approvals", "/audit", "/deals", "/invoices", "/requisites", "/parked")
            pages = {path: browsers.submit(there.get, path) for path in paths}
            again = browsers.submit(there.post, "/withdrawals/new", typed)
            shown = {path: page.result() for path, page in pages.items()}
            assert {path: page.status_code for path, page in shown.items()} == dict.fromkeys(paths, 200)
            for path, service in (("/", "webhooks"), ("/audit", "webhooks"), ("/parked", "withdrawals")):
                words = unescape(re.sub(r"<[^>]*>", "", shown[path].text))
                assert re.search(rf"{service}\b.*do(es)? not answer", words), path
            health = shown["/health"].text
            assert "Check whether its process runs" in health
            assert "Set FIATGATE_INTERNAL_DASHBOARD_URL of the desk." in health
            assert re.search(r"gateway</strong>.*?does not answer.*?NO_ANSWER", health, re.DOTALL)
            assert "<strong>gateway is not well.</strong>" in shown["/"].text
            now = unescape(re.sub(r"<[^>]*>", "", shown["/"].text))
            assert re.search(r"Not known: .*withdrawals requested, withdrawals being sent, .*\.", now), now
            assert not re.search(r"[Ee]mpty: .*withdrawals", now), now
            assert there.get("/webhooks").status_code == 503, "it is no question of rights"
    form = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', again.result().text))
    assert {name: unescape(value) for name, value in form.items()} == typed, (
        "its key makes one withdrawal only"
    )


def test_health_says_what_fiatgate_status_says(staff: Staff) -> None:
    shown = unescape(re.sub(r"<[^>]*>", "", staff("viewer").get("/health").text))
    for name in ("gateway", "console-desk", "console-dashboard", *SERVICES):
        assert name in shown
    assert shown.count("all services serve") == 3, shown
    sentences = ("Facts that wait to be announced: ", "Time that the oldest fact", "numbers are zero")
    assert all(each in shown for each in sentences), shown
    assert "outbox_unpublished" not in shown, "numbers have names for people"
    assert "Live sessions of operators" in staff("viewer").get("/health/fresh").text

"""`fiatgate verify` names rates that catalog would not have taken in."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from psycopg2.extras import Json
from sqlalchemy import text

from kit.base.clock import SystemClock
from kit.db.books import check_page
from kit.rpc.errors import Refused
from services.catalog.store.books import parts
from tests.catalog.running import Catalog, RateServer

ADD = """
INSERT INTO rates (currency_code, source_rate, origin, taken_at, document)
VALUES (:code, :rate, :origin, now() + CAST(:ago AS interval), CAST(:document AS jsonb)) RETURNING id
"""
SAID_2 = {
    "quotes": [{"source": "a", "rate": "1.95", "error": ""}, {"source": "b", "rate": "2.10", "error": ""}]
}
SAID_20 = {"quotes": [{"source": "a", "rate": "20", "error": ""}]}
SAID_200 = {"quotes": [{"source": "a", "rate": "200", "error": ""}]}
HELD = {"quotes": [{"source": "rate before", "rate": "2", "error": ""}]}
OTHER = {"quotes": [{"source": "rate before", "rate": "19", "error": ""}]}


def add(catalog: Catalog, code: str, origin: str, rate: str, document: Any, ago: str = "0 s") -> int:
    """A rate, by SQL and with the rights of the service's role."""
    with catalog.deps.db.transaction() as tx:
        values = {
            "code": code,
            "rate": rate,
            "origin": origin,
            "ago": ago,
            "document": Json(document).dumps(document),
        }
        id: int = tx.execute(text(ADD), values).scalar_one()
        return id


def problems(catalog: Catalog) -> list[str]:
    settings = catalog.deps.settings
    (part,) = parts(settings.rates_max_jump, settings.rates_max_age)
    page = check_page(catalog.deps.db, part, after="", limit=1000)
    assert page.checked > 0
    return [f"{each.subject}: {each.field} is {each.found}, due is {each.due}" for each in page.problems]


@pytest.mark.parametrize(
    ("origin", "rate", "document", "ago", "named"),
    [
        ("sources", "2.05", SAID_2, "0 s", ""),
        ("operator", "2.1", {"quotes": []}, "0 s", ""),
        ("operator", "20", HELD, "0 s", ""),
        ("accepted", "20", SAID_20, "-1 hour", ""),
        (
            "operator",
            "20",
            {"quotes": []},
            "0 s",
            "source_rate is 20, due is within 0.10 of a rate before, 2",
        ),
        ("operator", "20", OTHER, "0 s", "source_rate is 20, due is within 0.10 of a rate before, 2"),
        ("sources", "20", SAID_20, "0 s", "source_rate is 20, due is within 0.10 of a rate before, 2"),
        (
            "sources",
            "2.15",
            SAID_2,
            "0 s",
            "source_rate is 2.15, due is between the rates of its sources, 1.95 and 2.1",
        ),
        (
            "accepted",
            "20",
            SAID_2,
            "0 s",
            "source_rate is 20, due is between the rates of its sources, 1.95 and 2.1",
        ),
        (
            "sources",
            "2",
            {"quotes": []},
            "0 s",
            "source_rate is 2, due is between the rates of its sources, which are",
        ),
        ("operator", "2", {"quotes": []}, "1 hour", "taken_at"),
        ("operator", "2", {"quotes": []}, "-1 hour", "taken_at"),
    ],
)
def test_a_rate_that_catalog_would_not_have_taken_in_is_named(
    catalog: Catalog, origin: str, rate: str, document: Any, ago: str, named: str
) -> None:
    code = catalog.currency()
    add(catalog, code, "operator", "2", {"quotes": []})
    id = add(catalog, code, origin, rate, document, ago)
    found = [each for each in problems(catalog) if each.startswith(f"rate {id}:")]
    assert (f"rate {id}: {code} {named}" in str(found)) if named else (found == []), found


@pytest.mark.parametrize(
    ("later", "named"),
    [
        ([("operator", "20", HELD), ("sources", "2.05", SAID_2)], ""),
        ([("operator", "20", HELD), ("operator", "21", {"quotes": []}), ("sources", "2.05", SAID_2)], ""),
        ([("operator", "20", HELD), ("sources", "2.05", SAID_2), ("operator", "21", {"quotes": []})], ""),
        ([("operator", "20", HELD), ("operator", "200", HELD), ("operator", "2.1", {"quotes": []})], ""),
        (
            [("operator", "20", HELD), ("sources", "2.05", SAID_2), ("sources", "200", SAID_200)],
            "is 200, due",
        ),
    ],
)
def test_a_rate_is_compared_with_those_that_the_jump_guard_compares_it_with(
    catalog: Catalog, later: list[tuple[str, str, Any]], named: str
) -> None:
    code = catalog.currency()
    ids = [add(catalog, code, *each) for each in [("sources", "2", SAID_2), *later]]
    found = [each for each in problems(catalog) if any(each.startswith(f"rate {id}:") for id in ids)]
    assert (named in str(found)) if named else (found == []), found


def test_no_rate_that_catalog_took_in_is_named(
    make_catalog: Callable[..., Catalog], catalog: Catalog, rate_server: RateServer
) -> None:
    code, chance = catalog.currency(), random.Random(1)
    catalog = make_catalog(rate_sources=[rate_server.source("/good", code)])
    catalog.clock.set(SystemClock().now() - timedelta(hours=40))
    rates = ("2", "2.1", "2.2", "20", "21", "22.5")
    for _ in range(40):
        catalog.clock.advance(seconds=chance.choice((0, 60, 1800, 7200)))
        rate_server.say("/good", {code: chance.choice(rates)})
        step = chance.choice(("pull", "pull", "accept", "set"))
        with suppress(Refused):
            if step == "pull":
                catalog.pull()
            elif step == "accept":
                catalog.accept_rate(code)
            else:
                catalog.set_rate(code, chance.choice(rates), anyway=chance.random() < 0.5)
    taken_in = {
        each[0] for each in catalog.execute("SELECT origin FROM rates WHERE currency_code = %s", code)
    }
    assert taken_in == {"sources", "operator", "accepted"}
    assert [each for each in problems(catalog) if code in each] == []

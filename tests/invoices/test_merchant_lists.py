"""A merchant's list and its total are exact, for every filter and page."""

import random
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg2
import psycopg2.extras
import pytest

from kit.base.ids import new_id
from kit.rpc.errors import Refused
from services.invoices.domain.states import InvoiceStatus
from services.invoices.operations import reading
from tests.invoices.conftest import World
from tests.support.databases import past_all_rules

MERCHANTS = [new_id() for _ in range(3)]
CURRENCIES = ("EUR", "EUR", "EUR", "JPY", "GBP")
INVOICES = 120
INSERT = """
INSERT INTO invoices (id, merchant_id, key_id, external_id, amount, currency_code, status, customer_id, created_at,
                      expires_at, finished_at, event_id)
VALUES (%(id)s, %(merchant)s, %(id)s, %(id)s::text, 1, %(currency)s, %(status)s, %(customer)s, %(at)s, %(at)s,
        CASE WHEN %(status)s <> 'pending' THEN %(at)s END, CASE WHEN %(status)s <> 'pending' THEN %(id)s END)
"""


@pytest.fixture
def rows(world: World) -> Iterator[list[dict[str, Any]]]:
    """Invoices of two merchants in the order of their list. Many are created at one moment: their ids decide."""
    chance = random.Random(7)
    psycopg2.extras.register_uuid()  # type: ignore[no-untyped-call]  # typeshed's gap
    made = [
        {
            "id": UUID(int=chance.getrandbits(128)),
            "merchant": chance.choice(MERCHANTS[:2]),
            "currency": chance.choice(CURRENCIES),
            "status": str(chance.choice(list(InvoiceStatus))),
            "customer": f"customer-{chance.randrange(90)}",
            "at": world.clock.now() - timedelta(minutes=chance.randrange(5)),
        }
        for _ in range(INVOICES)
    ]
    url = past_all_rules(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.executemany(INSERT, made)
    yield sorted(made, key=lambda row: (row["at"], row["id"]))


def listed(world: World, merchant_id: UUID, **wanted: Any) -> tuple[list[UUID], int]:
    """The ids of a page, and the total; none of a list that is refused because nothing matches."""
    filters = {"status": None, "currency_code": None, "ascending": False, "page": 1, "per_page": 500}
    try:
        page = reading.list_invoices(world.deps, merchant_id=str(merchant_id), **(filters | wanted))
    except Refused as refused:
        assert refused.reason == "INVOICES_NOT_FOUND"
        return [], 0
    return [each.id for each in page.invoices], page.total


@pytest.mark.parametrize("status", [None, *InvoiceStatus])
@pytest.mark.parametrize("currency", [None, "EUR", "JPY", "USD"])
def test_pages_and_totals_are_those_of_the_rows(
    world: World, rows: list[dict[str, Any]], status: InvoiceStatus | None, currency: str | None
) -> None:
    for merchant_id in MERCHANTS:
        due = [
            row["id"]
            for row in rows
            if row["merchant"] == merchant_id
            and row["status"] == (status or row["status"])
            and row["currency"] == (currency or row["currency"])
        ]
        wanted = {"status": status, "currency_code": currency}
        assert listed(world, merchant_id, **wanted) == (due[::-1], len(due))
        pages = [
            listed(world, merchant_id, ascending=True, page=page, per_page=7, **wanted)
            for page in range(1, len(due) // 7 + 3)
        ]
        assert [id for ids, _ in pages for id in ids] == due
        assert {total for _, total in pages} == {len(due)}


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("status", [None, InvoiceStatus.SUCCESS])
def test_pages_after_an_invoice_go_through_the_whole_list(
    world: World, rows: list[dict[str, Any]], status: InvoiceStatus | None, ascending: bool
) -> None:
    merchant = MERCHANTS[0]
    own = [each for each in rows if each["merchant"] == merchant]
    due = [each["id"] for each in own if each["status"] == (status or each["status"])]
    due = due if ascending else due[::-1]
    wanted: dict[str, Any] = {"status": status, "ascending": ascending, "per_page": 7}
    found, total = listed(world, merchant, **wanted)
    assert total == len(due)
    while total > 7:
        more, total = listed(world, merchant, after_invoice_id=str(found[-1]), **wanted)
        found += more
        assert total == len(due) - len(found) + len(more)
    assert found == due
    assert listed(world, merchant, after_invoice_id=str(due[-1]), **wanted) == ([], 0)
    for foreign in (str(rows[0]["id"] if rows[0]["merchant"] != merchant else new_id()), str(new_id())):
        with pytest.raises(Refused, match="INVOICE_NOT_FOUND"):
            reading.list_invoices(
                world.deps,
                **{"merchant_id": str(merchant), "page": 1, "currency_code": None, **wanted},
                after_invoice_id=foreign,
            )


def test_a_list_is_of_one_customer_and_of_a_span_of_time(world: World, rows: list[dict[str, Any]]) -> None:
    merchant = MERCHANTS[0]
    own = [each for each in rows if each["merchant"] == merchant]
    since, until = sorted({each["at"] for each in own})[1:4:2]
    spanned = [each["id"] for each in own if since <= each["at"] < until]
    span = {"created_from": since, "created_before": until, "ascending": True}
    assert listed(world, merchant, **span) == (spanned, len(spanned)) and spanned
    customer = own[0]["customer"]
    of_one = [each["id"] for each in own if each["customer"] == customer]
    assert listed(world, merchant, customer_id=customer, ascending=True) == (of_one, len(of_one))

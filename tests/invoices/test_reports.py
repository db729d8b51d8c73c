"""Reports: an event counts on its day, whether the worker has summed it yet or not, and the sums equal the rows."""

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import psycopg2
import pytest

from services.invoices.domain import spans
from services.invoices.operations import checkout, desk, reports
from services.invoices.operations.reports import Report
from services.invoices.store import daily
from services.invoices.store.daily import By, Sums
from services.invoices.wiring import Deps
from tests.invoices.conftest import World
from tests.support.acting import refusal
from tests.support.databases import past_all_rules


@pytest.fixture
def shop(world: World) -> Iterator[World]:
    """The world without sums, an hour before the end of a day."""
    url = past_all_rules(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("TRUNCATE daily_sums, daily_times")
        cursor.execute(
            "UPDATE daily_place SET transition_id = 0, invoice_at = '1970-01-01Z', summed_until = '1970-01-01Z',"
            " invoice_id = '00000000-0000-0000-0000-000000000000'"
        )
    world.clock.set(world.clock.now().replace(hour=23, minute=0))
    yield world


def day_of(at: datetime) -> str:
    return at.date().isoformat()


def report(world: World, by: By = By.DAY, **wanted: Any) -> Report:
    today = world.clock.now()
    days = {"first_day": day_of(today - timedelta(days=7)), "last_day": day_of(today + timedelta(days=1))}
    return reports.get_report(world.deps, by=by, **(days | wanted))


def sum_all(deps: Deps) -> None:
    for _ in range(100):
        if not reports.sum_days(deps):
            return
    raise AssertionError("the worker always finds more")


def counts(row: Sums) -> tuple[int, ...]:
    return (row.created, row.opened - row.replaced, row.marked, row.confirmed, row.rejected)


def trade(world: World) -> None:
    """An evening: one paid, one rejected, one with an adjusted amount after midnight, one that changed its method, one
    without a method.
    """
    clock, deps = world.clock, world.deps
    paid, rejected, late = (world.with_deal() for _ in range(3))
    changed = world.with_deal()
    checkout.select_payment_method(deps, invoice_id=str(changed.invoice_id), method_code="sepa_eur")
    world.create()
    clock.advance(minutes=2)
    for deal in (paid, rejected, late):
        checkout.mark_paid(deps, invoice_id=str(deal.invoice_id), deal_id=str(deal.id))
    clock.advance(minutes=3)
    desk.confirm_deal(deps, deal_id=str(paid.id))
    desk.reject_deal(deps, deal_id=str(rejected.id), note="no money")
    desk.open_appeal(deps, deal_id=str(late.id), note="less came")
    clock.advance(hours=2)
    world.adjust(late, "50.00")


def test_an_event_counts_on_its_day_before_and_after_the_worker_has_summed_it(shop: World) -> None:
    evening = shop.clock.now()
    trade(shop)
    by = {each: report(shop, each) for each in By}

    assert {row.key: counts(row) for row in by[By.DAY].rows} == {
        day_of(evening): (5, 4, 3, 1, 1),
        day_of(evening + timedelta(days=1)): (0, 0, 0, 1, 0),
    }
    assert {row.key: counts(row) for row in by[By.METHOD].rows} == {
        "": (5, 0, 0, 0, 0),
        "card_eur": (0, 3, 3, 2, 1),
        "sepa_eur": (0, 1, 0, 0, 0),
    }
    assert all(report.complete for report in by.values())

    shop.clock.set(shop.clock.now() + reports.LATE)
    sum_all(shop.deps)
    assert {each: report(shop, each) for each in By} == by, (
        "summed rows and counted ones give the same report"
    )


def test_the_amounts_are_those_of_the_deals(shop: World) -> None:
    trade(shop)
    (total,) = report(shop).totals
    with shop.deps.db.autocommit() as connection:
        rows = connection.exec_driver_sql(
            "SELECT amount_fiat, coalesce(adjusted_amount, invoice_amount), merchant_percent, merchant_usdt,"
            " conversion_rate FROM deals WHERE status = 'completed'"
        ).all()

    assert total.turnover == sum(sent for sent, *_ in rows)
    assert total.commission == sum(sent - paid * (100 - percent) / 100 for sent, paid, percent, *_ in rows)
    assert total.credited_usdt == sum(credited for *_, credited, _ in rows)
    assert total.turnover_usdt == sum(round(sent / rate, 6) for sent, *_, rate in rows)
    assert spans.percentile_seconds(total.spans, 50) == pytest.approx(180, rel=0.05)
    assert spans.percentile_seconds(total.spans, 95) == pytest.approx(7380, rel=0.05)


def test_filters_and_order_choose_the_rows_and_the_totals(shop: World) -> None:
    trade(shop)
    merchant = shop.merchant.merchant_id
    assert [row.key for row in report(shop, By.METHOD, method_code="sepa_eur").rows] == ["sepa_eur"]
    assert report(shop, By.MERCHANT, merchant_id=merchant).all == report(shop).all
    assert report(shop, By.CURRENCY, currency_code="JPY").rows == []
    assert report(shop, By.METHOD, largest_first=True).rows[0].key == "card_eur"
    first = report(shop, By.METHOD, limit=1)
    assert (first.more, [row.key for row in first.rows]) == (True, [""])
    rest = report(shop, By.METHOD, after=("", "EUR"))
    assert [row.key for row in rest.rows] == ["card_eur", "sepa_eur"]
    assert rest.totals == first.totals, "a total is that of the report, not of its page"


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"last_day": "2000-01-01"}, "last_day"),
        ({"first_day": "2000-01-01"}, "last_day"),
        ({"largest_first": True, "after": ("a", "EUR")}, "after_key"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(world: World, wanted: dict[str, Any], field: str) -> None:
    assert refusal(report, world, **wanted).metadata["field"] == field


def test_what_is_not_old_enough_waits_and_a_page_is_added_once(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    trade(shop)
    before = report(shop)
    monkeypatch.setattr(reports, "PAGE", 2)
    shop.clock.advance(hours=-1)
    sum_all(shop.deps)
    with shop.deps.db.autocommit() as connection:
        place = connection.exec_driver_sql("SELECT transition_id FROM daily_place").scalar_one()
        (oldest,) = connection.exec_driver_sql(
            "SELECT min(id) FROM deal_transitions WHERE sub_status = 'completed_with_adjustment'"
        ).one()
    assert place == oldest - 1, "the adjustment of the last hour waits"
    assert report(shop) == before

    shop.clock.advance(days=1)
    sum_all(shop.deps)
    sum_all(shop.deps)
    shop.clock.advance(hours=-23)
    assert report(shop) == before


def behind(world: World) -> float:
    with world.deps.db.autocommit() as connection:
        return daily.time_behind(connection, world.clock.now()).total_seconds()


def test_a_gauge_shows_how_far_the_sums_are_behind_also_when_an_event_of_the_future_stops_them(
    shop: World,
) -> None:
    assert behind(shop) == 0
    shop.create()
    shop.clock.advance(seconds=90)
    assert behind(shop) == 90
    shop.clock.advance(hours=1)
    sum_all(shop.deps)
    assert behind(shop) == 0
    shop.clock.advance(hours=2)
    shop.with_deal()
    shop.clock.advance(hours=-2)
    shop.with_deal()
    shop.clock.advance(hours=1)
    sum_all(shop.deps)
    assert behind(shop) == 3600


def test_a_time_is_right_to_a_twentieth() -> None:
    for low, high in pairwise(spans.BOUNDS):
        middle = spans.percentile_seconds({spans.BOUNDS.index(high): 1}, 50)
        assert middle is not None
        assert low <= middle <= high
        assert max(middle - low, high - middle) <= max(1, (low + 10) // 20)
    assert spans.percentile_seconds({}, 95) is None
    assert [spans.percentile_seconds({5: 94, 8: 1, 9: 5}, percent) for percent in (50, 95, 96)] == [5, 8, 9]

"""The history of a rate, and the numbers that the desk shows beside the present one."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from sqlalchemy import text

from fiatgate.catalog.v1 import catalog_pb2 as pb
from services.catalog.operations import history, rates
from services.catalog.store import rates as store
from tests.catalog.running import Catalog, RateServer
from tests.support.acting import ANN, acting, refusal

HOUR = 3600


def history_of(catalog: Catalog, code: str, **span: Any) -> pb.GetRateHistoryResponse:
    return catalog.stub.GetRateHistory(pb.GetRateHistoryRequest(currency_code=code, **span))


def test_a_held_rate_stands_beside_the_one_in_force_with_the_difference_in_percent(
    make_catalog: Callable[..., Catalog], catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency(markup="0.05")
    catalog = make_catalog(rate_sources=[rate_server.source("/good", code)], rates_max_jump="0.2")
    for rate in ("90", "60"):
        rate_server.say("/good", {code: rate})
        catalog.pull()
    answer = catalog.stub.ListRates(pb.ListRatesRequest())
    (state,) = [each for each in answer.rates if each.currency_code == code]
    assert (state.in_force.source_rate, state.held.source_rate) == ("90", "60")
    assert state.held_change_percent == "-33.33"
    assert (state.markup, state.enabled, len(state.source_names)) == ("0.05", True, 1)
    assert (answer.max_jump, answer.max_age_seconds) == ("0.2", 600)


def test_the_history_has_lowest_highest_and_last_rate_of_each_step_and_the_acts(catalog: Catalog) -> None:
    code = catalog.currency()
    until = catalog.clock.now() + timedelta(seconds=1)
    for age_hours, rate in (
        (30, "5"),
        (3.2, "1.00"),
        (3.1, "1.02"),
        (1.9, "0.98"),
        (1.8, "0.97"),
        (1.7, "0.99"),
    ):
        catalog.insert_rate(code, rate, age_seconds=age_hours * HOUR)
    acting(ANN, lambda: rates.set_rate(catalog.deps, currency_code=code, rate="1.01", anyway=False))
    found = history.get_rate_history(
        catalog.deps, currency_code=code, since=until - timedelta(hours=4), until=until, step_seconds=HOUR
    )
    steps = [(f"{each.lowest:.2f} {each.highest:.2f} {each.last:.2f}", each.accepted) for each in found.steps]
    assert steps == [("1.00 1.02 1.02", 2), ("0.97 0.99 0.99", 3), ("1.01 1.01 1.01", 1)]
    assert [each.at - found.since for each in found.steps] == [timedelta(hours=hours) for hours in (0, 2, 3)]
    newest = found.acts[0]
    assert (newest.act, newest.actor_name) == ("rate.set", ANN.name)
    assert len(history_of(catalog, code).steps) == 3, "the last day, without the rate of yesterday"


def test_a_span_that_is_too_long_or_has_too_many_steps_is_refused(catalog: Catalog) -> None:
    code, now = catalog.currency(), catalog.clock.now()
    for since, step, field in (
        (now - timedelta(days=94), 0, "since"),
        (now + timedelta(days=1), 0, "since"),
        (now - timedelta(days=2), 59, "step_seconds"),
        (now - timedelta(days=2), 60, "step_seconds"),
    ):
        assert refusal(history_of, catalog, code, since=since, step_seconds=step).metadata["field"] == field
    for call in (
        lambda: history_of(catalog, "ZZZ"),
        lambda: catalog.stub.ListAcceptedRates(pb.ListAcceptedRatesRequest(currency_code="ZZZ")),
    ):
        assert refusal(call).reason == "CURRENCY_NOT_FOUND"


def test_accepted_rates_come_page_by_page_with_their_sources(
    make_catalog: Callable[..., Catalog], catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = make_catalog(rate_sources=[rate_server.source("/good", code)])
    for rate in ("100", "101"):
        rate_server.say("/good", {code: rate})
        catalog.pull()
    catalog.set_rate(code, "102")

    def page(**values: Any) -> list[pb.AcceptedRate]:
        return list(
            catalog.stub.ListAcceptedRates(pb.ListAcceptedRatesRequest(currency_code=code, **values)).rates
        )

    first = page(limit=2)
    assert [(each.source_rate, each.origin) for each in first] == [
        ("102", pb.RATE_ORIGIN_OPERATOR),
        ("101", pb.RATE_ORIGIN_SOURCES),
    ]
    (rest,) = page(after_number=first[-1].number)
    assert (rest.source_rate, rest.sources[0].rate) == ("100", "100")
    assert [each.source_rate for each in page(by_operators=True)] == ["102"]


def test_the_history_reads_the_rates_of_its_span_by_index(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.execute(
        "INSERT INTO rates (currency_code, source_rate, origin, taken_at, document, seal)"
        " SELECT %s, 1, 'sources', %s - n * interval '1 minute', '{\"quotes\": []}',"
        " sha256(CAST(gen_random_uuid() AS text)::bytea)"
        " FROM generate_series(1, 20000) AS n",
        code,
        catalog.clock.now(),
    )
    catalog.execute("ANALYZE rates")
    until = catalog.clock.now()
    with catalog.deps.db.transaction() as tx:
        query = text(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'rates'"
        )
        before = tx.execute(query).scalar_one()
        steps = store.rate_steps(
            tx.connection(), code, since=until - timedelta(hours=1), until=until, step_seconds=HOUR
        )
        read = tx.execute(query).scalar_one() - before
    assert sum(each.accepted for each in steps) == 60
    assert read <= 60, "a scan of all rates ever: the page would get slower every minute"

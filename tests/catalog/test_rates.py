"""Rates polled from real HTTP sources: median, jump guard, staleness, and sources that misbehave."""

import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg2
import pytest

from deploy.local.waiting import wait_until
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.base.proto import datetime_from
from kit.db.books import check_page
from kit.events.bus.connection import Bus
from kit.rpc import deadline
from kit.rpc.errors import Refused
from kit.work.worker import Stop
from services.catalog.clients import ANSWER_MAX_BYTES, RateSources
from services.catalog.config import RateSource
from services.catalog.events import CATALOG_CHANGED
from services.catalog.operations import history, rates
from services.catalog.store.books import PARTS
from services.catalog.workers import gauges, workers
from tests.catalog.running import Catalog, RateServer, merchant
from tests.support.acting import refusal
from tests.support.databases import past_all_rules
from tests.support.servers import NatsServer

WAIT_SECONDS = 60

MakeCatalog = Callable[..., Catalog]


def one_source(make_catalog: MakeCatalog, rate_server: RateServer, code: str, **settings: Any) -> Catalog:
    return make_catalog(rate_sources=[rate_server.source("/good", code)], **settings)


# -- one poll


def test_the_median_of_the_sources_is_accepted_and_kept_with_all_they_said(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency(markup="0.01")
    for path, number in (("/a", 90), ("/b", 94.5), ("/c", 92)):
        rate_server.say(path, {code: number})
    paths = ("/a", "/b", "/c", "/gone")
    catalog = make_catalog(rate_sources=[rate_server.source(path, code) for path in paths])
    state = catalog.pull()[code]
    assert state == catalog.state(code)
    assert not state.HasField("held")
    rate = state.in_force
    assert (rate.source_rate, rate.rate, rate.fresh) == ("92", "91.08", True)
    assert rate.origin == pb.RATE_ORIGIN_SOURCES
    assert rate.taken_at.ToDatetime() == catalog.clock.now().replace(tzinfo=None)
    assert [(quote.source, quote.rate, quote.error) for quote in rate.sources] == [
        ("a", "90", ""),
        ("b", "94.5", ""),
        ("c", "92", ""),
        ("gone", "", "answered 404"),
    ]
    assert [quote.HasField("rate") for quote in rate.sources] == [True, True, True, False]
    assert catalog.currencies(merchant(code)) == {code: "91.08"}


def test_a_number_keeps_every_digit_the_source_sent(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    rate_server.bodies["/good"] = b'{"rates": {"%s": 90071992547.40993123}}' % code.encode()
    catalog = one_source(make_catalog, rate_server, code)
    assert catalog.pull()[code].in_force.source_rate == "90071992547.40993123"


BROKEN = {
    "not JSON": b"<html>rates</html>",
    "empty": b"",
    "not UTF-8": b'{"rates": {"%s": "\xff\xfe"}}',
    "deeply nested": b'{"rates": ' + b"[" * 200_000,
    "NaN": b'{"rates": {"%s": NaN}}',
    "Infinity": b'{"rates": {"%s": -Infinity}}',
    "NaN as text": b'{"rates": {"%s": "NaN"}}',
    "words": b'{"rates": {"%s": "ninety"}}',
    "exponent as text": b'{"rates": {"%s": "9e1"}}',
    "zero": b'{"rates": {"%s": 0}}',
    "negative": b'{"rates": {"%s": -90}}',
    "tiny": b'{"rates": {"%s": 0.000000001}}',
    "huge": b'{"rates": {"%s": 1000000000000}}',
    "huge exponent": b'{"rates": {"%s": 1e999999999}}',
    "endless exponent": b'{"rates": {"%s": 1e99999999999999999999999}}',
    "huge integer": b'{"rates": {"%s": ' + b"9" * 100_000 + b"}}",
    "true": b'{"rates": {"%s": true}}',
    "null": b'{"rates": {"%s": null}}',
    "an object": b'{"rates": {"%s": {"rate": 90}}}',
    "a list": b'{"rates": ["%s", 90]}',
    "another currency": b'{"rates": {"ZZZ": 90}}',
    "too large": b'{"rates": {"%s": 90}}' + b" " * ANSWER_MAX_BYTES,
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_a_source_that_answers_nonsense_is_left_out_and_the_others_count(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer, body: bytes
) -> None:
    code = catalog.currency()
    rate_server.bodies["/broken"] = body.replace(b"%s", code.encode())
    broken = rate_server.source("/broken", code)
    alone = make_catalog(rate_sources=[broken])
    assert not alone.pull()[code].HasField("in_force")
    assert refusal(alone.currencies, merchant(code)).reason == "RATE_NOT_FOUND"

    rate_server.say("/good", {code: "92.5"})
    both = make_catalog(rate_sources=[broken, rate_server.source("/good", code)])
    rate = both.pull()[code].in_force
    assert rate.source_rate == "92.5"
    assert rate.sources[0].error and not rate.sources[0].HasField("rate")


def test_a_source_that_fails_or_hangs_spoils_no_other(rate_server: RateServer) -> None:
    rate_server.say("/good", {"EUR": 90})
    rate_server.say("/moved", {"EUR": 1})
    rate_server.statuses |= {"/moved": 302, "/ill": 500}
    rate_server.silent.add("/hanging")
    sources = [rate_server.source(path, "EUR") for path in ("/hanging", "/ill", "/moved", "/good")]
    refused_port = {"name": "closed", "url": "http://127.0.0.1:1/", "paths": {"EUR": "x"}}
    quotes = RateSources([RateSource(**each) for each in [*sources, refused_port]], allow_private=True).fetch(
        4
    )
    assert [(quote.rate, quote.error) for quote in quotes["EUR"]] == [
        (None, "no answer within 4 s"),
        (None, "answered 500"),
        (None, "answered 302"),
        (90, ""),
        (None, "127.0.0.1: the connection failed"),
    ]


def test_sources_are_asked_side_by_side(rate_server: RateServer) -> None:
    paths = ("/one", "/two", "/three")
    rate_server.together = threading.Barrier(len(paths))
    for path in paths:
        rate_server.say(path, {"EUR": 90})
    sources = [RateSource(**rate_server.source(path, "EUR")) for path in paths]
    quotes = RateSources(sources, allow_private=True).fetch(60)["EUR"]
    assert [quote.rate for quote in quotes] == [90] * 3, "none answers before all are asked"


def test_a_private_source_is_not_called_unless_the_setting_allows_it(rate_server: RateServer) -> None:
    rate_server.say("/good", {"EUR": 90})
    source = RateSource(**rate_server.source("/good", "EUR"))
    (refused,) = RateSources([source], allow_private=False).fetch(1)["EUR"]
    assert (refused.rate, refused.error) == (None, "the URL must begin with https://")
    assert rate_server.asked == []
    (allowed,) = RateSources([source], allow_private=True).fetch(1)["EUR"]
    assert allowed.rate == 90


def test_a_number_too_small_to_be_turned_round_fails_its_source_alone(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    rate_server.say("/good", {code: "92.5"})
    rate_server.bodies["/broken"] = b'{"rates": {"%s": 1e-2000000}}' % code.encode()
    broken = rate_server.source("/broken", code, invert=True)
    rate = make_catalog(rate_sources=[broken, rate_server.source("/good", code)]).pull()[code].in_force
    assert rate.source_rate == "92.5"
    assert rate.sources[0].error == "not a plausible rate"


def test_one_source_may_quote_many_currencies_and_another_the_other_way_round(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    first, second, unknown = catalog.currency(), catalog.currency(), catalog.new_code()
    rate_server.say("/a", {first: 100, second: 4, unknown: 7})
    rate_server.say("/b", {first: "0.0125"})
    sources = [
        rate_server.source("/a", first, second, unknown),
        rate_server.source("/b", first, invert=True),
    ]
    catalog = make_catalog(rate_sources=sources)
    states = catalog.pull()
    assert {code: state.in_force.source_rate for code, state in states.items()} == {first: "90", second: "4"}
    assert rate_server.asked == ["/a", "/b"] or rate_server.asked == ["/b", "/a"]


def test_fewer_sources_than_must_answer_change_nothing(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    sources = [rate_server.source(path, code) for path in ("/a", "/b")]
    catalog = make_catalog(rate_sources=sources, rates_min_sources=2)
    rate_server.say("/a", {code: 90})
    assert not catalog.pull()[code].HasField("in_force")
    rate_server.say("/b", {code: 91})
    assert catalog.pull()[code].in_force.source_rate == "90.5"
    rate_server.say("/a", {code: 92})
    del rate_server.bodies["/b"]
    catalog.clock.advance(seconds=601)
    assert catalog.pull()[code].in_force.source_rate == "90.5"
    assert refusal(catalog.currencies, merchant(code)).reason == "RATES_UNAVAILABLE"


def test_without_sources_there_is_nothing_to_pull(catalog: Catalog) -> None:
    catalog.set_rate(catalog.currency(), "2")
    assert catalog.pull() == {}


def test_a_call_without_time_for_the_sources_is_refused_before_they_are_asked(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = one_source(make_catalog, rate_server, code)
    with deadline.within(1.5), pytest.raises(Refused) as refused:
        rates.pull_rates(catalog.deps)
    assert refused.value.reason == "DB_UNAVAILABLE"
    assert rate_server.asked == []


# -- the jump guard


def test_a_rate_within_the_jump_is_accepted_and_beyond_it_is_held(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = one_source(make_catalog, rate_server, code)
    for rate in ("100", "110", "99", "99"):
        rate_server.say("/good", {code: rate})
        catalog.clock.advance(seconds=1)
        assert catalog.pull()[code].in_force.source_rate == rate
    rate_server.say("/good", {code: "108.91"})
    state = catalog.pull()[code]
    assert (state.in_force.source_rate, state.held.source_rate) == ("99", "108.91")
    assert state.held.origin == pb.RATE_ORIGIN_SOURCES
    assert [quote.rate for quote in state.held.sources] == ["108.91"]
    assert catalog.currencies(merchant(code)) == {code: "99.00"}


def test_a_newer_held_rate_takes_the_place_of_the_older(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = one_source(make_catalog, rate_server, code)
    for rate in ("100", "200", "300"):
        rate_server.say("/good", {code: rate})
        catalog.clock.advance(seconds=1)
        state = catalog.pull()[code]
    assert (state.in_force.source_rate, state.held.source_rate) == ("100", "300")
    assert state.held.taken_at.ToDatetime() == catalog.clock.now().replace(tzinfo=None)
    assert catalog.execute("SELECT count(*) FROM held_rates WHERE currency_code = %s", code) == [(1,)]


def test_a_held_rate_is_gone_when_the_sources_come_back(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = one_source(make_catalog, rate_server, code)
    for rate in ("100", "1", "101"):
        rate_server.say("/good", {code: rate})
        state = catalog.pull()[code]
    assert state.in_force.source_rate == "101"
    assert not state.HasField("held")
    assert refusal(catalog.accept_rate, code).reason == "RATE_NOT_HELD"


def test_an_accepted_rate_is_in_force_and_later_polls_are_measured_against_it(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = one_source(make_catalog, rate_server, code)
    for rate in ("100", "200"):
        rate_server.say("/good", {code: rate})
        catalog.pull()
    polled_at = catalog.clock.now()
    catalog.clock.advance(seconds=30)
    accepted = catalog.accept_rate(code)
    assert (accepted.source_rate, accepted.origin) == ("200", pb.RATE_ORIGIN_ACCEPTED)
    assert accepted.taken_at.ToDatetime() == polled_at.replace(tzinfo=None)
    assert [quote.rate for quote in accepted.sources] == ["200"]
    state = catalog.state(code)
    assert (state.in_force, state.HasField("held"), state.HasField("held_change_percent")) == (
        accepted,
        False,
        False,
    )
    rate_server.say("/good", {code: "210"})
    assert catalog.pull()[code].in_force.source_rate == "210"
    assert refusal(catalog.accept_rate, code).reason == "RATE_NOT_HELD"


def test_the_guard_holds_however_old_the_last_rate_is(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = one_source(make_catalog, rate_server, code)
    rate_server.say("/good", {code: "100"})
    catalog.pull()
    catalog.clock.advance(days=30)
    rate_server.say("/good", {code: "150"})
    state = catalog.pull()[code]
    assert not state.in_force.fresh
    assert state.held.source_rate == "150"
    assert refusal(catalog.currencies, merchant(code)).reason == "RATES_UNAVAILABLE"
    catalog.accept_rate(code)
    assert catalog.currencies(merchant(code)) == {code: "150.00"}


def test_the_share_of_a_jump_is_a_setting(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = one_source(make_catalog, rate_server, code, rates_max_jump="0.01")
    for rate in ("100", "102"):
        rate_server.say("/good", {code: rate})
        state = catalog.pull()[code]
    assert state.held.source_rate == "102"


# -- operators and sources together


def test_a_set_rate_outranks_polls_while_it_is_fresh_and_then_they_resume(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = one_source(make_catalog, rate_server, code)
    rate_server.say("/good", {code: "101"})
    catalog.pull()
    catalog.set_rate(code, "100")
    catalog.clock.advance(seconds=600)
    assert catalog.pull()[code].in_force.source_rate == "100"
    assert catalog.currencies(merchant(code)) == {code: "100.00"}
    catalog.clock.advance(seconds=1)
    assert catalog.state(code).in_force.source_rate == "101"
    assert catalog.currencies(merchant(code)) == {code: "101.00"}


def test_after_a_rate_that_was_set_anyway_the_rate_of_the_sources_counts_again(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = one_source(make_catalog, rate_server, code)
    rate_server.say("/good", {code: "1"})
    catalog.pull()
    catalog.set_rate(code, "2", anyway=True)
    until = datetime_from(catalog.set_rate(code, "2.1").fresh_until)
    catalog.clock.advance(seconds=1)
    assert catalog.pull()[code].in_force.source_rate == "2.1"
    catalog.clock.set(until + timedelta(seconds=1))
    state = catalog.pull()[code]
    assert (state.in_force.source_rate, state.HasField("held")) == ("1", False)
    assert catalog.currencies(merchant(code)) == {code: "1.00"}


def test_what_the_sources_said_long_ago_lets_no_jump_pass(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = one_source(make_catalog, rate_server, code)
    rate_server.say("/good", {code: "1"})
    catalog.pull()
    catalog.clock.advance(days=2)
    catalog.set_rate(code, "1.09")
    catalog.set_rate(code, "1.18")
    assert catalog.pull()[code].held.source_rate == "1"


def test_an_accepted_rate_replaces_a_set_one_at_once(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = one_source(make_catalog, rate_server, code)
    catalog.set_rate(code, "100")
    rate_server.say("/good", {code: "50"})
    assert catalog.pull()[code].held.source_rate == "50"
    catalog.accept_rate(code)
    assert catalog.currencies(merchant(code)) == {code: "50.00"}


def test_setting_a_rate_drops_what_was_held_against_the_former_one(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = one_source(make_catalog, rate_server, code)
    for rate in ("100", "50"):
        rate_server.say("/good", {code: rate})
        catalog.pull()
    catalog.set_rate(code, "51", anyway=True)
    assert not catalog.state(code).HasField("held")
    assert catalog.pull()[code].in_force.source_rate == "51"
    catalog.clock.advance(seconds=601)
    assert catalog.pull()[code].in_force.source_rate == "50"


@pytest.mark.parametrize(
    ("validity", "hours", "said"),
    [
        (pb.RATE_VALIDITY_HOUR, 1, "hour"),
        (pb.RATE_VALIDITY_DAY, 24, "day"),
        (pb.RATE_VALIDITY_UNTIL_REPLACED, 0, "until_replaced"),
    ],
)
def test_a_set_rate_counts_as_long_as_the_operator_wants_and_its_act_says_so(
    catalog: Catalog, validity: pb.RateValidity.ValueType, hours: int, said: str
) -> None:
    code = catalog.currency()
    made = catalog.set_rate(code, "2", validity=validity)
    assert (made.validity, made.HasField("fresh_until"), made.ends_soon) == (validity, bool(hours), False)
    (act,) = history.get_rate_history(
        catalog.deps, currency_code=code, since=None, until=None, step_seconds=0
    ).acts[:1]
    assert ["validity", "", said] in [[*each] for each in act.changes]
    catalog.clock.advance(hours=0.81 * hours or 1000)
    assert catalog.state(code).in_force.ends_soon == bool(hours)
    if hours:
        assert {gauge.name: gauge.value for gauge in gauges(catalog.deps)}["rates_end_soon"] >= 1
    assert catalog.currencies(merchant(code)) == {code: "2.00"}
    catalog.clock.advance(hours=0.2 * hours or 1000)
    state = catalog.state(code).in_force
    assert (state.fresh, state.ends_soon) == (not hours, False)
    unpriced = catalog.stub.GetCatalog(pb.GetCatalogRequest()).unpriced_codes
    assert (code in unpriced) == bool(hours)


def test_a_rate_past_the_guard_counts_as_long_as_its_request_says(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "2")
    made = catalog.set_rate(code, "20", anyway=True, validity=pb.RATE_VALIDITY_DAY)
    assert (made.source_rate, made.validity) == ("20", pb.RATE_VALIDITY_DAY)
    (request,) = catalog.approvals.of(f"currency:{code}")
    assert f"Set the rate of {code} to 20 for a day, past the jump guard" in request.summary


def test_a_rate_whose_validity_sql_changed_is_locked_by_no_deal_and_named(catalog: Catalog) -> None:
    code = catalog.currency()
    method = catalog.method(code)
    catalog.set_rate(code, "92", validity=pb.RATE_VALIDITY_HOUR)
    catalog.execute(
        "ALTER TABLE rates DISABLE TRIGGER rates_append_only;"
        f"UPDATE rates SET validity = 'until_replaced' WHERE currency_code = '{code}';"
        "ALTER TABLE rates ENABLE TRIGGER rates_append_only"
    )
    assert refusal(catalog.quote, merchant(), method).reason == "RATES_INVALID"
    found = {}
    for name in ("rates", "currencies"):
        part = next(each for each in PARTS if each.name == name)
        for each in check_page(catalog.deps.db, part, after="", limit=1000).problems:
            if code in f"{each.field} {each.subject}":
                found[name] = (each.found, each.due)
    assert found["rates"][1] == "one that catalog put in force"
    assert found["currencies"] == (
        "deleted, or valid for another time",
        "there: it has an act rate.set, hour",
    )


# -- the worker


def test_only_one_of_many_processes_asks_in_each_period(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    rate_server.say("/good", {code: 90})
    catalogs = [one_source(make_catalog, rate_server, code) for _ in range(4)]
    now = catalogs[-1].clock.now()

    def all_look() -> int:
        before = len(rate_server.asked)
        threads = [threading.Thread(target=rates.poll_when_due, args=(each.deps,)) for each in catalogs * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(rate_server.asked) - before

    asked = []
    for seconds in (0, 0, 59, 1, 59, 1):
        now = max(now, *(each.clock.now() for each in catalogs))
        for each in catalogs:
            each.clock.set(now)
            each.clock.advance(seconds=seconds)
        asked.append(all_look())
    assert asked == [1, 0, 0, 1, 0, 1]


def test_a_clock_that_was_set_back_does_not_stop_the_polls(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    catalog = one_source(make_catalog, rate_server, catalog.currency())
    for hours in (2, -1, -1):
        catalog.clock.advance(hours=hours)
        rates.poll_when_due(catalog.deps)
    assert len(rate_server.asked) == 3


def test_the_worker_polls_by_itself_goes_on_after_bad_answers_and_stops_when_asked(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    rate_server.bodies["/good"] = b"nonsense"
    catalog = one_source(make_catalog, rate_server, code, rates_poll_seconds=1)
    (poller,) = workers(catalog.deps)
    stop = Stop()
    thread = threading.Thread(target=poller.run, args=(stop,))
    thread.start()
    try:
        wait_until(lambda: bool(rate_server.asked), "the first poll", timeout_seconds=WAIT_SECONDS)
        rate_server.say("/good", {code: 90})
        catalog.clock.advance(seconds=2)
        wait_until(
            lambda: catalog.state(code).HasField("in_force"), "a later poll", timeout_seconds=WAIT_SECONDS
        )
        assert poller.health().healthy
    finally:
        stop.set()
        thread.join(WAIT_SECONDS)
    assert not thread.is_alive()


def test_there_is_no_worker_without_sources(catalog: Catalog) -> None:
    assert workers(catalog.deps) == ()


def test_the_gauges_count_what_waits_for_an_operator(
    make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer
) -> None:
    code = catalog.currency()
    catalog = one_source(make_catalog, rate_server, code)
    before = {gauge.name: gauge.value for gauge in gauges(catalog.deps)}
    rate_server.say("/good", {code: 100})
    catalog.pull()
    rate_server.say("/good", {code: 200})
    catalog.pull()
    after = {gauge.name: gauge.value for gauge in gauges(catalog.deps)}
    assert after["rates_held"] == before["rates_held"] + 1
    assert after["currencies_without_fresh_rate"] == before["currencies_without_fresh_rate"] - 1


# -- hints


def test_every_change_gives_a_hint_and_nothing_breaks_while_nats_is_away(
    make_catalog: MakeCatalog, rate_server: RateServer, nats_server: NatsServer
) -> None:
    listener = Bus(nats_server.url, name="listener")
    heard = threading.Semaphore(0)
    listener.on_hint(CATALOG_CHANGED, lambda *_: heard.release())
    code = make_catalog().new_code()
    catalog = one_source(make_catalog, rate_server, code, nats_url=nats_server.url)
    rate_server.say("/good", {code: 100})
    for bus in (listener, catalog.deps.bus):
        bus.start()
    try:
        assert listener.wait_ready(WAIT_SECONDS) and catalog.deps.bus.wait_ready(WAIT_SECONDS)
        for change in (
            lambda: catalog.currency(code),
            lambda: catalog.method(code),
            lambda: catalog.set_rate(code, "100"),
            catalog.pull,
        ):
            change()
            assert heard.acquire(timeout=WAIT_SECONDS), "no hint after a change"
        rate_server.say("/good", {code: 200})
        catalog.pull()  # held: nothing changed for those who keep a snapshot
        catalog.accept_rate(code)
        assert heard.acquire(timeout=WAIT_SECONDS), "no hint after accepting"
        nats_server.stop()
        catalog.currency(code, name="Renamed")
        catalog.set_rate(code, "201")
        assert catalog.currencies(merchant(code)) == {code: "201.00"}
    finally:
        listener.close()
        catalog.deps.bus.close()
    assert not heard.acquire(blocking=False), "a hint without a change"


def test_a_rate_without_a_right_seal_is_locked_by_no_deal_and_named(catalog: Catalog) -> None:
    code = catalog.currency()
    method = catalog.method(code)
    catalog.set_rate(code, "92")
    assert catalog.quote(merchant(), method).rate == "92.00"
    catalog.execute(
        "INSERT INTO rates (currency_code, source_rate, origin, taken_at, document, seal)"
        " SELECT currency_code, 9, origin, taken_at, document, sha256(seal) FROM rates WHERE currency_code = %s",
        code,
    )
    assert refusal(catalog.quote, merchant(), method).reason == "RATES_INVALID"
    part = next(each for each in PARTS if each.name == "rates")
    problems = check_page(catalog.deps.db, part, after="", limit=1000).problems
    assert [(each.field, each.found) for each in problems if code in each.field] == [
        (f"{code} rate", "9.00000000")
    ]


def test_a_forged_rate_moves_no_guard(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "92")
    catalog.execute(
        "INSERT INTO rates (currency_code, source_rate, origin, taken_at, document, seal)"
        " SELECT currency_code, 5000, 'sources', taken_at, document, sha256(seal) FROM rates WHERE currency_code = %s",
        code,
    )
    assert refusal(catalog.set_rate, code, "5000").reason == "RATE_JUMPS"


def test_a_replaced_rate_that_becomes_the_newest_again_is_named(catalog: Catalog) -> None:
    code = catalog.currency()
    for rate in ("92", "93"):
        catalog.clock.advance(seconds=1)
        catalog.set_rate(code, rate)
    url = past_all_rules(catalog.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as owner, owner, owner.cursor() as cursor:
        cursor.execute("UPDATE rates SET id = DEFAULT WHERE currency_code = %s AND source_rate = 92", (code,))
    part = next(each for each in PARTS if each.name == "currencies")
    problems = check_page(catalog.deps.db, part, after="", limit=1000).problems
    assert [each.field for each in problems if each.subject == f"currency {code}"] == ["newest decided rate"]

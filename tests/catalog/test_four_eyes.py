"""Rates outside the jump guard: a second person approves them, and what was approved is put in force, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.rpc.errors import Refused
from services.catalog.operations import rates
from tests.catalog.running import Catalog, RateServer
from tests.support.acting import ANN, BEN, CID, requested

MakeCatalog = Callable[..., Catalog]
PENDING, REJECTED = approvals_pb2.APPROVAL_STATE_PENDING, approvals_pb2.APPROVAL_STATE_REJECTED


def reason(call: Callable[[], Any]) -> str:
    with pytest.raises(Refused) as refused:
        call()
    return refused.value.reason


def set_anyway(catalog: Catalog, code: str, rate: str) -> Callable[[], Any]:
    return partial(rates.set_rate, catalog.deps, currency_code=code, rate=rate, anyway=True)


def accept(catalog: Catalog, code: str) -> Callable[[], Any]:
    return partial(rates.accept_rate, catalog.deps, currency_code=code)


@pytest.fixture
def held(make_catalog: MakeCatalog, catalog: Catalog, rate_server: RateServer) -> tuple[Catalog, str]:
    """A catalog and a currency of it, whose rate moved from 100 to 200."""
    code = catalog.currency()
    catalog = make_catalog(rate_sources=[rate_server.source("/good", code)])
    for rate in ("100", "200"):
        rate_server.say("/good", {code: rate})
        catalog.pull()
    return catalog, code


def in_force(catalog: Catalog, code: str) -> str:
    return catalog.state(code).in_force.source_rate


def test_a_rate_past_the_guard_is_set_by_two_and_one_within_it_by_one(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "100")
    asked = requested(ANN, set_anyway(catalog, code, "50"))
    assert in_force(catalog, code) == "100"
    (listed,) = catalog.approvals.of(f"currency:{code}")
    assert listed.summary == f"Set the rate of {code} to 50, past the jump guard; it was 100 at the request"
    assert reason(lambda: catalog.approvals.approve(ANN, asked)) == "OTHER_PERSON_REQUIRED"
    catalog.approvals.approve(BEN, asked)
    assert in_force(catalog, code) == "50"
    assert catalog.state(code).in_force.origin == pb.RATE_ORIGIN_OPERATOR
    assert catalog.set_rate(code, "52").source_rate == "52"


def test_without_anyway_nothing_is_requested(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "100")
    assert reason(lambda: catalog.set_rate(code, "50")) == "RATE_JUMPS"
    assert catalog.approvals.of(f"currency:{code}") == []


def test_a_currency_has_one_request_and_a_direct_rate_ends_it(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "100")
    asked = requested(ANN, set_anyway(catalog, code, "50"))
    assert requested(CID, set_anyway(catalog, code, "50")) == asked
    assert reason(set_anyway(catalog, code, "40")) == "APPROVAL_STATE_CONFLICT"
    catalog.set_rate(code, "101")
    (closed,) = catalog.approvals.of(f"currency:{code}")
    assert (closed.state, closed.decision_note) == (REJECTED, "The rate was set to 101")
    assert reason(lambda: catalog.approvals.approve(BEN, asked)) == "APPROVAL_STATE_CONFLICT"
    assert in_force(catalog, code) == "101"


def test_a_request_for_a_rate_ends_with_the_age_of_rates(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "100")
    asked = requested(ANN, set_anyway(catalog, code, "50"))
    catalog.clock.advance(seconds=catalog.deps.settings.rates_max_age.total_seconds() + 1)
    assert reason(lambda: catalog.approvals.approve(BEN, asked)) == "APPROVAL_STATE_CONFLICT"
    assert in_force(catalog, code) == "100"


def test_the_held_rate_that_was_requested_is_accepted_not_a_newer_one(
    held: tuple[Catalog, str], rate_server: RateServer
) -> None:
    catalog, code = held
    asked = requested(ANN, accept(catalog, code))
    assert in_force(catalog, code) == "100"
    (listed,) = catalog.approvals.of(f"currency:{code}")
    assert listed.summary.startswith(f"Accept the rate 200 of {code}, polled ")
    rate_server.say("/good", {code: "205"})
    catalog.pull()
    catalog.approvals.approve(BEN, asked)
    state = catalog.state(code)
    assert (state.in_force.source_rate, state.in_force.origin) == ("200", pb.RATE_ORIGIN_ACCEPTED)
    assert [quote.rate for quote in state.in_force.sources] == ["200"]
    assert not state.HasField("held")


@pytest.mark.parametrize("now", ["300", "140"])
def test_a_request_for_a_rate_that_has_moved_on_is_refused(
    held: tuple[Catalog, str], rate_server: RateServer, now: str
) -> None:
    catalog, code = held
    asked = requested(ANN, accept(catalog, code))
    rate_server.say("/good", {code: now})
    catalog.pull()
    assert reason(lambda: catalog.approvals.approve(BEN, asked)) == "APPROVAL_STATE_CONFLICT"
    assert in_force(catalog, code) == "100"
    catalog.approvals.reject(BEN, asked)
    assert catalog.accept_rate(code).source_rate == now


def test_a_request_ends_when_the_sources_agree_again(
    held: tuple[Catalog, str], rate_server: RateServer
) -> None:
    catalog, code = held
    asked = requested(ANN, accept(catalog, code))
    rate_server.say("/good", {code: "101"})
    catalog.pull()
    (closed,) = catalog.approvals.of(f"currency:{code}")
    assert (closed.state, closed.decision_note) == (REJECTED, "The sources agree on 101")
    assert reason(lambda: catalog.approvals.approve(BEN, asked)) == "APPROVAL_STATE_CONFLICT"


def test_an_approved_rate_past_the_guard_names_the_one_before_it(held: tuple[Catalog, str]) -> None:
    catalog, code = held
    catalog.approvals.approve(BEN, requested(ANN, accept(catalog, code)))
    catalog.approvals.approve(BEN, requested(ANN, set_anyway(catalog, code, "90")))
    assert [each.source for each in catalog.state(code).in_force.sources] == ["rate before"]


def test_switched_off_one_person_is_enough(make_catalog: MakeCatalog) -> None:
    catalog = make_catalog(four_eyes=False)
    code = catalog.currency()
    catalog.set_rate(code, "100")
    set_anyway(catalog, code, "50")()
    assert in_force(catalog, code) == "50"

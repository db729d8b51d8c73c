"""Rates outside the jump guard: a second person approves them, and what was approved is put in force, nothing else."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final
from uuid import UUID

import pytest
from sqlalchemy import text

from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.audit import approval_books, approvals
from kit.audit.approvals import WAS, Terms
from kit.base.ids import new_id
from kit.db.books import check_page
from services.catalog.operations import rates
from tests.catalog.running import Catalog, RateServer
from tests.support.acting import ANN, BEN, CID, acting, refusal, requested

MakeCatalog = Callable[..., Catalog]
PENDING, REJECTED = approvals_pb2.APPROVAL_STATE_PENDING, approvals_pb2.APPROVAL_STATE_REJECTED


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
    assert refusal(lambda: catalog.approvals.approve(ANN, asked)).reason == "OTHER_PERSON_REQUIRED"
    catalog.approvals.approve(BEN, asked)
    assert in_force(catalog, code) == "50"
    assert catalog.state(code).in_force.origin == pb.RATE_ORIGIN_OPERATOR
    assert catalog.set_rate(code, "52").source_rate == "52"


FALSE: Final = "Set the rate of {} to 120, past the jump guard; it was 86.2 at the request"


def forged(code: str) -> Terms:
    """The values say another rate than the sentence."""
    request = {"currency_code": code, "rate": "8.62", "validity": "as_polled", WAS: "86.2"}
    return Terms(act=rates.SET, object=f"currency:{code}", request=request, summary=FALSE.format(code))


def insert_by_sql(catalog: Catalog, wanted: Terms) -> UUID:
    """Inserts a request as the service's role can, without its act."""
    id = new_id()
    with catalog.deps.db.transaction() as tx:
        tx.execute(
            text(
                "INSERT INTO approvals"
                " (id, act, object, summary, request, requested_by, requested_as, requested_at, note)"
                " VALUES (:id, :act, :object, :summary, CAST(:request AS jsonb), 'ann', 'ann', now(), '')"
            ),
            {
                "id": id,
                "act": wanted.act,
                "object": wanted.object,
                "summary": wanted.summary,
                "request": json.dumps(wanted.request),
            },
        )
    return id


def request_with_act(catalog: Catalog, wanted: Terms) -> UUID:
    """Adds a false act too."""

    def made() -> UUID:
        with catalog.deps.db.transaction() as tx:
            return approvals.request(tx, wanted, at=catalog.clock.now()).id

    return acting(ANN, made)


@pytest.mark.parametrize("insert", [insert_by_sql, request_with_act])
def test_a_request_whose_sentence_is_false_is_neither_shown_nor_approved(
    catalog: Catalog, insert: Callable[[Catalog, Terms], UUID]
) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "86.2")
    asked = str(insert(catalog, forged(code)))
    (listed,) = catalog.approvals.of(f"currency:{code}")
    assert listed.summary == approvals.NO_CALL
    assert refusal(lambda: catalog.approvals.approve(BEN, asked)).reason == "APPROVAL_STATE_CONFLICT"
    assert in_force(catalog, code) == "86.2"
    assert catalog.approvals.reject(BEN, asked).state == REJECTED
    right = requested(ANN, set_anyway(catalog, code, "120"))
    catalog.approvals.approve(BEN, right)
    assert in_force(catalog, code) == "120"


def test_a_request_without_the_act_of_its_call_is_not_approved_and_verify_names_it(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "86.2")
    values = {"currency_code": code, "rate": "8.62", "validity": "as_polled", WAS: "86.2"}
    asked = insert_by_sql(catalog, rates.set_terms(values))
    assert refusal(lambda: catalog.approvals.approve(BEN, str(asked))).reason == "APPROVAL_STATE_CONFLICT"
    problems = check_page(catalog.deps.db, approval_books.PART, after="", limit=1000).problems
    assert [(each.field, each.found) for each in problems if str(asked) in each.subject] == [("act", "none")]


def test_without_anyway_nothing_is_requested(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "100")
    assert refusal(lambda: catalog.set_rate(code, "50")).reason == "RATE_JUMPS"
    assert catalog.approvals.of(f"currency:{code}") == []


def test_a_currency_has_one_request_and_a_direct_rate_ends_it(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "100")
    asked = requested(ANN, set_anyway(catalog, code, "50"))
    assert requested(CID, set_anyway(catalog, code, "50")) == asked
    assert refusal(set_anyway(catalog, code, "40")).reason == "APPROVAL_STATE_CONFLICT"
    catalog.set_rate(code, "101")
    (closed,) = catalog.approvals.of(f"currency:{code}")
    assert (closed.state, closed.decision_note) == (REJECTED, "The rate was set to 101")
    assert refusal(lambda: catalog.approvals.approve(BEN, asked)).reason == "APPROVAL_STATE_CONFLICT"
    assert in_force(catalog, code) == "101"


def test_a_request_for_a_rate_ends_with_the_age_of_rates(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "100")
    asked = requested(ANN, set_anyway(catalog, code, "50"))
    catalog.clock.advance(seconds=catalog.deps.settings.rates_max_age.total_seconds() + 1)
    assert refusal(lambda: catalog.approvals.approve(BEN, asked)).reason == "APPROVAL_STATE_CONFLICT"
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


def test_a_held_rate_that_the_operator_has_not_seen_is_not_accepted(
    held: tuple[Catalog, str], rate_server: RateServer
) -> None:
    catalog, code = held
    rate_server.say("/good", {code: "300"})
    catalog.pull()
    for seen, reason in (
        ("200", "EDIT_CONFLICT"),
        ("200x", "VALIDATION_ERROR"),
        ("300.00", "APPROVAL_REQUIRED"),
    ):
        request = pb.AcceptRateRequest(currency_code=code, expected_source_rate=seen)
        refused = refusal(catalog.stub.AcceptRate, request)
        assert refused.reason == reason
        if reason == "EDIT_CONFLICT":
            assert refused.metadata == {"field": "expected_source_rate", "now": "300"}


@pytest.mark.parametrize("now", ["300", "140"])
def test_a_request_for_a_rate_that_has_moved_on_is_refused(
    held: tuple[Catalog, str], rate_server: RateServer, now: str
) -> None:
    catalog, code = held
    asked = requested(ANN, accept(catalog, code))
    rate_server.say("/good", {code: now})
    catalog.pull()
    assert refusal(lambda: catalog.approvals.approve(BEN, asked)).reason == "APPROVAL_STATE_CONFLICT"
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
    assert refusal(lambda: catalog.approvals.approve(BEN, asked)).reason == "APPROVAL_STATE_CONFLICT"


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


def test_a_forged_request_whose_sentence_is_the_warning_is_not_approved(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "86.2")
    terms = rates.set_terms({"currency_code": code, "rate": "8.62", "validity": "as_polled", WAS: "86.2"})
    asked = insert_by_sql(catalog, replace(terms, summary=approvals.NO_CALL))
    assert refusal(catalog.approvals.approve, BEN, str(asked)).reason == "APPROVAL_STATE_CONFLICT"
    assert in_force(catalog, code) == "86.2"

"""The harness itself: what it counts, and that its verdict can be a bad one."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.failover.events import EVENTS
from tests.failover.figures import (
    Course,
    calls,
    calm_failures,
    failing_seconds,
    late_seconds,
    late_share,
    longest_gap_seconds,
    lost_deals,
    lost_invoices,
    never_again,
    too_late,
)
from tests.failover.witness import told
from tests.faults.checker import Evidence

EMPTY = Evidence(
    invoices={},
    deals=[],
    transitions=[],
    outbox=[],
    transfers=[],
    accounts=[],
    corrections=[],
    refunds=[],
    bank_files=[],
    bank_lines=[],
    line_payments=[],
    line_matches=[],
    events=[],
    parked=[],
    answers=[],
    received=[],
    secrets={},
)


def created(*, ended: float, http: int | None = 201, phase: str = "faults") -> dict[str, Any]:
    body = json.dumps({"invoice_id": "invoice"})
    return {
        "what": "create",
        "phase": phase,
        "began": ended - 0.5,
        "ended": ended,
        "http": http,
        "body": body,
    }


def step(what: str, id: str, *, ended: float = 1, refused: str | None = None) -> dict[str, Any]:
    return {
        "what": what,
        "phase": "faults",
        "id": id,
        "began": ended - 0.5,
        "ended": ended,
        "refused": refused,
    }


def course(*, began: float, in_step: float) -> Course:
    return Course(load=(1, 60), began=began, in_step=in_step, settled_seconds=1, purchases=1, found=[])


def test_failures_are_late_from_the_end_of_the_gap_on() -> None:
    """The longest time in which nothing was done, whatever it was, after the event at 10."""
    answers = [created(ended=each) for each in (1, 9, 30, 31, 60)]
    answers += [created(ended=each, http=503) for each in (5, 20)]
    done = step("confirm", "deal", ended=45)
    assert late_seconds(calls(answers, [done]), since_seconds=10) == 0, "failures in the gap are no late ones"
    refused = step("choose", "invoice", ended=52, refused="DB_UNAVAILABLE")
    assert late_seconds(calls(answers, [done, refused]), since_seconds=10) == 52 - 30


def test_a_round_in_which_a_quarter_of_the_late_calls_fail_is_broken() -> None:
    """Late is what began 15 s after the end of the gap, which is at 30."""
    done = [created(ended=each) for each in (1, 9, 30, 31, 46, 47, 48)]
    failed = [created(ended=each, http=503) for each in (20, 40, 49)]
    share = late_share(calls(done + failed, []), since_seconds=10)
    assert share == 1 / 4
    assert too_late(share) == ["25% of the requests failed from 15 s after the gap on"]
    assert too_late(late_share(calls([*done, created(ended=50), *failed], []), since_seconds=10)) == []


def test_a_gap_is_between_two_that_were_done_and_ends_after_the_event() -> None:
    answers = [created(ended=ended) for ended in (10, 30, 31, 38, 39)] + [created(ended=33, http=503)]
    made = calls(answers, [step("mark", "invoice", ended=45)])

    def gap(what: str, *, since: float, began: float = 8, ended: float = 40) -> float:
        return longest_gap_seconds(made, what, load=(began, ended), since_seconds=since)

    assert gap("create", since=30.5) == 7, "the gap of 20 was before"
    assert gap("create", since=29) == 20, "the event fell into it"
    assert gap("create", since=30.5, ended=60) == 21, "none was done any more"
    assert gap("create", since=9, began=-15) == 25, "none was done before"
    assert gap("confirm", since=30.5) == 32, "none was done at all"
    assert gap("mark", since=30.5) == 37, "done after no purchase began any more"


def test_what_was_never_done_again_is_a_violation() -> None:
    """The event began at 9: what was done before it took effect, or before all was back, proves nothing."""
    made = calls(
        [created(ended=10), created(ended=30.2), created(ended=33, http=503)],
        [step("mark", "invoice", ended=45), step("confirm", "deal", ended=45, refused="DB_UNAVAILABLE")],
    )
    never = [f"no {what} was done after the nodes were in step" for what in ("create", "confirm")]
    assert never_again(made, course(began=9, in_step=30)) == never
    assert never_again(made, course(began=9, in_step=29)) == never[1:]


def test_failures_of_the_calm_are_those_after_the_nodes_were_in_step() -> None:
    made = calls([created(ended=each, http=503) for each in (20, 33, 34)] + [created(ended=35)], [])
    assert calm_failures(made, course(began=9, in_step=30)) == 2
    assert calm_failures(made, course(began=9, in_step=34)) == 0


def test_calls_fail_until_the_last_one_that_was_to_be_asked_again() -> None:
    answers = [created(ended=12, http=503), created(ended=14, http=None), created(ended=15)]
    overtaken = step("confirm", "deal", ended=50, refused="DEAL_STATE_CONFLICT")
    assert failing_seconds(calls(answers, [overtaken]), since_seconds=10) == 4
    late = step("confirm", "deal", ended=21, refused="DB_UNAVAILABLE")
    assert failing_seconds(calls(answers, [late]), since_seconds=10) == 11
    assert failing_seconds(calls([created(ended=15)], []), since_seconds=10) == 0


def test_what_was_answered_and_is_not_in_the_books_is_lost() -> None:
    seen = replace(EMPTY, answers=[created(ended=1)])
    assert lost_invoices(seen) == ["invoice"]
    assert lost_invoices(replace(seen, invoices={"invoice": {}})) == []

    done = [step("mark", "invoice"), step("confirm", "deal")]
    assert len(lost_deals(EMPTY, done)) == 2
    marked = {"deal_id": "deal", "status": "pending", "sub_status": "awaiting_confirmation"}
    books = replace(EMPTY, deals=[{"id": "deal", "invoice_id": "invoice"}], transitions=[marked])
    assert lost_deals(books, done) == ["deal deal was answered as confirmed and is not"]
    confirmed = {"deal_id": "deal", "status": "completed", "sub_status": "completed"}
    assert lost_deals(replace(books, transitions=[marked, confirmed]), done) == []
    unknown = [step("confirm", "deal", refused="DB_UNAVAILABLE")]
    assert lost_deals(EMPTY, unknown) == [], "nobody was told that it was done"


def test_a_node_that_was_cut_off_and_accepts_a_row_breaks_the_round() -> None:
    assert told([5, 6], [], {1, 2}, waiting=False) == []
    assert told([5, 6], [6], {1, 2}, waiting=False) == [
        "the node that was cut off accepted 1 rows, of which 1 are lost"
    ]
    assert told([5, 6], [], {1, 2, 5}, waiting=False) == [
        "1 rows are there that only the node that was cut off was asked to accept"
    ]
    assert told([], [], set(), waiting=False), "a witness that asked nothing proves nothing"
    assert told([5], [], set(), waiting=True)


def test_every_event_has_a_line_in_the_documentation() -> None:
    """docs/reliability.md: a round that no table shows is a promise that nobody reads."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "reliability.md").read_text()
    assert all(f"| `{event}` |" in text for event in EVENTS)

"""What no fault may take away, on real processes: one short round, and the longest outages of the event chain.

The long version is `make faults`; its figures are in docs/reliability.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg2
import pytest
import requests

from deploy.local.waiting import wait_until
from tests.e2e.market import Shop
from tests.faults import checker
from tests.faults.arena import Arena
from tests.faults.checker import Evidence
from tests.faults.people import signed_in
from tests.faults.plan import Fault, Kind, plan
from tests.faults.rounds import Figures, run_round
from tests.faults.trade import Trade
from tests.support.receiver import Receiver
from tests.support.stack import CliRefused

SEED = 20
PROGRAMS = (
    *(
        "webhooks",
        "identity",
        "catalog",
        "invoices",
        "withdrawals",
        "bank",
        "gateway",
        "nats",
        "postgres",
    ),
    *("console-desk", "console-dashboard", "demo-rates"),
)
"""Killed in this order: webhooks first, because a claim that died with it is free again only seconds later."""
FAULTS = (*(Fault(Kind.KILL, each, 0.3, 20.0) for each in PROGRAMS), *plan(SEED, seconds=8))

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def trade(arena: Arena) -> Iterator[Trade]:
    with Trade(arena, Shop.opened(arena.stack)) as opened:
        yield opened


@pytest.fixture(scope="module")
def figures(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Figures:
    """A round of `make faults`, a short one, which kills every process."""
    return run_round(arena, tmp_path_factory.mktemp("round"), FAULTS, seed=SEED, tell=lambda text: None)


# -- the event chain


def _serving(arena: Arena) -> dict[str, str]:
    """What the gateway's /readyz says of each service; with its status code, as `gateway`."""
    answer = requests.get(f"{arena.stack.url}/readyz", timeout=5)
    states: dict[str, str] = answer.json()["services"]
    return states | {"gateway": str(answer.status_code)}


def _wait_until_settled(arena: Arena, shop: Shop, *, seconds: float) -> None:
    left = ""

    def settled() -> bool:
        nonlocal left
        left = checker.unsettled(arena.admin_url, [shop.merchant_id])
        return not left

    try:
        wait_until(settled, "all to arrive", timeout_seconds=seconds, every_seconds=0.1)
    except TimeoutError as late:
        raise TimeoutError(f"{late}: {left}") from None


def test_nats_away_shows_in_readiness_while_merchants_are_served_and_all_comes_through_later(
    arena: Arena, trade: Trade, receiver: Receiver
) -> None:
    with arena.stack.without("nats"):
        wait_until(lambda: _serving(arena)["gateway"] == "503", "readiness to fall", timeout_seconds=15)
        wait_until(
            lambda: _serving(arena)["withdrawals"] == _serving(arena)["webhooks"] == "not serving",
            "both consumers to say so",
            timeout_seconds=10,
        )
        assert _serving(arena)["invoices"] == "serving", "it waits for nobody: creates must answer"
        sold = [trade.sell(receiver.url(f"away-{number}")) for number in range(3)]
        status = {each["service"]: each for each in _status(arena)}
        assert not status["gateway"]["healthy"]
        (facts,) = (each for each in status["invoices"]["gauges"] if each["name"] == "outbox_unpublished")
        assert facts["value"] >= len(sold)
    _wait_until_settled(arena, trade.shop, seconds=30)
    for number in range(len(sold)):
        assert len(receiver.received(f"away-{number}")) == 1


def _status(arena: Arena) -> list[dict[str, Any]]:
    """What `fiatgate status --json` prints while something is ill."""
    with pytest.raises(CliRefused) as ill:
        arena.stack.cli("status")
    assert ill.value.exit_code == 1
    printed: list[dict[str, Any]] = json.loads(ill.value.output[: ill.value.output.rindex("]") + 1])
    return printed


def test_the_loss_of_all_that_nats_has_stored_loses_nothing_and_doubles_nothing(
    arena: Arena, trade: Trade, receiver: Receiver
) -> None:
    arrived = trade.sell(receiver.url("arrived"))
    receiver.wait_for(1, path="arrived")
    _wait_until_settled(arena, trade.shop, seconds=30)
    for consumer in ("withdrawals", "webhooks"):
        arena.stack.stop_program(consumer)
    trade.sell(receiver.url("published"))
    wait_until(lambda: _unpublished(arena) == 0, "it to be published", timeout_seconds=20)
    arena.stack.stop_program("nats")
    try:
        trade.sell(receiver.url("unpublished"))
        assert _unpublished(arena) >= 1, "invoices that expire meanwhile have facts too"
        arena.lose_jetstream()
    finally:
        for program in ("nats", "withdrawals", "webhooks"):
            arena.stack.start_program(program)
    _wait_until_settled(arena, trade.shop, seconds=60)

    arena.stack.wait_until_ready()
    for path in ("arrived", "published", "unpublished"):
        assert len(receiver.received(path)) == 1
    assert arrived.event()["status"] == "success"
    _wait_until_verified(arena)


def _wait_until_verified(arena: Arena) -> None:
    """Right books, but for the triggers of the harness. Events of invoices that expire meanwhile are on their way."""
    found: list[str] = []

    def verified() -> bool:
        with pytest.raises(CliRefused) as ended:
            arena.stack.cli("verify", "--grace-seconds", "0")
        assert ended.value.exit_code == 1
        report = json.loads(ended.value.output[: ended.value.output.rindex("}") + 1])
        found[:] = [each["text"] for each in report["problems"] if "refuse_once" not in each["text"]]
        return not found

    try:
        wait_until(verified, "right books", timeout_seconds=60)
    except TimeoutError:
        pytest.fail("\n".join(found))


def _unpublished(arena: Arena) -> int:
    connection = psycopg2.connect(arena.admin_url("invoices"))
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM outbox WHERE published_at IS NULL")
            row = cursor.fetchone()
    finally:
        connection.close()
    assert row is not None
    return int(row[0])


# -- one short round


def test_no_promise_is_broken_under_faults(arena: Arena, figures: Figures) -> None:
    assert figures.violations == []
    assert arena.stack.programs().keys() == set(PROGRAMS), "each was killed"
    _wait_until_verified(arena)


def test_the_round_was_no_walk_in_the_park(figures: Figures) -> None:
    assert figures.kills > len(PROGRAMS)
    assert figures.faults >= figures.kills + 5
    assert figures.created >= 20
    assert figures.pages >= 10
    statuses = {row["status"] for row in figures.seen.invoices.values()}
    assert statuses == {"success", "fail", "expired", "canceled"}


Harm = Callable[[Evidence], Evidence]


def _without_an_event(seen: Evidence) -> Evidence:
    return replace(seen, events=seen.events[1:])


def _with_an_event_twice(seen: Evidence) -> Evidence:
    return replace(seen, events=[*seen.events, seen.events[0]])


def _without_a_credit(seen: Evidence) -> Evidence:
    credits = [row for row in seen.transfers if str(row["reference"].partition(":")[2]) in seen.invoices]
    return replace(seen, transfers=[row for row in seen.transfers if row is not credits[0]])


def _with_a_credit_twice(seen: Evidence) -> Evidence:
    credits = [row for row in seen.transfers if str(row["reference"].partition(":")[2]) in seen.invoices]
    return replace(seen, transfers=[*seen.transfers, credits[0]])


def _with_a_wrong_balance(seen: Evidence) -> Evidence:
    return replace(
        seen,
        accounts=[dict(row) | {"balance": row["balance"] and row["balance"] + 1} for row in seen.accounts],
    )


def _without_an_invoice(seen: Evidence) -> Evidence:
    created = next(each for each in seen.answers if each["what"] == "create" and each["http"] == 201)
    lost = json.loads(created["body"])["invoice_id"]
    return replace(seen, invoices={id: row for id, row in seen.invoices.items() if id != lost})


def _with_another_end(seen: Evidence) -> Evidence:
    id, invoice = next((id, row) for id, row in seen.invoices.items() if row["status"] == "expired")
    return replace(seen, invoices={**seen.invoices, id: dict(invoice) | {"status": "canceled"}})


def _with_one_step_too_many(seen: Evidence) -> Evidence:
    return replace(seen, transitions=[*seen.transitions, seen.transitions[-1]])


def _without_a_delivery(seen: Evidence) -> Evidence:
    body = seen.received[0]["body"]
    return replace(seen, received=[each for each in seen.received if each["body"] != body])


def _with_other_bytes(seen: Evidence) -> Evidence:
    first, *rest = seen.received
    other = next(each["body"] for each in rest if each["body"] != first["body"])
    return replace(seen, received=[dict(first) | {"body": other}, *rest])


def _with_an_undocumented_failure(seen: Evidence) -> Evidence:
    answer = dict(seen.answers[0]) | {"http": 502, "body": "<html>Bad gateway</html>"}
    return replace(seen, answers=[answer, *seen.answers])


def _with_a_late_failure(seen: Evidence) -> Evidence:
    answer = dict(seen.answers[0]) | {"http": None, "phase": "after"}
    return replace(seen, answers=[answer, *seen.answers])


def _with_a_fact_unpublished(seen: Evidence) -> Evidence:
    return replace(seen, outbox=[dict(seen.outbox[0]) | {"published_at": None}])


def _with_a_line_that_pays_twice(seen: Evidence) -> Evidence:
    other = dict(seen.line_payments[0]) | {"deal_id": seen.deals[0]["id"]}
    both = [*seen.line_payments, other]
    return replace(seen, line_payments=both, line_matches=both)


def _with_a_payment_unknown_to_bank(seen: Evidence) -> Evidence:
    return replace(seen, line_matches=seen.line_matches[1:])


def _with_half_a_file(seen: Evidence) -> Evidence:
    return replace(seen, bank_lines=seen.bank_lines[1:])


def test_the_end_of_a_session_that_should_live_is_noticed(arena: Arena) -> None:
    people = signed_in(arena.stack)
    assert people.violations() == []
    people.pairs[0][0].sign_out()
    assert people.violations() == ["desk: a session that was not ended is refused, 1 times"]


@pytest.mark.parametrize(
    "harm",
    [
        _without_an_event,
        _with_an_event_twice,
        _without_a_credit,
        _with_a_credit_twice,
        _with_a_wrong_balance,
        _without_an_invoice,
        _with_another_end,
        _with_one_step_too_many,
        _without_a_delivery,
        _with_other_bytes,
        _with_an_undocumented_failure,
        _with_a_late_failure,
        _with_a_fact_unpublished,
        _with_a_line_that_pays_twice,
        _with_a_payment_unknown_to_bank,
        _with_half_a_file,
    ],
)
def test_the_checker_notices(figures: Figures, harm: Harm) -> None:
    assert checker.violations(figures.seen) == []
    assert checker.violations(harm(figures.seen)) != []

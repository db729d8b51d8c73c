"""Lines of connectors: taken once, in legal steps, for the accounts of the key; and what becomes of their deals."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from decimal import Decimal
from uuid import uuid4

import pytest
from sqlalchemy import text

from kit.db.queues import waiting
from services.bank.domain.feed import Outcome
from services.bank.domain.lines import Direction, Line, Status
from services.bank.domain.proposals import LineState
from services.bank.operations import connectors, feed, importing, lines
from services.bank.operations.connectors import NewConnector
from services.bank.operations.feed import Posted
from services.bank.store import lines as stored_lines
from services.bank.store.queues import QUEUES
from services.bank.store.views import ConnectorView, LineView, MatchView
from services.bank.wiring import Deps
from tests.bank.shapes import entry
from tests.bank.test_connectors import made
from tests.bank.test_importing import imported, of, problems, stored
from tests.support.acting import refusal
from tests.support.clock import ManualClock

CALLERS = 20
PENDING, BOOKED, REVERSED = Status.PENDING, Status.BOOKED, Status.REVERSED


def line(source_id: str, account: str = "F1", **given: object) -> Line:
    usual = Line(
        account=account,
        direction=Direction.CREDIT,
        amount=Decimal("10.50"),
        currency="EUR",
        status=BOOKED,
        booked_on=date(2026, 1, 14),
        valued_on=None,
        position="lines.0",
        source_id=source_id,
        counterparty_name="Eva Example",
        text="from the bank",
        references=("E2E",),
    )
    return replace(usual, **given)  # type: ignore[arg-type]  # the values of a line


def post(bank: Deps, key: NewConnector, *posted: Line) -> Sequence[Posted]:
    return feed.post_lines(bank, connector_id=str(key.connector_id), lines=posted)


def outcomes(bank: Deps, key: NewConnector, *posted: Line) -> list[str]:
    return [each.outcome for each in post(bank, key, *posted)]


def listed(bank: Deps, key: NewConnector, **given: str) -> Sequence[LineView]:
    asked = {"source_id": "", "account": "", "after_line_id": ""} | given
    return feed.list_posted_lines(bank, connector_id=str(key.connector_id), limit=0, **asked)


def new_key(bank: Deps, *accounts: str) -> NewConnector:
    return made(bank, *accounts, name=f"till-{uuid4()}")


def connector_of(bank: Deps, key: NewConnector) -> ConnectorView:
    return next(
        each.connector for each in connectors.list_connectors(bank) if each.connector.id == key.connector_id
    )


def paid(bank: Deps, of_line: LineView, number: int) -> None:
    """What invoices says once the line has paid a deal."""
    match = MatchView(number, of_line.id, uuid4(), uuid4(), of_line.amount, bank.clock.now())
    with bank.db.transaction() as tx:
        stored_lines.add_matches(tx, [match])


def test_each_line_is_taken_once_by_a_key_and_by_the_next_key_of_its_name(bank: Deps) -> None:
    key = made(bank, "F1:EUR", name="bank-one")
    assert outcomes(bank, key, line("a"), line("b"), line("a")) == ["created", "created", "duplicate"]
    assert outcomes(bank, made(bank, "F1:EUR", name="bank-one"), line("a")) == ["duplicate"]
    assert outcomes(bank, made(bank, "F2:EUR", name="bank-two"), line("a", "F2")) == ["created"]
    assert {feed.source_id_of(each) for each in listed(bank, key)} == {"a", "b"}
    (one,) = listed(bank, key, source_id="a")
    assert (one.text, one.reference_texts, one.state) == ("from the bank", "E2E", LineState.WAITING)
    assert {each.identity for each in listed(bank, key, account="F-1")} == {"id:bank-one:a", "id:bank-one:b"}
    assert problems(bank) == set()


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((PENDING, BOOKED, REVERSED), ["created", "updated", "updated"]),
        ((PENDING, REVERSED, REVERSED), ["created", "updated", "duplicate"]),
        ((BOOKED, PENDING), ["created", "conflict"]),
        ((REVERSED, BOOKED), ["created", "conflict"]),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_line_takes_legal_steps_only(
    bank: Deps, steps: Sequence[Status], expected: list[str], at_once: bool
) -> None:
    key = new_key(bank, "F3:EUR")
    posted = [line("a", "F3", status=each) for each in steps]
    if at_once:
        assert outcomes(bank, key, *posted) == expected
    else:
        assert [outcomes(bank, key, each)[0] for each in posted] == expected
    assert problems(bank) == set()


@pytest.mark.parametrize(
    "other",
    [
        {"amount": Decimal("10.51")},
        {"account": "F5"},
        {"direction": Direction.DEBIT},
    ],
)
def test_other_values_of_a_known_line_are_a_conflict_and_change_nothing(
    bank: Deps, other: dict[str, object]
) -> None:
    key = new_key(bank, "F4:EUR", "F5:EUR")
    post(bank, key, line("a", "F4", status=PENDING))
    (found,) = post(bank, key, replace(line("a", "F4"), **other))  # type: ignore[arg-type]
    assert found.outcome is Outcome.CONFLICT and next(iter(other)) in found.why
    assert [each.status for each in listed(bank, key)] == [PENDING]


def test_a_pending_line_is_booked_with_the_texts_of_the_booked_one_and_later_ones_do_not_count(
    bank: Deps,
) -> None:
    key = new_key(bank, "F6:EUR")
    post(bank, key, line("a", "F6", status=PENDING, booked_on=None, text="soon"))
    post(bank, key, line("a", "F6", text="with the reference"))
    assert outcomes(bank, key, line("a", "F6", text="another")) == ["duplicate"]
    assert outcomes(bank, key, line("a", "F6", status=REVERSED, booked_on=None)) == ["updated"]
    (one,) = listed(bank, key)
    assert (one.text, one.booked_on, one.state) == (
        "with the reference",
        date(2026, 1, 14),
        LineState.REVERSED,
    )
    assert problems(bank) == set()


def test_twenty_posts_of_the_same_lines_at_once_take_each_once(bank: Deps) -> None:
    key = new_key(bank, "F7:EUR")
    posted = [line(str(number), "F7") for number in range(10)]
    with ThreadPoolExecutor(CALLERS) as pool:
        found = Counter(
            each for some in pool.map(lambda _: outcomes(bank, key, *posted), range(CALLERS)) for each in some
        )
    assert found == {"created": 10, "duplicate": 10 * (CALLERS - 1)}
    assert len(stored(bank, "F7")) == 10


@pytest.mark.parametrize("wrong", [{"account": "F9"}, {"currency": "USD"}])
def test_a_line_of_another_account_refuses_the_whole_post(bank: Deps, wrong: dict[str, object]) -> None:
    key = new_key(bank, "F8:EUR")
    refused = refusal(post, bank, key, line("a", "F8"), line("b", **{"account": "F8"} | wrong))  # type: ignore[arg-type]
    assert refused.reason == "FEED_ACCOUNT_NOT_ALLOWED"
    assert not listed(bank, key)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"amount": Decimal(0)}, "amount"),
        ({"amount": Decimal("1.001")}, "amount"),
        ({"amount": Decimal("1e20")}, "amount"),
        ({"amount": Decimal("1.5"), "currency": "JPY"}, "amount"),
        ({"booked_on": None}, "booked_on"),
        ({"booked_on": date(2026, 1, 17)}, "booked_on"),
        ({"valued_on": date(9999, 1, 1)}, "valued_on"),
    ],
)
def test_a_wrong_value_names_the_line(bank: Deps, wrong: dict[str, object], field: str) -> None:
    refused = refusal(post, bank, new_key(bank, "F8:EUR"), line("a", "F8", **wrong))
    assert (refused.reason, refused.metadata["field"]) == ("VALIDATION_ERROR", f"lines.0.{field}")


def test_a_key_reads_only_the_lines_of_its_accounts(bank: Deps) -> None:
    wide = new_key(bank, "F17:EUR", "F18:EUR", "F18:USD")
    post(bank, wide, line("a", "F17"), line("b", "F18"), line("c", "F18", currency="USD"))
    narrow = made(bank, "F18:EUR", name=connector_of(bank, wide).name)
    assert [each.account for each in listed(bank, narrow)] == ["F18"]
    assert listed(bank, narrow, source_id="a") == listed(bank, narrow, account="F17") == []
    for wrong in ("a\0b", "x" * 201):
        assert refusal(listed, bank, narrow, source_id=wrong).metadata["field"] == "source_id"
    assert refusal(listed, bank, narrow, account="\0-").metadata["field"] == "account"


def test_a_revoked_and_an_unknown_key_are_refused_and_a_heartbeat_is_heard(bank: Deps) -> None:
    key = new_key(bank, "F8:EUR")
    assert feed.find_connector(bank, key=key.key) == key.connector_id
    assert post(bank, key) == []
    found = {each.connector.id: each.connector for each in connectors.list_connectors(bank)}
    assert found[key.connector_id].heard_at == bank.clock.now()
    connectors.revoke_connector(bank, connector_id=str(key.connector_id))
    for call, given in (
        (feed.find_connector, {"key": key.key}),
        (feed.find_connector, {"key": "fgc_"}),
        (feed.post_lines, {"connector_id": str(key.connector_id), "lines": ()}),
        (feed.post_lines, {"connector_id": "x", "lines": ()}),
    ):
        assert refusal(call, bank, **given).reason == "API_KEY_INVALID"


def test_a_key_that_sql_made_is_refused(bank: Deps) -> None:
    key = new_key(bank, "F8:EUR")
    copied = "INSERT INTO connectors SELECT gen_random_uuid(), name, hint, :hash, accounts, silence_seconds,"
    with bank.db.transaction() as tx:
        tx.execute(
            text(f"{copied} created_at, heard_at, revoked_at FROM connectors WHERE id = :id"),
            {"id": key.connector_id, "hash": connectors.hash_of("fgc_mine")},
        )
    assert refusal(feed.find_connector, bank, key="fgc_mine").reason == "API_KEY_INVALID"


def test_a_line_that_sql_changed_is_not_sealed_anew(bank: Deps) -> None:
    key = new_key(bank, "F10:EUR")
    post(bank, key, line("a", "F10", status=PENDING))
    with bank.db.transaction() as tx:
        tx.execute(text("UPDATE lines SET counterparty_name = 'Eve' WHERE account = 'F10'"))
    (found,) = post(bank, key, line("a", "F10"))
    assert found.outcome is Outcome.CONFLICT and "past the service" in found.why
    with bank.db.transaction() as tx:
        tx.execute(text("UPDATE lines SET counterparty_name = 'Eva Example' WHERE account = 'F10'"))
    assert outcomes(bank, key, line("a", "F10")) == ["updated"]


def test_a_line_that_is_reversed_after_it_paid_stays_reversed(bank: Deps) -> None:
    key = new_key(bank, "F11:EUR")
    post(bank, key, line("a", "F11"), line("b", "F11"))
    early, late = (listed(bank, key, source_id=each)[0] for each in ("a", "b"))
    paid(bank, early, 1)
    assert listed(bank, key, source_id="a")[0].state is LineState.MATCHED
    post(bank, key, line("a", "F11", status=REVERSED), line("b", "F11", status=REVERSED))
    paid(bank, late, 2)
    assert {each.state for each in listed(bank, key)} == {LineState.REVERSED}
    assert all(each.matches for each in listed(bank, key))
    assert waiting_in(bank, "bank_lines_reversed") == 2
    lines.ignore_line(bank, line_id=str(early.id), reason="reversed by a correction")
    assert waiting_in(bank, "bank_lines_reversed") == 1
    lines.restore_line(bank, line_id=str(early.id))
    assert waiting_in(bank, "bank_lines_reversed") == 2
    assert problems(bank) == set()


def test_money_that_the_bank_takes_back_after_its_rest_was_ignored_is_seen(bank: Deps) -> None:
    key = new_key(bank, "F14:EUR")
    post(bank, key, line("a", "F14"), line("b", "F14"))
    whole, part = listed(bank, key)
    before = waiting_in(bank, "bank_lines_reversed")
    paid(bank, replace(part, amount=Decimal(4)), 3)
    for each in (whole, part):
        lines.ignore_line(bank, line_id=str(each.id), reason="the rest")
    post(bank, key, line("a", "F14", status=REVERSED), line("b", "F14", status=REVERSED))
    found = {each.id: (each.state, each.reason) for each in listed(bank, key)}
    assert found == {part.id: (LineState.REVERSED, None), whole.id: (LineState.IGNORED, "the rest")}
    assert waiting_in(bank, "bank_lines_reversed") == before + 1
    assert problems(bank) == set()


def test_a_file_that_takes_money_back_is_seen_until_it_is_settled(bank: Deps) -> None:
    before = waiting_in(bank, "bank_lines_reversed")
    taken_back = "<RvslInd>true</RvslInd>"
    imported(bank, of("F15", *(entry("10.00", mark=mark, before=taken_back) for mark in ("DBIT", "CRDT"))))
    assert {each.state for each in stored(bank, "F15")} == {LineState.REVERSED}
    assert waiting_in(bank, "bank_lines_reversed") == before + 1
    for each in stored(bank, "F15"):
        lines.ignore_line(bank, line_id=str(each.id), reason="settled")
    assert waiting_in(bank, "bank_lines_reversed") == before
    assert problems(bank) == set()


def test_a_line_that_has_paid_when_it_is_ignored_is_matched_once_it_is_put_back(bank: Deps) -> None:
    key = new_key(bank, "F16:EUR")
    post(bank, key, line("a", "F16"))
    (one,) = listed(bank, key)
    lines.ignore_line(bank, line_id=str(one.id), reason="ours")
    paid(bank, one, 4)
    assert problems(bank) == {"paid"}, "its money may have been used otherwise"
    lines.restore_line(bank, line_id=str(one.id))
    assert [each.state for each in listed(bank, key)] == [LineState.MATCHED]
    assert problems(bank) == set()


def waiting_in(bank: Deps, name: str) -> int:
    with bank.db.autocommit() as connection:
        return {each.name: each.count for each in waiting(connection, QUEUES, now=bank.clock.now())}[name]


def test_a_connector_that_is_silent_beyond_its_limit_waits_until_it_is_heard_or_revoked(bank: Deps) -> None:
    clock = bank.clock
    assert isinstance(clock, ManualClock)
    silent, revoked = (made(bank, name=f"silent-{uuid4()}", silence_seconds=60) for _ in range(2))
    made(bank, name=f"unbounded-{uuid4()}")
    assert waiting_in(bank, "bank_connectors_silent") == 0
    clock.advance(seconds=61)
    assert waiting_in(bank, "bank_connectors_silent") == 2
    post(bank, silent)
    connectors.revoke_connector(bank, connector_id=str(revoked.connector_id))
    assert waiting_in(bank, "bank_connectors_silent") == 0


def test_an_ignored_pending_line_stays_ignored_when_it_is_booked(bank: Deps) -> None:
    """By a file too: before, the whole file was refused."""
    key = new_key(bank, "F12:EUR")
    post(bank, key, line("a", "F12", status=PENDING))
    imported(bank, of("F13", entry("10.00", status="<Cd>PDNG</Cd>")))
    for (each,) in (stored(bank, "F12"), stored(bank, "F13")):
        lines.ignore_line(bank, line_id=str(each.id), reason="ours")
    post(bank, key, line("a", "F12"))
    assert imported(bank, of("F13", entry("10.00"))).file.problem is None
    for (each,) in (stored(bank, "F12"), stored(bank, "F13")):
        assert (each.state, each.status, each.reason) == (LineState.IGNORED, BOOKED, "ours")
        lines.restore_line(bank, line_id=str(each.id))
    assert problems(bank) == set()
    assert importing.read_next(bank) is False

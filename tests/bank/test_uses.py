"""A line's money is used once: by deals, or by the correction or refund that a form makes of it."""

from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest
from sqlalchemy import text

from services.bank.domain.lines import Status
from services.bank.domain.proposals import LineState, Proposal, Tier
from services.bank.operations import lines
from services.bank.operations.connectors import NewConnector
from services.bank.store.lines import save_proposals
from services.bank.store.views import TRY_LASTS, LineView
from services.bank.wiring import Deps
from tests.bank.test_feed import line, new_key, post, waiting_in
from tests.bank.test_importing import problems, stored
from tests.support.acting import refusal
from tests.support.clock import ManualClock


def came(bank: Deps, account: str) -> tuple[NewConnector, LineView]:
    """A booked line of 10.50 without a deal, and its key."""
    key = new_key(bank, f"{account}:EUR")
    post(bank, key, line("a", account))
    (found,) = stored(bank, account)
    with bank.db.transaction() as tx:
        save_proposals(tx, {found.id: Proposal(tier=Tier.NONE)})
    return key, found


def later(bank: Deps) -> None:
    assert isinstance(bank.clock, ManualClock)
    bank.clock.advance(seconds=TRY_LASTS / timedelta(seconds=1))


def now(bank: Deps, account: str) -> tuple[LineState, str | None, bool]:
    (found,) = stored(bank, account)
    return found.state, found.used_for, found.is_payable


def test_a_used_line_stays_in_the_list_and_pays_nothing_until_it_is_freed_or_ignored(bank: Deps) -> None:
    id, use, other = str(came(bank, "U1")[1].id), f"correction:{uuid4()}", f"refund:{uuid4()}"
    keep = partial(lines.use_line, bank, line_id=id, left="10.50", used_for=use)
    release = partial(lines.release_line, bank, line_id=id)
    assert refusal(keep, left="10.00").message == "The line is unmatched, and 10.50 of it is left"
    for wrong in ("", "x", "correction:x", f"deal:{uuid4()}"):
        assert refusal(keep, used_for=wrong).metadata["field"] == "used_for"
    claim = keep()
    assert now(bank, "U1") == (LineState.UNMATCHED, use, False)
    assert problems(bank) == set()
    for taken in (partial(keep, used_for=other), partial(lines.claim_line, bank, line_id=id, anew=False)):
        assert refusal(taken).reason == "BANK_LINE_CONFLICT"
    assert claim is not None
    release(claimed_at=claim - timedelta(seconds=1))
    assert now(bank, "U1")[1] == use, "of another call"
    release(claimed_at=claim)
    assert now(bank, "U1") == (LineState.UNMATCHED, None, True)

    claim = keep()
    bank.clock.advance(seconds=1)  # type: ignore[attr-defined]  # it is moved by hand
    assert keep() is None, "twice at once: neither frees it for the other"
    release(claimed_at=claim)
    assert now(bank, "U1")[1] == use
    lines.ignore_line(bank, line_id=id, reason="Credited")
    lines.ignore_line(bank, line_id=id, reason="Credited")
    assert keep() is None, "the same form again"
    release(claimed_at=bank.clock.now())
    assert now(bank, "U1") == (LineState.IGNORED, use, False)
    assert problems(bank) == set()


def test_a_used_line_is_put_back_only_by_who_names_what_did_not_come_of_it(bank: Deps) -> None:
    id, use = str(came(bank, "U2")[1].id), f"refund:{uuid4()}"
    lines.use_line(bank, line_id=id, left="10.50", used_for=use)
    restore = partial(lines.restore_line, bank, line_id=id)
    for ignored in (False, True):
        if ignored:
            lines.ignore_line(bank, line_id=id, reason="Returned")
        for named in ("", f"refund:{uuid4()}"):
            assert "put it back at the desk" in refusal(restore, used_for=named).message
    assert "try again in a minute" in refusal(restore, used_for=use).message, "it may just be made"
    later(bank)
    restore(used_for=use)
    assert now(bank, "U2") == (LineState.WAITING, None, False)
    assert problems(bank) == set()


@pytest.mark.parametrize("is_ignored", [True, False])
def test_a_used_line_that_the_bank_takes_back_waits_for_people(bank: Deps, is_ignored: bool) -> None:
    account = f"U3{is_ignored:d}"
    key, found = came(bank, account)
    use, before = f"correction:{uuid4()}", waiting_in(bank, "bank_lines_reversed")
    lines.use_line(bank, line_id=str(found.id), left="10.50", used_for=use)
    if is_ignored:
        lines.ignore_line(bank, line_id=str(found.id), reason="Credited")
    post(bank, key, line("a", account, status=Status.REVERSED))
    assert now(bank, account) == (LineState.REVERSED, use, False)
    assert waiting_in(bank, "bank_lines_reversed") == before + 1
    lines.ignore_line(bank, line_id=str(found.id), reason="settled")
    assert waiting_in(bank, "bank_lines_reversed") == before
    lines.restore_line(bank, line_id=str(found.id))
    assert now(bank, account) == (LineState.REVERSED, use, False)
    assert problems(bank) == set()


@pytest.mark.parametrize("field", ["status", "used_for", "reason"])
def test_a_line_that_sql_puts_back_is_named_and_not_used(bank: Deps, field: str) -> None:
    account = "U4" + field.replace("_", "").upper()
    key, found = came(bank, account)
    before = problems(bank)
    if field == "status":
        post(bank, key, line("a", account, status=Status.REVERSED))
    elif field == "used_for":
        lines.use_line(bank, line_id=str(found.id), left="10.50", used_for=f"refund:{uuid4()}")
        later(bank)
    else:
        lines.ignore_line(bank, line_id=str(found.id), reason="ours")
    back = "UPDATE lines SET status = 'booked', seal = :seal, state = 'unmatched', reason = NULL, used_for = NULL"
    with bank.db.transaction() as tx:
        tx.execute(text(f"{back} WHERE id = :id"), {"id": found.id, "seal": found.seal})
    assert problems(bank) == before | {field}
    for use in (
        partial(lines.claim_line, bank, anew=False),
        partial(lines.use_line, bank, left="10.50", used_for=f"refund:{uuid4()}"),
    ):
        assert refusal(use, line_id=str(found.id)).reason == "NOT_DECIDED"

"""Lines as operators see them, and those that they ignore."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Final

from sqlalchemy.orm import Session

from fiatgate.bank.v1 import bank_pb2 as pb
from kit.audit import acts
from kit.audit.decisions import before_by_acts
from kit.base.account_forms import account_key
from kit.base.money import fiat_text
from kit.base.proto import most_of
from kit.db.database import refusing, retry_conflicts
from kit.rpc import values
from kit.rpc.errors import not_decided
from services.bank import errors
from services.bank.domain.lines import Status
from services.bank.domain.proposals import OPEN_STATES, LineState, Tier, first_state
from services.bank.operations import proposing
from services.bank.store import lines
from services.bank.store.decisions import REFUNDED, is_as_read, is_put_back
from services.bank.store.views import LineView
from services.bank.wiring import Deps

LINES_MOST: Final = 1000
_USES: Final = re.compile(r"(correction|refund):[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_CLAIMED: Final = "is being confirmed: try again in a minute"
REASON_MAX_CHARACTERS: Final = most_of(pb.IgnoreLineRequest, "reason")


def list_lines(
    deps: Deps,
    *,
    state: LineState | None,
    tier: Tier | None,
    account: str,
    deal_id: str,
    limit: int,
    after_line_id: str,
    line_ids: Sequence[str] = (),
    amount: str = "",
) -> Sequence[LineView]:
    """Returns lines, newest first."""
    values.at_most("line_ids", line_ids, LINES_MOST)
    with deps.db.autocommit() as connection:
        return lines.listed(
            connection,
            values.rows(limit),
            state=state,
            tier=tier,
            account=account_key(account),
            deal_id=values.uuid("deal_id", deal_id) if deal_id else None,
            after=values.uuid("after_line_id", after_line_id) if after_line_id else None,
            amount=values.decimal("amount", amount) if amount else None,
            ids=[values.uuid("line_ids", each) for each in line_ids],
        )


def get_line(deps: Deps, *, line_id: str) -> LineView:
    """Raises BANK_LINE_NOT_FOUND; NOT_DECIDED for one that SQL wrote."""
    id = values.uuid_or(errors.line_not_found, line_id)
    with deps.db.autocommit() as connection:
        found = lines.by_id(connection, id)
    if found is None:
        raise errors.line_not_found()
    if not is_as_read(deps.settings.seals, found):
        raise not_decided("bank line")
    return found


def claim_line(deps: Deps, *, line_id: str, anew: bool) -> LineView:
    """Claims a line by which a person confirms or links a deal: nobody else uses it until TRY_LASTS is over or the
    claim is released. Raises BANK_LINE_NOT_FOUND, NOT_DECIDED; BANK_LINE_CONFLICT, also when it is proposed `anew` and
    that differs.
    """
    found = get_line(deps, line_id=line_id)
    if anew and found.is_payable and not proposing.is_proposed_now(deps, found):
        raise errors.line_conflict("has another proposal by now: look at it again")
    with deps.db.transaction() as tx:
        line, now = _locked(tx, line_id), deps.clock.now()
        _require_payable(deps, tx, line, line.left)
        lines.set_claim(tx, line.id, tried_at=now)
    return replace(line, tried_at=now)


@retry_conflicts
def use_line(deps: Deps, *, line_id: str, left: str, used_for: str) -> datetime | None:
    """Keeps what is left of a line for a correction or a refund, which is made next. Returns the claim for
    `release_line`; None when the same call is under way or has ended well. Raises BANK_LINE_NOT_FOUND, NOT_DECIDED,
    BANK_LINE_CONFLICT.
    """
    rest = values.decimal("left", left)
    if not _USES(used_for):
        raise values.invalid("used_for", "Expected correction:UUID or refund:UUID")
    _follow(deps)
    with deps.db.transaction() as tx:
        line, now = _locked(tx, line_id), deps.clock.now()
        is_first = not line.is_being_confirmed(now)
        if line.used_for != used_for or line.status is not Status.BOOKED:
            _require_payable(deps, tx, line, rest)
        elif line.state is LineState.IGNORED:
            return None
        lines.set_claim(tx, line.id, tried_at=now, used_for=used_for)
        before = {"used_for": line.used_for}
        acts.record(tx, "bank-line.use", f"bank-line:{line.id}", before=before, after={"used_for": used_for})
    return now if is_first else None


def _require_payable(deps: Deps, tx: Session, line: LineView, left: Decimal) -> None:
    if not is_as_read(deps.settings.seals, line) or is_put_back(tx, line):
        raise not_decided("bank line")
    if line.is_being_confirmed(deps.clock.now()):
        raise errors.line_conflict(_CLAIMED)
    if line.used_for is not None:
        raise errors.line_conflict(f"is used for {line.used_for}")
    if not line.is_payable or line.left != left:
        raise errors.line_conflict(f"is {line.state}, and {fiat_text(line.left)} of it is left")


@retry_conflicts
def release_line(deps: Deps, *, line_id: str, claimed_at: datetime | None) -> None:
    """Ends a claim or a use, if it is the last one and the line was not ignored. Raises BANK_LINE_NOT_FOUND."""
    _follow(deps)
    with deps.db.transaction() as tx:
        line = _locked(tx, line_id)
        if claimed_at is None or line.tried_at != claimed_at or line.state is LineState.IGNORED:
            return
        lines.set_claim(tx, line.id, tried_at=None)
        before = {"used_for": line.used_for}
        acts.record(tx, "bank-line.restore", f"bank-line:{line.id}", before=before, after={"used_for": None})


@retry_conflicts
def ignore_line(deps: Deps, *, line_id: str, reason: str) -> None:
    """Takes a line, or what is left of it, out of the work, also one that was reversed. The same call about a line that
    is used is the same. Raises BANK_LINE_NOT_FOUND, BANK_LINE_CONFLICT.
    """
    why = values.text("reason", reason.strip(), most=REASON_MAX_CHARACTERS)
    _follow(deps)
    with deps.db.transaction() as tx:
        line = _locked(tx, line_id)
        if line.used_for and (line.state, line.reason) == (LineState.IGNORED, why):
            return
        if line.state not in (LineState.WAITING, LineState.REVERSED, *OPEN_STATES):
            raise errors.line_conflict(f"is {line.state}")
        if line.used_for is None and line.is_being_confirmed(deps.clock.now()):
            raise errors.line_conflict(_CLAIMED)
        lines.set_state(tx, line.id, LineState.IGNORED, reason=why, used_for=line.used_for)
        acts.record(tx, "bank-line.ignore", f"bank-line:{line.id}", after={"reason": why})


@retry_conflicts
def restore_line(deps: Deps, *, line_id: str, used_for: str = "") -> None:
    """Puts a line back that is ignored, or used for this and nothing came of it, to be looked at anew. Raises
    BANK_LINE_NOT_FOUND, BANK_LINE_CONFLICT.
    """
    with deps.db.transaction() as tx:
        line = _locked(tx, line_id)
        if line.state is not LineState.IGNORED and line.used_for is None:
            raise errors.line_conflict("is not ignored")
        is_gone = line.status is Status.REVERSED
        if line.used_for is not None and not is_gone:
            if line.used_for != used_for:
                raise errors.line_conflict(f"is used for {line.used_for}: put it back at the desk")
            if line.is_being_confirmed(deps.clock.now()):
                raise errors.line_conflict(_CLAIMED)
        state = first_state(line.direction, line.status)
        if state is LineState.WAITING and not line.left:
            state = LineState.MATCHED
        kept = line.used_for if is_gone else None
        lines.set_state(tx, line.id, state, reason=None, used_for=kept)
        before = {"reason": line.reason, "used_for": line.used_for}
        after = {"reason": None, "used_for": kept}
        acts.record(tx, "bank-line.restore", f"bank-line:{line.id}", before=before, after=after)


def _locked(tx: Session, line_id: str) -> LineView:
    line = lines.locked(tx, values.uuid_or(errors.line_not_found, line_id))
    if line is None:
        raise errors.line_not_found()
    return line


def _follow(deps: Deps) -> None:
    while proposing.follow_step(deps):
        pass


@retry_conflicts
def link_refund(deps: Deps, *, line_id: str, refund_id: str) -> None:
    """Says which refund a line that went out is; empty: none. Raises BANK_LINE_NOT_FOUND, BANK_LINE_CONFLICT."""
    id = values.uuid_or(errors.line_not_found, line_id)
    refund = values.uuid("refund_id", refund_id) if refund_id else None
    with deps.db.transaction() as tx:
        line = lines.locked(tx, id)
        if line is None:
            raise errors.line_not_found()
        if line.state is not LineState.OUTGOING:
            raise errors.line_conflict("did not go out")
        with refusing(
            {"uq_lines_refund": lambda: errors.line_conflict("is not the first one of this refund")}
        ):
            lines.set_refund(tx, id, refund)
        before = before_by_acts(tx, REFUNDED, id)
        acts.record(tx, "bank-line.link", f"bank-line:{id}", before=before, after={"refund_id": refund})


def follow_payments(deps: Deps, *, replace_after: int | None) -> int:
    """Returns where the next call goes on, 0 when nothing is left. Raises VALIDATION_ERROR."""
    if replace_after is None:
        proposing.follow_step(deps)
        return 0
    after = values.whole_number("replace_after", replace_after, least=0)
    return proposing.replace_payments(deps, after=after)

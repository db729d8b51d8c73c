"""Lines as operators see them, and those that they ignore."""

from collections.abc import Sequence
from typing import Final

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
from services.bank.domain.proposals import OPEN_STATES, LineState, Tier, first_state
from services.bank.operations import proposing
from services.bank.store import lines
from services.bank.store.decisions import REFUNDED, is_as_read
from services.bank.store.views import LineView
from services.bank.wiring import Deps

LINES_MOST: Final = 1000
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
            ids=[values.uuid("line_ids", each) for each in line_ids],
        )


def get_line(deps: Deps, *, line_id: str, anew: bool = False) -> LineView:
    """Raises BANK_LINE_NOT_FOUND; NOT_DECIDED for one that SQL wrote; BANK_LINE_CONFLICT when it is proposed `anew` and
    that differs.
    """
    id = values.uuid_or(errors.line_not_found, line_id)
    with deps.db.autocommit() as connection:
        found = lines.by_id(connection, id)
    if found is None:
        raise errors.line_not_found()
    if not is_as_read(deps.settings.seals, found):
        raise not_decided("bank line")
    if anew and found.is_payable and not proposing.is_proposed_now(deps, found):
        raise errors.line_conflict("has another proposal by now: look at it again")
    return found


@retry_conflicts
def ignore_line(deps: Deps, *, line_id: str, reason: str, left: str = "") -> None:
    """Takes a line, or what is left of it, out of the work, also one that was reversed. With `left` its money is used
    otherwise: so much has to be left, and the same call again is the same. Raises BANK_LINE_NOT_FOUND,
    BANK_LINE_CONFLICT.
    """
    id = values.uuid_or(errors.line_not_found, line_id)
    why = values.text("reason", reason.strip(), most=REASON_MAX_CHARACTERS)
    rest = values.decimal("left", left) if left else None
    while proposing.follow_step(deps):
        pass
    with deps.db.transaction() as tx:
        line = lines.locked(tx, id)
        if line is None:
            raise errors.line_not_found()
        if rest is not None and (line.state, line.reason, line.left) == (LineState.IGNORED, why, rest):
            return
        if line.state not in (LineState.WAITING, LineState.REVERSED, *OPEN_STATES):
            raise errors.line_conflict(f"is {line.state}")
        if line.is_being_confirmed(deps.clock.now()):
            raise errors.line_conflict("is being confirmed: try again in a minute")
        if rest is not None and not (line.is_payable and line.left == rest):
            raise errors.line_conflict(f"is {line.state}, and {fiat_text(line.left)} of it is left")
        lines.set_state(tx, id, LineState.IGNORED, reason=why)
        acts.record(tx, "bank-line.ignore", f"bank-line:{id}", after={"reason": why})


@retry_conflicts
def restore_line(deps: Deps, *, line_id: str) -> None:
    """Puts an ignored line back, to be looked at anew. Raises BANK_LINE_NOT_FOUND, BANK_LINE_CONFLICT."""
    id = values.uuid_or(errors.line_not_found, line_id)
    with deps.db.transaction() as tx:
        line = lines.locked(tx, id)
        if line is None:
            raise errors.line_not_found()
        if line.state is not LineState.IGNORED:
            raise errors.line_conflict("is not ignored")
        state = first_state(line.direction, line.status)
        if state is LineState.WAITING and not line.left:
            state = LineState.MATCHED
        lines.set_state(tx, id, state, reason=None)
        acts.record(tx, "bank-line.restore", f"bank-line:{id}", before={"reason": line.reason}, after={})


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

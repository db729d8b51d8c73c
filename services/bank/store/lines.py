"""Lines, their proposals, and the deals that they have paid."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, case, delete, func, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.db.database import table_of
from kit.db.rows import Rows
from services.bank.domain.lines import Status
from services.bank.domain.proposals import LineState, Proposal, Tier
from services.bank.models import Line, LineMatch
from services.bank.store.views import LineView, MatchView

_LINES: Final = table_of(Line)
_MATCHES: Final = table_of(LineMatch)
_ROWS: Final = Rows(LineView, _LINES, without={"matches"})
_MATCH_ROWS: Final = Rows(MatchView, _MATCHES)
_OF: Final = _LINES.c
_ALL: Final = select(*_ROWS.columns)
_PROPOSE: Final = text("""
UPDATE lines SET state = CASE WHEN new.deal_id IS NULL THEN 'unmatched' ELSE 'proposed' END, tier = new.tier,
  deal_id = new.deal_id, invoice_id = new.invoice_id, deal_amount = new.deal_amount
FROM unnest(CAST(:ids AS uuid[]), CAST(:tiers AS text[]), CAST(:deals AS uuid[]), CAST(:invoices AS uuid[]),
            CAST(:amounts AS numeric[])) AS new (id, tier, deal_id, invoice_id, deal_amount)
WHERE lines.id = new.id AND state IN ('waiting', 'proposed', 'unmatched') AND used_for IS NULL
""")
_PAID: Final = text("""
UPDATE lines SET state = 'matched' WHERE id = ANY(:ids) AND state NOT IN ('matched', 'ignored', 'reversed')
  AND amount <= (SELECT sum(amount) FROM line_matches WHERE line_id = lines.id)
""")
_UNPAID: Final = text("""
UPDATE lines SET state = 'waiting', tier = NULL, deal_id = NULL, invoice_id = NULL, deal_amount = NULL
WHERE id = ANY(:ids) AND state = 'matched'
  AND amount > (SELECT coalesce(sum(amount), 0) FROM line_matches WHERE line_id = lines.id)
""")
_STORED: Final = tuple(each.name for each in fields(LineView) if each.name != "matches")
_SAID_ANEW: Final = (
    *("status", "booked_on", "valued_on", "counterparty_name", "counterparty_account", "text"),
    *("reference_texts", "seal"),
)
"""The bank fills these anew when it books or reverses a line. The seal is over the texts: they go together."""


def add_new(tx: Session, lines: Sequence[LineView]) -> int:
    """Adds lines that are not there and returns their number. One that was pending becomes booked."""
    if not lines:
        return 0
    new = insert(_LINES)
    changes: dict[str, Any] = {name: new.excluded[name] for name in _SAID_ANEW}
    changes["state"] = case((_OF.state == LineState.IGNORED, _OF.state), else_=new.excluded.state)
    stored = new.on_conflict_do_update(
        constraint="uq_lines_account_identity",
        set_=changes,
        where=(_OF.status == Status.PENDING) & (new.excluded.status != Status.PENDING),
    ).returning(_OF.id)
    rows = [{name: getattr(line, name) for name in _STORED} for line in lines]
    return len(tx.execute(stored, rows).all())


def posted_and_locked(tx: Session, identities: Sequence[str]) -> dict[str, LineView]:
    """Returns the lines of connectors with these identities."""
    wanted = _ALL.where(_OF.identity.in_(identities), _OF.connector_id.is_not(None))
    return {line.identity: line for line in _lines(tx, wanted.order_by(_OF.id).with_for_update())}


def take_step(tx: Session, line: LineView) -> None:
    """Writes what the bank says anew of a line."""
    values = {name: getattr(line, name) for name in (*_SAID_ANEW, "state", "reason")}
    tx.execute(update(_LINES).where(_OF.id == line.id).values(values))


def posted(
    tx: Session | Connection,
    connectors: Sequence[UUID],
    most: int,
    *,
    accounts: Sequence[str],
    identity: str,
    account: str,
    after: UUID | None,
) -> list[LineView]:
    """Returns lines of these connectors on these accounts, each as ACCOUNT:CURRENCY, newest first."""
    here = (_OF.account + ":" + _OF.currency_code).in_(accounts)
    wanted = _ALL.where(_OF.connector_id.in_(connectors), here).order_by(_OF.id.desc()).limit(most)
    if identity:
        wanted = wanted.where(_OF.identity == identity)
    if account:
        wanted = wanted.where(_OF.account == account)
    return _lines(tx, wanted if after is None else wanted.where(_OF.id < after))


def to_look_at(
    tx: Session | Connection, states: Sequence[LineState], most: int, *, before: UUID | None = None
) -> list[LineView]:
    """Returns booked lines in these states, newest first; those before this one."""
    wanted = _ALL.where(_OF.state.in_(states), _OF.status == Status.BOOKED, _OF.used_for.is_(None))
    if before is not None:
        wanted = wanted.where(_OF.id < before)
    return _lines(tx, wanted.order_by(_OF.id.desc()).limit(most))


def save_proposals(tx: Session, proposals: Mapping[UUID, Proposal]) -> None:
    """Writes the proposals of lines that still wait for an operator or were not looked at."""
    deals = [proposal.deal for proposal in proposals.values()]
    values = {
        "ids": list(proposals),
        "tiers": [proposal.tier for proposal in proposals.values()],
        "deals": [deal and deal.id for deal in deals],
        "invoices": [deal and deal.invoice_id for deal in deals],
        "amounts": [deal and deal.amount for deal in deals],
    }
    tx.execute(_PROPOSE, values)


def listed(
    tx: Session | Connection,
    most: int,
    *,
    state: LineState | None,
    tier: Tier | None,
    account: str,
    deal_id: UUID | None,
    after: UUID | None,
    ids: Sequence[UUID] = (),
    amount: Decimal | None = None,
) -> list[LineView]:
    """Returns lines, newest first."""
    wanted = _ALL.order_by(_OF.id.desc()).limit(most)
    if state is not None:
        wanted = wanted.where(_OF.state == state)
    if tier is not None:
        wanted = wanted.where(_OF.tier == tier)
    if account:
        wanted = wanted.where(_OF.account == account)
    if deal_id is not None:
        paid = select(_MATCHES.c.line_id).where(_MATCHES.c.deal_id == deal_id)
        proposed = select(_OF.id).where(_OF.deal_id == deal_id)
        wanted = wanted.where(_OF.id.in_(paid.union(proposed)))  # each by its index
    if amount is not None:
        wanted = wanted.where(_OF.amount == amount)
    if after is not None:
        wanted = wanted.where(_OF.id < after)
    if ids:
        wanted = wanted.where(_OF.id.in_(ids))
    return _lines(tx, wanted)


def by_id(tx: Session | Connection, id: UUID) -> LineView | None:
    return next(iter(_lines(tx, _ALL.where(_OF.id == id))), None)


def locked(tx: Session, id: UUID) -> LineView | None:
    return next(iter(_lines(tx, _ALL.where(_OF.id == id).with_for_update())), None)


def set_state(tx: Session, id: UUID, state: LineState, *, reason: str | None, used_for: str | None) -> None:
    tx.execute(update(_LINES).where(_OF.id == id).values(state=state, reason=reason, used_for=used_for))


def set_claim(tx: Session, id: UUID, *, tried_at: datetime | None, used_for: str | None = None) -> None:
    tx.execute(update(_LINES).where(_OF.id == id).values(tried_at=tried_at, used_for=used_for))


def set_refund(tx: Session, id: UUID, refund_id: UUID | None) -> None:
    """Raises IntegrityError `uq_lines_refund` when another line is the refund."""
    tx.execute(update(_LINES).where(_OF.id == id).values(refund_id=refund_id))


def set_try(tx: Session, id: UUID, *, tried_at: datetime | None, held: str | None = None) -> None:
    tx.execute(update(_LINES).where(_OF.id == id).values(tried_at=tried_at, held=held))


def last_followed(tx: Session | Connection) -> int:
    """Returns the number of the newest payment by a line that is known here."""
    return int(tx.execute(select(func.coalesce(func.max(_MATCHES.c.number), 0))).scalar_one())


def add_matches(tx: Session, matches: Sequence[MatchView]) -> None:
    """Adds the payments that are not there, and ends the lines that they use up."""
    tx.execute(insert(_MATCHES).on_conflict_do_nothing(), [asdict(each) for each in matches])
    tx.execute(_PAID, {"ids": list({each.line_id for each in matches})})


def replace_matches(
    tx: Session, after: int, matches: Sequence[MatchView], *, last: int | None = None
) -> None:
    """Puts these payments in the place of those with numbers above `after`, up to the last if there is one. Lines that
    lose a payment are looked at anew.
    """
    mine = tuple_(_MATCHES.c.line_id, _MATCHES.c.deal_id).in_(
        [(each.line_id, each.deal_id) for each in matches]
    )
    of_span = _MATCHES.c.number > after
    if last is not None:
        of_span &= _MATCHES.c.number <= last
    gone = tx.scalars(delete(_MATCHES).where(mine | of_span).returning(_MATCHES.c.line_id)).all()
    if matches:
        add_matches(tx, matches)
    tx.execute(_UNPAID, {"ids": list(set(gone))})


def _lines(tx: Session | Connection, wanted: Any) -> list[LineView]:
    found = [_ROWS.make(*row, ()) for row in tx.execute(wanted)]
    of = select(*_MATCH_ROWS.columns).where(_MATCHES.c.line_id.in_([line.id for line in found]))
    matches = _MATCH_ROWS.all(tx.execute(of.order_by(_MATCHES.c.number))) if found else []
    by_line: dict[UUID, list[MatchView]] = {}
    for match in matches:
        by_line.setdefault(match.line_id, []).append(match)
    return [replace(line, matches=tuple(by_line.get(line.id, ()))) for line in found]


def between(tx: Session, first: str, last: str) -> list[LineView]:
    """Returns the lines with ids above the first, up to the last."""
    return _lines(tx, _ALL.where(_OF.id > UUID(first), _OF.id <= UUID(last)))

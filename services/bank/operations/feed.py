"""Lines that connectors post: all lines of a post are taken or none, and a line is taken once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from sqlalchemy.orm import Session

from fiatgate.bank.v1 import feed_pb2 as pb
from kit.audit import acts
from kit.base.account_forms import account_key
from kit.base.money import decimals_of, has_decimals
from kit.base.proto import most_of
from kit.db.database import retry_conflicts
from kit.rpc import values
from services.bank import errors
from services.bank.domain import feed as rules
from services.bank.domain.feed import Outcome
from services.bank.domain.lines import Line, Status, line_id
from services.bank.domain.proposals import LineState, first_state
from services.bank.operations.connectors import hash_of
from services.bank.store import connectors, lines
from services.bank.store.decisions import is_as_read, seal_of_line
from services.bank.store.views import ConnectorView, LineView
from services.bank.wiring import Deps

LINES_MOST: Final = 500
AMOUNT_MOST: Final = Decimal("99999999999999999999.99")


@dataclass(frozen=True, kw_only=True)
class Posted:
    """The outcome of a line; `why` is the sentence of a conflict."""

    source_id: str
    outcome: Outcome
    why: str
    line_id: UUID


def find_connector(deps: Deps, *, key: str) -> UUID:
    """Returns the id of the connector with this key. Raises API_KEY_INVALID, also for a key that SQL made."""
    with deps.db.transaction() as tx:
        return _admitted(deps, tx, connectors.by_hash(tx, hash_of(key))).id


def _admitted(deps: Deps, tx: Session, found: ConnectorView | None) -> ConnectorView:
    if found is None or found.revoked_at is not None or not deps.keys.are(found.id, found, tx):
        raise errors.key_invalid()
    return found


@retry_conflicts
def post_lines(deps: Deps, *, connector_id: str, lines: Sequence[Line]) -> Sequence[Posted]:
    """Takes the lines; without any, the connector is heard. Raises API_KEY_INVALID, VALIDATION_ERROR,
    FEED_ACCOUNT_NOT_ALLOWED.
    """
    id = values.uuid_or(errors.key_invalid, connector_id)
    now = deps.clock.now()
    posted = [_checked(line, now.date()) for line in lines]
    with deps.db.transaction() as tx:
        source = _admitted(deps, tx, connectors.by_id(tx, id))
        for line in posted:
            if f"{line.account}:{line.currency}" not in source.accounts:
                raise errors.account_not_allowed(line.account, line.currency)
        connectors.lock_name(tx, source.name)
        connectors.hear(tx, id, at=now)
        return _taken(deps, tx, source, posted, now=now)


def _checked(line: Line, today: date) -> Line:
    at, places = line.position, decimals_of(line.currency)
    if not 0 < line.amount <= AMOUNT_MOST or not has_decimals(line.amount, at_most=min(places, 2)):
        message = f"Expected an amount above zero with at most {min(places, 2)} decimals"
        raise values.invalid(f"{at}.amount", message)
    if line.status is Status.BOOKED and line.booked_on is None:
        raise values.invalid(f"{at}.booked_on", "Expected the day of a booked line")
    for name in ("booked_on", "valued_on"):
        day = getattr(line, name)
        if day is not None and not 1970 <= day.year < 3000:
            raise values.invalid(f"{at}.{name}", "Expected a day of this time")
    if line.booked_on is not None and line.booked_on > today + timedelta(days=1):
        raise values.invalid(f"{at}.booked_on", "Expected a day until tomorrow (UTC)")
    return replace(line, account=account_key(line.account))


def _taken(
    deps: Deps, tx: Session, source: ConnectorView, posted: Sequence[Line], *, now: datetime
) -> Sequence[Posted]:
    identities = [_identity(source.name, line.source_id or "") for line in posted]
    known = lines.posted_and_locked(tx, identities)
    before, outcomes = dict(known), []
    for identity, line in zip(identities, posted, strict=True):
        kept = known.get(identity)
        change = _change(deps, kept, line)
        if change.outcome in (Outcome.CREATED, Outcome.UPDATED):
            known[identity] = kept = _stepped(deps, source, identity, line, kept, now=now)
        assert kept is not None
        outcomes.append(
            Posted(source_id=line.source_id or "", outcome=change.outcome, why=change.why, line_id=kept.id)
        )
    lines.add_new(tx, [line for identity, line in known.items() if identity not in before])
    for identity, was in before.items():
        if (kept := known[identity]) != was:
            lines.take_step(tx, kept)
            if kept.status is Status.REVERSED:
                said = ({"status": each.status, "reason": each.reason} for each in (was, kept))
                acts.record(
                    tx, "bank-line.reverse", f"bank-line:{kept.id}", before=next(said), after=next(said)
                )
    return outcomes


def _change(deps: Deps, kept: LineView | None, line: Line) -> rules.Change:
    if kept is None:
        return rules.Change(Outcome.CREATED)
    if not is_as_read(deps.settings.seals, kept):
        return rules.Change(Outcome.CONFLICT, "The known line was changed in the database, past the service")
    return rules.change(_line_of(kept), line)


def _line_of(kept: LineView) -> Line:
    return Line(
        account=kept.account,
        direction=kept.direction,
        amount=kept.amount,
        currency=kept.currency_code,
        status=kept.status,
        booked_on=kept.booked_on,
        valued_on=kept.valued_on,
        position="",
    )


def _stepped(
    deps: Deps, source: ConnectorView, identity: str, line: Line, kept: LineView | None, *, now: datetime
) -> LineView:
    """Returns the line as it is from now on. A booked one keeps its texts and its day."""
    state = first_state(line.direction, line.status)
    if kept is not None and kept.status is not Status.PENDING:
        view = replace(kept, status=line.status, state=state)
    else:
        view = LineView(
            id=kept.id
            if kept
            else line_id(line.account, identity, line.booked_on or line.valued_on or now.date()),
            import_id=None,
            statement_id=None,
            connector_id=kept.connector_id if kept else source.id,
            account=line.account,
            identity=identity,
            direction=line.direction,
            amount=line.amount,
            currency_code=line.currency,
            status=line.status,
            booked_on=line.booked_on,
            valued_on=line.valued_on,
            counterparty_name=line.counterparty_name,
            counterparty_account=line.counterparty_account,
            text=line.text,
            reference_texts="\n".join(line.references),
            created_at=kept.created_at if kept else now,
            state=state,
            tier=None,
            deal_id=None,
            invoice_id=None,
            deal_amount=None,
            reason=kept.reason if kept else None,
            used_for=kept.used_for if kept else None,
            seal=b"",
        )
    if view.reason is not None:
        is_taken_back = view.status is Status.REVERSED and bool(view.matches or view.used_for)
        view = replace(view, reason=None) if is_taken_back else replace(view, state=LineState.IGNORED)
    return replace(view, seal=seal_of_line(deps.settings.seals, view))


def _identity(name: str, source_id: str) -> str:
    """Returns the identity of a line. A name has no colon."""
    return f"id:{name}:{source_id}"


def source_id_of(line: LineView) -> str:
    return line.identity.split(":", 2)[2]


def list_posted_lines(
    deps: Deps, *, connector_id: str, source_id: str, account: str, limit: int, after_line_id: str
) -> Sequence[LineView]:
    """Returns lines of connectors of this one's name on the accounts of this one, newest first. Raises API_KEY_INVALID,
    VALIDATION_ERROR.
    """
    values.text("source_id", source_id, least=0, most=most_of(pb.PostedLine, "source_id"))
    if account and not account_key(account):
        raise values.query_invalid("account", "Expected letters or digits")
    id = values.uuid_or(errors.key_invalid, connector_id)
    with deps.db.transaction() as tx:
        source = _admitted(deps, tx, connectors.by_id(tx, id))
        return lines.posted(
            tx,
            connectors.of_the_name(tx, source.name),
            values.rows(limit),
            identity=_identity(source.name, source_id) if source_id else "",
            accounts=source.accounts,
            account=account_key(account),
            after=values.uuid("after_line_id", after_line_id) if after_line_id else None,
        )

"""The operators' and the poller's calls on rates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy.orm import Session

from kit.audit import acts
from kit.audit.approvals import WAS, Approval, Terms, close
from kit.db.database import after_commit, retry_conflicts
from kit.observe.log import get_logger
from kit.rpc import approvals, deadline, values
from kit.rpc.errors import database_unavailable, edit_conflict
from services.catalog import errors
from services.catalog.domain import (
    Accept,
    Currency,
    Hold,
    Origin,
    Quote,
    Rate,
    TooFewSources,
    Validity,
    change_percent,
    judge,
    jumps,
    jumps_from_all,
    set_by_hand,
    with_markup,
)
from services.catalog.events import CATALOG_CHANGED
from services.catalog.operations import fields
from services.catalog.store import rates
from services.catalog.store.rates import RatedCurrency
from services.catalog.wiring import Deps

ANSWER_SECONDS = 1
"""The time of a call that must be left after the poll of the sources, to store their rates and answer."""

_log = get_logger()


@dataclass(frozen=True, slots=True)
class RateInfo:
    """A rate and its present meaning: `rate` is after the markup."""

    currency_code: str
    source_rate: Decimal
    rate: Decimal
    origin: Origin
    taken_at: datetime
    fresh: bool
    fresh_until: datetime | None
    ends_soon: bool
    validity: Validity
    quotes: Sequence[Quote] | None


@dataclass(frozen=True, slots=True)
class RateState:
    """`held_change_percent` compares the held rate with the one in force, or with the newest."""

    currency_code: str
    markup: Decimal
    enabled: bool
    in_force: RateInfo | None
    held: RateInfo | None
    held_change_percent: Decimal | None
    source_names: Sequence[str]


SET: Final = "rate.set"
ACCEPT: Final = "rate.accept"


def set_rate(
    deps: Deps, *, currency_code: str, rate: str, anyway: bool, validity: Validity = Validity.AS_POLLED
) -> RateInfo:
    """Puts the operator's rate in force at once, and drops a held rate.

    Raises VALIDATION_ERROR, CURRENCY_NOT_FOUND; RATE_JUMPS when it is too far from the last rates, unless `anyway`:
    then APPROVAL_REQUIRED, and APPROVAL_STATE_CONFLICT.
    """
    code = fields.currency_code("currency_code", currency_code)
    source_rate = fields.rate("rate", rate)
    return approvals.done(_set_rate(deps, code, source_rate, validity, anyway=anyway))


@retry_conflicts
def _set_rate(
    deps: Deps, code: str, source_rate: Decimal, validity: Validity, *, anyway: bool
) -> RateInfo | Approval:
    max_jump = deps.settings.rates_max_jump
    with deps.db.transaction() as tx:
        currency = _locked(tx, code)
        known = _to_compare_with(deps, tx, code)
        if jumps_from_all(known, source_rate, max_jump):
            if not anyway:
                raise errors.rate_jumps(code, known[0].source_rate, max_jump)
            if deps.settings.four_eyes:
                request = {
                    "currency_code": code,
                    "rate": _shown(source_rate),
                    "validity": validity,
                    WAS: _shown(known[0].source_rate),
                }
                return approvals.request(tx, set_terms(request), deps)
        close(tx, f"currency:{code}", at=deps.clock.now(), note=f"The rate was set to {_shown(source_rate)}")
        return _put_in_force(deps, tx, currency, source_rate, known, validity=validity)


def set_approved(deps: Deps, tx: Session, asked: Approval) -> None:
    """Puts the requested rate in force. Raises CURRENCY_NOT_FOUND, and APPROVAL_STATE_CONFLICT for a request that is
    older than a rate may be.
    """
    code, source_rate = asked.request["currency_code"], Decimal(asked.request["rate"])
    currency = _locked(tx, code)
    if deps.clock.now() > asked.requested_at + deps.settings.rates_max_age:
        raise approvals.changed_since()
    known, validity = _to_compare_with(deps, tx, code), Validity(asked.request["validity"])
    _put_in_force(deps, tx, currency, source_rate, known, validity=validity)


_FOR: Final[Mapping[str, str]] = {
    Validity.HOUR: " for an hour",
    Validity.DAY: " for a day",
    Validity.UNTIL_REPLACED: " until it is replaced",
}


def set_terms(request: Mapping[str, Any]) -> Terms:
    code = request["currency_code"]
    return Terms(
        act=SET,
        object=f"currency:{code}",
        request=request,
        summary=f"Set the rate of {code} to {request['rate']}{_FOR.get(request['validity'], '')}, past the jump guard; "
        f"it was {request[WAS]} at the request",
    )


def _put_in_force(
    deps: Deps, tx: Session, currency: Currency, rate: Decimal, known: Sequence[Rate], *, validity: Validity
) -> RateInfo:
    code, max_jump, now = currency.code, deps.settings.rates_max_jump, deps.clock.now()
    set_by_operator = set_by_hand(rate, known, at=now, max_jump=max_jump, validity=validity)
    before = _in_force(deps, tx, code)
    rates.add_rate(tx, code, set_by_operator)
    rates.take_held_rate(tx, code)
    _record_act(tx, SET, code, before, set_by_operator)
    after_commit(tx, deps.bus.hint, CATALOG_CHANGED)
    after_commit(tx, _log_set_rate, code, set_by_operator)
    return _info(deps, code, currency.markup, set_by_operator)


def _log_set_rate(code: str, rate: Rate) -> None:
    guarded = [f"{quote.rate:f}" for quote in rate.quotes or () if quote.rate is not None]
    write = _log.warning if guarded else _log.info
    write("rate_set", currency=code, rate=f"{rate.source_rate:f}", past_the_guard_from=guarded)


def _locked(tx: Session, code: str) -> Currency:
    currency = rates.lock_currency(tx, code)
    if currency is None:
        raise errors.currency_not_found(code)
    return currency


def _to_compare_with(deps: Deps, tx: Session, code: str) -> list[Rate]:
    accepted, sourced = rates.accepted_rates(tx, code), rates.newest_rate_of_sources(tx, code)
    return accepted.to_compare_with(sourced, deps.clock.now(), deps.settings.rates_max_age)


def accept_rate(deps: Deps, *, currency_code: str, expected: str = "") -> RateInfo:
    """Puts the held rate in force, with the time of its poll. `expected` is the held rate that the operator saw.

    Raises VALIDATION_ERROR, CURRENCY_NOT_FOUND, RATE_NOT_HELD, EDIT_CONFLICT, APPROVAL_REQUIRED,
    APPROVAL_STATE_CONFLICT.
    """
    seen = values.decimal("expected_source_rate", expected) if expected else None
    return approvals.done(_accept_rate(deps, fields.currency_code("currency_code", currency_code), seen))


@retry_conflicts
def _accept_rate(deps: Deps, code: str, expected: Decimal | None) -> RateInfo | Approval:
    with deps.db.transaction() as tx:
        currency = _locked(tx, code)
        held = rates.held_rate(tx, code)
        if held is None:
            raise errors.rate_not_held(code)
        if expected not in (None, held.source_rate):
            raise edit_conflict("expected_source_rate", _shown(held.source_rate))
        if deps.settings.four_eyes:
            return approvals.request(tx, _accepting(code, held, _in_force(deps, tx, code)), deps)
        close(tx, f"currency:{code}", at=deps.clock.now(), note=f"{_shown(held.source_rate)} was accepted")
        return _accept(deps, tx, currency, held)


def accept_approved(deps: Deps, tx: Session, asked: Approval) -> None:
    """Puts the requested rate in force, not a newer one that the checker has not seen. Raises RATE_NOT_HELD when the
    sources agree again, and APPROVAL_STATE_CONFLICT when the requested rate is too old, or too far from the held one.
    """
    request = asked.request
    code, taken_at = request["currency_code"], datetime.fromisoformat(request["taken_at"])
    currency = _locked(tx, code)
    held = rates.held_rate(tx, code)
    if held is None:
        raise errors.rate_not_held(code)
    seen = Rate(
        Decimal(request["rate"]), Origin.SOURCES, taken_at, rates.quotes_of({"quotes": request["quotes"]})
    )
    is_fresh = seen.is_fresh(deps.clock.now(), deps.settings.rates_max_age)
    if not is_fresh or jumps(held.source_rate, seen.source_rate, deps.settings.rates_max_jump):
        raise approvals.changed_since()
    _accept(deps, tx, currency, seen)


def _accepting(code: str, held: Rate, last: Rate | None) -> Terms:
    return accept_terms(
        {
            "currency_code": code,
            "rate": _shown(held.source_rate),
            "taken_at": held.taken_at.isoformat(),
            WAS: _shown(last.source_rate) if last else "",
            **rates.document(held),
        }
    )


def accept_terms(request: Mapping[str, Any]) -> Terms:
    code, was, taken_at = request["currency_code"], request[WAS], datetime.fromisoformat(request["taken_at"])
    return Terms(
        act=ACCEPT,
        object=f"currency:{code}",
        request=request,
        summary=f"Accept the rate {request['rate']} of {code}, "
        f"polled {taken_at:%Y-%m-%d %H:%M} UTC{f'; it was {was} at the request' if was else ''}",
    )


def _shown(rate: Decimal) -> str:
    return f"{rate.normalize():f}"


def _accept(deps: Deps, tx: Session, currency: Currency, held: Rate) -> RateInfo:
    before = _in_force(deps, tx, currency.code)
    accepted = replace(held, origin=Origin.ACCEPTED)
    rates.take_held_rate(tx, currency.code)
    rates.add_rate(tx, currency.code, accepted)
    _record_act(tx, ACCEPT, currency.code, before, accepted)
    after_commit(tx, deps.bus.hint, CATALOG_CHANGED)
    return _info(deps, currency.code, currency.markup, accepted)


def _in_force(deps: Deps, tx: Session, code: str) -> Rate | None:
    return rates.accepted_rates(tx, code).in_force(deps.clock.now(), deps.settings.rates_max_age)


def _record_act(tx: Session, act: str, code: str, before: Rate | None, after: Rate) -> None:
    changed = ("source_rate", "origin", "taken_at")
    was, made = acts.values_of(before, changed), acts.values_of(after, changed)
    if after.origin is Origin.OPERATOR:
        made["validity"] = after.validity  # always named: `fiatgate verify` compares it with the rate
    acts.record(tx, act, f"currency:{code}", before=was, after=made)


def list_rates(deps: Deps) -> list[RateState]:
    """Returns each currency's rate in force and held rate, by code."""
    with deps.db.autocommit() as connection:
        return [_state(deps, rated) for rated in rates.all_currencies_with_rates(connection)]


def pull_rates(deps: Deps) -> list[RateState]:
    """Polls the sources now, although the period is not over. Returns the states of the currencies that have sources,
    by code.

    Raises DB_UNAVAILABLE when the call has too little time left for the poll.
    """
    seconds = deps.settings.rate_source_timeout_seconds
    remaining = deadline.remaining_seconds()
    if remaining is not None:
        seconds = min(seconds, int(remaining - ANSWER_SECONDS))
    if seconds < 1:
        raise database_unavailable("Too little time is left for a poll of the rate sources")
    _poll(deps, deadline_seconds=seconds, act="rate.pull")
    codes = deps.sources.currency_codes
    return [state for state in list_rates(deps) if state.currency_code in codes]


def poll_when_due(deps: Deps) -> None:
    """Polls the sources when a period has passed and no other process has polled in it. This is the worker's step."""
    with deps.db.transaction() as tx:
        mine = rates.take_poll_turn(tx, deps.clock.now(), deps.settings.rates_poll_period)
    if mine:
        _poll(deps, deadline_seconds=deps.settings.rate_source_timeout_seconds)


def _poll(deps: Deps, *, deadline_seconds: int, act: str = "") -> None:
    """Polls all sources and stores the results. Unless `act` is empty, records this act for each rate that takes effect
    or is held for acceptance.
    """
    taken_at = deps.clock.now()  # before they answer: a rate may be marked too old, never too new
    quotes = deps.sources.fetch(deadline_seconds)
    outcomes = {code: _record(deps, code, quotes[code], taken_at, act=act) for code in sorted(quotes)}
    if any(isinstance(outcome, Accept) for outcome in outcomes.values()):
        deps.bus.hint(CATALOG_CHANGED)
    failures = {f"{code} {each.source}": each.error for code in quotes for each in quotes[code] if each.error}
    write = _log.warning if failures else _log.info
    write(
        "rates_polled",
        outcomes={code: _outcome_text(each) for code, each in outcomes.items()},
        failures=failures,
    )


@retry_conflicts
def _record(
    deps: Deps, code: str, quotes: Sequence[Quote], taken_at: datetime, *, act: str
) -> Accept | Hold | TooFewSources | None:
    """Judges and stores one currency's poll; None when there is no such currency."""
    with deps.db.transaction() as tx:
        if rates.lock_currency(tx, code) is None:
            return None
        outcome = judge(
            quotes,
            _to_compare_with(deps, tx, code),
            taken_at=taken_at,
            max_jump=deps.settings.rates_max_jump,
            min_sources=deps.settings.rates_min_sources,
        )
        before = _in_force(deps, tx, code) if act else None
        match outcome:
            case Accept(rate):
                rates.add_rate(tx, code, rate)
                rates.take_held_rate(tx, code)
                note = f"The sources agree on {_shown(rate.source_rate)}"
                close(tx, f"currency:{code}", at=deps.clock.now(), note=note, act=ACCEPT)
                if act:
                    _record_act(tx, act, code, before, rate)
            case Hold(rate):
                rates.hold_rate(tx, code, rate)
                if act:
                    acts.record(
                        tx,
                        act,
                        f"currency:{code}",
                        after={"held": rate.source_rate, "taken_at": rate.taken_at},
                    )
        return outcome


def _outcome_text(outcome: Accept | Hold | TooFewSources | None) -> str:
    match outcome:
        case Accept(rate):
            return f"accepted {rate.source_rate:f}"
        case Hold(rate):
            return f"held {rate.source_rate:f}"
        case TooFewSources(answered):
            return f"{answered} sources answered"
        case None:
            return "no such currency"


def _state(deps: Deps, rated: RatedCurrency) -> RateState:
    code, markup = rated.currency.code, rated.currency.markup
    in_force = rated.rates.in_force(deps.clock.now(), deps.settings.rates_max_age)
    held = rated.held
    return RateState(
        code,
        markup=markup,
        enabled=rated.currency.enabled,
        in_force=None if in_force is None else _info(deps, code, markup, in_force),
        held=None if held is None else _info(deps, code, markup, held),
        held_change_percent=None
        if held is None or in_force is None
        else change_percent(in_force.source_rate, held.source_rate),
        source_names=[each.name for each in deps.settings.rate_sources if code in each.paths],
    )


def _info(deps: Deps, code: str, markup: Decimal, rate: Rate) -> RateInfo:
    now, max_age = deps.clock.now(), deps.settings.rates_max_age
    return RateInfo(
        currency_code=code,
        source_rate=rate.source_rate,
        rate=with_markup(rate.source_rate, markup),
        origin=rate.origin,
        taken_at=rate.taken_at,
        fresh=rate.is_fresh(now, max_age),
        fresh_until=rate.fresh_until(max_age),
        ends_soon=rate.ends_soon(now, max_age),
        validity=rate.validity,
        quotes=rate.quotes,
    )

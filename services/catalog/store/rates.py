"""Rates: accepted, held, and the turns of the poller."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import ColumnElement, Connection, FromClause, Select, bindparam, delete, or_, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.base.seals import Seals, canonical
from kit.db import prepared
from kit.db.database import seals_of
from kit.db.prepared import Prepared, sql_of
from kit.db.rows import Rows
from services.catalog import models
from services.catalog.domain import CLOCK_SKEW, AcceptedRates, Currency, Method, Origin, Quote, Rate, Validity
from services.catalog.store.rows import METHOD, put

_currencies = models.Currency.__table__
_methods = models.PaymentMethod.__table__
_rates = models.Rate.__table__
_held = models.HeldRate.__table__
_turns = models.PollTurn.__table__
_CURRENCY = Rows(Currency, _currencies)

Columns = Mapping[Any, Any]
"""A row's values by their columns."""


@dataclass(frozen=True, slots=True)
class RatedCurrency:
    """A currency with the rates that may be in force, and the held one if the query includes it."""

    currency: Currency
    rates: AcceptedRates
    held: Rate | None = None


@dataclass(frozen=True, slots=True)
class RatedMethod:
    method: Method
    rated: RatedCurrency


def enabled_currencies_with_rates(connection: Connection) -> list[RatedCurrency]:
    """Returns the enabled currencies, by code."""
    query = _RATED_CURRENCIES.where(_currencies.c.enabled).order_by(_currencies.c.code)
    return [_rated_currency(row._mapping) for row in connection.execute(query)]


def enabled_currency_with_rates(connection: Connection, code: str) -> RatedCurrency | None:
    row = connection.execute(
        _RATED_CURRENCIES.where(_currencies.c.enabled, _currencies.c.code == code)
    ).one_or_none()
    return None if row is None else _rated_currency(row._mapping)


def all_currencies_with_rates(connection: Connection) -> list[RatedCurrency]:
    """Returns all currencies by code, held rates included."""
    query = (
        _RATED_CURRENCIES.add_columns(*_held.c)
        .outerjoin(_held, _held.c.currency_code == _currencies.c.code)
        .order_by(_currencies.c.code)
    )
    return [
        replace(_rated_currency(row._mapping), held=_rate(row._mapping, _held))
        for row in connection.execute(query)
    ]


def active_method_with_rates(connection: Connection, method_code: str) -> RatedMethod | None:
    """Returns the method; None when there is none, it is inactive, or its currency is disabled."""
    return prepared.one_or_none(connection, _RATED_METHOD, {"method_code": method_code})


def lock_currency(tx: Session, code: str) -> Currency | None:
    """Returns the currency, locked: decisions about its rates run one after the other."""
    row = tx.execute(
        select(_currencies).where(_currencies.c.code == code).with_for_update(key_share=True)
    ).first()
    return None if row is None else _CURRENCY.of(row)


def accepted_rates(tx: Session, code: str) -> AcceptedRates:
    return AcceptedRates(
        newest=_newest_rate(tx, code), decided=_newest_rate(tx, code, _rates.c.origin != Origin.SOURCES.value)
    )


def newest_rate_of_sources(tx: Session, code: str) -> Rate | None:
    return _newest_rate(tx, code, _rates.c.origin != Origin.OPERATOR.value)


def _newest_rate(tx: Session, code: str, *conditions: ColumnElement[bool]) -> Rate | None:
    query = select(_rates).where(_rates.c.currency_code == code, *conditions)
    for row in tx.execute(query.order_by(_rates.c.id.desc()).execution_options(yield_per=10)):
        rate = _rate(row._mapping, _rates)
        if rate is not None and is_rate_sealed(
            seals_of(tx), code, rate
        ):  # a guard compares with no other one
            return rate
    return None


def add_rate(tx: Session, code: str, rate: Rate) -> None:
    """Puts the rate in force, with a seal."""
    values = _rate_columns(code, rate) | {
        "origin": rate.origin,
        "validity": rate.validity,
        "seal": seal_of_rate(seals_of(tx), code, rate),
    }
    tx.execute(insert(models.Rate).values(values))


def hold_rate(tx: Session, code: str, rate: Rate) -> None:
    """Stores the held rate in place of the former one."""
    put(tx, _held, "currency_code", _rate_columns(code, rate))


def held_rate(tx: Session, code: str) -> Rate | None:
    row = tx.execute(select(_held).where(_held.c.currency_code == code)).first()
    return None if row is None else _rate(row._mapping, _held)


def take_held_rate(tx: Session, code: str) -> Rate | None:
    """Removes the held rate and returns it; None when there was none."""
    row = tx.execute(delete(models.HeldRate).where(_held.c.currency_code == code).returning(_held)).first()
    return None if row is None else _rate(row._mapping, _held)


@dataclass(frozen=True, slots=True)
class RateStep:
    """The rates that were accepted in one step of time, before the markup."""

    at: datetime
    lowest: Decimal
    highest: Decimal
    last: Decimal
    accepted: int
    by_operators: int


_STEPS: Final = text("""
SELECT CAST(:since AS timestamptz) + floor(
           extract(epoch FROM taken_at - :since) / :step_seconds
       ) * :step_seconds * interval '1 second' AS at,
       min(source_rate) AS lowest, max(source_rate) AS highest,
       (array_agg(source_rate ORDER BY id DESC))[1] AS last,
       count(*) AS accepted, count(*) FILTER (WHERE origin <> 'sources') AS by_operators
FROM (
    SELECT id, taken_at, source_rate, origin FROM rates
    WHERE currency_code = :code AND taken_at >= :since AND taken_at < :until
    ORDER BY taken_at DESC LIMIT :most
) AS newest
GROUP BY 1 ORDER BY 1
""")
RATES_READ_MOST: Final = 200_000
"""The most rates that a history reads: three months of a poll each minute."""


def rate_steps(
    connection: Connection, code: str, *, since: datetime, until: datetime, step_seconds: int
) -> list[RateStep]:
    """Returns the steps that have rates, oldest first; of more than RATES_READ_MOST rates the newest."""
    values = {"code": code, "since": since, "until": until, "step_seconds": step_seconds}
    rows = connection.execute(_STEPS, values | {"most": RATES_READ_MOST})
    return [RateStep(**row._mapping) for row in rows]


@dataclass(frozen=True, slots=True)
class NumberedRate:
    """A rate with its place in the order of acceptance."""

    number: int
    rate: Rate


def numbered_rates(tx: Session, *, after_number: int, up_to: int) -> Iterator[tuple[int, str, Rate]]:
    """Yields rates of all currencies with number and code, in the order of acceptance."""
    for row in tx.execute(
        select(_rates).where(_rates.c.id > after_number, _rates.c.id <= up_to).order_by(_rates.c.id)
    ):
        rate = _rate(row._mapping, _rates)
        assert rate is not None
        yield row.id, row.currency_code, rate


def rates_accepted(
    connection: Connection, code: str, *, by_operators: bool, after_number: int, limit: int
) -> list[NumberedRate]:
    """Returns accepted rates, newest first: those with a smaller number than `after_number`, if that is not 0."""
    query = select(_rates).where(_rates.c.currency_code == code)
    if by_operators:
        query = query.where(_rates.c.origin != Origin.SOURCES.value)
    if after_number:
        query = query.where(_rates.c.id < after_number)
    found = []
    for row in connection.execute(query.order_by(_rates.c.id.desc()).limit(limit)):
        rate = _rate(row._mapping, _rates)
        assert rate is not None
        found.append(NumberedRate(row._mapping[_rates.c.id], rate))
    return found


def has_currency(connection: Connection, code: str) -> bool:
    return connection.scalar(select(_currencies.c.code).where(_currencies.c.code == code)) is not None


def take_poll_turn(tx: Session, now: datetime, period: timedelta) -> bool:
    """Returns whether this process is to poll the sources now: true for one process per period.

    A turn far in the future, which a clock left before it was set back, does not block.
    """
    started_at = _turns.c.started_at
    query = insert(models.PollTurn).values(id=1, started_at=now)
    query = query.on_conflict_do_update(
        index_elements=[_turns.c.id],
        set_={"started_at": now},
        where=or_(started_at <= now - period, started_at > now + CLOCK_SKEW),
    )
    return tx.execute(query.returning(_turns.c.id)).first() is not None


# -- rows and values


def _lateral_rate(name: str, *conditions: Any) -> FromClause:
    query = select(_rates).where(_rates.c.currency_code == _currencies.c.code, *conditions)
    return query.order_by(_rates.c.id.desc()).limit(1).lateral(name)


_newest: Final = _lateral_rate("newest")
_decided: Final = _lateral_rate("decided", _rates.c.origin != Origin.SOURCES.value)
_RATED_CURRENCIES: Final[Select[Any]] = (
    select(_currencies, _newest, _decided)
    .outerjoin(_newest, _newest.c.currency_code == _currencies.c.code)
    .outerjoin(_decided, _decided.c.currency_code == _currencies.c.code)
)


_METHOD_TO_QUOTE: Final = (
    _RATED_CURRENCIES.add_columns(*METHOD.columns)
    .join(_methods, _methods.c.currency_code == _currencies.c.code)
    .where(_methods.c.code == bindparam("method_code"), _methods.c.active, _currencies.c.enabled)
)
_COLUMNS_TO_QUOTE: Final = list(_METHOD_TO_QUOTE.selected_columns)


def _rated_method(*columns: Any) -> RatedMethod:
    values = dict(zip(_COLUMNS_TO_QUOTE, columns, strict=True))
    return RatedMethod(METHOD.of_columns(values), _rated_currency(values))


# Hot: each purchase gets a quote.
_RATED_METHOD: Final = Prepared(
    "rated_method", sql_of(_METHOD_TO_QUOTE), {"method_code": "text"}, _rated_method
)


@dataclass(frozen=True, slots=True)
class _Document:
    """The record of where a rate came from, stored with it for ever."""

    quotes: tuple[Quote, ...]


_DOCUMENT: Final = TypeAdapter(_Document)


def _rated_currency(values: Columns) -> RatedCurrency:
    rates = AcceptedRates(newest=_rate(values, _newest), decided=_rate(values, _decided))
    return RatedCurrency(_CURRENCY.of_columns(values), rates)


def _rate(values: Columns, table: FromClause) -> Rate | None:
    """Returns the rate among the row's columns. A held one has no origin and no validity: it came from the sources."""
    if values[table.c.currency_code] is None:
        return None
    origin = Origin(values[table.c.origin]) if "origin" in table.c else Origin.SOURCES
    try:
        quotes = _DOCUMENT.validate_python(values[table.c.document]).quotes
    except ValidationError:
        quotes = None
    validity = Validity(values[table.c.validity]) if "validity" in table.c else Validity.AS_POLLED
    seal = bytes(values[table.c.seal]) if "seal" in table.c else b""
    return Rate(values[table.c.source_rate], origin, values[table.c.taken_at], quotes, validity, seal)


def _rate_columns(code: str, rate: Rate) -> dict[str, Any]:
    return {
        "currency_code": code,
        "source_rate": rate.source_rate,
        "taken_at": rate.taken_at,
        "document": document(rate),
    }


def document(rate: Rate) -> dict[str, Any]:
    """Returns the record of where the rate came from, as JSON."""
    stored: dict[str, Any] = _DOCUMENT.dump_python(_Document(rate.quotes or ()), mode="json")
    return stored


_SEALED: Final = "rate"


def seal_of_rate(seals: Seals, code: str, rate: Rate) -> bytes:
    return seals.seal(_SEALED, _sealed_part(code, rate))


def is_rate_sealed(seals: Seals, code: str, rate: Rate) -> bool:
    """Returns whether a process of the service put this rate of the currency in force."""
    return seals.is_right(_SEALED, _sealed_part(code, rate), rate.seal)


def _sealed_part(code: str, rate: Rate) -> bytes:
    return canonical([code, rate.source_rate, rate.origin, rate.taken_at, rate.validity, document(rate)])


def quotes_of(stored: Mapping[str, Any]) -> tuple[Quote, ...]:
    """Returns the quotes of a record that `document` made."""
    return _DOCUMENT.validate_python(stored).quotes

"""Currencies, payment methods and logos."""

from dataclasses import asdict, dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.base.pictures import Picture
from kit.db.database import table_of
from kit.db.rows import Rows
from services.catalog import models
from services.catalog.domain import Currency, Logo, Method
from services.catalog.store.rows import put

_currencies = models.Currency.__table__
_methods = models.PaymentMethod.__table__
_CURRENCY = Rows(Currency, _currencies)
_METHOD = Rows(Method, _methods)
_LOGOS = Rows(Logo, table_of(models.Logo))


@dataclass(frozen=True, slots=True)
class CurrencyMethods:
    """A currency with its active methods, by name; the list may be empty."""

    currency: Currency
    methods: list[Method]


def enabled_currencies_with_methods(connection: Connection, code: str | None) -> list[CurrencyMethods]:
    """Returns enabled currencies by code, or only the one of `code`, with their active methods."""
    joined = _currencies.outerjoin(
        _methods, (_methods.c.currency_code == _currencies.c.code) & _methods.c.active
    )
    query = select(_currencies, _methods).select_from(joined).where(_currencies.c.enabled)
    if code is not None:
        query = query.where(_currencies.c.code == code)
    found: dict[str, CurrencyMethods] = {}
    for row in connection.execute(query.order_by(_currencies.c.code, _methods.c.name, _methods.c.code)):
        currency = _CURRENCY.of(row)
        methods = found.setdefault(currency.code, CurrencyMethods(currency, [])).methods
        if row._mapping[_methods.c.code] is not None:
            methods.append(_METHOD.of(row))
    return list(found.values())


def all_currencies(tx: Session) -> list[Currency]:
    query = select(_currencies).order_by(_currencies.c.code)
    return [_CURRENCY.of(row) for row in tx.execute(query)]


def all_methods(tx: Session) -> list[Method]:
    query = select(_methods).order_by(_methods.c.currency_code, _methods.c.name, _methods.c.code)
    return [_METHOD.of(row) for row in tx.execute(query)]


def put_currency(tx: Session, currency: Currency) -> None:
    put(tx, _currencies, "code", asdict(currency))


def put_method(tx: Session, method: Method, *, keeps_logo: bool) -> Method:
    """Creates or replaces the method and returns it as stored; `keeps_logo` leaves the logo of an existing one.

    Violates `fk_payment_methods_currency_code` when there is no such currency.
    """
    values = asdict(method)
    if keeps_logo:
        del values["logo"]
    put(tx, _methods, "code", values)
    logo = tx.execute(select(_methods.c.logo).where(_methods.c.code == method.code)).scalar_one()
    return replace(method, logo=logo)


# -- logos


def keep_logo(tx: Session, logo: Picture, *, at: datetime) -> None:
    """Stores the logo unless it is there: the digest names the content, so the stored one is equal."""
    new = insert(models.Logo).values(
        digest=logo.digest, content_type=logo.content_type, content=logo.content, created_at=at
    )
    tx.execute(new.on_conflict_do_nothing())


def logo(connection: Connection, digest: str) -> Logo | None:
    return _LOGOS.one_or_none(connection.execute(select(*_LOGOS.columns).where(models.Logo.digest == digest)))

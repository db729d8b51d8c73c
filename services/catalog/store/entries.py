"""Currencies, payment methods and logos."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.base.pictures import Picture
from kit.db.database import table_of
from kit.db.rows import Rows
from services.catalog import models
from services.catalog.domain import Currency, Logo, Method
from services.catalog.store.rows import METHOD, put

_currencies = models.Currency.__table__
_methods = models.PaymentMethod.__table__
_CURRENCY = Rows(Currency, _currencies)
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
    query = select(_currencies, *METHOD.columns).select_from(joined).where(_currencies.c.enabled)
    if code is not None:
        query = query.where(_currencies.c.code == code)
    found: dict[str, CurrencyMethods] = {}
    for row in connection.execute(query.order_by(_currencies.c.code, _methods.c.name, _methods.c.code)):
        currency = _CURRENCY.of(row)
        methods = found.setdefault(currency.code, CurrencyMethods(currency, [])).methods
        if row._mapping[_methods.c.code] is not None:
            methods.append(METHOD.of(row))
    return list(found.values())


def all_currencies(tx: Session) -> list[Currency]:
    query = select(_currencies).order_by(_currencies.c.code)
    return [_CURRENCY.of(row) for row in tx.execute(query)]


def all_methods(tx: Session | Connection) -> list[Method]:
    query = select(*METHOD.columns).order_by(_methods.c.currency_code, _methods.c.name, _methods.c.code)
    return METHOD.all(tx.execute(query))


def currency_to_change(tx: Session, code: str) -> Currency | None:
    """Returns the currency, locked until the transaction ends; rates may be added to it meanwhile."""
    query = select(_currencies).where(_currencies.c.code == code).with_for_update(key_share=True)
    row = tx.execute(query).one_or_none()
    return None if row is None else _CURRENCY.of(row)


def method_to_change(tx: Session, code: str) -> Method | None:
    """Returns the method, locked until the transaction ends."""
    query = select(*METHOD.columns).where(_methods.c.code == code).with_for_update(key_share=True)
    return METHOD.one_or_none(tx.execute(query))


def put_currency(tx: Session, currency: Currency) -> None:
    put(tx, _currencies, "code", asdict(currency))


def put_method(tx: Session, method: Method, *, keeps: Collection[str] = ()) -> Method:
    """Creates or replaces the method and returns it as stored; an existing one `keeps` the values of these fields.

    Violates `fk_payment_methods_currency_code` when there is no such currency.
    """
    put(tx, _methods, "code", asdict(method), keeps=keeps)
    return METHOD.all(tx.execute(select(*METHOD.columns).where(_methods.c.code == method.code)))[0]


# -- logos


def keep_logo(tx: Session, logo: Picture, *, at: datetime) -> None:
    """Stores the logo unless it is there: the digest names the content, so the stored one is equal."""
    new = insert(models.Logo).values(
        digest=logo.digest, content_type=logo.content_type, content=logo.content, created_at=at
    )
    tx.execute(new.on_conflict_do_nothing())


def logo(connection: Connection, digest: str) -> Logo | None:
    return _LOGOS.one_or_none(connection.execute(select(*_LOGOS.columns).where(models.Logo.digest == digest)))

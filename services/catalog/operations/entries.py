"""The operators' calls on currencies and payment methods."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as fields_of
from decimal import Decimal
from typing import TypeVar

from sqlalchemy.orm import Session

from kit.audit import acts
from kit.audit.decisions import Decided, decided_change
from kit.base.money import FIAT_PLACES, has_decimals, parse_fraction
from kit.db.database import refusing
from kit.rpc import values
from kit.rpc.errors import edit_conflict
from services.catalog import errors
from services.catalog.domain import (
    PAYMENT_MOST_MINUTES,
    AccountKind,
    Currency,
    Method,
    RateFault,
    price,
)
from services.catalog.events import CATALOG_CHANGED
from services.catalog.operations import fields
from services.catalog.operations.logos import kept_logo
from services.catalog.store import entries, rates
from services.catalog.store.decisions import CURRENCY, METHOD
from services.catalog.wiring import Deps

NAME_MAX_CHARACTERS = 128
SYMBOL_MAX_CHARACTERS = 8

Entry = Currency | Method
E = TypeVar("E", Currency, Method)


@dataclass(frozen=True, slots=True)
class CatalogContent:
    """`unpriced_codes`: the enabled currencies without a rate that a deal could lock now."""

    currencies: Sequence[Currency]
    methods: Sequence[Method]
    unpriced_codes: Sequence[str]


def get_catalog(deps: Deps) -> CatalogContent:
    """Returns all currencies by code and all methods by currency and name, enabled or not."""
    with deps.db.transaction() as tx:
        # Methods first: the currency of a method that is made in between is then in the answer.
        methods = entries.all_methods(tx)
        rated = rates.enabled_currencies_with_rates(tx.connection())
        currencies = entries.all_currencies(tx)
    now, max_age = deps.clock.now(), deps.settings.rates_max_age
    unpriced = [
        each.currency.code
        for each in rated
        if isinstance(price(each.currency.markup, each.rates.in_force(now, max_age), now, max_age), RateFault)
    ]
    return CatalogContent(currencies, methods, unpriced)


def set_currency(
    deps: Deps,
    *,
    code: str,
    name: str,
    symbol: str,
    decimals: int,
    min_amount: str,
    max_amount: str,
    markup: str,
    enabled: bool,
    was: Currency | None = None,
    create: bool = False,
) -> Currency:
    """Creates the currency or replaces all of its options; with the values that it `was` made from, those that differ
    from them. Raises VALIDATION_ERROR, EDIT_CONFLICT.
    """
    decimals = values.whole_number("currency.decimals", decimals, least=0, most=FIAT_PLACES)
    checked = values.together(
        code=lambda: fields.currency_code("currency.code", code),
        name=lambda: values.label("currency.name", name, most=NAME_MAX_CHARACTERS),
        symbol=lambda: values.label("currency.symbol", symbol, most=SYMBOL_MAX_CHARACTERS),
        min_amount=lambda: fields.amount("currency.min_amount", min_amount, decimals=decimals),
        max_amount=lambda: fields.amount("currency.max_amount", max_amount, decimals=decimals),
        markup=lambda: values.parsed("currency.markup", markup, parse_fraction),
    )
    currency = Currency(**checked, decimals=decimals, enabled=enabled)
    fields.not_below("currency.max_amount", currency.max_amount, currency.min_amount)
    with deps.db.transaction() as tx:
        before = entries.currency_to_change(tx, currency.code)
        _require_right_start("currency.code", before, was, create=create)
        if before is not None and was is not None:
            currency = _merged("currency", before, was, currency)
            _require_fitting_amounts(currency)
        entries.put_currency(tx, currency)
        _record(tx, CURRENCY, before, currency, was)
    deps.bus.hint(CATALOG_CHANGED)
    return currency


def set_payment_method(
    deps: Deps,
    *,
    method_code: str,
    currency_code: str,
    name: str,
    min_sum: str,
    max_sum: str,
    payment_minutes: int,
    commission: str,
    logo_url: str | None,
    active: bool,
    logo: bytes | None,
    takes_reference: bool | None,
    account_kind: AccountKind | None,
    was: Method | None = None,
    create: bool = False,
) -> Method:
    """Creates the method, or replaces its options; with the values that it `was` made from, those that differ from
    them. An option that is None stays as it is; an empty logo removes it.

    Raises VALIDATION_ERROR, CURRENCY_NOT_FOUND, EDIT_CONFLICT.
    """
    checked = values.together(
        code=lambda: values.code("method.method_code", method_code),
        currency_code=lambda: fields.currency_code("method.currency_code", currency_code),
        name=lambda: values.label("method.name", name, most=NAME_MAX_CHARACTERS),
        min_sum=lambda: fields.amount("method.min_sum", min_sum, decimals=FIAT_PLACES),
        max_sum=lambda: fields.amount("method.max_sum", max_sum, decimals=FIAT_PLACES),
        payment_minutes=lambda: values.whole_number(
            "method.payment_minutes", payment_minutes, least=1, most=PAYMENT_MOST_MINUTES
        ),
        commission=lambda: values.parsed("method.commission", commission, parse_fraction),
        logo_url=lambda: fields.image_url("method.logo_url", logo_url),
    )
    method = Method(
        **checked,
        active=active,
        logo=kept_logo(deps, logo or b""),
        takes_reference=takes_reference or False,
        account_kind=account_kind or AccountKind.FREE,
    )
    fields.not_below("method.max_sum", method.max_sum, method.min_sum)
    given = {"logo": logo, "takes_reference": takes_reference, "account_kind": account_kind}
    keeps = {name for name, value in given.items() if value is None}
    unknown = {"fk_payment_methods_currency_code": lambda: errors.currency_not_found(method.currency_code)}
    with deps.db.transaction() as tx, refusing(unknown):
        before = entries.method_to_change(tx, method.code)
        _require_right_start("method.method_code", before, was, create=create)
        if before is not None and was is not None:
            kept = {name: getattr(was, name) for name in keeps}
            method = _merged("method", before, was, replace(method, **kept))
            if method.min_sum > method.max_sum:
                raise edit_conflict("method.max_sum", f"{method.max_sum:f}")
        stored = entries.put_method(tx, method, keeps=keeps)
        _record(tx, METHOD, before, stored, was, keeps=keeps)
    deps.bus.hint(CATALOG_CHANGED)
    return stored


def _require_right_start(field: str, before: Entry | None, was: Entry | None, *, create: bool) -> None:
    """Raises EDIT_CONFLICT if an entry to create exists, or one to change does not."""
    if create and before is not None:
        raise edit_conflict(field, before.code)
    if was is not None and before is None:
        raise edit_conflict(field, "")


def _merged(kind: str, now: E, was: E, wanted: E) -> E:
    """Returns the present entry with the values that the caller changed. Raises EDIT_CONFLICT for one that another
    caller changed to something else.
    """
    changed = {}
    for name in (each.name for each in fields_of(wanted)):
        value, present = getattr(wanted, name), getattr(now, name)
        if value == getattr(was, name):
            continue
        if present not in (getattr(was, name), value):
            raise edit_conflict(f"{kind}.{name}", acts.text_of(present))
        changed[name] = value
    return replace(now, **changed)


def _require_fitting_amounts(merged: Currency) -> None:
    """Raises EDIT_CONFLICT when two changes are right alone and wrong together."""
    for name in ("min_amount", "max_amount"):
        amount: Decimal = getattr(merged, name)
        if not has_decimals(amount, at_most=merged.decimals) or amount < merged.min_amount:
            raise edit_conflict(f"currency.{name}", f"{amount:f}")


def _record(
    tx: Session,
    kind: Decided,
    before: Entry | None,
    after: Entry,
    was: Entry | None,
    *,
    keeps: Collection[str] = (),
) -> None:
    """Records what was set: all but `keeps`, or with the values that it `was` made from what differs."""
    given = [] if was is not None else [name for name in asdict(after) if name not in keeps]
    known = {} if before is None else asdict(before)
    decided, now = decided_change(tx, kind, after.code, known, asdict(after), given=given)
    acts.record(tx, f"{kind.kind}.set", f"{kind.kind}:{after.code}", before=decided, after=now)

"""The operators' calls on currencies and payment methods."""

from collections.abc import Sequence
from dataclasses import dataclass

from kit.db.database import refusing
from services.catalog import errors
from services.catalog.domain import Currency, Method
from services.catalog.events import CATALOG_CHANGED
from services.catalog.operations import checks
from services.catalog.operations.logos import kept_logo
from services.catalog.store import entries
from services.catalog.wiring import Deps

NAME_MAX_CHARACTERS = 128
SYMBOL_MAX_CHARACTERS = 8


@dataclass(frozen=True)
class CatalogContent:
    currencies: Sequence[Currency]
    methods: Sequence[Method]


def get_catalog(deps: Deps) -> CatalogContent:
    """All currencies by code and all methods by currency and name, enabled or not."""
    with deps.db.transaction() as tx:
        # Methods first: the currency of a method that is made in between is then in the answer.
        methods = entries.all_methods(tx)
        return CatalogContent(entries.all_currencies(tx), methods)


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
) -> Currency:
    """Creates the currency or replaces all of its options. Raises VALIDATION_ERROR."""
    decimals = checks.whole_number(decimals, field="currency.decimals", minimum=0, maximum=2)
    low, high = checks.amount_range(
        min_amount,
        max_amount,
        minimum_field="currency.min_amount",
        maximum_field="currency.max_amount",
        decimals=decimals,
    )
    currency = Currency(
        code=checks.currency_code(code, field="currency.code"),
        name=checks.label(name, field="currency.name", max_characters=NAME_MAX_CHARACTERS),
        symbol=checks.label(symbol, field="currency.symbol", max_characters=SYMBOL_MAX_CHARACTERS),
        decimals=decimals,
        min_amount=low,
        max_amount=high,
        markup=checks.fraction(markup, field="currency.markup"),
        enabled=enabled,
    )
    with deps.db.transaction() as tx:
        entries.put_currency(tx, currency)
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
) -> Method:
    """Creates the method or replaces all of its options; the logo only if one is given (empty removes it).

    Raises VALIDATION_ERROR, CURRENCY_NOT_FOUND.
    """
    low, high = checks.amount_range(
        min_sum, max_sum, minimum_field="method.min_sum", maximum_field="method.max_sum", decimals=2
    )
    method = Method(
        code=checks.method_code(method_code, field="method.method_code"),
        currency_code=checks.currency_code(currency_code, field="method.currency_code"),
        name=checks.label(name, field="method.name", max_characters=NAME_MAX_CHARACTERS),
        min_sum=low,
        max_sum=high,
        payment_minutes=checks.whole_number(
            payment_minutes, field="method.payment_minutes", minimum=1, maximum=1440
        ),
        commission=checks.fraction(commission, field="method.commission"),
        logo_url=checks.image_url(logo_url, field="method.logo_url"),
        active=active,
        logo=kept_logo(deps, logo or b""),
    )
    unknown = {"fk_payment_methods_currency_code": lambda: errors.currency_not_found(method.currency_code)}
    with deps.db.transaction() as tx, refusing(unknown):
        stored = entries.put_method(tx, method, keeps_logo=logo is None)
    deps.bus.hint(CATALOG_CHANGED)
    return stored

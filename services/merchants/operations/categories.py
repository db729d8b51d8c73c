"""Categories and their commission."""

from collections.abc import Sequence
from typing import Final

from kit.base.money import parse_fraction
from kit.rpc import values
from services.merchants import domain, store
from services.merchants.operations import fields
from services.merchants.wiring import Deps

CATEGORIES_LISTED: Final = 10_000


def set_category(deps: Deps, *, code: str, commission: str) -> domain.Category:
    """Creates the category, or changes its commission."""
    category = domain.Category(
        code=values.parsed("code", code, fields.parse_category_code),
        commission=values.parsed("commission", commission, parse_fraction),
    )
    with deps.db.transaction() as tx:
        store.put_category(tx, category, at=deps.clock.now())
    return category


def list_categories(deps: Deps) -> Sequence[domain.Category]:
    """Returns all categories, by code."""
    with deps.db.transaction() as tx:
        return store.categories(tx, limit=CATEGORIES_LISTED)

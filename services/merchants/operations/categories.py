"""Categories and their commission."""

from collections.abc import Sequence
from typing import Final

from kit.base.money import parse_fraction
from kit.rpc import values
from services.merchants import domain, models, store
from services.merchants.wiring import Deps

CATEGORIES_LISTED: Final = 10_000


def set_category(deps: Deps, *, code: str, commission: str) -> models.Category:
    """Creates the category, or changes its commission."""
    category = models.Category(
        code=values.parsed("code", code, domain.parse_category_code),
        commission=values.parsed("commission", commission, parse_fraction),
        updated_at=deps.clock.now(),
    )
    with deps.db.transaction() as tx:
        store.category_set(tx, category.code, commission=category.commission, at=category.updated_at)
    return category


def list_categories(deps: Deps) -> Sequence[models.Category]:
    """Returns all categories, by code."""
    with deps.db.transaction() as tx:
        return store.categories(tx, limit=CATEGORIES_LISTED)

"""Categories and their commission."""

from collections.abc import Sequence
from typing import Final

from kit.audit import acts
from kit.audit.decisions import before_by_acts
from kit.base.money import parse_fraction
from kit.rpc import values
from kit.rpc.errors import edit_conflict
from services.identity import models
from services.identity.domain import merchants as domain
from services.identity.operations import fields
from services.identity.operations.leases import ends_leases
from services.identity.store import merchants
from services.identity.store.decisions import CATEGORY
from services.identity.store.versions import Versioned, version_of
from services.identity.wiring import Deps

CATEGORIES_LISTED: Final = 10_000


@ends_leases
def set_category(
    deps: Deps, *, code: str, commission: str, was: str | None = None
) -> Versioned[domain.Category]:
    """Creates the category, or changes its commission from what it `was`. Raises EDIT_CONFLICT."""
    checked = values.together(
        code=lambda: values.parsed("code", code, fields.parse_category_code),
        commission=lambda: values.parsed("commission", commission, parse_fraction),
    )
    category = domain.Category(**checked)
    with deps.db.transaction() as tx:
        before = merchants.category_to_change(tx, category.code)
        now = "" if before is None else domain.fraction_text(before.commission)
        if was is not None and now not in (was, domain.fraction_text(category.commission)):
            raise edit_conflict("commission", now)
        merchants.put_category(tx, category, at=deps.clock.now())
        changed = ("commission",)
        acts.record(
            tx,
            "category.set",
            f"category:{category.code}",
            before=acts.values_of(before, changed) | before_by_acts(tx, CATEGORY, category.code),
            after=acts.values_of(category, changed),
        )
        return Versioned(answer=category, version=version_of(tx, models.Category.code, category.code))


def list_categories(deps: Deps) -> Sequence[domain.Category]:
    """Returns all categories, by code."""
    with deps.db.transaction() as tx:
        return merchants.categories(tx, limit=CATEGORIES_LISTED)

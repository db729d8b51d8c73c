"""Categories and their commission."""

from collections.abc import Sequence
from typing import Final

from kit.audit import acts
from kit.audit.decisions import decided_change
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
    deps: Deps,
    *,
    code: str,
    commission: str,
    refunds_return_commission: bool | None = None,
    was: str | None = None,
) -> Versioned[domain.Category]:
    """Creates the category, or changes it: its commission from what it `was`, and its rule of refunds if one is given.
    Raises EDIT_CONFLICT.
    """
    checked = values.together(
        code=lambda: values.parsed("code", code, fields.parse_category_code),
        commission=lambda: values.parsed("commission", commission, parse_fraction),
    )
    code, share = checked["code"], checked["commission"]
    with deps.db.transaction() as tx:
        before = merchants.category_to_change(tx, code)
        now = "" if before is None else domain.fraction_text(before.commission)
        if was is not None and now not in (was, domain.fraction_text(share)):
            raise edit_conflict("commission", now)
        returned = refunds_return_commission
        if returned is None:
            returned = before is not None and before.refunds_return_commission
        category = domain.Category(code, share, refunds_return_commission=returned)
        merchants.put_category(tx, category, at=deps.clock.now())
        rows = acts.values_of(before, CATEGORY.fields), acts.values_of(category, CATEGORY.fields)
        given = (
            CATEGORY.fields if before is None or refunds_return_commission is not None else ("commission",)
        )
        changed = decided_change(tx, CATEGORY, code, *rows, given=given)
        acts.record(tx, "category.set", f"category:{code}", before=changed[0], after=changed[1])
        return Versioned(answer=category, version=version_of(tx, models.Category.code, code))


def list_categories(deps: Deps) -> Sequence[domain.Category]:
    """Returns all categories, by code."""
    with deps.db.transaction() as tx:
        return merchants.categories(tx, limit=CATEGORIES_LISTED)

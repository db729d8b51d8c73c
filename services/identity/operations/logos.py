"""Logos: checked and cleaned before they are stored, found by their digest."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy.orm import Session

from kit.base.pictures import NoPicture, cleaned
from services.identity import errors
from services.identity.domain.merchants import LOGO_MAX_BYTES, LOGO_MAX_PIXELS, Logo
from services.identity.operations.lookup import id_of_merchant
from services.identity.store import logos, merchants
from services.identity.wiring import Deps

LOGOS_PER_DAY: Final = 50
"""New pictures that the members of one merchant may send within `COUNTED_FOR`."""
COUNTED_FOR: Final = timedelta(days=1)


def kept_logo(deps: Deps, content: bytes, *, kept_for: UUID | None = None) -> str | None:
    """Stores the picture and returns its digest; None for an empty one. Raises VALIDATION_ERROR.

    kept_for  the merchant whose member chose it, for which only so many new ones are stored in a day
    """
    if not content:
        return None
    try:
        logo = cleaned(content, most_bytes=LOGO_MAX_BYTES, most_pixels=LOGO_MAX_PIXELS)
    except NoPicture as fault:
        raise errors.logo_invalid(str(fault)) from None
    with deps.db.transaction() as tx:
        now = deps.clock.now()
        if kept_for is not None:
            _require_fewer(tx, kept_for, logo.digest, since=now - COUNTED_FOR)
        logos.keep_logo(tx, logo, at=now, kept_for=kept_for)
    return logo.digest


def _require_fewer(tx: Session, merchant_id: UUID, digest: str, *, since: datetime) -> None:
    """Raises VALIDATION_ERROR for a new picture when too many were stored for the merchant since then. Pictures that no
    merchant uses stay: without a bound, a member could fill the database.
    """
    if logos.has_logo(tx, digest):
        return
    if merchants.merchant_to_change(tx, merchant_id) is None:
        raise errors.merchant_not_found()
    if logos.logos_kept_for(tx, merchant_id, since=since, limit=LOGOS_PER_DAY) == LOGOS_PER_DAY:
        raise errors.logo_invalid(f"{LOGOS_PER_DAY} new pictures were sent within a day: go on tomorrow")


def keep_logo(deps: Deps, *, content: bytes, merchant_id: str = "") -> str:
    """Stores a picture that may become a logo, for a merchant if one is given, and returns its digest.

    Raises VALIDATION_ERROR, MERCHANT_NOT_FOUND.
    """
    digest = kept_logo(deps, content, kept_for=id_of_merchant(merchant_id) if merchant_id else None)
    if digest is None:
        raise errors.logo_invalid("expected a picture")
    return digest


def get_logo(deps: Deps, *, logo: str) -> Logo:
    """Returns the logo of this digest. Raises NOT_FOUND."""
    with deps.db.autocommit() as connection:
        found = logos.logo(connection, logo.replace("\0", ""))
    if found is None:
        raise errors.logo_not_found()
    return found

"""Logos: checked and cleaned before they are stored, found by their digest."""

from kit.base.pictures import NoPicture, cleaned
from services.catalog import errors
from services.catalog.domain import LOGO_MAX_BYTES, LOGO_MAX_PIXELS, Logo
from services.catalog.store import entries
from services.catalog.wiring import Deps


def kept_logo(deps: Deps, content: bytes) -> str | None:
    """Stores the picture and returns its digest; None for an empty one. Raises VALIDATION_ERROR."""
    if not content:
        return None
    try:
        logo = cleaned(content, most_bytes=LOGO_MAX_BYTES, most_pixels=LOGO_MAX_PIXELS)
    except NoPicture as fault:
        raise errors.logo_invalid(str(fault)) from None
    with deps.db.transaction() as tx:
        entries.keep_logo(tx, logo, at=deps.clock.now())
    return logo.digest


def keep_logo(deps: Deps, *, content: bytes) -> str:
    """Stores a picture that may become a logo, and returns its digest. Raises VALIDATION_ERROR."""
    digest = kept_logo(deps, content)
    if digest is None:
        raise errors.logo_invalid("there is no picture")
    return digest


def get_logo(deps: Deps, *, logo: str) -> Logo:
    """Returns the logo of this digest. Raises NOT_FOUND."""
    with deps.db.autocommit() as connection:
        found = entries.logo(connection, logo.replace("\0", ""))
    if found is None:
        raise errors.logo_not_found()
    return found

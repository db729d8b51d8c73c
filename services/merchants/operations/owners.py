"""Owners: the block that holds for all their merchants."""

from collections.abc import Callable
from datetime import datetime

from kit.rpc import values
from services.merchants import domain, errors, models, store
from services.merchants.wiring import Deps


def block_owner(deps: Deps, *, email: str) -> models.Owner:
    """Blocks all the owner's merchants. Raises OWNER_NOT_FOUND."""
    now = deps.clock.now()
    return _set_block(deps, email, lambda blocked_at: blocked_at or now)


def unblock_owner(deps: Deps, *, email: str) -> models.Owner:
    """Ends the block. Raises OWNER_NOT_FOUND."""
    return _set_block(deps, email, lambda _: None)


def _set_block(
    deps: Deps, email: str, blocked_at: Callable[[datetime | None], datetime | None]
) -> models.Owner:
    address = values.parsed("email", email, domain.parse_email)
    with deps.db.transaction() as tx:
        owner = store.owner_to_change(tx, address)
        if owner is None:
            raise errors.owner_not_found()
        owner.blocked_at = blocked_at(owner.blocked_at)
        return owner

"""Owners: the block that holds for all their merchants."""

from kit.rpc import values
from services.merchants import errors, store
from services.merchants.domain import Owner
from services.merchants.operations import fields
from services.merchants.wiring import Deps


def block_owner(deps: Deps, *, email: str) -> Owner:
    """Blocks all the owner's merchants. Raises OWNER_NOT_FOUND."""
    address = values.parsed("email", email, fields.parse_email)
    with deps.db.transaction() as tx:
        return _found(store.owner_blocked(tx, address, at=deps.clock.now()))


def unblock_owner(deps: Deps, *, email: str) -> Owner:
    """Ends the block. Raises OWNER_NOT_FOUND."""
    address = values.parsed("email", email, fields.parse_email)
    with deps.db.transaction() as tx:
        return _found(store.owner_unblocked(tx, address))


def _found(owner: Owner | None) -> Owner:
    if owner is None:
        raise errors.owner_not_found()
    return owner

"""Owners: the block that holds for all their merchants."""

from datetime import datetime

from kit.audit import acts
from kit.rpc import values
from services.merchants import errors, store
from services.merchants.domain import Owner
from services.merchants.operations import fields
from services.merchants.wiring import Deps


def block_owner(deps: Deps, *, email: str) -> Owner:
    """Blocks all the owner's merchants. Raises OWNER_NOT_FOUND."""
    return _set_block(deps, "owner.block", email, deps.clock.now())


def unblock_owner(deps: Deps, *, email: str) -> Owner:
    """Ends the block. Raises OWNER_NOT_FOUND."""
    return _set_block(deps, "owner.unblock", email, None)


def _set_block(deps: Deps, act: str, email: str, blocked_at: datetime | None) -> Owner:
    address = values.parsed("email", email, fields.parse_email)
    with deps.db.transaction() as tx:
        before = store.owner_to_change(tx, address)
        if before is None:
            raise errors.owner_not_found()
        if (before.blocked_at is None) == (blocked_at is None):
            return before  # an earlier block keeps its time
        after = store.owner_with_block(tx, address, blocked_at)
        changed = ("blocked_at",)
        acts.record(
            tx,
            act,
            f"owner:{address}",
            before=acts.values_of(before, changed),
            after=acts.values_of(after, changed),
        )
        return after

"""Owners: the block that holds for all their merchants."""

from datetime import datetime
from typing import Final

from kit.audit import acts
from kit.audit.decisions import before_by_acts
from kit.base.ids import parse_id
from kit.rpc import values
from services.identity import errors, models
from services.identity.domain.merchants import Owner, OwnerFacts
from services.identity.operations import fields
from services.identity.operations.leases import ends_leases
from services.identity.store import merchants
from services.identity.store.decisions import OWNER
from services.identity.store.versions import Versioned, version_of
from services.identity.wiring import Deps

MERCHANTS_COUNTED: Final = 1000


def get_owner(deps: Deps, *, owner: str) -> OwnerFacts:
    """Returns the owner with this id or e-mail address. Raises OWNER_NOT_FOUND."""
    known_by = parse_id(owner) or values.parsed("owner", owner, fields.parse_email)
    with deps.db.autocommit() as connection:
        found = merchants.owner_by_id_or_email(connection, known_by, counted=MERCHANTS_COUNTED)
    if found is None:
        raise errors.owner_not_found()
    return found


@ends_leases
def block_owner(deps: Deps, *, email: str) -> Versioned[Owner]:
    """Blocks all the owner's merchants. Raises OWNER_NOT_FOUND."""
    return _set_block(deps, "owner.block", email, deps.clock.now())


def unblock_owner(deps: Deps, *, email: str) -> Owner:
    """Ends the block. Raises OWNER_NOT_FOUND."""
    return _set_block(deps, "owner.unblock", email, None).answer


def _set_block(deps: Deps, act: str, email: str, blocked_at: datetime | None) -> Versioned[Owner]:
    address = values.parsed("email", email, fields.parse_email)
    with deps.db.transaction() as tx:
        before = merchants.owner_to_change(tx, address)
        if before is None:
            raise errors.owner_not_found()
        is_same = (before.blocked_at is None) == (blocked_at is None)  # an earlier block keeps its time
        after = before if is_same else merchants.owner_with_block(tx, address, blocked_at)
        by_acts = before_by_acts(tx, OWNER, address) or {"blocked_at": ""}
        acts.record(tx, act, f"owner:{address}", before=by_acts, after={"blocked_at": after.blocked_at})
        return Versioned(answer=after, version=version_of(tx, models.Owner.email, address))

"""The part of the people that the author of a call reaches: all, or the members of the author's own merchant."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from kit.base import actors
from kit.base.actors import THE_OPERATOR
from kit.rpc.errors import Refused
from services.identity.domain.people import Invitation, Person, Surface


def merchant_reached(wanted: UUID | None, not_found: Callable[[], Refused]) -> UUID | None:
    """Returns the wanted merchant; None stands for the staff. Raises `not_found()` when the author is a member, and not
    of this merchant.
    """
    own = own_merchant()
    if own is not None and wanted != own:
        raise not_found()
    return wanted


def own_merchant() -> UUID | None:
    """Returns the merchant that a member acts for; None for operators, who reach all."""
    actor = actors.current()
    if actor.surface != Surface.DASHBOARD.value:
        return None
    if actor.merchant_id is None:
        raise LookupError("a member without a merchant passed the permissions")
    return actor.merchant_id


def inviter_of(invitation: Invitation) -> str:
    """Returns the name of the inviter for the invited person, and for members."""
    by_operator = invitation.by_operator and invitation.merchant_id is not None
    return THE_OPERATOR if by_operator else invitation.invited_by


def as_shown(person: Person) -> Person | None:
    """Returns the person as the author sees it: a member sees members of its merchant, and only their roles there."""
    own = own_merchant()
    if own is None:
        return person
    there = [each for each in person.memberships if each.merchant_id == own]
    return replace(person, roles=(), memberships=there) if there else None

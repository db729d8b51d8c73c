"""Values to messages, and back."""

from typing import Final
from uuid import UUID

from fiatgate.accounts.v1 import accounts_pb2 as pb
from kit.base.proto import timestamp_from
from kit.rpc import callers, values
from kit.rpc.methods import Converters
from kit.rpc.permissions import CONSOLES
from services.identity.domain import people as domain
from services.identity.domain.people import Client, Surface
from services.identity.operations.fields import client_from

_SURFACES: Final[dict[int, Surface]] = {
    pb.SURFACE_DESK: Surface.DESK,
    pb.SURFACE_DASHBOARD: Surface.DASHBOARD,
}
_NUMBERS: Final = {Surface.DESK: pb.SURFACE_DESK, Surface.DASHBOARD: pb.SURFACE_DASHBOARD}


def surface_from(number: int) -> Surface:
    found = _SURFACES.get(number)
    if found is None:
        raise values.invalid("surface", "Expected a surface")
    return found


def surface_of_caller() -> Surface | None:
    """Returns the surface that the caller's certificate names; None without TLS, and for no console."""
    surface = CONSOLES.get(callers.current() or "")
    return None if surface is None else Surface(surface)


def client_from_message(message: pb.Client) -> Client:
    return client_from(message.address, message.user_agent, message.network)


def membership_to_message(membership: domain.Membership) -> pb.Membership:
    return pb.Membership(merchant_id=str(membership.merchant_id), roles=membership.roles)


def person_to_message(person: domain.Person) -> pb.Person:
    return pb.Person(
        person_id=str(person.id),
        email=person.email,
        name=person.name,
        roles=person.roles,
        memberships=[membership_to_message(each) for each in person.memberships],
        disabled=person.disabled_at is not None,
        created_at=timestamp_from(person.created_at),
        last_seen_at=timestamp_from(person.last_seen_at),
        has_complete_factors=person.has_complete_factors,
    )


def session_to_message(session: domain.Session, *, current: UUID | None = None) -> pb.Session:
    return pb.Session(
        session_id=str(session.id),
        surface=_NUMBERS[session.surface],
        client=pb.Client(address=session.address, user_agent=session.user_agent),
        started_at=timestamp_from(session.started_at),
        last_seen_at=timestamp_from(session.last_seen_at),
        is_current=session.id == current,
        way=session.way.value,
    )


def invitation_to_message(invitation: domain.Invitation) -> pb.Invitation:
    of_merchant = invitation.merchant_id is not None
    membership = pb.Membership(merchant_id=str(invitation.merchant_id), roles=invitation.member_roles)
    return pb.Invitation(
        invitation_id=str(invitation.id),
        email=invitation.email,
        name=invitation.name,
        roles=invitation.roles,
        memberships=[membership] if of_merchant else [],
        expires_at=timestamp_from(invitation.expires_at),
        invited_by=invitation.invited_by,
    )


def passkey_to_message(passkey: domain.Passkey) -> pb.Passkey:
    return pb.Passkey(
        passkey_id=str(passkey.id),
        name=passkey.name,
        created_at=timestamp_from(passkey.created_at),
        last_used_at=timestamp_from(passkey.last_used_at),
    )


FROM_MESSAGE: Final[Converters] = {
    "fiatgate.accounts.v1.Surface": surface_from,
    "fiatgate.accounts.v1.Client": client_from_message,
}

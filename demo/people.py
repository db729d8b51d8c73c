"""The invented people: a demo operator, and the owner of the demo merchant.

Each gets a new link for one use as long as they have no way to sign in by themselves. An operator's changes stay: a
person keeps their roles, and one who is disabled, or has no role any more, gets no link.
"""

from __future__ import annotations

from typing import Final

from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1.accounts_pb2_grpc import PeopleServiceStub
from kit.rpc.errors import Refused

OPERATOR: Final = "operator@fiatgate.example"


def links(
    people: PeopleServiceStub, *, merchant_id: str, owner_email: str, to_desk: bool = True
) -> dict[str, str | None]:
    """Returns the links to the desk and to the dashboard; None for a person who needs no link, or got it by e-mail.
    Not `to_desk`: nobody is invited there.

    Raises kit.rpc.errors.Refused with DB_UNAVAILABLE while accounts is away.
    """
    operator = pb.InvitePersonRequest(email=OPERATOR, name="Demo operator", roles=["admin"])
    owner = pb.InvitePersonRequest(
        email=owner_email, name="Owner of the demo shop", merchant_id=merchant_id, member_roles=["owner"]
    )
    desk = {"desk": _link(people, operator)} if to_desk else {}
    return desk | {"dashboard": _link(people, owner)}


def _link(people: PeopleServiceStub, wanted: pb.InvitePersonRequest) -> str | None:
    request = _as_they_are_now(people, wanted)
    try:
        return None if request is None else people.InvitePerson(request).link or None
    except Refused as refused:
        if refused.reason == "DB_UNAVAILABLE":
            raise
        return None  # an administrator needs a second person, for example: the stack starts all the same


def _as_they_are_now(
    people: PeopleServiceStub, wanted: pb.InvitePersonRequest
) -> pb.InvitePersonRequest | None:
    """Returns the invitation with the roles that the person has; None when the person gets none."""
    try:
        person = people.GetPerson(pb.GetPersonRequest(person=wanted.email)).person
    except Refused as refused:
        if refused.reason == "PERSON_NOT_FOUND":
            return wanted
        raise
    of_merchant = [each for each in person.memberships if each.merchant_id == wanted.merchant_id]
    roles = (
        [*person.roles] if not wanted.merchant_id else [role for each in of_merchant for role in each.roles]
    )
    if person.disabled or person.has_complete_factors or not roles:
        return None
    return pb.InvitePersonRequest(
        email=wanted.email,
        name=person.name,
        merchant_id=wanted.merchant_id,
        roles=[] if wanted.merchant_id else roles,
        member_roles=roles if wanted.merchant_id else [],
    )

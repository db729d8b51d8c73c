"""PeopleService: people, roles and invitations."""

from typing import Any, Final

from fiatgate.accounts.v1 import accounts_pb2 as pb
from kit.rpc.methods import Methods, by_name
from services.identity.domain.people import Person
from services.identity.operations import invitations, people, sessions
from services.identity.operations.invitations import Invited
from services.identity.rpc.converters import invitation_to_message, person_to_message, session_to_message
from services.identity.wiring import Deps


def set_roles(deps: Deps, request: pb.SetRolesRequest) -> pb.SetRolesResponse:
    person = people.set_roles(
        deps,
        person_id=request.person_id,
        roles=request.roles,
        merchant_id=request.merchant_id,
        was=request.was.roles if request.HasField("was") else None,
    )
    return pb.SetRolesResponse(person=person_to_message(person))


def _person(person: Person) -> dict[str, Any]:
    return {"person": person_to_message(person)}


def _invited(made: Invited) -> dict[str, Any]:
    return {"invitation": invitation_to_message(made.invitation), "link": made.link}


METHODS: Final[Methods] = {
    "ListPeople": by_name(people.list_people, lambda found: {"people": map(person_to_message, found)}),
    "GetPerson": by_name(people.get_person, _person),
    "InvitePerson": by_name(invitations.invite_person, _invited),
    "RecoverPerson": by_name(invitations.recover_person, _invited),
    "ListInvitations": by_name(
        invitations.list_invitations, lambda found: {"invitations": map(invitation_to_message, found)}
    ),
    "WithdrawInvitation": by_name(invitations.withdraw_invitation),
    "SetRoles": set_roles,
    "DisablePerson": by_name(people.disable_person, _person),
    "EnablePerson": by_name(people.enable_person, _person),
    "ListSessions": by_name(
        sessions.list_sessions, lambda found: {"sessions": map(session_to_message, found)}
    ),
    "EndSession": by_name(sessions.end_session),
}

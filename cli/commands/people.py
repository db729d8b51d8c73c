"""`fiatgate people …`: operators of the desk and members of merchants."""

from itertools import chain
from typing import Annotated, Any, Final, TypeVar

import typer
from google.protobuf.message import Message

from cli import connection, ids, listing, output
from cli.command import argument, command, group, option
from cli.listing import Row, Table
from fiatgate.accounts.v1 import accounts_pb2 as pb

R = TypeVar("R", bound=Message)

app = group("people", "People who sign in at the desk or the dashboard: invite, roles, sessions.")

PEOPLE: Final = Table(
    columns="email: e-mail | name | roles | state | last_seen_at: last seen",
    stacks="email name | roles | state last_seen_at",
    empty="No such people yet: fiatgate people invite",
)
SESSIONS: Final = Table(
    columns="session_id: id | surface | way | client.address: address | last_seen_at: last seen"
    " | client.user_agent: browser",
    stacks="session_id client.user_agent | surface way | client.address last_seen_at",
    empty="The person is not signed in",
)
INVITATIONS: Final = Table(
    columns="invitation_id: id | email: e-mail | roles | expires_at: until | invited_by: invited by",
    stacks="invitation_id email | roles invited_by | expires_at",
    empty="No open invitation",
)
MERCHANT: Final = ids.of_merchant("A merchant's members, with roles there. Without: operators.")
_ROLES: Final = (
    "viewer, desk, treasury, prices, admin, auditor; of a merchant: owner, developer, finance, viewer. "
    "Give it once for each role."
)
ROLES: Final = option("roles", "ROLE", _ROLES, "--role")
PERSON: Final = ids.person()


@command(
    *(app, "invite", 'ann@example.com --name "Ann" --role admin', pb.InvitePersonRequest),
    argument("email", "EMAIL", "The address is the person's name for signing in."),
    option("name", None, "Shown to others.", required=True),
    ROLES,
    MERCHANT,
)
def invite(request: pb.InvitePersonRequest) -> None:
    """Make a link by which a person signs in for the first time; a known person gets the roles in addition."""
    if request.merchant_id:
        request.member_roles.extend(request.roles)
        request.ClearField("roles")
    _show_link(connection.people().InvitePerson(request))


@command(app, "recover", "ann@example.com", pb.RecoverPersonRequest, PERSON, MERCHANT)
def recover(request: pb.RecoverPersonRequest) -> None:
    """Make a link that signs in a person who has lost all factors, to make new ones. The others stay until removed."""
    _show_link(connection.people().RecoverPerson(_named(request)))


def _named(request: R) -> R:
    """Returns the request with the person's id in place of an e-mail address."""
    named = pb.GetPersonRequest(person=request.person_id)  # type: ignore[attr-defined]  # each has it
    request.person_id = connection.people().GetPerson(named).person.person_id  # type: ignore[attr-defined]  # as above
    return request


def _show_link(made: pb.InvitePersonResponse | pb.RecoverPersonResponse) -> None:
    if output.mode.json:
        output.record(made)
    elif made.link:
        output.lead(f"Send this link to {made.invitation.email}. It works once, within 72 hours:")
        output.lead(made.link)
    else:
        output.lead(f"The link is on its way to {made.invitation.email}. It works once, within 72 hours.")


@command(app, "list", "", pb.ListPeopleRequest, MERCHANT)
def list_all(request: pb.ListPeopleRequest) -> None:
    """List operators, or the members of a merchant, by e-mail address."""
    pages = listing.pages(request, connection.people().ListPeople, "people", "email", size=200)
    PEOPLE.show([_shown(each, request.merchant_id) for each in chain.from_iterable(pages)])


def _shown(person: Row, merchant: str) -> Row:
    """Returns the person for a list: with the roles of the place that is listed, and one word for the state."""
    ready = "active" if person["has_complete_factors"] else "without factors"
    return person | {
        "roles": _roles_of(person, merchant),
        "state": "disabled" if person["disabled"] else ready,
    }


def _roles_of(values: Row, merchant: str) -> Any:
    there = [each["roles"] for each in values["memberships"] if each["merchant_id"] == merchant]
    return there[0] if there else values["roles"]


@command(app, "show", "ann@example.com", pb.GetPersonRequest, ids.person("person"))
def show(request: pb.GetPersonRequest) -> None:
    """Show a person with all roles."""
    output.record(connection.people().GetPerson(request).person)


@command(
    *(app, "roles", "ann@example.com --role desk --role treasury", pb.SetRolesRequest),
    PERSON,
    ROLES,
    MERCHANT,
    modes="all",
)
def roles(
    request: pb.SetRolesRequest,
    *,
    none: Annotated[bool, typer.Option("--none", help="Take all of these roles away.")] = False,
) -> None:
    """Replace a person's roles; they hold from the person's next request."""
    if bool(request.roles) == none:
        raise typer.BadParameter("give the roles, or --none to take them all away", param_hint="--role")
    changed = connection.people().SetRoles(_named(request)).person
    place = f"at merchant {request.merchant_id}" if request.merchant_id else "on the desk"
    output.outcome(changed, f"{changed.email} has {', '.join(request.roles) or 'no role'} {place}.")


@command(app, "disable", "ann@example.com", pb.DisablePersonRequest, PERSON, modes="all")
def disable(request: pb.DisablePersonRequest) -> None:
    """End all sessions of a person and refuse new ones."""
    changed = connection.people().DisablePerson(_named(request)).person
    sentence = f"{changed.email} is signed out everywhere and can't sign in."
    output.outcome(changed, sentence, f"fiatgate people enable {changed.email}")


@command(app, "enable", "ann@example.com", pb.EnablePersonRequest, PERSON, modes="all")
def enable(request: pb.EnablePersonRequest) -> None:
    """Let a disabled person sign in again."""
    changed = connection.people().EnablePerson(_named(request)).person
    output.outcome(changed, f"{changed.email} can sign in again.")


@command(app, "sessions", "ann@example.com", pb.ListSessionsRequest, PERSON)
def sessions(request: pb.ListSessionsRequest) -> None:
    """List a person's live sessions, newest first."""
    SESSIONS.show_all(connection.people().ListSessions(_named(request)).sessions)


@command(app, "end-session", "0197…", pb.EndSessionRequest, ids.one("session"))
def end_session(request: pb.EndSessionRequest) -> None:
    """End one session, from its next request."""
    connection.people().EndSession(request)
    output.outcome({"session_id": request.session_id}, "The session has ended.")


@command(app, "invitations", "", pb.ListInvitationsRequest, MERCHANT)
def invitations(request: pb.ListInvitationsRequest) -> None:
    """List open invitations, newest first."""
    found = [output.plain(each) for each in connection.people().ListInvitations(request).invitations]
    if not output.mode.json:
        found = [each | {"roles": _roles_of(each, request.merchant_id)} for each in found]
    INVITATIONS.show(found)


@command(app, "withdraw", "0197…", pb.WithdrawInvitationRequest, ids.one("invitation"))
def withdraw(request: pb.WithdrawInvitationRequest) -> None:
    """Withdraw an open invitation: its link opens nothing any more."""
    connection.people().WithdrawInvitation(request)
    output.outcome({"invitation_id": request.invitation_id}, "The invitation is withdrawn.")

"""`fiatgate people …`: operators of the desk and members of merchants."""

from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from cli import connection, ids, output
from cli.output import Everything, Json
from fiatgate.accounts.v1 import accounts_pb2 as pb

PAGE: Final = 200
app = typer.Typer(
    help="People who sign in at the desk or the dashboard: invite, roles, sessions.", no_args_is_help=True
)

PEOPLE: Final = {
    "email": "e-mail",
    "name": "name",
    "roles": "roles",
    "state": "state",
    "last_seen_at": "last seen",
}
PEOPLE_STACKS: Final = (("email", "name"), ("roles",), ("state", "last_seen_at"))
SESSIONS: Final = {
    "session_id": "id",
    "surface": "surface",
    "way": "way",
    "client.address": "address",
    "last_seen_at": "last seen",
    "client.user_agent": "browser",
}
SESSIONS_STACKS: Final = (
    ("session_id", "client.user_agent"),
    ("surface", "way"),
    ("client.address", "last_seen_at"),
)
INVITATIONS: Final = {
    "invitation_id": "id",
    "email": "e-mail",
    "roles": "roles",
    "expires_at": "until",
    "invited_by": "invited by",
}
INVITATIONS_STACKS: Final = (("invitation_id", "email"), ("roles", "invited_by"), ("expires_at",))

Merchant = Annotated[
    str,
    typer.Option(
        metavar="ID",
        parser=ids.parser_of("merchant"),
        help="A merchant's members, with roles there. Without: operators.",
    ),
]
Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="viewer, desk, treasury, prices, admin, auditor; of a merchant: owner, developer, finance, viewer. "
        "Give it once for each role.",
    ),
]


@app.command("invite", epilog='Example: fiatgate people invite ann@example.com --name "Ann" --role admin')
def invite(
    email: Annotated[
        str, typer.Argument(metavar="EMAIL", help="The address is the person's name for signing in.")
    ],
    *,
    name: Annotated[str, typer.Option(help="Shown to others.")],
    role: Roles = None,
    merchant: Merchant = "",
    as_json: Json = False,
) -> None:
    """Make a link by which a person signs in for the first time; a known person gets the roles in addition."""
    request = pb.InvitePersonRequest(
        email=email,
        name=name,
        roles=() if merchant else role,
        merchant_id=merchant,
        member_roles=role if merchant else (),
    )
    _show_link(connection.people().InvitePerson(request), as_json=as_json)


@app.command("recover", epilog="Example: fiatgate people recover ann@example.com")
def recover(person: ids.PersonId, *, merchant: Merchant = "", as_json: Json = False) -> None:
    """Make a link that signs in a person who has lost all factors, to make new ones. The others stay until removed."""
    request = pb.RecoverPersonRequest(person_id=_found(person).person_id, merchant_id=merchant)
    _show_link(connection.people().RecoverPerson(request), as_json=as_json)


def _show_link(made: pb.InvitePersonResponse | pb.RecoverPersonResponse, *, as_json: bool) -> None:
    if as_json:
        output.record(made, as_json=True)
    elif made.link:
        output.lead(f"Send this link to {made.invitation.email}. It works once, within 72 hours:")
        output.lead(made.link)
    else:
        output.lead(f"The link is on its way to {made.invitation.email}. It works once, within 72 hours.")


@app.command("list", epilog="Example: fiatgate people list")
def list_all(*, merchant: Merchant = "", as_json: Json = False) -> None:
    """List operators, or the members of a merchant, by e-mail address."""
    found = [_shown(each, merchant) for each in _people(merchant)]
    empty = "No such people yet: fiatgate people invite"
    if as_json:
        output.print_json(found)
        return
    output.rows(found, PEOPLE, as_json=False, empty=empty, stacks=PEOPLE_STACKS)


@app.command("show", epilog="Example: fiatgate people show ann@example.com")
def show(person: ids.PersonId, *, as_json: Json = False) -> None:
    """Show a person with all roles."""
    output.record(_found(person), as_json=as_json)


@app.command("roles", epilog="Example: fiatgate people roles ann@example.com --role desk --role treasury")
def roles(
    person: ids.PersonId,
    *,
    role: Roles = None,
    merchant: Merchant = "",
    none: Annotated[bool, typer.Option("--none", help="Take all of these roles away.")] = False,
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Replace a person's roles; they hold from the person's next request."""
    if bool(role) == none:
        raise typer.BadParameter("give the roles, or --none to take them all away", param_hint="--role")
    request = pb.SetRolesRequest(person_id=_found(person).person_id, roles=role, merchant_id=merchant)
    changed = connection.people().SetRoles(request).person
    place = f"at merchant {merchant}" if merchant else "on the desk"
    sentence = f"{changed.email} has {', '.join(role) if role else 'no role'} {place}."
    output.outcome(changed, sentence, everything=everything, as_json=as_json)


@app.command("disable", epilog="Example: fiatgate people disable ann@example.com")
def disable(person: ids.PersonId, *, everything: Everything = False, as_json: Json = False) -> None:
    """End all sessions of a person and refuse new ones."""
    request = pb.DisablePersonRequest(person_id=_found(person).person_id)
    changed = connection.people().DisablePerson(request).person
    sentence = f"{changed.email} is signed out everywhere and can't sign in."
    again = f"fiatgate people enable {changed.email}"
    output.outcome(changed, sentence, again, everything=everything, as_json=as_json)


@app.command("enable", epilog="Example: fiatgate people enable ann@example.com")
def enable(person: ids.PersonId, *, everything: Everything = False, as_json: Json = False) -> None:
    """Let a disabled person sign in again."""
    request = pb.EnablePersonRequest(person_id=_found(person).person_id)
    changed = connection.people().EnablePerson(request).person
    output.outcome(changed, f"{changed.email} can sign in again.", everything=everything, as_json=as_json)


@app.command("sessions", epilog="Example: fiatgate people sessions ann@example.com")
def sessions(person: ids.PersonId, *, as_json: Json = False) -> None:
    """List a person's live sessions, newest first."""
    request = pb.ListSessionsRequest(person_id=_found(person).person_id)
    found = [output.plain(each) for each in connection.people().ListSessions(request).sessions]
    output.rows(found, SESSIONS, as_json=as_json, empty="The person is not signed in", stacks=SESSIONS_STACKS)


@app.command("end-session", epilog="Example: fiatgate people end-session 0197…")
def end_session(
    session_id: ids.SessionId,
    *,
    as_json: Json = False,
) -> None:
    """End one session, from its next request."""
    connection.people().EndSession(pb.EndSessionRequest(session_id=session_id))
    output.outcome({"session_id": session_id}, "The session has ended.", everything=False, as_json=as_json)


@app.command("invitations", epilog="Example: fiatgate people invitations")
def invitations(*, merchant: Merchant = "", as_json: Json = False) -> None:
    """List open invitations, newest first."""
    request = pb.ListInvitationsRequest(merchant_id=merchant)
    found = [output.plain(each) for each in connection.people().ListInvitations(request).invitations]
    if not as_json:
        found = [each | {"roles": _roles_of(each, merchant)} for each in found]
    output.rows(found, INVITATIONS, as_json=as_json, empty="No open invitation", stacks=INVITATIONS_STACKS)


@app.command("withdraw", epilog="Example: fiatgate people withdraw 0197…")
def withdraw(
    invitation_id: ids.InvitationId,
    *,
    as_json: Json = False,
) -> None:
    """Withdraw an open invitation: its link opens nothing any more."""
    connection.people().WithdrawInvitation(pb.WithdrawInvitationRequest(invitation_id=invitation_id))
    shown = {"invitation_id": invitation_id}
    output.outcome(shown, "The invitation is withdrawn.", everything=False, as_json=as_json)


def _found(person: str) -> pb.Person:
    return connection.people().GetPerson(pb.GetPersonRequest(person=person)).person


def _people(merchant: str) -> Iterator[pb.Person]:
    last = ""
    while True:
        request = pb.ListPeopleRequest(merchant_id=merchant, after_email=last, limit=PAGE)
        page = connection.people().ListPeople(request).people
        yield from page
        if len(page) < PAGE:
            return
        last = page[-1].email


def _shown(person: pb.Person, merchant: str) -> dict[str, Any]:
    """Returns the person for a list: with the roles of the place that is listed, and one word for the state."""
    values = output.plain(person)
    ready = "active" if person.has_complete_factors else "without factors"
    return values | {"roles": _roles_of(values, merchant), "state": "disabled" if person.disabled else ready}


def _roles_of(values: dict[str, Any], merchant: str) -> list[str]:
    there = [each["roles"] for each in values["memberships"] if each["merchant_id"] == merchant]
    found: list[str] = there[0] if there else values["roles"]
    return found

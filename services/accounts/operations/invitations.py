"""Invitations: a link for one use, by which a person gets roles and a first session."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session as Tx

from kit.audit import acts
from kit.audit.approvals import Approval, Terms
from kit.base import actors
from kit.base.emails import parse_email
from kit.base.ids import new_id
from kit.rpc import approvals, values
from services.accounts import errors
from services.accounts.credentials import tokens
from services.accounts.domain import (
    ADMIN,
    INVITATION_LASTS,
    NAME_CHARACTERS,
    Client,
    Invitation,
    Person,
    Surface,
    Way,
)
from services.accounts.operations import fields, sessions
from services.accounts.operations.fields import SESSION_TOKEN_CHARACTERS
from services.accounts.operations.people import needs_two
from services.accounts.operations.reach import merchant_reached
from services.accounts.operations.signing_in import SIGN_INS
from services.accounts.store import mails, people
from services.accounts.wiring import Deps

INVITATIONS_LISTED = 1000
INVITE: Final = "person.invite"


@dataclass(frozen=True, kw_only=True)
class Invited:
    """An invitation, and its link unless that was sent by e-mail."""

    invitation: Invitation
    link: str


def invite_person(
    deps: Deps,
    *,
    email: str,
    name: str,
    roles: Sequence[str],
    merchant_id: str,
    member_roles: Sequence[str],
) -> Invited:
    """Makes a link for one use, 72 hours. An earlier open link to the same address ends.

    For a known person the roles are added. The link starts a session and so lets the person make new factors. One that
    a member of a merchant made does not do that for a person who has roles elsewhere: owners could take over accounts
    that are not theirs. A member never gets the link, which goes by e-mail: it would prove an address that is not the
    member's, and a person who gets roles elsewhere later would share the account. A link that leads to the role `admin`
    is made when a second person approves. Raises MAIL_REQUIRED, APPROVAL_REQUIRED, APPROVAL_STATE_CONFLICT.
    """
    if actors.current().surface == Surface.DASHBOARD.value and not deps.settings.smtp_url:
        raise errors.mail_required()
    of_staff = fields.staff_roles(roles)
    of_members = fields.member_roles("member_roles", member_roles)
    merchant = values.uuid("merchant_id", merchant_id) if merchant_id else None
    if merchant is None and (of_members or not of_staff):
        raise values.invalid("roles", "Expected roles of the staff, or a merchant and roles there")
    if merchant is not None and (of_staff or not of_members):
        raise values.invalid("member_roles", "Expected roles at the merchant, and none of the staff")
    invitation = Invitation(
        id=new_id(),
        email=values.parsed("email", email, parse_email),
        name=values.label("name", name.strip(), most=NAME_CHARACTERS),
        roles=of_staff,
        merchant_id=merchant_reached(merchant, errors.merchant_not_found),
        member_roles=of_members,
        expires_at=deps.clock.now() + INVITATION_LASTS,
        invited_by=str(actors.current()),
    )
    return approvals.done(_invited_or_requested(deps, invitation))


def _invited_or_requested(deps: Deps, invitation: Invitation) -> Invited | Approval:
    with deps.db.transaction() as tx:
        known = people.person_by_email(tx, invitation.email)
        if _leads_to_an_admin(known, invitation) and needs_two(deps, tx, invitation.email):
            return approvals.request(tx, _inviting(known, invitation), deps)
        return invited(deps, tx, invitation)


def _leads_to_an_admin(known: Person | None, invitation: Invitation) -> bool:
    """Returns whether the link makes an admin, or opens a session of one."""
    opens = known is not None and ADMIN in known.roles and actors.current().surface != Surface.DASHBOARD.value
    return ADMIN in invitation.roles or opens


def _inviting(known: Person | None, invitation: Invitation) -> Terms:
    roles = ", ".join([*invitation.roles, *invitation.member_roles])
    place = f" at merchant {invitation.merchant_id}" if invitation.merchant_id else ""
    return Terms(
        act=INVITE,
        object=f"person:{known.id}" if known else f"email:{invitation.email}",
        request={
            "email": invitation.email,
            "name": invitation.name,
            "roles": list(invitation.roles),
            "merchant_id": str(invitation.merchant_id or ""),
            "member_roles": list(invitation.member_roles),
        },
        summary=f"Invite {invitation.email} with {roles}{place}; the link opens a session with all roles of the person",
        merchant_id=invitation.merchant_id,
    )


def invite_approved(deps: Deps, tx: Tx, asked: Approval) -> str:
    """Makes the requested invitation; returns its link unless that is sent by e-mail."""
    request = asked.request
    invitation = Invitation(
        id=new_id(),
        email=request["email"],
        name=request["name"],
        roles=tuple(request["roles"]),
        merchant_id=asked.merchant_id,
        member_roles=tuple(request["member_roles"]),
        expires_at=deps.clock.now() + INVITATION_LASTS,
        invited_by=asked.requested_as,
    )
    return invited(deps, tx, invitation).link


def invited(deps: Deps, tx: Tx, invitation: Invitation) -> Invited:
    """Stores the invitation, whose roles the author may give, and queues its e-mail."""
    now = deps.clock.now()
    token = tokens.new_token()
    link = f"{deps.settings.url_of(invitation.surface)}/invitation?token={token}"
    people.withdraw_others_of(tx, invitation.email, invitation.merchant_id, at=now)
    people.add_invitation(
        tx,
        invitation,
        token_hash=tokens.hash_of(token),
        by_operator=actors.current().surface != Surface.DASHBOARD.value,
        at=now,
    )
    acts.record(
        tx,
        INVITE,
        f"invitation:{invitation.id}",
        merchant_id=invitation.merchant_id,
        after={"email": invitation.email, "roles": [*invitation.roles, *invitation.member_roles]},
    )
    if not deps.settings.smtp_url:
        return Invited(invitation=invitation, link=link)
    mails.add_mail(tx, invitation.id, deps.vault.seal(link.encode()), at=now)
    return Invited(invitation=invitation, link="")


def list_invitations(deps: Deps, *, merchant_id: str) -> list[Invitation]:
    """Returns the open invitations of the staff, or of a merchant; newest first."""
    wanted = merchant_reached(
        values.uuid("merchant_id", merchant_id) if merchant_id else None, errors.merchant_not_found
    )
    with deps.db.transaction() as tx:
        return people.open_invitations(tx, wanted, now=deps.clock.now(), limit=INVITATIONS_LISTED)


def withdraw_invitation(deps: Deps, *, invitation_id: str) -> None:
    """Raises INVITATION_NOT_FOUND."""
    wanted = values.uuid_or(errors.invitation_not_found, invitation_id)
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        invitation = people.open_invitation_by_id(tx, wanted, now=now)
        if invitation is None:
            raise errors.invitation_not_found()
        merchant_reached(invitation.merchant_id, errors.invitation_not_found)
        if not people.withdraw_invitation(tx, wanted, at=now):
            raise errors.invitation_not_found()
        acts.record(
            tx,
            "invitation.withdraw",
            f"invitation:{wanted}",
            merchant_id=invitation.merchant_id,
            before={"email": invitation.email},
        )


# -- the invited person


def get_invitation(deps: Deps, *, token: str, surface: Surface) -> Invitation:
    """Returns an open invitation to this surface. Raises INVITATION_INVALID."""
    with deps.db.transaction() as tx:
        found = people.open_invitation(tx, _hash_of(token), now=deps.clock.now())
    if found is None or found.surface is not surface:
        raise errors.invitation_invalid()
    return found


def accept_invitation(deps: Deps, *, token: str, surface: Surface, client: Client) -> str:
    """Uses the invitation up, adds its roles and returns the token of a new session; "" when the person has roles
    elsewhere and signs in with the factors it has. Raises INVITATION_INVALID.
    """
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        used = people.used_up_invitation(tx, _hash_of(token), now=now)
        if used is None or used[0].surface is not surface:
            raise errors.invitation_invalid()
        invitation, by_operator = used
        person_id = people.person_or_new(tx, email=invitation.email, name=invitation.name, at=now)
        people.lock_person(tx, person_id)
        before = people.person(tx, person_id)
        if before is None or before.disabled_at is not None:
            raise errors.invitation_invalid()
        _add_roles(deps, tx, before, invitation)
        person = people.person(tx, person_id)
        assert person is not None
        with actors.acting(sessions.actor_of(person, surface)):
            acts.record(
                tx,
                "invitation.accept",
                f"person:{person_id}",
                merchant_id=invitation.merchant_id,
                after={"email": person.email, "roles": [*invitation.roles, *invitation.member_roles]},
                note=f"invited by {invitation.invited_by}",
            )
        if not by_operator and invitation.merchant_id and not before.is_only_of(invitation.merchant_id):
            return ""
        token = sessions.start(deps, tx, person, surface=surface, way=Way.INVITATION, client=client)
    SIGN_INS.labels(Way.INVITATION.value, "started").inc()
    return token


def _add_roles(deps: Deps, tx: Tx, person: Person, invitation: Invitation) -> None:
    """Adds the roles to those that the person has now."""
    if invitation.merchant_id is None:
        people.set_staff_roles(tx, person.id, fields.staff_roles([*person.roles, *invitation.roles]))
        if ADMIN in invitation.roles:
            people.withdraw_all_of(tx, person.email, at=deps.clock.now())
        return
    roles = fields.member_roles(
        "member_roles", [*person.roles_at(invitation.merchant_id), *invitation.member_roles]
    )
    people.set_member_roles(tx, person.id, invitation.merchant_id, roles, at=deps.clock.now())


def _hash_of(token: str) -> bytes:
    if len(token) > SESSION_TOKEN_CHARACTERS:
        raise errors.invitation_invalid()
    return tokens.hash_of(token)

"""Invitations: a link for one use, by which a person gets roles and a first session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import RowMapping
from sqlalchemy.orm import Session as Tx

from kit.audit import acts
from kit.audit.approvals import Approval, Terms, is_approved
from kit.audit.decisions import acts_on
from kit.base import actors
from kit.base.emails import parse_email
from kit.base.ids import new_id
from kit.db.database import retry_conflicts
from kit.rpc import approvals, values
from kit.rpc.errors import denied
from services.identity import errors
from services.identity.credentials import tokens
from services.identity.domain.people import (
    ADMIN,
    INVITATION_LASTS,
    MEMBERS_INVITATIONS_A_DAY_MOST,
    MEMBERS_INVITATIONS_OPEN_MOST,
    OWNER,
    Invitation,
    Person,
    Surface,
)
from services.identity.operations import fields
from services.identity.operations.people import INVITE, RECOVER, has_point, may, needs_two, require_requester
from services.identity.operations.reach import inviter_of, merchant_reached, own_merchant
from services.identity.store import decisions, mails, people
from services.identity.wiring import Deps

INVITATIONS_LISTED = 1000
APPROVAL: Final = "approval"
"""The field of an act with the request that another person approved."""
ACCEPT: Final = "invitation.accept"
ROLES_SET: Final = "person.roles"
_DAY: Final = timedelta(days=1)


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

    For a known person the roles are added. The link starts a session of a person without complete factors, who makes
    them there; any other person signs in with its own. One that a member of a merchant made starts no session for a
    person who has roles elsewhere: owners could take over accounts that are not theirs. A member never gets the link,
    which goes by e-mail: it would prove an address that is not the member's, and a person who gets roles elsewhere
    later would share the account. A link that leads to the role `admin` is made when a second person approves. Raises
    MAIL_REQUIRED, INVITATIONS_LIMITED, APPROVAL_REQUIRED, APPROVAL_STATE_CONFLICT.
    """
    _require_mail(deps)
    of_staff = fields.staff_roles(roles)
    of_members = fields.member_roles("member_roles", member_roles)
    merchant = values.uuid("merchant_id", merchant_id) if merchant_id else None
    if merchant is None and (of_members or not of_staff):
        raise values.invalid("roles", "Expected roles of the staff, or a merchant and roles there")
    if merchant is not None and (of_staff or not of_members):
        raise values.invalid("member_roles", "Expected roles at the merchant, and none of the staff")
    invitation = _new(
        deps,
        email=values.parsed("email", email, parse_email),
        name=fields.person_name(name),
        merchant_id=merchant_reached(merchant, errors.merchant_not_found),
        roles=of_staff or of_members,
    )
    return approvals.done(_invited_or_requested(deps, invitation))


@retry_conflicts
def _invited_or_requested(deps: Deps, invitation: Invitation) -> Invited | Approval:
    with deps.db.transaction() as tx:
        return _made_or_requested(deps, tx, invitation, INVITE)


def recover_person(deps: Deps, *, person_id: str, merchant_id: str) -> Invited:
    """Makes a link that starts a session whatever factors the person has, to make new ones there: for a person who has
    lost all. It gives no role. Raises PERSON_NOT_FOUND, and as `invite_person`.
    """
    _require_mail(deps)
    wanted = values.uuid_or(errors.person_not_found, person_id)
    merchant = merchant_reached(
        values.uuid("merchant_id", merchant_id) if merchant_id else None, errors.merchant_not_found
    )
    return approvals.done(_recovered_or_requested(deps, wanted, merchant))


@retry_conflicts
def _recovered_or_requested(deps: Deps, person_id: UUID, merchant_id: UUID | None) -> Invited | Approval:
    with deps.db.transaction() as tx:
        invitation = _recovery(deps, tx, people.person(tx, person_id), merchant_id)
        return _made_or_requested(deps, tx, invitation, RECOVER)


def _recovery(deps: Deps, tx: Tx, person: Person | None, merchant_id: UUID | None) -> Invitation:
    """Returns an invitation with the roles that acts gave the person. Raises PERSON_NOT_FOUND."""
    if person is None or person.disabled_at is not None:
        raise errors.person_not_found()
    roles = decisions.roles_by_acts(tx, person.id, merchant_id)
    if not roles:
        raise errors.person_not_found()
    return _new(deps, email=person.email, name=person.name, merchant_id=merchant_id, roles=roles)


def _new(deps: Deps, *, email: str, name: str, merchant_id: UUID | None, roles: Sequence[str]) -> Invitation:
    """Returns an invitation by the current actor; the roles are those of the staff, or at the merchant."""
    return Invitation(
        id=new_id(),
        email=email,
        name=name,
        roles=roles if merchant_id is None else [],
        merchant_id=merchant_id,
        member_roles=[] if merchant_id is None else roles,
        expires_at=deps.clock.now() + INVITATION_LASTS,
        invited_by=str(actors.current()),
        by_operator=actors.current().surface != Surface.DASHBOARD.value,
    )


def _require_mail(deps: Deps) -> None:
    """Raises MAIL_REQUIRED for a member without a mail server."""
    if actors.current().surface == Surface.DASHBOARD.value and not deps.settings.smtp_url:
        raise errors.mail_required()


def _made_or_requested(deps: Deps, tx: Tx, invitation: Invitation, act: str) -> Invited | Approval:
    people.lock_address(tx, invitation.email)
    known = people.person_by_email(tx, invitation.email)
    if _leads_to_an_admin(tx, known, invitation) and needs_two(deps, tx, invitation.email):
        return approvals.request(tx, _terms(known, invitation, act), deps)
    return _made(deps, tx, invitation, act)


def _leads_to_an_admin(tx: Tx, known: Person | None, invitation: Invitation) -> bool:
    """Returns whether the link makes an admin, or may open a session of one: factors that are complete today may not be
    so when it is used.
    """
    if ADMIN in invitation.roles:
        return True
    is_admin = known is not None and ADMIN in {*known.roles, *decisions.roles_by_acts(tx, known.id, None)}
    return is_admin and invitation.by_operator


def _terms(known: Person | None, invitation: Invitation, act: str) -> Terms:
    request = {
        "person_id": str(known.id) if known else "",
        "email": invitation.email,
        "name": invitation.name,
        "roles": list(invitation.roles),
        "merchant_id": str(invitation.merchant_id or ""),
        "member_roles": list(invitation.member_roles),
    }
    return recovery_terms(request) if act == RECOVER else invite_terms(request)


def invite_terms(request: Mapping[str, Any]) -> Terms:
    roles, merchant = ", ".join([*request["roles"], *request["member_roles"]]), request["merchant_id"]
    place = f" at merchant {merchant}" if merchant else ""
    summary = f"Invite {request['email']} with {roles}{place}; without factors, the link opens a session with all roles"
    return _terms_of_link(INVITE, request, summary)


def recovery_terms(request: Mapping[str, Any]) -> Terms:
    summary = (
        f"Let {request['email']} make new factors; the link opens a session with all roles of the person"
    )
    return _terms_of_link(RECOVER, request, summary)


def _terms_of_link(act: str, request: Mapping[str, Any], summary: str) -> Terms:
    person, merchant = request["person_id"], request["merchant_id"]
    return Terms(
        act=act,
        object=f"person:{person}" if person else f"email:{request['email']}",
        request=request,
        summary=summary,
        merchant_id=UUID(merchant) if merchant else None,
    )


def invite_approved(deps: Deps, tx: Tx, asked: Approval) -> str:
    """Makes the requested invitation; returns its link unless that is sent by e-mail. Raises
    APPROVAL_STATE_CONFLICT.
    """
    request = asked.request
    people.lock_address(tx, request["email"])
    require_requester(tx, asked)
    person = people.person_by_email(tx, request["email"])
    if person is not None and not has_point(asked, person):
        raise approvals.changed_since()
    invitation = _new(
        deps,
        email=request["email"],
        name=request["name"],
        merchant_id=asked.merchant_id,
        roles=request["roles"] or request["member_roles"],
    )
    return _made(
        deps, tx, replace(invitation, invited_by=asked.requested_as), INVITE, approval_id=asked.id
    ).link


def recovery_approved(deps: Deps, tx: Tx, asked: Approval) -> str:
    """Makes the requested link; returns it unless it is sent by e-mail. Raises PERSON_NOT_FOUND,
    APPROVAL_STATE_CONFLICT.
    """
    people.lock_address(tx, asked.request["email"])
    require_requester(tx, asked)
    person = people.person_by_email(tx, asked.request["email"])
    invitation = _recovery(deps, tx, person, asked.merchant_id)
    if not asked.asks_for(_terms(person, invitation, RECOVER)):
        raise approvals.changed_since()
    return _made(
        deps, tx, replace(invitation, invited_by=asked.requested_as), RECOVER, approval_id=asked.id
    ).link


def _decided(invitation: Invitation, token: str) -> dict[str, Any]:
    """Returns what the act of an invitation decides: who gets which roles by which link."""
    return {
        "email": invitation.email,
        "roles": [*invitation.roles, *invitation.member_roles],
        "by_operator": invitation.by_operator,
        "expires_at": invitation.expires_at,
        "link_sha256": tokens.digest_of_link(tokens.hash_of(token), invitation.name, invitation.invited_by),
    }


def was_made_by_call(tx: Tx, invitation: Invitation, token: str) -> bool:
    """Returns whether a call made the invitation with this link, another person approved it where one had to, and
    nobody has used it: so say its acts. A row that someone inserts by SQL opens nothing.
    """
    of_link = f"invitation:{invitation.id}"
    act = RECOVER if tokens.is_for_recovery(token) else INVITE
    decided = {name: acts.text_of(value) for name, value in _decided(invitation, token).items()}
    for made in acts_on(tx, [of_link], (act,)):
        values = {name: after for name, _, after in made["changes"]}
        approval = values.pop(APPROVAL, "")
        if values == decided and made["merchant_id"] == invitation.merchant_id:
            approved = not approval or is_approved(tx, UUID(approval), act=act)
            return approved and not _was_ended(tx, invitation, made)
    return False


def _was_ended(tx: Tx, invitation: Invitation, made: RowMapping) -> bool:
    """Returns whether an act used, withdrew or replaced the link, or decided about the roles of the person or the right
    of the inviter after it was made.
    """
    of_link, made_at = f"invitation:{invitation.id}", made["at"]
    if decisions.was_replaced(tx, invitation, made_at=made_at) or acts_on(
        tx, [of_link], (decisions.WITHDRAW,)
    ):
        return True
    named = people.person_by_email(tx, made["on_behalf_of"].strip().lower())
    asked = people.person_by_email(
        tx, invitation.invited_by.rpartition(" for ")[2]
    )  # the approval is the other's act
    inviters = {named.id if named else made["person_id"], *([asked.id] if asked else [])}
    if any(decisions.lost_the_right(tx, each, invitation, made_at) for each in inviters):
        return True
    person = people.person_by_email(tx, invitation.email)
    if person is None:
        return False
    if ADMIN in invitation.roles and decisions.has_added_factors(tx, person.id, since=made_at):
        return True  # another link may have let in somebody else, who added them
    deciding = acts_on(tx, [f"person:{person.id}"], (ACCEPT, ROLES_SET, decisions.DISABLE, decisions.ENABLE))
    return any(each["note"] == of_link or (each["at"] > made_at and _decides(each)) for each in deciding)


def _decides(act: RowMapping) -> bool:
    """Returns whether the act ends the links to the person: it made an admin of it, or was about its roles or right."""
    return act["act"] != ACCEPT or any(ADMIN in after.split(", ") for _, _, after in act["changes"])


def _made(
    deps: Deps, tx: Tx, invitation: Invitation, act: str, *, approval_id: UUID | None = None
) -> Invited:
    """Stores the invitation to an address that is locked, if its author may still invite, and queues its e-mail. Raises
    NOT_PERMITTED.
    """
    _require_inviter(tx, invitation)
    now = deps.clock.now()
    token = tokens.new_recovery_token() if act == RECOVER else tokens.new_token()
    link = f"{deps.settings.url_of(invitation.surface)}/invitation?token={token}"
    if ADMIN in invitation.roles:
        people.withdraw_all_of(tx, invitation.email, at=now)
    people.withdraw_others_of(tx, invitation.email, invitation.merchant_id, at=now)
    if not invitation.by_operator:
        _require_room(tx, invitation.merchant_id, now)
    people.add_invitation(tx, invitation, token_hash=tokens.hash_of(token), at=now)
    acts.record(
        tx,
        act,
        f"invitation:{invitation.id}",
        merchant_id=invitation.merchant_id,
        after=_decided(invitation, token) | ({} if approval_id is None else {APPROVAL: approval_id}),
    )
    if not deps.settings.smtp_url:
        return Invited(invitation=invitation, link=link)
    mails.add_mail(tx, invitation.id, deps.vault.seal(f"link:{invitation.id} {link}".encode()), at=now)
    return Invited(invitation=invitation, link="")


def _require_inviter(tx: Tx, invitation: Invitation) -> None:
    """Raises NOT_PERMITTED for a person who was disabled, or lost the role, since the call was permitted. Until the
    transaction ends these changes wait; then they find the invitation and withdraw it.
    """
    actor = actors.current()
    if actor.person_id is None:
        return
    person = people.unchanged_person(tx, actor.person_id)
    if person is None:
        return
    if actor.surface == Surface.DESK.value:
        may_invite = may(tx, person, ADMIN)
    else:
        may_invite = invitation.merchant_id is not None and may(tx, person, OWNER, invitation.merchant_id)
    if not may_invite:
        raise denied("NOT_PERMITTED", "Your roles have changed")


def _require_room(tx: Tx, merchant_id: UUID | None, now: datetime) -> None:
    """Raises INVITATIONS_LIMITED: each invitation by a member is an e-mail to an address of the member's choice."""
    assert merchant_id is not None, "members invite to their merchant"
    people.lock_invitations(tx, merchant_id)
    open_ones, of_a_day = people.members_invitations(tx, merchant_id, now=now, since=now - _DAY)
    if open_ones >= MEMBERS_INVITATIONS_OPEN_MOST:
        message = (
            f"A merchant has at most {MEMBERS_INVITATIONS_OPEN_MOST} open invitations; withdraw one before"
        )
        raise errors.too_many_invitations(MEMBERS_INVITATIONS_OPEN_MOST, message)
    if of_a_day >= MEMBERS_INVITATIONS_A_DAY_MOST:
        message = (
            f"A merchant makes at most {MEMBERS_INVITATIONS_A_DAY_MOST} invitations a day; go on tomorrow"
        )
        raise errors.too_many_invitations(MEMBERS_INVITATIONS_A_DAY_MOST, message)


def list_invitations(deps: Deps, *, merchant_id: str) -> list[Invitation]:
    """Returns the open invitations of the staff, or of a merchant, newest first. A member sees which member invited,
    and not which operator.
    """
    wanted = merchant_reached(
        values.uuid("merchant_id", merchant_id) if merchant_id else None, errors.merchant_not_found
    )
    with deps.db.transaction() as tx:
        found = people.open_invitations(tx, wanted, now=deps.clock.now(), limit=INVITATIONS_LISTED)
    if own_merchant() is None:
        return found
    return [replace(each, invited_by=inviter_of(each)) for each in found]


@retry_conflicts
def withdraw_invitation(deps: Deps, *, invitation_id: str) -> None:
    """Ends an open invitation: its link opens nothing any more. Raises INVITATION_NOT_FOUND."""
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
            decisions.WITHDRAW,
            f"invitation:{wanted}",
            merchant_id=invitation.merchant_id,
            before={"email": invitation.email},
        )

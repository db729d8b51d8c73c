"""The invited person: reads what the link is for, and uses it."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from sqlalchemy.orm import Session as Tx

from kit.audit import acts
from kit.base import actors
from kit.db.database import retry_conflicts
from services.identity import errors
from services.identity.credentials import tokens
from services.identity.domain.people import (
    ADMIN,
    Client,
    Invitation,
    Person,
    Surface,
    Way,
)
from services.identity.operations import fields, sessions
from services.identity.operations.fields import SESSION_TOKEN_CHARACTERS
from services.identity.operations.invitations import ACCEPT, was_made_by_call
from services.identity.operations.people import close_pointless
from services.identity.operations.reach import inviter_of
from services.identity.operations.signing_in import SIGN_INS
from services.identity.store import people
from services.identity.store.decisions import has_factors_by_acts, roles_by_acts
from services.identity.wiring import Deps


def get_invitation(deps: Deps, *, token: str, surface: Surface) -> Invitation:
    """Returns an open invitation to this surface. Raises INVITATION_INVALID."""
    with deps.db.transaction() as tx:
        found = people.open_invitation(tx, _hash_of(token), now=deps.clock.now())
        if found is None or found.surface is not surface or not was_made_by_call(tx, found, token):
            raise errors.invitation_invalid()
    return replace(found, invited_by=inviter_of(found))


@retry_conflicts
def accept_invitation(deps: Deps, *, token: str, surface: Surface, client: Client) -> str:
    """Uses the invitation up, adds its roles and returns the token of a new session; "" when the person signs in with
    the factors it has (see `invite_person`). Raises INVITATION_INVALID.
    """
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        found = people.open_invitation(tx, _hash_of(token), now=now)
        if found is None:
            raise errors.invitation_invalid()
        people.lock_address(tx, found.email)
        invitation = people.used_up_invitation(tx, _hash_of(token), now=now)
        if (
            invitation is None
            or invitation.surface is not surface
            or not was_made_by_call(tx, invitation, token)
        ):
            raise errors.invitation_invalid()
        person_id = people.person_or_new(tx, email=invitation.email, name=invitation.name, at=now)
        people.lock_person(tx, person_id)
        before = people.person(tx, person_id)
        if before is None or before.disabled_at is not None:
            raise errors.invitation_invalid()
        had = roles_by_acts(tx, person_id, invitation.merchant_id)
        roles = had if tokens.is_for_recovery(token) else [*had, *invitation.roles, *invitation.member_roles]
        _set_roles(deps, tx, person_id, invitation, roles)
        if ADMIN in roles and ADMIN not in had:  # other links may have opened sessions of somebody else
            people.withdraw_all_of(tx, invitation.email, at=now)
            sessions.end_all(deps, tx, person_id)
        person = people.person(tx, person_id)
        assert person is not None
        with actors.acting(sessions.actor_of(person, surface)):
            acts.record(
                tx,
                ACCEPT,
                f"person:{person_id}",
                merchant_id=invitation.merchant_id,
                before={"roles": had},
                after={"email": person.email, "roles": _roles_at(person, invitation.merchant_id)},
                note=f"invitation:{invitation.id}",
            )
        close_pointless(deps, tx, person_id)
        if not _starts_a_session(tx, token, invitation, before):
            return ""
        token = sessions.start(deps, tx, person, surface=surface, way=Way.INVITATION, client=client)
    SIGN_INS.labels(Way.INVITATION.value, "started").inc()
    return token


def _starts_a_session(tx: Tx, token: str, invitation: Invitation, person: Person) -> bool:
    if (
        not invitation.by_operator
        and invitation.merchant_id
        and not person.is_only_of(invitation.merchant_id)
    ):
        return False
    return tokens.is_for_recovery(token) or not (
        person.has_complete_factors or has_factors_by_acts(tx, person.id)
    )


def _set_roles(deps: Deps, tx: Tx, person_id: UUID, invitation: Invitation, roles: Sequence[str]) -> None:
    if invitation.merchant_id is None:
        people.set_staff_roles(tx, person_id, fields.staff_roles(roles))
        return
    of_member = fields.member_roles("member_roles", roles)
    people.set_member_roles(tx, person_id, invitation.merchant_id, of_member, at=deps.clock.now())


def _roles_at(person: Person, merchant_id: UUID | None) -> Sequence[str]:
    return person.roles if merchant_id is None else person.roles_at(merchant_id)


def _hash_of(token: str) -> bytes:
    if len(token) > SESSION_TOKEN_CHARACTERS:
        raise errors.invitation_invalid()
    return tokens.hash_of(token)

"""People and their roles, for administrators of the desk, for owners of a merchant, and for the command line."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from sqlalchemy.orm import Session as Tx

from kit.audit import acts
from kit.audit.approvals import Approval, Terms, close, identity, pending_of
from kit.base import actors
from kit.base.emails import EMAIL_CHARACTERS, is_email, parse_email
from kit.base.ids import parse_id
from kit.db.database import retry_conflicts
from kit.rpc import approvals, values
from kit.rpc.errors import edit_conflict
from services.identity import errors
from services.identity.domain.people import ADMIN, OWNER, Person
from services.identity.operations import fields
from services.identity.operations.reach import as_shown, merchant_reached, own_merchant
from services.identity.operations.sessions import end_all
from services.identity.store import people
from services.identity.store.decisions import decided_admins, is_disabled_by_acts, roles_by_acts
from services.identity.wiring import Deps

PEOPLE_PER_PAGE = 200
INVITE: Final = "person.invite"
RECOVER: Final = "person.recover"
ROLES: Final = "person.roles"
ENABLE: Final = "person.enable"


def list_people(deps: Deps, *, merchant_id: str, after_email: str, limit: int) -> list[Person]:
    """Returns the staff, or the members of a merchant, by e-mail address."""
    wanted = merchant_reached(
        values.uuid("merchant_id", merchant_id) if merchant_id else own_merchant(), errors.merchant_not_found
    )
    rows = values.rows(limit, default=PEOPLE_PER_PAGE, most=PEOPLE_PER_PAGE)
    values.text("after_email", after_email, most=EMAIL_CHARACTERS, least=0)
    with deps.db.transaction() as tx:
        if wanted is None:
            return people.staff(tx, after_email=after_email, limit=rows)
        found = people.members(tx, wanted, after_email=after_email, limit=rows)
    return [shown for each in found if (shown := as_shown(each)) is not None]


def get_person(deps: Deps, *, person: str) -> Person:
    """Returns the person with this id or e-mail address. Raises PERSON_NOT_FOUND."""
    person_id = parse_id(person)
    if person_id is None and not is_email(person):
        raise errors.person_not_found()
    with deps.db.transaction() as tx:
        found = (
            people.person_by_email(tx, parse_email(person))
            if person_id is None
            else people.person(tx, person_id)
        )
    shown = None if found is None else as_shown(found)
    if shown is None:
        raise errors.person_not_found()
    return shown


def set_roles(
    deps: Deps,
    *,
    person_id: str,
    roles: Sequence[str],
    merchant_id: str,
    was: Collection[str] | None = None,
) -> Person:
    """Replaces the roles of the staff, or at a merchant; they hold from the next request. Raises PERSON_NOT_FOUND,
    LAST_ADMIN, LAST_OWNER; EDIT_CONFLICT when the roles are not what they `was` for the caller; APPROVAL_REQUIRED for a
    new admin, and APPROVAL_STATE_CONFLICT.
    """
    wanted = values.uuid_or(errors.person_not_found, person_id)
    merchant = merchant_reached(
        values.uuid("merchant_id", merchant_id) if merchant_id else None, errors.merchant_not_found
    )
    given = fields.staff_roles(roles) if merchant is None else fields.member_roles("roles", roles)
    return approvals.done(_roles_set_or_requested(deps, wanted, given, merchant, was))


@retry_conflicts
def _roles_set_or_requested(
    deps: Deps,
    person_id: UUID,
    roles: Sequence[str],
    merchant_id: UUID | None,
    was: Collection[str] | None,
) -> Person | Approval:
    with deps.db.transaction() as tx:
        person = _to_change(tx, person_id)
        present = person.roles if merchant_id is None else person.roles_at(merchant_id)
        if was is not None and set(was) != set(present):
            raise edit_conflict("roles", ", ".join(sorted(present)))
        becomes_admin = merchant_id is None and ADMIN in roles and ADMIN not in person.roles
        if becomes_admin and needs_two(deps, tx, person.email):
            return approvals.request(tx, _giving(person, roles), deps)
        changed = roles_set(deps, tx, person_id, roles, merchant_id)
        close_pointless(deps, tx, person_id)
        return changed


def needs_two(deps: Deps, tx: Tx, email: str) -> bool:
    """Returns whether a second person must approve that this one becomes an admin, or that a link opens an admin's
    session: if there is an active admin who could approve it. Not the author; and for the session of an active admin
    the author is as good as any other, because it decides about that admin.
    """
    known = people.person_by_email(tx, email)
    is_admin = known is not None and ADMIN in known.roles and known.disabled_at is None
    besides = email if is_admin else identity(actors.current())
    if not deps.settings.four_eyes:
        return False
    author = people.person_by_email(tx, besides)
    by_acts = decided_admins(tx) - ({author.id} if author else set())
    return bool(by_acts) or people.active_admins(tx, besides=(besides,)) > 0


def require_requester(tx: Tx, asked: Approval) -> None:
    """Raises APPROVAL_STATE_CONFLICT when the person who made the request was disabled or is no admin any more."""
    person = None if asked.requested_person is None else people.unchanged_person(tx, asked.requested_person)
    if person is not None and not may(tx, person, ADMIN):
        raise approvals.changed_since()


def may(tx: Tx, person: Person, role: str, merchant_id: UUID | None = None) -> bool:
    """Returns whether the person is enabled and has the role: so say the row and the acts."""
    roles = person.roles if merchant_id is None else person.roles_at(merchant_id)
    by_acts = role in roles_by_acts(tx, person.id, merchant_id) and not is_disabled_by_acts(tx, person.id)
    return by_acts and role in roles and person.disabled_at is None


def _giving(person: Person, roles: Sequence[str]) -> Terms:
    return roles_terms(
        {
            "person_id": str(person.id),
            "email": person.email,
            "roles": list(roles),
            "before": sorted(person.roles),
        }
    )


def roles_terms(request: Mapping[str, Any]) -> Terms:
    roles, before = ", ".join(request["roles"]), ", ".join(request["before"]) or "none"
    return Terms(
        act=ROLES,
        object=f"person:{request['person_id']}",
        request=request,
        summary=f"Give {request['email']} the roles {roles} on the desk; the roles were {before} at the request",
    )


def roles_approved(deps: Deps, tx: Tx, asked: Approval) -> None:
    """Replaces the roles as requested. Raises PERSON_NOT_FOUND, APPROVAL_STATE_CONFLICT."""
    person, roles = _to_change(tx, UUID(asked.request["person_id"])), asked.request["roles"]
    require_requester(tx, asked)
    if not asked.asks_for(_giving(person, roles)):
        raise approvals.changed_since()
    roles_set(deps, tx, person.id, roles, None)


def enable_approved(deps: Deps, tx: Tx, asked: Approval) -> None:
    """Enables the requested person. Raises PERSON_NOT_FOUND, APPROVAL_STATE_CONFLICT."""
    person = _to_change(tx, UUID(asked.request["person_id"]))
    require_requester(tx, asked)
    if not asked.asks_for(_enabling(person)):
        raise approvals.changed_since()
    _enable(deps, tx, person)


def roles_set(deps: Deps, tx: Tx, person_id: UUID, roles: Sequence[str], merchant_id: UUID | None) -> Person:
    """Replaces the roles, which the author may give. Links from before end: they would add what is taken away here, or
    open a session with what is given here. So do the links by a person who may no longer invite.
    """
    person, now = _to_change(tx, person_id), deps.clock.now()
    if merchant_id is None:
        people.withdraw_all_of(tx, person.email, at=now)
        if ADMIN not in roles:
            people.withdraw_all_by(tx, person.email, at=now)
        people.lock_admins(tx)
        people.set_staff_roles(tx, person_id, roles)
        if ADMIN in person.roles and not _has_admin(tx, besides=person_id):
            raise errors.last_admin()
    else:
        if not (person.roles_at(merchant_id) and roles_by_acts(tx, person_id, merchant_id)):
            raise errors.person_not_found()
        people.withdraw_others_of(tx, person.email, merchant_id, at=now)
        if OWNER not in roles:
            people.withdraw_all_by(tx, person.email, merchant_id=merchant_id, at=now)
        people.lock_owners(tx, merchant_id)
        people.set_member_roles(tx, person_id, merchant_id, roles, at=now)
        owners = people.active_owners(tx, merchant_id)
        if OWNER in person.roles_at(merchant_id) and not any(
            OWNER in roles_by_acts(tx, each, merchant_id) and not is_disabled_by_acts(tx, each)
            for each in owners
        ):
            raise errors.last_owner()
    acts.record(
        tx,
        ROLES,
        f"person:{person_id}",
        merchant_id=merchant_id,
        before={"roles": roles_by_acts(tx, person_id, merchant_id)},
        after={"roles": roles},
    )
    return _shown(tx, person_id)


def _has_admin(tx: Tx, *, besides: UUID) -> bool:
    return people.active_admins(tx) > 0 and bool(decided_admins(tx) - {besides})


@retry_conflicts
def disable_person(deps: Deps, *, person_id: str) -> Person:
    """Ends all sessions and all links to or by the person, and refuses new sessions.

    Raises PERSON_NOT_FOUND, LAST_ADMIN.
    """
    wanted = values.uuid_or(errors.person_not_found, person_id)
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        person = _to_change(tx, wanted)
        if person.disabled_at is None or not is_disabled_by_acts(tx, wanted):
            people.lock_admins(tx)
            people.set_disabled(tx, wanted, now)
            if ADMIN in person.roles and not _has_admin(tx, besides=wanted):
                raise errors.last_admin()
            people.withdraw_all_of(tx, person.email, at=now)
            people.withdraw_all_by(tx, person.email, at=now)
            acts.record(tx, "person.disable", f"person:{wanted}", after={"email": person.email})
            end_all(deps, tx, wanted)
            close_pointless(deps, tx, wanted)
        return _shown(tx, wanted)


def enable_person(deps: Deps, *, person_id: str) -> Person:
    """Lets the person sign in again.

    Raises PERSON_NOT_FOUND; APPROVAL_REQUIRED for an admin, and APPROVAL_STATE_CONFLICT.
    """
    return approvals.done(_enabled_or_requested(deps, values.uuid_or(errors.person_not_found, person_id)))


@retry_conflicts
def _enabled_or_requested(deps: Deps, person_id: UUID) -> Person | Approval:
    with deps.db.transaction() as tx:
        person = _to_change(tx, person_id)
        if person.disabled_at is not None:
            if ADMIN in person.roles and needs_two(deps, tx, person.email):
                return approvals.request(tx, _enabling(person), deps)
            _enable(deps, tx, person)
            close_pointless(deps, tx, person_id)
        return _shown(tx, person_id)


def _enable(deps: Deps, tx: Tx, person: Person) -> None:
    people.set_disabled(tx, person.id, None)
    people.withdraw_all_of(tx, person.email, at=deps.clock.now())
    acts.record(tx, ENABLE, f"person:{person.id}", after={"email": person.email})


def _enabling(person: Person) -> Terms:
    return enable_terms(
        {
            "person_id": str(person.id),
            "email": person.email,
            "roles": sorted(person.roles),
            "disabled": person.disabled_at is not None,
        }
    )


def enable_terms(request: Mapping[str, Any]) -> Terms:
    return Terms(
        act=ENABLE,
        object=f"person:{request['person_id']}",
        request=request,
        summary=f"Let {request['email']} sign in again, with the roles {', '.join(request['roles'])} on the desk",
    )


def close_pointless(deps: Deps, tx: Tx, person_id: UUID) -> None:
    """Rejects the pending requests about the person that have no point since the change just made."""
    person = people.person(tx, person_id)
    assert person is not None
    for object in (f"person:{person.id}", f"email:{person.email}"):
        pending = pending_of(tx, object)
        if pending is not None and not has_point(pending, person):
            close(tx, object, at=deps.clock.now(), note="the person has changed since the request")


def has_point(asked: Approval, person: Person) -> bool:
    """Returns whether the request is still for the person as it is now, and would change something. A request that no
    call made may lack values; it has no point.
    """
    try:
        return _has_point(asked, person)
    except (LookupError, TypeError):
        return False


def _has_point(asked: Approval, person: Person) -> bool:
    if asked.act == ENABLE:
        return asked.asks_for(_enabling(person))
    if person.disabled_at is not None:
        return False
    if asked.act == ROLES:
        return asked.asks_for(_giving(person, asked.request["roles"]))
    has = set(person.roles if asked.merchant_id is None else person.roles_at(asked.merchant_id))
    wanted = {*asked.request["roles"], *asked.request["member_roles"]}
    if asked.act == RECOVER:
        return wanted == has
    return not wanted <= has or not person.has_complete_factors


def _to_change(tx: Tx, person_id: UUID) -> Person:
    """Returns the person with the roles that acts gave, locked until the transaction ends. Raises PERSON_NOT_FOUND."""
    person = people.person(tx, person_id)
    if person is not None:
        people.lock_address(tx, person.email)
        people.lock_person(tx, person_id)
        person = people.person(tx, person_id)
    if person is None or as_shown(person) is None:
        raise errors.person_not_found()
    return replace(person, roles=roles_by_acts(tx, person_id, None))


def _shown(tx: Tx, person_id: UUID) -> Person:
    person = people.person(tx, person_id)
    assert person is not None
    return as_shown(person) or person

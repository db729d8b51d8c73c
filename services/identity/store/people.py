"""People, their roles and their invitations."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, true, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session as Tx

from kit.base.ids import new_id
from kit.db.database import table_of
from kit.db.rows import Rows
from services.identity.domain import people as domain
from services.identity.domain.people import ADMIN, OWNER
from services.identity.models import Invitation, Mail, Membership, Passkey, Person, Totp

_HAS_PASSKEY = exists().where(Passkey.person_id == Person.id, Passkey.cloned_at.is_(None))
_HAS_TOTP = exists().where(Totp.person_id == Person.id, Totp.confirmed_at.is_not(None))
PEOPLE = Rows(
    domain.Person,
    table_of(Person),
    without={"memberships"},
    has_complete_factors=or_(_HAS_PASSKEY, and_(Person.password_hash.is_not(None), _HAS_TOTP)),
)


def _people(tx: Tx, *where: ColumnElement[bool], limit: int) -> list[domain.Person]:
    chosen = select(*PEOPLE.columns).where(*where).order_by(Person.email).limit(limit)
    people = PEOPLE.all(tx.execute(chosen))
    of = _memberships(tx, [each.id for each in people])
    return [replace(each, memberships=of.get(each.id, ())) for each in people]


def _memberships(tx: Tx, ids: Sequence[UUID]) -> Mapping[UUID, Sequence[domain.Membership]]:
    found: dict[UUID, list[domain.Membership]] = {}
    columns = select(Membership.person_id, Membership.merchant_id, Membership.roles)
    for row in tx.execute(columns.where(Membership.person_id.in_(ids)).order_by(Membership.merchant_id)):
        found.setdefault(row.person_id, []).append(domain.Membership(row.merchant_id, row.roles))
    return found


def person(tx: Tx, person_id: UUID) -> domain.Person | None:
    return next(iter(_people(tx, Person.id == person_id, limit=1)), None)


def person_by_email(tx: Tx, email: str) -> domain.Person | None:
    return next(iter(_people(tx, Person.email == email, limit=1)), None)


def staff(tx: Tx, *, after_email: str, limit: int) -> list[domain.Person]:
    """Returns the people with a role of the staff, and those with no role anywhere, by e-mail address; disabled ones
    included.
    """
    is_member = select(Membership.person_id).where(Membership.person_id == Person.id).exists()
    of_staff = or_(func.cardinality(Person.roles) > 0, ~is_member)
    return _people(tx, of_staff, Person.email > after_email, limit=limit)


def members(tx: Tx, merchant_id: UUID, *, after_email: str, limit: int) -> list[domain.Person]:
    ids = select(Membership.person_id).where(Membership.merchant_id == merchant_id)
    return _people(tx, Person.id.in_(ids), Person.email > after_email, limit=limit)


def lock_address(tx: Tx, email: str) -> None:
    """Lets one transaction at a time make or use links to this address, or change its person. Every such transaction
    calls this before its other locks, so that they have one order: address, person, invitation.
    """
    tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"address {email}", 0))))


def unchanged_person(tx: Tx, person_id: UUID) -> domain.Person | None:
    """Returns the person, whose changes wait until the transaction ends."""
    tx.execute(select(Person.id).where(Person.id == person_id).with_for_update(read=True))
    return person(tx, person_id)


def lock_person(tx: Tx, person_id: UUID) -> None:
    """Waits for other changes of the person and holds off further ones until the transaction ends."""
    tx.execute(select(Person.id).where(Person.id == person_id).with_for_update(key_share=True))


def lock_admins(tx: Tx) -> None:
    """Lets one transaction at a time take the role `admin` away, so that two can't take it from the last two people."""
    tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended("admins", 0))))


def lock_owners(tx: Tx, merchant_id: UUID) -> None:
    tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"owners {merchant_id}", 0))))


def active_admins(tx: Tx, *, besides: Sequence[str] = ()) -> int:
    """Returns the number of admins who are not disabled, without those with the given e-mail addresses."""
    admins = and_(Person.roles.contains([ADMIN]), Person.disabled_at.is_(None), Person.email.not_in(besides))
    return tx.execute(select(func.count()).select_from(Person).where(admins)).scalar_one()


def active_owners(tx: Tx, merchant_id: UUID) -> Sequence[UUID]:
    owners = select(Person.id).join(Membership, Person.id == Membership.person_id)
    is_owner = (Membership.merchant_id == merchant_id, Membership.roles.contains([OWNER]))
    return tx.scalars(owners.where(*is_owner, Person.disabled_at.is_(None))).all()


def person_or_new(tx: Tx, *, email: str, name: str, at: datetime) -> UUID:
    """Returns the person's id; makes the person if there is none. A known person keeps its name."""
    row = insert(Person).values(id=new_id(), email=email, name=name, roles=[], created_at=at)
    tx.execute(row.on_conflict_do_nothing(index_elements=[Person.email]))
    return tx.execute(select(Person.id).where(Person.email == email)).scalar_one()


def set_staff_roles(tx: Tx, person_id: UUID, roles: Sequence[str]) -> None:
    tx.execute(update(Person).where(Person.id == person_id).values(roles=list(roles)))


def set_member_roles(
    tx: Tx, person_id: UUID, merchant_id: UUID, roles: Sequence[str], *, at: datetime
) -> None:
    """Stores the roles; without any, removes the person from the merchant."""
    if not roles:
        tx.query(Membership).filter_by(person_id=person_id, merchant_id=merchant_id).delete()
        return
    row = insert(Membership).values(
        person_id=person_id, merchant_id=merchant_id, roles=list(roles), created_at=at
    )
    keys = [Membership.person_id, Membership.merchant_id]
    tx.execute(row.on_conflict_do_update(index_elements=keys, set_={"roles": list(roles)}))


def set_disabled(tx: Tx, person_id: UUID, at: datetime | None) -> None:
    tx.execute(update(Person).where(Person.id == person_id).values(disabled_at=at))


# -- invitations

_INVITATIONS = Rows(domain.Invitation, table_of(Invitation))


def add_invitation(tx: Tx, invitation: domain.Invitation, *, token_hash: bytes, at: datetime) -> None:
    row = Invitation(
        id=invitation.id,
        token_hash=token_hash,
        email=invitation.email,
        name=invitation.name,
        roles=list(invitation.roles),
        merchant_id=invitation.merchant_id,
        member_roles=list(invitation.member_roles),
        invited_by=invitation.invited_by,
        by_operator=invitation.by_operator,
        created_at=at,
        expires_at=invitation.expires_at,
    )
    tx.add(row)
    tx.flush()


def _open(now: datetime) -> ColumnElement[bool]:
    return and_(Invitation.used_at.is_(None), Invitation.withdrawn_at.is_(None), Invitation.expires_at > now)


def open_invitation(tx: Tx, token_hash: bytes, *, now: datetime) -> domain.Invitation | None:
    chosen = select(*_INVITATIONS.columns).where(Invitation.token_hash == token_hash, _open(now))
    return _INVITATIONS.one_or_none(tx.execute(chosen))


def invitation_by_id(tx: Tx, invitation_id: UUID) -> domain.Invitation:
    """Returns an invitation that is in the table, open or not."""
    chosen = select(*_INVITATIONS.columns).where(Invitation.id == invitation_id)
    return _INVITATIONS.of(tx.execute(chosen).one())


def open_invitation_by_id(tx: Tx, invitation_id: UUID, *, now: datetime) -> domain.Invitation | None:
    chosen = select(*_INVITATIONS.columns).where(Invitation.id == invitation_id, _open(now))
    return _INVITATIONS.one_or_none(tx.execute(chosen))


def used_up_invitation(tx: Tx, token_hash: bytes, *, now: datetime) -> domain.Invitation | None:
    """Marks an open invitation as used and returns it. Of concurrent calls one gets it."""
    chosen = update(Invitation).where(Invitation.token_hash == token_hash, _open(now)).values(used_at=now)
    return _INVITATIONS.one_or_none(tx.execute(chosen.returning(*_INVITATIONS.columns)))


def lock_invitations(tx: Tx, merchant_id: UUID) -> None:
    """Lets one transaction at a time count the merchant's invitations and add one."""
    tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"invitations {merchant_id}", 0))))


def members_invitations(tx: Tx, merchant_id: UUID, *, now: datetime, since: datetime) -> tuple[int, int]:
    """Returns the numbers of invitations by the merchant's members: those open, and those made after `since`."""
    by_members = (Invitation.merchant_id == merchant_id, Invitation.by_operator.is_(False))
    counted = select(
        func.count().filter(_open(now)), func.count().filter(Invitation.created_at > since)
    ).where(*by_members)
    found = tx.execute(counted).one()
    return found[0], found[1]


def open_invitations(
    tx: Tx, merchant_id: UUID | None, *, now: datetime, limit: int
) -> list[domain.Invitation]:
    """Returns the open invitations of the staff (None) or of a merchant, newest first."""
    of = Invitation.merchant_id.is_not_distinct_from(merchant_id)
    chosen = select(*_INVITATIONS.columns).where(of, _open(now)).order_by(Invitation.id.desc()).limit(limit)
    return _INVITATIONS.all(tx.execute(chosen))


def withdraw_invitation(tx: Tx, invitation_id: UUID, *, at: datetime) -> bool:
    """Withdraws an open invitation; returns whether there was one. Its e-mail is not sent any more."""
    chosen = update(Invitation).where(Invitation.id == invitation_id, _open(at)).values(withdrawn_at=at)
    withdrawn = tx.execute(chosen.returning(Invitation.id)).one_or_none() is not None
    if withdrawn:
        tx.query(Mail).filter_by(invitation_id=invitation_id).delete()
    return withdrawn


def withdraw_others_of(tx: Tx, email: str, merchant_id: UUID | None, *, at: datetime) -> None:
    """Withdraws the open invitations of this address to the same surface and merchant: a new link replaces them."""
    of = and_(Invitation.email == email, Invitation.merchant_id.is_not_distinct_from(merchant_id))
    _withdraw(tx, of, at=at)


def withdraw_all_of(tx: Tx, email: str, *, at: datetime) -> None:
    """Withdraws all open invitations of this address: each would open a session with all roles of the person."""
    _withdraw(tx, Invitation.email == email, at=at)


def withdraw_all_by(tx: Tx, author: str, *, merchant_id: UUID | None = None, at: datetime) -> None:
    """Withdraws the open invitations that this person made, also as `--as` of a command; with a merchant, those to that
    merchant.
    """
    by_author = or_(
        Invitation.invited_by == author, Invitation.invited_by.endswith(f" for {author}", autoescape=True)
    )
    of_merchant = true() if merchant_id is None else Invitation.merchant_id == merchant_id
    _withdraw(tx, and_(by_author, of_merchant), at=at)


def _withdraw(tx: Tx, of: ColumnElement[bool], *, at: datetime) -> None:
    ids = tx.scalars(
        update(Invitation).where(of, _open(at)).values(withdrawn_at=at).returning(Invitation.id)
    ).all()
    if ids:
        tx.query(Mail).filter(Mail.invitation_id.in_(ids)).delete()

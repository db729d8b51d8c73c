"""Factors: passwords, TOTP, recovery codes, passkeys and their challenges."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BindParameter, ColumnElement, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session as Tx

from kit.audit.decisions import acts_on
from kit.db.database import seals_of, table_of
from kit.db.rows import Rows
from services.identity.credentials import challenges
from services.identity.domain import people as domain
from services.identity.models import Challenge, Passkey, Person, RecoveryCode, Totp
from services.identity.store.sealed import PASSKEY, PASSWORD, RECOVERY_CODE, is_sealed, seal_of


def factors_at(rp_id: str | BindParameter[str]) -> Sequence[ColumnElement[Any]]:
    """Returns the values of `domain.Factors` in a query for people: those that count on the surface with this RP id."""
    of_host = (Passkey.person_id == Person.id, Passkey.rp_id == rp_id, Passkey.cloned_at.is_(None))
    passkeys = select(func.count()).select_from(Passkey).where(*of_host).correlate(Person).scalar_subquery()
    totp = select(Totp.confirmed_at).where(Totp.person_id == Person.id).correlate(Person).scalar_subquery()
    return passkeys, Person.password_hash.is_not(None), totp.is_not(None)


def factors(tx: Tx, person_id: UUID, *, rp_id: str) -> domain.Factors:
    """Returns the factors that count on the surface with this RP id."""
    return domain.Factors(*tx.execute(select(*factors_at(rp_id)).where(Person.id == person_id)).one())


# -- passwords


def password_hash(tx: Tx, person_id: UUID) -> str | None:
    """Returns the hash that the person set; None for one that someone else wrote there."""
    chosen = select(Person.password_hash, Person.password_seal).where(Person.id == person_id)
    row = tx.execute(chosen).one_or_none()
    if row is None or row.password_hash is None:
        return None
    sealed = is_sealed(seals_of(tx), row.password_seal, PASSWORD, person_id, row.password_hash)
    return row.password_hash if sealed else None


def set_password(tx: Tx, person_id: UUID, password_hash: str, *, at: datetime) -> None:
    seal = seal_of(seals_of(tx), PASSWORD, person_id, password_hash)
    values = {"password_hash": password_hash, "password_set_at": at, "password_seal": seal}
    tx.execute(update(Person).where(Person.id == person_id).values(**values))


# -- TOTP


@dataclass(frozen=True, slots=True)
class ConfirmedTotp:
    """The secret that counts, encrypted, and the last step that was used."""

    sealed_secret: bytes
    confirmed_at: datetime
    last_step: int


def confirmed_totp(tx: Tx, person_id: UUID) -> ConfirmedTotp | None:
    chosen = select(Totp).where(Totp.person_id == person_id, Totp.confirmed_at.is_not(None))
    row = tx.scalar(chosen)
    if row is None or row.sealed_secret is None or row.confirmed_at is None:
        return None
    return ConfirmedTotp(bytes(row.sealed_secret), row.confirmed_at, row.last_step)


def use_totp_step(tx: Tx, person_id: UUID, step: int) -> bool:
    """Marks the step as used; returns false when it or a later one was: of two equal codes one counts."""
    newer = update(Totp).where(Totp.person_id == person_id, Totp.last_step < step).values(last_step=step)
    return tx.execute(newer.returning(Totp.person_id)).one_or_none() is not None


def start_totp(tx: Tx, person_id: UUID, sealed_secret: bytes, *, at: datetime) -> None:
    """Keeps a new secret beside the confirmed one, in place of an earlier new one."""
    new = {"sealed_new_secret": sealed_secret, "started_at": at}
    row = insert(Totp).values(person_id=person_id, last_step=0, **new)
    tx.execute(row.on_conflict_do_update(index_elements=[Totp.person_id], set_=new))


def started_totp(tx: Tx, person_id: UUID, *, since: datetime) -> bytes | None:
    chosen = select(Totp.sealed_new_secret).where(Totp.person_id == person_id, Totp.started_at > since)
    return tx.scalar(chosen)


def confirm_totp(tx: Tx, person_id: UUID, sealed_secret: bytes, *, step: int, at: datetime) -> None:
    """Lets the new secret count in place of the one before; the step of its first code is used."""
    confirmed = update(Totp).where(Totp.person_id == person_id)
    tx.execute(
        confirmed.values(
            sealed_secret=sealed_secret,
            last_step=step,
            confirmed_at=at,
            sealed_new_secret=None,
            started_at=None,
        )
    )


def remove_totp(tx: Tx, person_id: UUID) -> bool:
    removed = delete(Totp).where(Totp.person_id == person_id, Totp.confirmed_at.is_not(None))
    return tx.execute(removed.returning(Totp.person_id)).one_or_none() is not None


def totps_after(tx: Tx, person_id: UUID | None, *, limit: int) -> Sequence[Totp]:
    """Returns the next rows in the order of their people, locked."""
    totps = select(Totp).order_by(Totp.person_id).limit(limit).with_for_update()
    return tx.scalars(totps if person_id is None else totps.where(Totp.person_id > person_id)).all()


# -- recovery codes


def replace_recovery_codes(tx: Tx, person_id: UUID, hashes: Sequence[bytes], *, at: datetime) -> None:
    tx.execute(delete(RecoveryCode).where(RecoveryCode.person_id == person_id))
    seals = seals_of(tx)
    rows = [
        {
            "person_id": person_id,
            "code_hash": each,
            "created_at": at,
            "seal": seal_of(seals, RECOVERY_CODE, person_id, each),
        }
        for each in hashes
    ]
    tx.execute(insert(RecoveryCode), rows)


def unused_recovery_codes(tx: Tx, person_id: UUID) -> int:
    unused = (RecoveryCode.person_id == person_id, RecoveryCode.used_at.is_(None))
    return tx.execute(select(func.count()).select_from(RecoveryCode).where(*unused)).scalar_one()


def has_recovery_code(tx: Tx, person_id: UUID, code_hash: bytes) -> bool:
    unused = (RecoveryCode.person_id == person_id, RecoveryCode.used_at.is_(None))
    seal = tx.scalar(select(RecoveryCode.seal).where(RecoveryCode.code_hash == code_hash, *unused))
    return is_sealed(seals_of(tx), seal, RECOVERY_CODE, person_id, code_hash)


def use_recovery_code(tx: Tx, person_id: UUID, code_hash: bytes, *, at: datetime) -> bool:
    """Marks the code as used; returns false when there is no such code, or it was used."""
    of = (RecoveryCode.person_id == person_id, RecoveryCode.code_hash == code_hash)
    used = update(RecoveryCode).where(*of, RecoveryCode.used_at.is_(None)).values(used_at=at)
    return tx.execute(used.returning(RecoveryCode.person_id)).one_or_none() is not None


# -- passkeys

_PASSKEYS = Rows(domain.Passkey, table_of(Passkey))


@dataclass(frozen=True, slots=True)
class StoredPasskey:
    """A passkey with what proves it. `credential` is fido2's AttestedCredentialData."""

    id: UUID
    person_id: UUID
    credential: bytes
    sign_count: int


def passkeys(tx: Tx, person_id: UUID) -> list[domain.Passkey]:
    """Returns the passkeys that still count, oldest first."""
    chosen = select(*_PASSKEYS.columns).where(Passkey.person_id == person_id, Passkey.cloned_at.is_(None))
    return _PASSKEYS.all(tx.execute(chosen.order_by(Passkey.id)))


def credentials_of(tx: Tx, person_id: UUID, *, rp_id: str) -> list[bytes]:
    of_host = (Passkey.person_id == person_id, Passkey.rp_id == rp_id, Passkey.cloned_at.is_(None))
    found = tx.scalars(select(Passkey).where(*of_host))
    return [
        bytes(row.credential)
        for row in found
        if is_sealed(seals_of(tx), row.seal, PASSKEY, *_of_passkey(row))
    ]


def passkey(tx: Tx, credential_id: bytes, *, rp_id: str) -> StoredPasskey | None:
    """Returns the passkey, if it still counts and its person registered it. Its counter changes under the lock of the
    person only.
    """
    of_host = (Passkey.credential_id == credential_id, Passkey.rp_id == rp_id, Passkey.cloned_at.is_(None))
    row = tx.scalars(select(Passkey).where(*of_host)).one_or_none()
    if row is None or not is_sealed(seals_of(tx), row.seal, PASSKEY, *_of_passkey(row)):
        return None
    if acts_on(tx, [f"passkey:{row.id}"], ("factor.remove", "passkey.cloned")):
        return None
    return StoredPasskey(row.id, row.person_id, bytes(row.credential), row.sign_count)


def _of_passkey(row: Passkey) -> tuple[UUID, UUID, str, bytes]:
    return row.id, row.person_id, row.rp_id, bytes(row.credential)


def mark_used(tx: Tx, passkey_id: UUID, sign_count: int, *, at: datetime) -> None:
    used = {"sign_count": sign_count, "last_used_at": at}
    tx.execute(update(Passkey).where(Passkey.id == passkey_id).values(**used))


def mark_cloned(tx: Tx, passkey_id: UUID, *, at: datetime) -> None:
    tx.execute(update(Passkey).where(Passkey.id == passkey_id).values(cloned_at=at))


def add_passkey(
    tx: Tx,
    person_id: UUID,
    passkey: domain.Passkey,
    *,
    rp_id: str,
    credential: bytes,
    proof: tuple[bytes, int],
) -> None:
    """Stores the passkey; `proof` is the credential's id and its counter."""
    row = Passkey(
        id=passkey.id,
        person_id=person_id,
        rp_id=rp_id,
        credential_id=proof[0],
        credential=credential,
        sign_count=proof[1],
        name=passkey.name,
        created_at=passkey.created_at,
    )
    row.seal = seal_of(seals_of(tx), PASSKEY, *_of_passkey(row))
    tx.add(row)
    tx.flush()


def remove_passkey(tx: Tx, person_id: UUID, passkey_id: UUID) -> bool:
    of = (Passkey.id == passkey_id, Passkey.person_id == person_id, Passkey.cloned_at.is_(None))
    return tx.execute(delete(Passkey).where(*of).returning(Passkey.id)).one_or_none() is not None


# -- challenges


def use_challenge(tx: Tx, challenge: challenges.Challenge) -> bool:
    """Marks the challenge as used; returns whether it was not used before: of concurrent answers one counts."""
    row = insert(Challenge).values(
        id=challenge.id,
        kind=challenge.use.purpose.value,
        surface=challenge.use.surface.value,
        session_id=challenge.use.session_id,
        challenge=challenge.challenge,
        expires_at=challenge.expires_at,
    )
    first = row.on_conflict_do_nothing(index_elements=[Challenge.id]).returning(Challenge.id)
    return tx.execute(first).one_or_none() is not None

"""E-mails about new addresses that wait to be sent."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session as Tx

from kit.db.database import seals_of
from services.identity.domain.people import MOST_COUNTED, OWNER
from services.identity.store.decisions import roles_by_acts
from services.identity.store.sealed import NOTICE, is_sealed, seal_of

_ADD: Final = text("""
INSERT INTO notices (id, person_id, merchant_id, network, address, added_by, usable_at, created_at, attempts, due_at,
                     last_error, seal)
SELECT :id, people.id, :merchant_id, :network, :address, :added_by, :usable_at, :at, 0, :at, '', :seal
FROM people JOIN memberships ON memberships.person_id = people.id
WHERE memberships.merchant_id = :merchant_id AND 'owner' = ANY (memberships.roles) AND people.disabled_at IS NULL
ON CONFLICT DO NOTHING
""")
# Put off while it is sent: no other process sends it meanwhile.
_TAKE: Final = text(f"""
UPDATE notices SET attempts = least(attempts, {MOST_COUNTED}) + 1, due_at = :lease_ends
FROM people
WHERE (notices.id, notices.person_id) = (
  SELECT id, person_id FROM notices WHERE due_at <= :now ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED
) AND people.id = notices.person_id
RETURNING notices.id, notices.person_id, people.email, notices.merchant_id, notices.network, notices.address,
          notices.added_by, notices.usable_at, notices.created_at, notices.attempts, notices.seal
""")  # noqa: S608  made of constants
_PUT_OFF: Final = text(
    "UPDATE notices SET due_at = :due_at, last_error = :error WHERE id = :id AND person_id = :person_id"
)
_REMOVE: Final = text("DELETE FROM notices WHERE id = :id AND person_id = :person_id")
_WAITING: Final = text("SELECT count(*), min(created_at) FROM notices")


@dataclass(frozen=True, kw_only=True)
class NewAddress:
    """A new address of a merchant's address book, of which its owners are told."""

    id: UUID
    merchant_id: UUID
    network: str
    address: str
    added_by: str
    usable_at: datetime


@dataclass(frozen=True, slots=True)
class DueNotice:
    """The e-mail of a notice to one owner, taken by this process for a while."""

    id: UUID
    person_id: UUID
    email: str
    merchant_id: UUID
    network: str
    address: str
    added_by: str
    usable_at: datetime
    created_at: datetime
    attempts: int
    seal: bytes


def add(tx: Tx, new: NewAddress, *, at: datetime) -> None:
    """Stores an e-mail to each active owner; one that waits already stays as it is. Its text is sealed."""
    tx.execute(
        _ADD,
        {
            "id": new.id,
            "merchant_id": new.merchant_id,
            "network": new.network,
            "address": new.address,
            "added_by": new.added_by,
            "usable_at": new.usable_at,
            "at": at,
            "seal": seal_of(seals_of(tx), NOTICE, *_text_of(new)),
        },
    )


def is_own(tx: Tx, notice: DueNotice) -> bool:
    """Returns whether a call wrote the text, and acts made the person an owner of the merchant: SQL could else send any
    text to any person.
    """
    is_owner = OWNER in roles_by_acts(tx, notice.person_id, notice.merchant_id)
    return is_owner and is_sealed(seals_of(tx), notice.seal, NOTICE, *_text_of(notice))


def _text_of(notice: NewAddress | DueNotice) -> tuple[UUID | str | datetime, ...]:
    return (
        *(notice.id, notice.merchant_id, notice.network),
        *(notice.address, notice.added_by, notice.usable_at),
    )


def take_due(tx: Tx, *, now: datetime, lease: timedelta) -> DueNotice | None:
    """Returns the e-mail that is due for longest, and puts it off by `lease`."""
    row = tx.execute(_TAKE, {"now": now, "lease_ends": now + lease}).one_or_none()
    return None if row is None else DueNotice(*row)


def put_off(tx: Tx, notice: DueNotice, *, due_at: datetime, error: str) -> None:
    key = {"id": notice.id, "person_id": notice.person_id}
    tx.execute(_PUT_OFF, key | {"due_at": due_at, "error": error})


def remove(tx: Tx, notice: DueNotice) -> None:
    tx.execute(_REMOVE, {"id": notice.id, "person_id": notice.person_id})


def waiting(tx: Tx) -> tuple[int, datetime | None]:
    """Returns the number of e-mails that wait, and the time of the oldest."""
    count, since = tx.execute(_WAITING).one()
    return count, since

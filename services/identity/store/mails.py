"""E-mails that wait to be sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session as Tx

from services.identity.domain import people as domain
from services.identity.models import Invitation, Mail
from services.identity.store import people


@dataclass(frozen=True, slots=True)
class DueMail:
    """The e-mail of an invitation, taken by this process for a while."""

    invitation: domain.Invitation
    sealed_link: bytes
    attempts: int


def add_mail(tx: Tx, invitation_id: UUID, sealed_link: bytes, *, at: datetime) -> None:
    tx.add(Mail(invitation_id=invitation_id, sealed_link=sealed_link, attempts=0, due_at=at, last_error=""))
    tx.flush()


def take_due_mail(tx: Tx, *, now: datetime, lease: timedelta) -> DueMail | None:
    """Returns the mail that is due for longest, and puts it off by `lease`: no other process sends it meanwhile."""
    due = (
        select(Mail)
        .where(Mail.due_at <= now)
        .order_by(Mail.due_at)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    mail = tx.scalar(due)
    if mail is None:
        return None
    mail.attempts = min(mail.attempts, domain.MOST_COUNTED) + 1
    mail.due_at = now + lease
    invitation = people.invitation_by_id(tx, mail.invitation_id)
    return DueMail(invitation=invitation, sealed_link=mail.sealed_link, attempts=mail.attempts)


def remove_mail(tx: Tx, invitation_id: UUID) -> None:
    tx.execute(delete(Mail).where(Mail.invitation_id == invitation_id))


def put_off_mail(tx: Tx, invitation_id: UUID, *, due_at: datetime, error: str) -> None:
    put_off = update(Mail).where(Mail.invitation_id == invitation_id)
    tx.execute(put_off.values(due_at=due_at, last_error=error))


def mails_to_reseal(tx: Tx) -> Sequence[Mail]:
    return tx.scalars(select(Mail).order_by(Mail.invitation_id).with_for_update()).all()


def waiting_mails(tx: Tx) -> tuple[int, datetime | None]:
    """Returns the number of mails that wait, and the time of the oldest invitation among them."""
    waiting = select(func.count(), func.min(Invitation.created_at)).select_from(Mail)
    row = tx.execute(waiting.join(Invitation, Invitation.id == Mail.invitation_id)).one()
    return row[0], row[1]

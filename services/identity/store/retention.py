"""Rows that are over, and their deletion in batches."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute
from sqlalchemy.orm import Session as Tx

from services.identity.domain.people import GUESSES_FORGOTTEN_AFTER
from services.identity.models import Challenge, Guess, Invitation, Mail, Session, SigningKey


def prune_challenges(tx: Tx, *, expired_before: datetime, limit: int) -> int:
    return _prune(tx, Challenge.expires_at < expired_before, Challenge.id, limit=limit)


def prune_guesses(tx: Tx, *, now: datetime, limit: int) -> int:
    return _prune(tx, Guess.last_at < now - GUESSES_FORGOTTEN_AFTER, Guess.kind, Guess.subject, limit=limit)


def prune_sessions(tx: Tx, *, unused_since: datetime, limit: int) -> int:
    """Deletes sessions whose last use is older: no setting lets one live that long without use."""
    return _prune(tx, Session.last_seen_at < unused_since, Session.id, limit=limit)


def prune_invitations(tx: Tx, *, expired_before: datetime, limit: int) -> int:
    no_mail = ~exists().where(Mail.invitation_id == Invitation.id)
    return _prune(tx, (Invitation.expires_at < expired_before) & no_mail, Invitation.id, limit=limit)


def prune_keys(tx: Tx, *, replaced_before: datetime, limit: int) -> int:
    return _prune(tx, SigningKey.replaced_at < replaced_before, SigningKey.id, limit=limit)


def _prune(tx: Tx, over: ColumnElement[bool], *key: InstrumentedAttribute[Any], limit: int) -> int:
    """Deletes at most `limit` rows; returns their number."""
    batch = select(*key).where(over).limit(limit)
    table = key[0].class_
    return len(tx.scalars(delete(table).where(tuple_(*key).in_(batch)).returning(key[0])).all())

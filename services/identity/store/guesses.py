"""Counters of guesses."""

from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session as Tx

from services.identity.domain.people import GUESSES_FORGOTTEN_AFTER
from services.identity.models import Guess


def counter_to_change(tx: Tx, kind: str, subject: str, *, now: datetime) -> Guess:
    """Returns the row, locked until the transaction ends. A new one, and one that is old enough to be forgotten, starts
    at zero. Concurrent first guesses wait for each other.
    """
    start = {"failures": 0, "last_at": now, "delayed_until": now}
    row = insert(Guess).values(kind=kind, subject=subject, **start)
    old = Guess.last_at <= now - GUESSES_FORGOTTEN_AFTER
    keys = [Guess.kind, Guess.subject]
    tx.execute(row.on_conflict_do_update(index_elements=keys, set_=start, where=old))
    chosen = select(Guess).where(Guess.kind == kind, Guess.subject == subject).with_for_update()
    return tx.execute(chosen).scalar_one()


def forget(tx: Tx, kind: str, subject: str) -> None:
    tx.execute(delete(Guess).where(Guess.kind == kind, Guess.subject == subject))

"""Sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session as Tx

from kit.base.seals import Seals
from kit.db.database import seals_of, table_of
from kit.db.rows import Rows
from services.identity.domain import people as domain
from services.identity.domain.people import Limits, Surface, Way
from services.identity.models import Person, Session
from services.identity.store.sealed import SESSION, is_sealed, seal_of

SESSIONS = Rows(domain.Session, table_of(Session))


@dataclass(frozen=True, slots=True)
class LiveLimits:
    """The limits of each surface, and the time at which they are applied."""

    now: datetime
    desk: Limits
    dashboard: Limits

    def condition(self) -> ColumnElement[bool]:
        """Returns the condition that a session has not ended."""
        of = ((Surface.DESK, self.desk), (Surface.DASHBOARD, self.dashboard))
        within = [
            and_(
                Session.surface == surface.value,
                Session.last_seen_at > self.now - limits.idle,
                Session.started_at > self.now - limits.absolute,
            )
            for surface, limits in of
        ]
        return and_(Session.ended_at.is_(None), or_(*within))


def add_session(tx: Tx, session: domain.Session, *, token_hash: bytes) -> None:
    row = Session(
        id=session.id,
        person_id=session.person_id,
        token_hash=token_hash,
        surface=session.surface.value,
        way=session.way.value,
        address=session.address,
        user_agent=session.user_agent,
        started_at=session.started_at,
        last_seen_at=session.last_seen_at,
        stepped_up_at=session.stepped_up_at,
        merchant_id=session.merchant_id,
        seal=_seal(tx, session, token_hash),
    )
    tx.add(row)
    tx.flush()
    tx.execute(update(Person).where(Person.id == session.person_id).values(last_seen_at=session.started_at))


def session_by_token(tx: Tx, token_hash: bytes) -> domain.Session | None:
    """Returns the session unless it was ended; its limits are not checked."""
    chosen = select(*SESSIONS.columns).where(Session.token_hash == token_hash, Session.ended_at.is_(None))
    return SESSIONS.one_or_none(tx.execute(chosen))


def live_sessions(tx: Tx, person_id: UUID, live: LiveLimits, *, limit: int) -> list[domain.Session]:
    chosen = select(*SESSIONS.columns).where(Session.person_id == person_id, live.condition())
    return SESSIONS.all(tx.execute(chosen.order_by(Session.id.desc()).limit(limit)))


def started_between(tx: Tx, person_id: UUID, since: datetime, until: datetime) -> int:
    """Returns the number of the person's sessions, ended ones included, that started after `since`, up to `until`: a
    clock that was ahead must not count.
    """
    times = (Session.started_at > since, Session.started_at <= until)
    started = select(func.count()).where(Session.person_id == person_id, *times)
    return tx.execute(started).scalar_one()


def addresses_of(tx: Tx, email: str, *, limit: int) -> Sequence[str]:
    """Returns the addresses of the person's sessions, ended ones included, the last used first."""
    of_person = (
        select(Session.address).join(Person, Person.id == Session.person_id).where(Person.email == email)
    )
    last_used = of_person.group_by(Session.address).order_by(func.max(Session.last_seen_at).desc())
    return tx.scalars(last_used.limit(limit)).all()


def live_session(tx: Tx, session_id: UUID, live: LiveLimits) -> domain.Session | None:
    chosen = select(*SESSIONS.columns).where(Session.id == session_id, live.condition())
    return SESSIONS.one_or_none(tx.execute(chosen))


def live_count(tx: Tx, live: LiveLimits) -> dict[str, int]:
    """Returns the number of live sessions by surface."""
    counted = select(Session.surface, func.count()).where(live.condition()).group_by(Session.surface)
    return dict(tx.execute(counted).tuples().all())


def mark_seen(tx: Tx, session: domain.Session, *, at: datetime) -> None:
    # The person first, as where sessions are ended: the other order would deadlock.
    tx.execute(update(Person).where(Person.id == session.person_id).values(last_seen_at=at))
    tx.execute(update(Session).where(Session.id == session.id).values(last_seen_at=at))


def _seal(tx: Tx, session: domain.Session, token_hash: bytes) -> bytes:
    return seal_of(seals_of(tx), SESSION, *_sealed_part(session, token_hash))


def is_session_sealed(seals: Seals, session: domain.Session, token_hash: bytes, seal: bytes) -> bool:
    """Returns whether a process of the service gave this token to the session of this person."""
    return is_sealed(seals, seal, SESSION, *_sealed_part(session, token_hash))


def _sealed_part(session: domain.Session, token_hash: bytes) -> tuple[UUID | str | datetime | bytes, ...]:
    of = (session.id, session.person_id, session.surface.value, session.started_at, token_hash)
    return *of, session.way.value, session.address, session.user_agent


def step_up(tx: Tx, session: domain.Session, *, token_hash: bytes, at: datetime) -> bool:
    """Gives the session a new token and the time of its step-up; returns whether it had not ended."""
    open_one = update(Session).where(Session.id == session.id, Session.ended_at.is_(None))
    seal = _seal(tx, session, token_hash)
    stepped = open_one.values(token_hash=token_hash, seal=seal, stepped_up_at=at, last_seen_at=at)
    return tx.execute(stepped.returning(Session.id)).one_or_none() is not None


def mark_stepped_up(tx: Tx, session_id: UUID, *, at: datetime) -> None:
    """Stores the step-up of a session whose person has just added and so proved a factor; it keeps its token. A session
    that began by a recovery code needs a step-up with the new factor.
    """
    proved = (Session.id == session_id, Session.way != Way.RECOVERY.value)
    tx.execute(update(Session).where(*proved).values(stepped_up_at=at))


def choose_merchant(tx: Tx, session_id: UUID, merchant_id: UUID) -> None:
    tx.execute(update(Session).where(Session.id == session_id).values(merchant_id=merchant_id))


def end_session(tx: Tx, session_id: UUID, *, at: datetime) -> bool:
    """Ends the session; returns whether it had not ended."""
    return bool(_end(tx, Session.id == session_id, at=at))


def end_sessions_of(tx: Tx, person_id: UUID, *, at: datetime, but: UUID | None = None) -> list[UUID]:
    """Ends all sessions of a person except `but`; returns the ids of those that it ended."""
    of = Session.person_id == person_id
    return _end(tx, of if but is None else and_(of, Session.id != but), at=at)


def _end(tx: Tx, condition: ColumnElement[bool], *, at: datetime) -> list[UUID]:
    ended = update(Session).where(condition, Session.ended_at.is_(None)).values(ended_at=at)
    return list(tx.scalars(ended.returning(Session.id)).all())


def session_from(
    session_id: UUID,
    person_id: UUID,
    *,
    surface: Surface,
    way: Way,
    client: domain.Client,
    at: datetime,
) -> domain.Session:
    """Returns a new session, stepped up by the proof that starts it; a recovery code is none."""
    return domain.Session(
        id=session_id,
        person_id=person_id,
        surface=surface,
        way=way,
        address=client.address,
        user_agent=client.user_agent,
        started_at=at,
        last_seen_at=at,
        stepped_up_at=None if way is Way.RECOVERY else at,
        merchant_id=None,
    )

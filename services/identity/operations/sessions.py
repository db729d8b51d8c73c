"""Sessions: their start, their check with a token for each request, step-ups, their end."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.orm import Session as Tx

from kit.audit import acts
from kit.base import actors
from kit.base.actors import Actor
from kit.base.ids import new_id
from kit.db.database import retry_conflicts
from kit.rpc import values
from kit.rpc.actor_tokens import write_token
from services.identity import errors
from services.identity.credentials import tokens
from services.identity.domain.people import (
    SEEN_EVERY,
    SESSIONS_OPEN_MOST,
    Client,
    Factors,
    Person,
    Session,
    Surface,
    Way,
)
from services.identity.operations import keys
from services.identity.operations.fields import SESSION_TOKEN_CHARACTERS
from services.identity.store import people, sessions
from services.identity.store import signed_in as stored
from services.identity.store.sessions import LiveLimits
from services.identity.wiring import Deps

SESSIONS_LISTED = 100


@dataclass(frozen=True, kw_only=True)
class Authorized:
    """The person of a session, and a token for one request."""

    person: Person
    session: Session
    merchant_id: UUID | None
    actor_token: str
    stepped_up_until: datetime | None
    may_add_factors: bool
    factors: Factors
    ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class SignedIn:
    """A live session with its person, and the person's factors on its surface."""

    session: Session
    person: Person
    factors: Factors

    @property
    def actor(self) -> Actor:
        return actor_of(self.person, self.session.surface, self.session)


def authorize(deps: Deps, *, session_token: str, surface: Surface, unattended: bool = False) -> Authorized:
    """Returns the person and an actor token. The session is read from the database each time, so that its end, a
    disabled person and changed roles hold from the next request. An `unattended` request is no sign of the person, so
    the idle time goes on. Raises SESSION_INVALID.
    """
    now = deps.clock.now()
    limits = deps.settings.limits_of(surface)
    key = keys.signing_key(deps)
    with deps.db.autocommit() as connection:
        signed_in = signed_in_by(deps, connection, session_token, surface)
    session = signed_in.session
    # A clock that was ahead may have written it.
    if not unattended and abs(now - session.last_seen_at) >= SEEN_EVERY:
        with deps.db.transaction() as tx:
            sessions.mark_seen(tx, session, at=now)
    return Authorized(
        person=signed_in.person,
        session=session,
        merchant_id=signed_in.actor.merchant_id,
        actor_token=write_token(signed_in.actor, key_id=key.key_id, private_key=key.private_key, now=now),
        stepped_up_until=session.stepped_up_until(now),
        may_add_factors=session.may_add_factors(now, signed_in.factors),
        factors=signed_in.factors,
        ends_at=min(
            (session.last_seen_at if unattended else now) + limits.idle, session.started_at + limits.absolute
        ),
    )


def signed_in_by(deps: Deps, of: Tx | Connection, session_token: str, surface: Surface) -> SignedIn:
    """Returns the live session of this token on this surface. Raises SESSION_INVALID."""
    if len(session_token) > SESSION_TOKEN_CHARACTERS:
        raise errors.session_invalid()
    rp_id = deps.relying_parties[surface].rp_id
    found = stored.signed_in(of, tokens.hash_of(session_token), rp_id=rp_id, seals=deps.seals)
    if found is None:
        raise errors.session_invalid()
    session, person = found.session, found.person
    is_live = session.is_live(deps.clock.now(), deps.settings.limits_of(surface))
    if session.surface is not surface or not is_live or not person.may_use(surface):
        raise errors.session_invalid()
    if not deps.decided_roles.are(person):
        raise errors.session_invalid()
    return SignedIn(session=session, person=person, factors=found.factors)


def actor_of(person: Person, surface: Surface, session: Session | None = None) -> Actor:
    """Returns the author of the person's work on this surface."""
    member = None
    if surface is Surface.DASHBOARD:
        member = person.merchant_of(None if session is None else session.merchant_id)
    roles = person.roles if surface is Surface.DESK else () if member is None else member.roles
    return Actor(
        kind="person",
        name=person.email,
        surface=surface.value,
        person_id=person.id,
        session_id=None if session is None else session.id,
        roles=frozenset(roles),
        merchant_id=None if member is None else member.merchant_id,
        stepped_up_at=None if session is None else session.stepped_up_at,
    )


def start(deps: Deps, tx: Tx, person: Person, *, surface: Surface, way: Way, client: Client) -> str:
    """Starts a session, stepped up by the proof just given unless that is a recovery code, and returns its token. The
    person is locked. Of more than 20 sessions the oldest ends.
    """
    token = tokens.new_token()
    open_ones = sessions.live_sessions(tx, person.id, live(deps), limit=SESSIONS_LISTED)
    session = sessions.session_from(
        new_id(), person.id, surface=surface, way=way, client=client, at=deps.clock.now()
    )
    sessions.add_session(tx, session, token_hash=tokens.hash_of(token))
    with actors.acting(actor_of(person, surface, session)):
        acts.record(
            tx,
            "session.start",
            f"session:{session.id}",
            after={
                "way": way,
                "surface": surface,
                "address": client.address,
                "user_agent": client.user_agent,
            },
        )
        for oldest in open_ones[SESSIONS_OPEN_MOST - 1 :]:
            _end(deps, tx, oldest)
    return token


def choose_merchant(deps: Deps, *, session_token: str, surface: Surface, merchant_id: str) -> None:
    """Raises SESSION_INVALID, MERCHANT_NOT_FOUND (the person is no member of it)."""
    chosen = values.uuid_or(errors.merchant_not_found, merchant_id)
    with deps.db.transaction() as tx:
        signed_in = signed_in_by(deps, tx, session_token, surface)
        if surface is Surface.DESK or chosen not in {
            each.merchant_id for each in signed_in.person.memberships
        }:
            raise errors.merchant_not_found()
        sessions.choose_merchant(tx, signed_in.session.id, chosen)


def sign_out(deps: Deps, *, session_token: str, surface: Surface | None = None) -> None:
    """Ends the session of this token; one of another surface than the caller's stays. `surface` is None where no
    certificate names it.
    """
    with deps.db.transaction() as tx:
        session = sessions.session_by_token(tx, tokens.hash_of(session_token[:SESSION_TOKEN_CHARACTERS]))
        if session is None or surface not in (None, session.surface):
            return
        person = people.person(tx, session.person_id)
        assert person is not None
        with actors.acting(actor_of(person, session.surface, session)):
            _end(deps, tx, session)


# -- lists, and the end by others


def author() -> tuple[UUID, UUID]:
    """Returns the ids of the person and of the session that make this call. Raises NOT_PERMITTED for other authors."""
    actor = actors.current()
    if actor.person_id is None or actor.session_id is None:
        raise errors.not_permitted("person")
    return actor.person_id, actor.session_id


def list_own_sessions(deps: Deps) -> list[Session]:
    """Returns the person's live sessions, newest first."""
    person_id, _ = author()
    with deps.db.transaction() as tx:
        return sessions.live_sessions(tx, person_id, live(deps), limit=SESSIONS_LISTED)


def end_own_session(deps: Deps, *, session_id: str) -> None:
    """Raises SESSION_NOT_FOUND."""
    person_id, _ = author()
    wanted = values.uuid_or(errors.session_not_found, session_id)
    with deps.db.transaction() as tx:
        session = sessions.live_session(tx, wanted, live(deps))
        if session is None or session.person_id != person_id:
            raise errors.session_not_found()
        _end(deps, tx, session)


@retry_conflicts
def end_other_sessions(deps: Deps) -> int:
    """Ends all of the person's sessions but the one of this call; returns their number."""
    person_id, session_id = author()
    with deps.db.transaction() as tx:
        return len(end_all(deps, tx, person_id, but=session_id))


def end_all(deps: Deps, tx: Tx, person_id: UUID, *, but: UUID | None = None) -> list[UUID]:
    """Ends all sessions of the person, but one where given; returns their ids."""
    ended = sessions.end_sessions_of(tx, person_id, at=deps.clock.now(), but=but)
    for each in ended:
        acts.record(tx, "session.end", f"session:{each}", note=f"of person:{person_id}")
    return ended


def _end(deps: Deps, tx: Tx, session: Session) -> None:
    if sessions.end_session(tx, session.id, at=deps.clock.now()):
        acts.record(tx, "session.end", f"session:{session.id}", note=f"of person:{session.person_id}")


def list_sessions(deps: Deps, *, person_id: str) -> list[Session]:
    """Returns a person's live sessions, newest first. Raises PERSON_NOT_FOUND."""
    wanted = values.uuid_or(errors.person_not_found, person_id)
    with deps.db.transaction() as tx:
        if people.person(tx, wanted) is None:
            raise errors.person_not_found()
        return sessions.live_sessions(tx, wanted, live(deps), limit=SESSIONS_LISTED)


def end_session(deps: Deps, *, session_id: str) -> None:
    """Raises SESSION_NOT_FOUND."""
    wanted = values.uuid_or(errors.session_not_found, session_id)
    with deps.db.transaction() as tx:
        session = sessions.live_session(tx, wanted, live(deps))
        if session is None:
            raise errors.session_not_found()
        _end(deps, tx, session)


def live(deps: Deps) -> LiveLimits:
    """Returns the limits by which a session is live now."""
    limits = deps.settings.limits_of
    return LiveLimits(deps.clock.now(), limits(Surface.DESK), limits(Surface.DASHBOARD))

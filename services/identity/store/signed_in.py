"""The person of a session with roles and factors, in one statement: every request of a browser asks for them."""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Text, bindparam, func, select
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.orm import Session as Tx

from kit.base.seals import Seals
from kit.db import prepared
from kit.db.prepared import Prepared, sql_of
from services.identity.domain.people import Factors, Membership, Person, Session
from services.identity.models import Membership as Memberships
from services.identity.models import Person as People
from services.identity.models import Session as Sessions
from services.identity.store.factors import factors_at
from services.identity.store.people import PEOPLE
from services.identity.store.sessions import SESSIONS, is_session_sealed

_OF_PERSON: Final = (
    select(
        func.json_agg(
            aggregate_order_by(
                func.json_build_array(Memberships.merchant_id, Memberships.roles), Memberships.merchant_id
            )
        )
    )
    .where(Memberships.person_id == People.id)
    .scalar_subquery()
)
_PERSON_BEGINS: Final = len(SESSIONS.columns)
_REST_BEGINS: Final = _PERSON_BEGINS + len(PEOPLE.columns)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session that was not ended, with its person and the factors that count on its surface."""

    session: Session
    person: Person
    factors: Factors
    seal: bytes


def _of_row(*columns: Any) -> SignedIn:
    memberships, seal, *factors = columns[_REST_BEGINS:]
    session = SESSIONS.make(*columns[:_PERSON_BEGINS])
    person = PEOPLE.make(
        *columns[_PERSON_BEGINS:_REST_BEGINS],
        tuple(Membership(UUID(merchant_id), roles) for merchant_id, roles in memberships or ()),
    )
    return SignedIn(session, person, Factors(*factors), bytes(seal))


_SIGNED_IN: Final = Prepared(
    "signed_in",
    sql_of(
        select(
            *SESSIONS.columns,
            *PEOPLE.columns,
            _OF_PERSON,
            Sessions.seal,
            *factors_at(bindparam("rp_id", type_=Text())),
        )
        .join(People, People.id == Sessions.person_id)
        .where(Sessions.token_hash == bindparam("token_hash"), Sessions.ended_at.is_(None))
    ),
    {"token_hash": "bytea", "rp_id": "text"},
    _of_row,
)


def signed_in(of: Tx | Connection, token_hash: bytes, *, rp_id: str, seals: Seals) -> SignedIn | None:
    """Returns the session of the token, with the factors that count on the surface with this RP id. The session's
    limits are not checked.
    """
    found = prepared.one_or_none(of, _SIGNED_IN, {"token_hash": token_hash, "rp_id": rp_id})
    if found is None or not is_session_sealed(seals, found.session, token_hash, found.seal):
        return None
    return found

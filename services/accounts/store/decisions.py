"""The values of this service that acts decide (kit.audit.decisions)."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy.orm import Session as Tx

from kit.audit.acts import text_of
from kit.audit.decisions import REMEMBERED_MOST, UNDECIDED, acts_on, left, moments_ago
from kit.db.database import Database
from kit.observe.log import get_logger
from services.accounts.domain import Person

_log = get_logger()

ROLES: Final = ("person.roles", "invitation.accept")
"""The acts that decide the roles of a person, of the staff or at the merchant of the act."""
INVITING: Final = ("person.invite", "person.recover")


def roles_decided(
    tx: Tx, person_ids: Collection[UUID], *, until: datetime | None = None
) -> Mapping[UUID, Mapping[UUID | None, str]]:
    """Returns the decided roles of each of these people, as text, by merchant; those of the staff under None."""
    objects = {f"person:{id}": id for id in person_ids}
    counts: dict[UUID, defaultdict[UUID | None, Counter[str]]] = {
        id: defaultdict(Counter) for id in person_ids
    }
    for act in acts_on(tx, objects, ROLES, until=until):
        for field, before, after in act["changes"]:
            if field == "roles":
                of = counts[objects[act["object"]]][act["merchant_id"]]
                of[after] += 1
                of[before] -= 1
    return {id: {place: left(of) for place, of in places.items()} for id, places in counts.items()}


class KnownRoles:
    """The roles that one process has compared with their acts; those of a person again when they differ."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._roles: dict[UUID, dict[UUID | None, str]] = {}

    def are(self, person: Person) -> bool:
        """Returns whether acts gave the person the roles that it has. If not, logs and counts it."""
        places = [(None, person.roles), *((each.merchant_id, each.roles) for each in person.memberships)]
        found = {place: text_of(roles) for place, roles in places if roles}
        if self._roles.get(person.id) == found:
            return True
        with self._db.transaction() as tx:
            decided = [roles_decided(tx, [person.id], until=until) for until in (None, moments_ago())]
        if found not in [
            {place: roles for place, roles in each[person.id].items() if roles} for each in decided
        ]:
            UNDECIDED.labels("person").inc()
            _log.error("value_not_decided", object=f"person:{person.id}", field="roles")
            return False
        if len(self._roles) >= REMEMBERED_MOST:
            self._roles.clear()
        self._roles[person.id] = found
        return True

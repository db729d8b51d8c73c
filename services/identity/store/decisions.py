"""The values of this service that acts decide (kit.audit.decisions)."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import RowMapping, text
from sqlalchemy.orm import Session as Tx

from kit.audit.acts import COLUMNS, is_sealed, text_of
from kit.audit.decisions import (
    NOTHING,
    UNDECIDED,
    Change,
    Decided,
    Due,
    Remembered,
    acts_on,
    due,
    moments_ago,
)
from kit.base.ids import parse_id
from kit.db.database import Database, seals_of
from kit.observe.log import get_logger
from services.identity.domain import people as domain
from services.identity.domain.people import ADMIN, Invitation, Person

_log = get_logger()

ROLES: Final = ("person.roles", "invitation.accept")
"""The acts that decide the roles of a person, of the staff or at the merchant of the act."""
PERSON: Final = Decided("person", ("invitation.accept",), ("email",))
DISABLE: Final = "person.disable"
ENABLE: Final = "person.enable"
INVITING: Final = ("person.invite", "person.recover")
WITHDRAW: Final = "invitation.withdraw"
MERCHANT: Final = Decided(
    "merchant",
    ("merchant.create", "merchant.configure", "merchant.activate", "merchant.ban", "merchant.unban"),
    (
        *(
            "name",
            "owner_email",
            "activated_at",
            "banned_at",
            "category_code",
            "client_share",
            "callback_url",
        ),
        *("success_url", "fail_url", "allowed_currencies", "allowed_methods", "frame_origins", "late_money"),
    ),
)
OWNER: Final = Decided("owner", ("owner.block", "owner.unblock"), ("blocked_at",))
CATEGORY: Final = Decided("category", ("category.set",), ("commission", "refunds_return_commission"))
KEY: Final = Decided(
    "key",
    ("key.create", "key.deactivate"),
    ("merchant_id", "name", "hint", "key_sha256", "deactivated_at", "scopes"),
)


def roles_decided(
    tx: Tx, person_ids: Collection[UUID], *, until: datetime | None = None
) -> Mapping[UUID, Mapping[UUID | None, Due]]:
    """Returns the roles that are due of each of these people, by merchant; those of the staff under None."""
    objects = {f"person:{id}": id for id in person_ids}
    changes: dict[UUID, defaultdict[UUID | None, list[Change]]] = {id: defaultdict(list) for id in person_ids}
    for act in acts_on(tx, objects, ROLES, until=until):
        for field, before, after in act["changes"]:
            if field == "roles":
                changes[objects[act["object"]]][act["merchant_id"]].append((before, after, act["at"]))
    return {id: {place: due(of) for place, of in places.items()} for id, places in changes.items()}


def roles_by_acts(tx: Tx, person_id: UUID, merchant_id: UUID | None) -> list[str]:
    """Returns the roles that the last act gave the person, of the staff or at the merchant, whatever the row says."""
    due = roles_decided(tx, [person_id])[person_id].get(merchant_id, NOTHING)[0]
    return due.split(", ") if due else []


def is_disabled_by_acts(tx: Tx, person_id: UUID) -> bool:
    """Returns whether the last act about it disabled the person, whatever the row says."""
    done = acts_on(tx, [f"person:{person_id}"], (DISABLE, ENABLE))
    return bool(done) and done[-1]["act"] == DISABLE


_FACTORS: Final = text(f"""
SELECT {", ".join(COLUMNS)}, seal FROM acts
WHERE person_id = :person AND act IN ('factor.add', 'factor.remove', 'passkey.cloned') AND refused = '' ORDER BY id
""")  # noqa: S608  made of constants


def _acts_on_factors(tx: Tx, person_id: UUID) -> list[RowMapping]:
    found = tx.execute(_FACTORS, {"person": person_id}).mappings()
    return [act for act in found if is_sealed(seals_of(tx), act)]


def has_factors_by_acts(tx: Tx, person_id: UUID, *, without: str = "") -> bool:
    """Returns whether the person has added all that a sign-in needs, and it still counts; `without` one of them, "TOTP"
    or "passkey:ID".
    """
    last: dict[str, str] = {}
    for act in _acts_on_factors(tx, person_id):
        is_passkey = act["object"].startswith("passkey:")
        last[act["object"] if is_passkey else act["note"]] = act["act"]
    kept = {
        factor.partition(":")[0] for factor, act in last.items() if act == "factor.add" and factor != without
    }
    return "passkey" in kept or {"password", "TOTP"} <= kept


def has_added_factors(tx: Tx, person_id: UUID, *, since: datetime) -> bool:
    """Returns whether the person has added a factor since then."""
    return any(act["act"] == "factor.add" and act["at"] > since for act in _acts_on_factors(tx, person_id))


_INVITED: Final = text(f"""
SELECT {", ".join(COLUMNS)}, seal FROM acts
WHERE act = ANY(:acts) AND refused = '' AND at > :made_at AND changes @> CAST(:email AS jsonb)
""")  # noqa: S608  made of constants


def was_replaced(tx: Tx, link: Invitation, *, made_at: datetime) -> bool:
    """Returns whether a later link to the same address was made, at the same place or for an admin: it ends the one
    before.
    """
    values = {"acts": list(INVITING), "made_at": made_at, "email": json.dumps([["email", "", link.email]])}
    return any(
        is_sealed(seals_of(tx), act)
        and (
            act["merchant_id"] == link.merchant_id
            or any(name == "roles" and ADMIN in after.split(", ") for name, _, after in act["changes"])
        )
        for act in tx.execute(_INVITED, values).mappings()
    )


_OF_STAFF: Final = text("""
SELECT DISTINCT object FROM acts
WHERE act = ANY(:acts) AND merchant_id IS NULL AND refused = '' AND object LIKE 'person:%'
""")


def decided_admins(tx: Tx) -> set[UUID]:
    """Returns the ids of those who are admins and not disabled by the newest acts about them, whatever rows say."""
    objects = tx.scalars(_OF_STAFF, {"acts": list(ROLES)})
    ids = [id for each in objects if (id := parse_id(each.partition(":")[2]))]
    disabled = {
        act["object"]: act["act"] == DISABLE
        for act in acts_on(tx, [f"person:{id}" for id in ids], (DISABLE, ENABLE))
    }
    return {
        id
        for id, due in roles_decided(tx, ids).items()
        if ADMIN in due.get(None, NOTHING)[0].split(", ") and not disabled.get(f"person:{id}")
    }


class KnownRoles:
    """The roles, and that they are not disabled, of the people that one process has compared with their acts."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._remembered = Remembered()

    def are(self, person: Person) -> bool:
        """Returns whether acts gave the person the roles that it has, and did not disable it. If not, logs and counts
        it.
        """
        places = [(None, person.roles), *((each.merchant_id, each.roles) for each in person.memberships)]
        found = {place: text_of(roles) for place, roles in places if roles}
        if self._remembered.has(person.id, found):
            return True
        with self._db.transaction() as tx:
            if is_disabled_by_acts(tx, person.id):
                field = "state"
            elif any(_are_due(tx, person.id, found, until) for until in (None, moments_ago())):
                self._remembered.add(person.id, found)
                return True
            else:
                field = "roles"
        UNDECIDED.labels("person").inc()
        _log.error("value_not_decided", object=f"person:{person.id}", field=field)
        return False


def _are_due(tx: Tx, person_id: UUID, found: Mapping[UUID | None, str], until: datetime | None) -> bool:
    decided = roles_decided(tx, [person_id], until=until)[person_id]
    return all(found.get(place, "") in decided.get(place, NOTHING) for place in found.keys() | decided.keys())


def lost_the_right(tx: Tx, inviter_id: UUID | None, invitation: Invitation, since: datetime) -> bool:
    """Returns whether the inviter was disabled since, or lost the role by which the link was made."""
    right, place = (ADMIN, None) if invitation.by_operator else (domain.OWNER, invitation.merchant_id)
    of_inviter = acts_on(tx, [f"person:{inviter_id}"], ("person.roles", DISABLE))
    return any(
        each["act"] == DISABLE or (each["merchant_id"] == place and right not in roles.split(", "))
        for each in of_inviter
        if each["at"] > since
        for _, _, roles in each["changes"]
    )

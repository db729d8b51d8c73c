"""The rows whose values acts decide, and what seals and master keys must hold (kit.db.books). A row that was added past
the service has no act.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from kit.audit import approval_books
from kit.audit.acts import text_of
from kit.audit.decisions import NOTHING, acts_on, follow_acts
from kit.base.ids import parse_id
from kit.base.vault import MasterKeyMissing, Vault
from kit.db.books import Difference, Follows, Part
from kit.db.database import seals_of
from kit.db.described import schema_part
from services.identity.credentials.api_keys import opened_lookup_key
from services.identity.credentials.tokens import RECOVERY_CODES, digest_of_link
from services.identity.store.decisions import (
    CATEGORY,
    INVITING,
    KEY,
    MERCHANT,
    OWNER,
    PERSON,
    ROLES,
    WITHDRAW,
    roles_decided,
)
from services.identity.store.sealed import PASSKEY, PASSWORD, SESSION, SIGNING_KEY, is_sealed

_DISABLED_AS_THE_LAST_ACT_SAYS = """
SELECT people.id, 'state', compared.found, compared.due
FROM people
CROSS JOIN LATERAL (
  SELECT CASE WHEN disabled_at IS NULL THEN 'enabled' ELSE 'disabled' END AS found,
         coalesce((SELECT CASE act WHEN 'person.disable' THEN 'disabled' ELSE 'enabled' END FROM acts
                   WHERE object = 'person:' || people.id AND act IN ('person.disable', 'person.enable') AND refused = ''
                   ORDER BY id DESC LIMIT 1), 'enabled') AS due
) AS compared
WHERE people.id > CAST(:first AS uuid) AND people.id <= CAST(:last AS uuid) AND compared.found <> compared.due
"""

# The last act of each factor: `factor.add` or `factor.remove`, with the factor in the note.
_FACTORS_ARE_AS_THE_LAST_ACTS_SAY = f"""
SELECT people.id, factor, CASE WHEN is_set THEN 'set' ELSE 'missing' END,
       CASE WHEN is_set THEN 'added by the person: an act factor.add' ELSE 'there: its last act is factor.add' END
FROM people
LEFT JOIN totps ON totps.person_id = people.id
CROSS JOIN LATERAL (VALUES
  ('password', password_hash IS NOT NULL),
  ('TOTP', totps.sealed_secret IS NOT NULL AND totps.confirmed_at IS NOT NULL),
  ('recovery codes', (SELECT count(*) FROM recovery_codes WHERE person_id = people.id) = {RECOVERY_CODES})
) AS set (factor, is_set)
WHERE people.id > CAST(:first AS uuid) AND people.id <= CAST(:last AS uuid)
  AND is_set <> coalesce((SELECT act = 'factor.add' FROM acts WHERE object = 'person:' || people.id AND note = factor
                          AND act IN ('factor.add', 'factor.remove') AND refused = '' ORDER BY id DESC LIMIT 1), false)
"""  # noqa: S608  made of constants

_PASSKEYS_WERE_ADDED = """
SELECT id, 'passkey', 'of person ' || person_id, 'added by that person: an act factor.add'
FROM passkeys
WHERE id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid)
  AND (NOT EXISTS (SELECT FROM acts WHERE object = 'passkey:' || passkeys.id AND act = 'factor.add'
                  AND acts.person_id = passkeys.person_id)
   OR EXISTS (SELECT FROM acts WHERE object = 'passkey:' || passkeys.id AND act = 'factor.remove'))
"""

_PASSKEYS_ARE_THERE_UNTIL_AN_ACT_REMOVES_THEM = """
SELECT substr(object, 9), 'row', 'deleted', 'there: its last act is factor.add'
FROM acts AS added
WHERE act = 'factor.add' AND refused = '' AND object > 'passkey:' || :first AND object <= 'passkey:' || :last
  AND NOT EXISTS (SELECT FROM passkeys WHERE 'passkey:' || id = object)
  AND NOT EXISTS (SELECT FROM acts WHERE acts.object = added.object AND act = 'factor.remove' AND refused = '')
"""

_CLONED_PASSKEYS_STAY_SO = """
SELECT id, 'cloned_at', 'nothing', 'a time: it has an act passkey.cloned'
FROM passkeys
WHERE id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid) AND cloned_at IS NULL
  AND EXISTS (SELECT FROM acts WHERE object = 'passkey:' || passkeys.id AND act = 'passkey.cloned' AND refused = '')
"""

_SESSIONS_WERE_STARTED = """
SELECT id, 'session', 'of person ' || person_id, 'started by that person: an act session.start'
FROM sessions
WHERE id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid)
  AND NOT EXISTS (SELECT FROM acts WHERE object = 'session:' || sessions.id AND act = 'session.start'
                  AND acts.person_id = sessions.person_id)
"""

_SESSIONS_THAT_WERE_ENDED_ARE_OVER = """
SELECT id, 'session', 'live', 'ended'
FROM sessions
WHERE id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid) AND ended_at IS NULL
  AND EXISTS (SELECT FROM acts WHERE object = 'session:' || sessions.id AND act = 'session.end' AND refused = '')
"""

_ROLES: Final = text("""
SELECT id AS person_id, CAST(NULL AS uuid) AS merchant_id, array_to_string(roles, ', ') AS roles FROM people
WHERE id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid)
UNION ALL
SELECT person_id, merchant_id, array_to_string(roles, ', ') FROM memberships
WHERE person_id > CAST(:first AS uuid) AND person_id <= CAST(:last AS uuid)
""")


def _roles_are_those_of_the_acts(tx: Session, first: str, last: str) -> Iterator[Difference]:
    found: dict[UUID, dict[UUID | None, str]] = {}
    for person_id, merchant_id, roles in tx.execute(_ROLES, {"first": first, "last": last}):
        found.setdefault(person_id, {})[merchant_id] = roles
    for person_id, due in roles_decided(tx, found).items():
        for place in found[person_id].keys() | due.keys():
            has, decided = found[person_id].get(place, ""), due.get(place, NOTHING)
            if has not in decided:
                at = f" at merchant {place}" if place else ""
                yield person_id, f"roles{at}", has or "none", f"{decided[0] or 'none'}, by the last act"


_INVITATIONS: Final = text("""
SELECT id, token_hash, email, name, invited_by, merchant_id, roles || member_roles AS roles, by_operator, expires_at,
       withdrawn_at
FROM invitations WHERE id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid)
""")


def _invitations_have_their_acts(tx: Session, first: str, last: str) -> Iterator[Difference]:
    found = {row.id: row for row in tx.execute(_INVITATIONS, {"first": first, "last": last})}
    decided: dict[UUID | None, dict[str, str]] = {}
    links = [f"invitation:{id}" for id in found]
    for act in acts_on(tx, links, INVITING):
        values = {name: after for name, _, after in act["changes"]} | {
            "merchant_id": text_of(act["merchant_id"])
        }
        decided[parse_id(act["object"].partition(":")[2])] = values
    withdrawn = {act["object"] for act in acts_on(tx, links, (WITHDRAW,))}
    for id, row in found.items():
        if f"invitation:{id}" in withdrawn and row.withdrawn_at is None:
            yield id, "withdrawn_at", "nothing", f"a time: it has an act {WITHDRAW}"
        due = decided.get(id)
        if due is None:
            yield id, "act", "none", f"{' or '.join(INVITING)}, by the call that made its link"
            continue
        link = digest_of_link(row.token_hash, row.name, row.invited_by)
        for name, value in (
            *(
                ("link_sha256", link),
                ("email", row.email),
                ("merchant_id", row.merchant_id),
                ("roles", row.roles),
            ),
            *(("by_operator", row.by_operator), ("expires_at", row.expires_at)),
        ):
            if due.get(name, "") != text_of(value):
                yield id, name, text_of(value), due.get(name, "")


def _sealed(kind: str, rows: str) -> Follows:
    """Returns the comparison of seals: `rows` selects the id, the seal and the sealed values."""
    statement = text(f"{rows} AND id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid)")

    def follows(tx: Session, first: str, last: str) -> Iterator[Difference]:
        seals = seals_of(tx)
        for id, seal, *values in tx.execute(statement, {"first": first, "last": last}):
            sealed = [bytes(each) if isinstance(each, memoryview) else each for each in values]
            if not is_sealed(seals, seal, kind, *sealed):
                yield id, kind, "written past the service", "one with the seal of identity"

    return follows


_PASSWORDS: Final = "SELECT id, password_seal, id, password_hash FROM people WHERE password_hash IS NOT NULL"
_PASSKEYS: Final = "SELECT id, seal, id, person_id, rp_id, credential FROM passkeys WHERE true"
_SESSIONS: Final = (
    "SELECT id, seal, id, person_id, surface, started_at, token_hash, way, address, user_agent FROM sessions"
    " WHERE ended_at IS NULL"
)
_KEYS: Final = "SELECT id, seal, id, public_key, created_at FROM signing_keys WHERE true"
_SECRETS: Final = """
SELECT id, sealed_secret FROM api_keys WHERE id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid)
"""
_REPLACED_AS_ACTS_SAY: Final = """
SELECT id, 'replaced_by', replaced_by, 'nothing: that key has no act that it replaces this one'
FROM api_keys
WHERE id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid) AND replaced_by IS NOT NULL
  AND NOT EXISTS (SELECT FROM acts WHERE object = 'key:' || replaced_by AND act = 'key.create' AND refused = ''
                  AND changes @> jsonb_build_array(jsonb_build_array('replaces', '', CAST(api_keys.id AS text))))
"""
_LOOKUP_KEY: Final = "SELECT id, sealed FROM lookup_key"
_LOOKUP_KEY_IS_THERE: Final = """
SELECT 1, 'row', 'deleted', 'there: API keys are known by it'
WHERE EXISTS (SELECT FROM api_keys) AND NOT EXISTS (SELECT FROM lookup_key)
"""


def parts(key_vault: Vault) -> Sequence[Part]:
    """Returns the parts; `key_vault` opens the signing secrets and the lookup key."""
    return (
        schema_part("identity"),
        *_OF_PEOPLE,
        *_OF_MERCHANTS,
        Part(
            name="API keys",
            one="key",
            table="api_keys",
            follows=(
                follow_acts(
                    KEY,
                    table="api_keys",
                    made_by=("key.create",),
                    key_sha256="encode(sha256(key_hash), 'hex')",
                ),
                _REPLACED_AS_ACTS_SAY,
                _opened("secret", _SECRETS, key_vault.open),
            ),
        ),
        Part(
            name="lookup key",
            one="lookup key",
            table="lookup_key",
            key="id::bigint",
            key_type="bigint",
            follows=(
                _LOOKUP_KEY_IS_THERE,
                _opened("key", _LOOKUP_KEY, partial(opened_lookup_key, key_vault)),
            ),
        ),
        approval_books.PART,
    )


_OF_PEOPLE: Final = (
    Part(
        name="people",
        one="person",
        table="people",
        follows=(
            follow_acts(PERSON, table="people", made_by=ROLES),
            _roles_are_those_of_the_acts,
            _DISABLED_AS_THE_LAST_ACT_SAYS,
            _FACTORS_ARE_AS_THE_LAST_ACTS_SAY,
            _sealed(PASSWORD, _PASSWORDS),
        ),
    ),
    Part(
        name="passkeys",
        one="passkey",
        table="passkeys",
        follows=(
            _PASSKEYS_WERE_ADDED,
            _PASSKEYS_ARE_THERE_UNTIL_AN_ACT_REMOVES_THEM,
            _CLONED_PASSKEYS_STAY_SO,
            _sealed(PASSKEY, _PASSKEYS),
        ),
    ),
    Part(
        name="sessions",
        one="session",
        table="sessions",
        follows=(
            _SESSIONS_WERE_STARTED,
            _SESSIONS_THAT_WERE_ENDED_ARE_OVER,
            _sealed(SESSION, _SESSIONS),
        ),
    ),
    Part(
        name="invitations",
        one="invitation",
        table="invitations",
        follows=(_invitations_have_their_acts,),
    ),
    Part(
        name="signing keys",
        one="signing key",
        table="signing_keys",
        follows=(_sealed(SIGNING_KEY, _KEYS),),
    ),
)


_OF_MERCHANTS: Final = (
    Part(
        name="owners",
        one="owner",
        table="owners",
        key="email",
        key_type="text",
        follows=(follow_acts(OWNER, table="owners", id="email", key_type="text", made_by=OWNER.acts),),
    ),
    Part(
        name="merchants",
        one="merchant",
        table="merchants",
        follows=(
            follow_acts(
                MERCHANT,
                table="merchants",
                made_by=("merchant.create",),
                owner_email="(SELECT email FROM owners WHERE owners.id = owner_id)",
            ),
        ),
    ),
    Part(
        name="categories",
        one="category",
        table="categories",
        key="code",
        key_type="text",
        follows=(
            follow_acts(CATEGORY, table="categories", id="code", key_type="text", made_by=("category.set",)),
        ),
    ),
)


def _opened(what: str, rows: str, opened: Callable[[bytes], object]) -> Follows:
    """Returns the rule that the values of these rows, of an id and an encrypted value, can be opened."""

    def follows(tx: Session, first: str, last: str) -> Iterator[Difference]:
        for id, sealed in tx.execute(text(rows), {"first": first, "last": last}):
            try:
                opened(bytes(sealed))
            except MasterKeyMissing:
                yield id, what, "not readable", "one that a master key opens"

    return follows

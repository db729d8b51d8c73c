"""Invariants of people, sessions and passkeys (kit.db.books): each follows from acts, which are chained and
whose heads other services keep. A role, session or factor that was added past the service has no act.
"""

from typing import Final

from kit.db.books import Part

# The staff's roles (merchant_id NULL) and those at each merchant: what the last `person.roles` set, and what accepted
# invitations have added since.
_ROLES_ARE_THOSE_OF_THE_ACTS = """
WITH page AS (
  SELECT id, 'person:' || id AS object, roles FROM people
  WHERE id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid)
), given AS (
  SELECT page.id AS person_id, acts.id, acts.act, acts.merchant_id, change ->> 2 AS roles
  FROM page JOIN acts ON acts.object = page.object CROSS JOIN jsonb_array_elements(acts.changes) AS change
  WHERE acts.act IN ('person.roles', 'invitation.accept') AND acts.refused = '' AND change ->> 0 = 'roles'
), found AS (
  SELECT id AS person_id, CAST(NULL AS uuid) AS merchant_id, roles FROM page
  UNION ALL
  SELECT person_id, merchant_id, memberships.roles FROM memberships JOIN page ON page.id = person_id
), places AS (
  SELECT person_id, merchant_id FROM found UNION SELECT person_id, merchant_id FROM given
), compared AS (
  SELECT person_id, merchant_id,
         (SELECT string_agg(role, ', ' ORDER BY role) FROM found CROSS JOIN unnest(found.roles) AS role
          WHERE found.person_id = places.person_id AND found.merchant_id IS NOT DISTINCT FROM places.merchant_id
         ) AS found,
         (SELECT string_agg(DISTINCT role, ', ' ORDER BY role)
          FROM given CROSS JOIN unnest(string_to_array(given.roles, ', ')) AS role
          WHERE given.person_id = places.person_id AND given.merchant_id IS NOT DISTINCT FROM places.merchant_id
            AND NOT EXISTS (SELECT FROM given AS later WHERE later.act = 'person.roles' AND later.id > given.id
                              AND later.person_id = given.person_id
                              AND later.merchant_id IS NOT DISTINCT FROM given.merchant_id)
         ) AS due
  FROM places
)
SELECT person_id, 'roles' || coalesce(' at merchant ' || merchant_id, ''),
       coalesce(found, 'none'), coalesce(due, 'none')
FROM compared WHERE found IS DISTINCT FROM due
"""

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
_FACTORS_WERE_ADDED = """
SELECT people.id, factor, 'set', 'added by the person: an act factor.add'
FROM people
LEFT JOIN totps ON totps.person_id = people.id
CROSS JOIN LATERAL (VALUES ('password', password_hash IS NOT NULL), ('TOTP', totps.confirmed_at IS NOT NULL))
  AS set (factor, is_set)
WHERE people.id > CAST(:first AS uuid) AND people.id <= CAST(:last AS uuid) AND is_set
  AND 'factor.add' IS DISTINCT FROM (SELECT act FROM acts WHERE object = 'person:' || people.id AND note = factor
                                     AND act IN ('factor.add', 'factor.remove') ORDER BY id DESC LIMIT 1)
"""

_PASSKEYS_WERE_ADDED = """
SELECT id, 'passkey', 'of person ' || person_id, 'added by that person: an act factor.add'
FROM passkeys
WHERE id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid)
  AND NOT EXISTS (SELECT FROM acts WHERE object = 'passkey:' || passkeys.id AND act = 'factor.add'
                  AND acts.person_id = passkeys.person_id)
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

PARTS: Final = (
    Part(
        name="people",
        one="person",
        table="people",
        follows=(_ROLES_ARE_THOSE_OF_THE_ACTS, _DISABLED_AS_THE_LAST_ACT_SAYS, _FACTORS_WERE_ADDED),
    ),
    Part(name="passkeys", one="passkey", table="passkeys", follows=(_PASSKEYS_WERE_ADDED,)),
    Part(
        name="sessions",
        one="session",
        table="sessions",
        made_at="started_at",
        follows=(_SESSIONS_WERE_STARTED, _SESSIONS_THAT_WERE_ENDED_ARE_OVER),
    ),
)

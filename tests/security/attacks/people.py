"""Attacks on people by someone who has the address of identity's database."""

from typing import Final

from tests.security.attacks.attack import found, not_promised, refused

_INVITATION = (
    "INSERT INTO invitations (id, token_hash, email, name, roles, invited_by, by_operator, created_at, expires_at)"
    " VALUES ({id}, sha256('{token}'), {email}, 'Eve', '{{admin}}', 'someone', true, now(), now() + interval '1 day')"
)
_ACT = (
    "INSERT INTO acts (id, at, actor_kind, actor_name, surface, on_behalf_of, act, object, changes, note, request_id,"
    " refused, seal) VALUES (%(forged_act)s, now(), 'person', 'ann@example.com', 'desk', '', '{act}', '{object}',"
    " '{changes}', '', '', '', decode(repeat('ab', 32), 'hex'))"
)

ATTACKS: Final = (
    found(
        "identity",
        "a link to become an administrator",
        _INVITATION.format(id="%(forged_link)s", token="of eve", email="'eve@example.com'"),
        "invitation",
        "%(forged_link)s",
        "act is none",
    ),
    found(
        "identity",
        "a recovery link of an administrator",
        _INVITATION.format(id="%(forged_recovery)s", token="recovery.eve", email="%(admin_email)s"),
        "%(forged_recovery)s",
        "act is none",
    ),
    found(
        "identity",
        "a role",
        "UPDATE people SET roles = '{viewer,admin}' WHERE id = %(viewer)s",
        "%(viewer)s",
        "roles is viewer, admin",
    ),
    found(
        "identity",
        "an owner of a merchant",
        "INSERT INTO memberships VALUES (%(viewer)s, %(merchant)s, '{owner}', now())",
        "%(viewer)s",
        "roles at merchant",
    ),
    found(
        "identity",
        "a disabled person enabled",
        "UPDATE people SET disabled_at = NULL WHERE id = %(disabled)s",
        "%(disabled)s",
        "state is enabled",
    ),
    found(
        "identity",
        "a password",
        "UPDATE people SET password_hash = 'one of my own' WHERE id = %(admin)s",
        "%(admin)s",
        "password",
    ),
    found(
        "identity",
        "a password removed",
        "UPDATE people SET password_hash = NULL, password_set_at = NULL, password_seal = NULL"
        " WHERE id = %(disabled)s",
        "%(disabled)s",
        "password is missing",
    ),
    found(
        "identity",
        "a passkey",
        "INSERT INTO passkeys (id, person_id, rp_id, credential_id, credential, sign_count, name, created_at, seal)"
        " VALUES (%(forged_passkey)s, %(admin)s, 'localhost', 'mine', 'mine', 0, 'mine', now(),"
        " decode(repeat('ab', 32), 'hex'))",
        "%(forged_passkey)s",
        "passkey",
    ),
    found(
        "identity",
        "a session",
        "INSERT INTO sessions (id, person_id, token_hash, surface, way, address, user_agent, started_at, last_seen_at,"
        " seal) VALUES (%(forged_session)s, %(admin)s, sha256('mine'), 'desk', 'passkey', '', '', now(), now(),"
        " decode(repeat('ab', 32), 'hex'))",
        "%(forged_session)s",
        "session",
    ),
    found(
        "identity",
        "another person's session with a token of one's own",
        "UPDATE sessions SET token_hash = sha256('my own') WHERE person_id = %(admin)s AND way = 'invitation'",
        "%(admin_session)s",
        "written past the service",
    ),
    found(
        "identity",
        "how and from where a session began",
        "WITH gone AS (DELETE FROM sessions WHERE id = %(viewer_session)s RETURNING *) INSERT INTO sessions"
        " SELECT (jsonb_populate_record(NULL::sessions,"
        ' to_jsonb(gone) || \'{"way": "passkey", "address": "203.0.113.9"}\')).* FROM gone',
        "%(viewer_session)s",
        "written past the service",
    ),
    found(
        "identity",
        "an invitation to another merchant",
        "WITH gone AS (DELETE FROM invitations WHERE id = %(invitation)s RETURNING *) INSERT INTO invitations"
        " SELECT (jsonb_populate_record(NULL::invitations,"
        " to_jsonb(gone) || jsonb_build_object('merchant_id', %(banned)s))).* FROM gone",
        "%(invitation)s",
        "merchant_id is %(banned)s",
    ),
    found(
        "identity",
        "a key that signs for every person",
        "INSERT INTO signing_keys (id, public_key, sealed_private_key, created_at, seal)"
        " SELECT %(forged_key)s, sha256('mine'), sealed_private_key, now(), seal FROM signing_keys LIMIT 1",
        "%(forged_key)s",
        "written past the service",
    ),
    found(
        "identity",
        "an act in another's name",
        _ACT.format(
            act="person.roles",
            object="person:x",
            changes='[["roles", "viewer", "viewer, admin"]]',
        ),
        "%(forged_act)s",
        "no process of the service wrote it",
    ),
    found(
        "identity",
        "a head of another service's chain",
        "INSERT INTO act_heads (service, count, hash, at, seal) VALUES ('catalog', 9, decode(repeat('ab', 32), 'hex'),"
        " now(), decode(repeat('ab', 32), 'hex'))",
        "head of catalog",
        "added by hand",
    ),
    found(
        "identity",
        "a head of a service that does not exist",
        "INSERT INTO act_heads (service, count, hash, at, seal) VALUES ('nobody', 9, decode(repeat('ab', 32), 'hex'),"
        " now(), decode(repeat('ab', 32), 'hex'))",
        "head of nobody",
        "added by hand",
    ),
    found(
        "identity",
        "an act before all others",
        _ACT.replace("%(forged_act)s", "'00000000-0000-0000-0000-000000000000'").format(
            act="person.roles", object="person:x", changes='[["roles", "", "admin"]]'
        ),
        "act 00000000-0000-0000-0000-000000000000",
        "no process of the service wrote it",
    ),
    found(
        "identity",
        "a request for a second person that nobody made",
        "INSERT INTO approvals (id, act, object, summary, request, requested_by, requested_as, requested_at, note)"
        " VALUES (%(forged_request)s, 'person.roles', 'person:x', 'Harmless', '{}', 'eve@example.com',"
        " 'eve@example.com', now(), '')",
        "%(forged_request)s",
        "act is none",
    ),
    refused(
        "identity",
        "the numbers of heads to come",
        "INSERT INTO act_heads (number, service, count, hash, at, seal) OVERRIDING SYSTEM VALUE"
        " VALUES (999999, 'invoices', 0, sha256('a'), now(), sha256('a'))",
        "permission denied for table act_heads",
    ),
    refused(
        "identity",
        "a seal of a megabyte, of which few fill the memory",
        "UPDATE people SET password_seal = decode(repeat('ab', 1048576), 'hex')",
        "ck_people_bounds",
    ),
    refused("identity", "an act changed", "UPDATE acts SET note = 'x'", "permission denied for table acts"),
    refused("identity", "an act deleted", "DELETE FROM acts", "permission denied for table acts"),
    refused("identity", "the chain cut", "DELETE FROM act_chain", "permission denied for table act_chain"),
    refused(
        "identity", "kept heads deleted", "DELETE FROM act_heads", "permission denied for table act_heads"
    ),
    refused(
        "identity",
        "a person of 3,000,000 roles, which no answer holds",
        "UPDATE people SET roles = array_fill('viewer'::text, ARRAY[3000000]) WHERE email = %(viewer_email)s",
        "ck_people_bounds",
    ),
    refused(
        "identity",
        "an act of a megabyte, of which few fill an answer",
        _ACT.replace("'{changes}'", "to_jsonb(ARRAY[ARRAY['roles', '', repeat('x', 1000000)]])").format(
            act="person.roles", object="person:x"
        ),
        "ck_acts_changes",
    ),
    refused(
        "identity",
        "an act whose changes are no list",
        _ACT.format(act="person.roles", object="person:x", changes="{}"),
        "ck_acts_changes",
    ),
    refused(
        "identity",
        "an act of 500 lists in each other",
        _ACT.format(act="person.roles", object="person:x", changes="[" * 500 + "]" * 500),
        "ck_acts_bounds",
    ),
    refused(
        "identity",
        "a person's address",
        "UPDATE people SET email = 'eve@example.com' WHERE id = %(admin)s",
        "permission denied for table people",
    ),
    refused(
        "identity",
        "a person deleted",
        "DELETE FROM people WHERE id = %(viewer)s",
        "permission denied for table people",
    ),
    refused(
        "identity",
        "a request approved as it is made",
        "INSERT INTO approvals (id, act, object, summary, request, requested_by, requested_as, requested_at, note,"
        " state, decided_by, decided_as, decided_at) VALUES (gen_random_uuid(), 'x', 'x', 'x', '{}', 'a', 'a', now(),"
        " '', 'approved', 'b', 'b', now())",
        "INSERT of approvals is refused: a request begins as a pending one",
    ),
    refused(
        "identity",
        "a time in the year 200000, which locks people out",
        "UPDATE people SET last_seen_at = '200000-01-01'",
        "ck_people_bounds",
    ),
    refused(
        "identity",
        "a code of the year 200000 as used, so that none counts any more",
        "INSERT INTO totps (person_id, last_step) VALUES (%(viewer)s, 9223372036854775807)",
        "ck_totps_last_step",
    ),
    not_promised(
        "identity",
        "the time of a step-up",
        "UPDATE sessions SET stepped_up_at = now() WHERE person_id = %(viewer)s",
    ),
    not_promised("identity", "a person's name", "UPDATE people SET name = 'Eve' WHERE id = %(viewer)s"),
    not_promised("identity", "counters of guesses", "DELETE FROM guesses"),
)

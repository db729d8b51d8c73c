"""Links, sessions, factors, roles and signing keys that SQL writes under the role of identity open nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from kit.base import actors
from kit.base.ids import new_id
from kit.db import books
from kit.rpc.errors import Refused
from services.identity.credentials import tokens
from services.identity.domain.people import Surface
from services.identity.operations import factors, invitations, keys, people, sessions, signing_in
from services.identity.store.decisions import KnownRoles, decided_admins
from services.identity.wiring import Deps
from tests.identity.people.authenticator import Authenticator
from tests.identity.people.conftest import DESK_URL
from tests.identity.people.house import (
    BROWSER,
    Someone,
    accept,
    authorize,
    invite_member,
    invite_staff,
    mailed,
    mailing_to_nobody,
    member,
    operator,
    token_of,
)
from tests.identity.people.test_books import execute, problems
from tests.identity.people.test_passkeys import register, sign_in
from tests.support.acting import CID
from tests.support.clock import ManualClock

INVITATION = (
    "INSERT INTO invitations (id, token_hash, email, name, roles, invited_by, by_operator, created_at, expires_at)"
    " VALUES (:id, :hash, :email, 'Eve', '{admin}', 'ann@example.com', true, now(), '2999-01-01')"
)
MEMBER = "INSERT INTO memberships VALUES (:id, :merchant, ARRAY[CAST(:role AS text)], now())"


@pytest.fixture
def eve(deps: Deps, new_email: Callable[[], str]) -> Someone:
    """A person with a small role, who also has the database's password."""
    eve = operator(deps, new_email(), "viewer")
    eve.add_password_and_totp()
    return eve


@pytest.fixture
def ada(deps: Deps, new_email: Callable[[], str]) -> Someone:
    ada = operator(deps, new_email(), "desk")
    ada.add_password_and_totp()
    return ada


def reason(call: Callable[[], object]) -> str:
    with pytest.raises(Refused) as refused:
        call()
    return refused.value.reason


def rows(deps: Deps, statement: str, **values: object) -> list[Any]:
    with deps.db.transaction() as tx:
        return list(tx.scalars(text(statement), values))


@pytest.mark.parametrize("new_token", [tokens.new_token, tokens.new_recovery_token])
def test_a_link_that_no_call_made_opens_nothing(
    deps: Deps, ada: Someone, new_token: Callable[[], str]
) -> None:
    token, id = new_token(), new_id()
    execute(deps, INVITATION, id=id, hash=tokens.hash_of(token), email=ada.email)
    made = invite_staff(deps, ada.email, "viewer")  # for its shape
    forged = replace(made, link=f"{DESK_URL}/invitation?token={token}")
    execute(deps, "UPDATE invitations SET withdrawn_at = NULL WHERE id = :id", id=id)
    assert reason(lambda: accept(deps, forged)) == "INVITATION_INVALID"
    assert any(str(id) in each and "act none" in each for each in problems(deps))


def test_many_links_that_no_call_made_hide_no_other_one(
    deps: Deps, ada: Someone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "MAX_PROBLEMS", 5)
    noise = [new_id() for _ in range(30)]
    for id in noise:
        execute(deps, INVITATION, id=id, hash=tokens.hash_of(str(id)), email=f"{id.hex}@noise.example")
    made = invite_staff(deps, ada.email, "viewer")
    copy = "WITH old AS (DELETE FROM invitations WHERE id = :id RETURNING *) INSERT INTO invitations"
    columns = "id, token_hash, email, name, roles, by_operator, created_at, expires_at"
    by_eve = f"{copy} ({columns}, invited_by) SELECT {columns}, 'eve' FROM old"
    execute(deps, by_eve, id=made.invitation.id)
    found = problems(deps)
    for id in noise:
        execute(deps, "DELETE FROM invitations WHERE id = :id", id=id)
    assert any(f"invitation {made.invitation.id}: link_sha256" in each for each in found)


def test_the_hash_of_another_link_makes_no_link_to_more(deps: Deps, eve: Someone) -> None:
    made = invite_staff(deps, eve.email, "viewer")
    execute(
        deps,
        "UPDATE invitations SET withdrawn_at = now() WHERE id = :id",
        id=made.invitation.id,
    )
    execute(deps, "DELETE FROM invitations WHERE id = :id", id=made.invitation.id)
    hash = tokens.hash_of(token_of(made))
    execute(deps, INVITATION, id=made.invitation.id, hash=hash, email=eve.email)
    assert reason(lambda: accept(deps, made)) == "INVITATION_INVALID"


def test_a_session_of_another_person_with_a_token_of_ones_own_is_none(
    deps: Deps, eve: Someone, ada: Someone
) -> None:
    token = tokens.new_token()
    execute(
        deps,
        "UPDATE sessions SET token_hash = :hash WHERE person_id = :ada",
        hash=tokens.hash_of(token),
        ada=ada.person_id,
    )
    assert reason(lambda: authorize(deps, token)) == "SESSION_INVALID"
    authorize(deps, eve.token)


def test_ones_own_session_is_not_given_to_another_person(deps: Deps, eve: Someone, ada: Someone) -> None:
    mine, theirs = eve.actor.session_id, ada.actor.session_id
    hash = tokens.hash_of(eve.token)
    execute(deps, "DELETE FROM sessions WHERE id = :id", id=mine)
    copy = "UPDATE sessions SET token_hash = :hash WHERE id = :id"
    execute(deps, copy, hash=hash, id=theirs)
    assert reason(lambda: authorize(deps, eve.token)) == "SESSION_INVALID"


def test_ones_own_password_and_app_sign_in_no_other_person(
    deps: Deps, eve: Someone, ada: Someone, clock: ManualClock
) -> None:
    of = {"eve": eve.person_id, "ada": ada.person_id}
    columns = (
        "(password_hash, password_seal) = (SELECT password_hash, password_seal FROM people WHERE id = :eve)"
    )
    execute(deps, f"UPDATE people SET {columns} WHERE id = :ada", **of)
    execute(
        deps,
        "UPDATE totps SET sealed_secret = (SELECT sealed_secret FROM totps WHERE person_id = :eve)"
        " WHERE person_id = :ada",
        **of,
    )
    clock.advance(minutes=2)
    as_ada = replace(eve, email=ada.email)
    assert reason(as_ada.sign_in) == "SIGN_IN_REFUSED"
    assert eve.sign_in()


def test_the_app_of_another_person_steps_nobody_up(
    deps: Deps, eve: Someone, ada: Someone, clock: ManualClock
) -> None:
    execute(
        deps,
        "UPDATE totps SET sealed_secret = (SELECT sealed_secret FROM totps WHERE person_id = :eve)"
        " WHERE person_id = :ada",
        eve=eve.person_id,
        ada=ada.person_id,
    )
    clock.advance(minutes=2)
    assert reason(lambda: ada.step_up(code=eve.code())) == "SIGN_IN_REFUSED"


def test_a_secret_of_an_app_counts_only_as_it_was_confirmed(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    with ada.acting():
        secret, _ = factors.start_totp(deps)
    taken = (
        "UPDATE totps SET sealed_secret = sealed_new_secret, sealed_new_secret = NULL WHERE person_id = :ada"
    )
    execute(deps, taken, ada=ada.person_id)
    clock.advance(minutes=2)
    assert reason(replace(ada, secret=secret).sign_in) == "SIGN_IN_REFUSED"


def test_a_removed_secret_of_an_app_that_is_put_back_unconfirmed_signs_nobody_in(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    register(ada, Authenticator(DESK_URL))
    (sealed,) = rows(deps, "SELECT sealed_secret FROM totps WHERE person_id = :ada", ada=ada.person_id)
    with ada.acting():
        factors.remove_totp(deps)
    back = "INSERT INTO totps (person_id, sealed_secret, last_step) VALUES (:ada, :sealed, 0)"
    execute(deps, back, ada=ada.person_id, sealed=sealed)
    clock.advance(minutes=2)
    assert reason(ada.sign_in) == "SIGN_IN_REFUSED"


def test_another_sealed_value_is_no_challenge(deps: Deps, ada: Someone) -> None:
    device = Authenticator(DESK_URL)
    register(ada, device)
    (sealed,) = rows(deps, "SELECT sealed_secret FROM totps WHERE person_id = :ada", ada=ada.person_id)
    _, options = signing_in.start_passkey(deps, surface=Surface.DESK, session_token="")
    call = partial(
        signing_in.sign_in_by_passkey,
        deps,
        challenge_id=bytes(sealed).decode(),
        credential=device.get(options),
        surface=Surface.DESK,
        client=BROWSER,
    )
    assert reason(call) == "SIGN_IN_REFUSED"


def test_ones_own_passkey_is_not_given_to_another_person(deps: Deps, eve: Someone, ada: Someone) -> None:
    device = Authenticator(DESK_URL)
    register(eve, device)
    execute(
        deps,
        "WITH mine AS (DELETE FROM passkeys WHERE person_id = :eve RETURNING *)"
        " INSERT INTO passkeys SELECT id, :ada, rp_id, credential_id, credential, sign_count, name, created_at,"
        " last_used_at, cloned_at, seal FROM mine",
        eve=eve.person_id,
        ada=ada.person_id,
    )
    assert reason(lambda: sign_in(deps, device)) == "SIGN_IN_REFUSED"


def test_a_role_that_no_act_gave_signs_its_person_out(deps: Deps, eve: Someone) -> None:
    execute(deps, "UPDATE people SET roles = '{viewer,admin}' WHERE id = :id", id=eve.person_id)
    assert reason(lambda: authorize(deps, eve.token)) == "SESSION_INVALID"
    execute(deps, "UPDATE people SET roles = '{viewer}' WHERE id = :id", id=eve.person_id)
    assert authorize(deps, eve.token).person.roles == ["viewer"]


def test_a_signing_key_that_accounts_did_not_make_is_published_to_nobody(deps: Deps, eve: Someone) -> None:
    authorize(deps, eve.token)
    forged = new_id()
    execute(
        deps,
        "INSERT INTO signing_keys (id, public_key, sealed_private_key, created_at, seal)"
        " SELECT :id, sha256('mine'), sealed_private_key, created_at, seal FROM signing_keys LIMIT 1",
        id=forged,
    )
    assert forged not in {each.id for each in keys.list_actor_keys(deps)}
    assert sessions.authorize(deps, session_token=eve.token, surface=Surface.DESK).actor_token


def test_a_signing_key_that_sql_made_younger_signs_nothing(deps: Deps, eve: Someone) -> None:
    authorize(deps, eve.token)
    with deps.db.transaction() as tx:
        row = dict(tx.execute(text("SELECT * FROM signing_keys ORDER BY id DESC LIMIT 1")).mappings().one())
    execute(deps, "DELETE FROM signing_keys WHERE id = :id", id=row["id"])
    row["created_at"] += timedelta(days=365)
    columns = ", ".join(row)
    execute(
        deps, f"INSERT INTO signing_keys ({columns}) VALUES ({', '.join(f':{each}' for each in row)})", **row
    )
    assert row["id"] not in {each.id for each in keys.list_actor_keys(deps)}


@pytest.mark.parametrize("ended_by", ["use", "withdrawal", "roles"])
def test_a_link_that_was_ended_opens_nothing_again(deps: Deps, ada: Someone, ended_by: str) -> None:
    made = invite_staff(deps, ada.email, "treasury")
    match ended_by:
        case "use":
            accept(deps, made)
        case "withdrawal":
            invitations.withdraw_invitation(deps, invitation_id=str(made.invitation.id))
        case _:
            people.set_roles(deps, person_id=str(ada.person_id), roles=["viewer"], merchant_id="")
    back = "UPDATE invitations SET used_at = NULL, withdrawn_at = NULL WHERE id = :id"
    execute(deps, back, id=made.invitation.id)
    assert reason(lambda: accept(deps, made)) == "INVITATION_INVALID"


def test_a_link_that_lasts_longer_by_sql_opens_nothing(deps: Deps, ada: Someone) -> None:
    made = invite_staff(deps, ada.email, "viewer")
    columns = "id, token_hash, email, name, roles, invited_by, by_operator, created_at"
    copy = f"WITH old AS (DELETE FROM invitations WHERE id = :id RETURNING *) INSERT INTO invitations ({columns},"
    execute(deps, f"{copy} expires_at) SELECT {columns}, '2999-01-01' FROM old", id=made.invitation.id)
    assert reason(lambda: accept(deps, made)) == "INVITATION_INVALID"


def test_a_link_whose_author_or_end_sql_wrote_opens_nothing_and_is_named(deps: Deps, ada: Someone) -> None:
    author, end, shut = (invite_staff(deps, ada.email, role) for role in ("viewer", "desk", "treasury"))
    invitations.withdraw_invitation(deps, invitation_id=str(shut.invitation.id))
    columns = "id, token_hash, email, name, roles, by_operator, created_at"
    copy = f"WITH old AS (DELETE FROM invitations WHERE id = :id RETURNING *) INSERT INTO invitations ({columns},"
    by_eve = f"{copy} expires_at, invited_by) SELECT {columns}, expires_at, 'eve' FROM old"
    execute(deps, by_eve, id=author.invitation.id)
    late = f"{copy} expires_at, invited_by) SELECT {columns}, '2999-01-01', invited_by FROM old"
    execute(deps, late, id=end.invitation.id)
    execute(deps, "UPDATE invitations SET withdrawn_at = NULL WHERE id = :id", id=shut.invitation.id)
    found = problems(deps)
    for made, field in ((author, "link_sha256"), (end, "expires_at"), (shut, "withdrawn_at")):
        assert reason(partial(accept, deps, made)) == "INVITATION_INVALID"
        assert any(f"invitation {made.invitation.id}: {field} " in each for each in found)


def test_a_removed_passkey_that_is_put_back_signs_nobody_in(deps: Deps, ada: Someone) -> None:
    device = Authenticator(DESK_URL)
    id = register(ada, device)
    with deps.db.transaction() as tx:
        row = dict(tx.execute(text("SELECT * FROM passkeys WHERE id = :id"), {"id": id}).mappings().one())
    with ada.acting():
        factors.remove_passkey(deps, passkey_id=id)
    columns = ", ".join(row)
    execute(deps, f"INSERT INTO passkeys ({columns}) VALUES ({', '.join(f':{each}' for each in row)})", **row)
    assert reason(lambda: sign_in(deps, device)) == "SIGN_IN_REFUSED"
    assert any(id in each for each in problems(deps))


def test_an_admin_who_is_marked_disabled_by_sql_still_has_to_approve_another_one(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    admin = operator(deps, new_email(), "admin")
    execute(deps, "UPDATE people SET disabled_at = now(), roles = '{}' WHERE roles @> '{admin}'")

    def invite() -> object:
        return invitations.invite_person(
            deps, email=new_email(), name="Eve", roles=("admin",), merchant_id="", member_roles=()
        )

    assert reason(invite) == "APPROVAL_REQUIRED"
    execute(
        deps, "UPDATE people SET disabled_at = NULL, roles = '{admin}' WHERE id = :id", id=admin.person_id
    )


def test_an_act_by_sql_about_no_person_stops_no_decision_about_admins(deps: Deps, eve: Someone) -> None:
    id = new_id()
    columns = "actor_kind, actor_name, surface, on_behalf_of, changes, note, request_id, refused, seal"
    execute(
        deps,
        f"INSERT INTO acts (id, at, act, object, {columns})"
        f" SELECT :id, now(), 'person.roles', 'person:x', {columns} FROM acts ORDER BY id LIMIT 1",
        id=id,
    )
    with deps.db.transaction() as tx:
        assert eve.person_id not in decided_admins(tx)


# -- a true act after a change by SQL begins with what the acts before it decided


def test_an_invitation_adds_no_role_that_sql_wrote_before(deps: Deps, eve: Someone) -> None:
    made = invite_staff(deps, eve.email, "desk")
    execute(deps, "UPDATE people SET roles = '{admin,viewer}' WHERE id = :id", id=eve.person_id)
    accept(deps, made)
    assert set(authorize(deps, eve.token).person.roles) == {"viewer", "desk"}
    assert [each for each in problems(deps) if str(eve.person_id) in each and "roles" in each] == []


def test_a_person_whom_sql_made_an_admin_becomes_one_by_two_all_the_same(
    deps: Deps, eve: Someone, new_email: Callable[[], str]
) -> None:
    operator(deps, new_email(), "admin").add_password_and_totp()
    ann = operator(deps, new_email(), "admin")
    ann.add_password_and_totp()
    execute(deps, "UPDATE people SET roles = '{admin}' WHERE id = :id", id=eve.person_id)
    with ann.acting():
        give = partial(people.set_roles, deps, person_id=str(eve.person_id), merchant_id="", roles=["admin"])
        assert reason(give) == "APPROVAL_REQUIRED"


def test_a_recovery_link_of_an_admin_whose_row_says_otherwise_needs_two(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    ann, other = operator(deps, new_email(), "admin"), operator(deps, new_email(), "admin")
    for each in (ann, other):
        each.add_password_and_totp()
    execute(deps, "UPDATE people SET roles = '{viewer}' WHERE id = :id", id=other.person_id)
    with ann.acting():
        recover = partial(invitations.recover_person, deps, person_id=str(other.person_id), merchant_id="")
        assert reason(recover) == "APPROVAL_REQUIRED"


def test_a_second_person_reads_the_roles_that_acts_gave_whatever_the_row_says(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    ann, ben, other = (operator(deps, new_email(), "admin") for _ in range(3))
    for each in (ann, ben):
        each.add_password_and_totp()
    with ann.acting():
        people.disable_person(deps, person_id=str(other.person_id))
    execute(deps, "UPDATE people SET roles = '{viewer}' WHERE id = :id", id=other.person_id)
    with ann.acting():
        enable = partial(people.enable_person, deps, person_id=str(other.person_id))
        assert reason(enable) == "APPROVAL_REQUIRED"
    (asked,) = rows(
        deps, "SELECT summary FROM approvals WHERE object = :object", object=f"person:{other.person_id}"
    )
    assert asked.endswith("with the roles admin on the desk")


def test_a_membership_that_sql_wrote_is_no_member_whose_roles_change(deps: Deps, eve: Someone) -> None:
    merchant = new_id()
    owner = member(deps, f"{new_id().hex}@shop.example", merchant, "owner")
    execute(deps, MEMBER, id=eve.person_id, merchant=merchant, role="viewer")
    with owner.acting():
        change = partial(
            people.set_roles, deps, person_id=str(eve.person_id), merchant_id=str(merchant), roles=["finance"]
        )
        assert reason(change) == "PERSON_NOT_FOUND"


def test_an_owner_whom_sql_wrote_lets_the_last_owner_not_go(deps: Deps, eve: Someone) -> None:
    merchant = new_id()
    owner = member(deps, f"{new_id().hex}@shop.example", merchant, "owner")
    execute(deps, MEMBER, id=eve.person_id, merchant=merchant, role="owner")
    with owner.acting():
        leave = partial(
            people.set_roles,
            deps,
            person_id=str(owner.person_id),
            merchant_id=str(merchant),
            roles=["viewer"],
        )
        assert reason(leave) == "LAST_OWNER"


def test_an_owner_whom_an_act_disabled_lets_the_last_owner_not_go(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    merchant = new_id()
    owner, other = (member(deps, new_email(), merchant, "owner") for _ in range(2))
    people.disable_person(deps, person_id=str(other.person_id))
    execute(deps, "UPDATE people SET disabled_at = NULL WHERE id = :id", id=other.person_id)
    with owner.acting():
        leave = partial(
            people.set_roles,
            deps,
            person_id=str(owner.person_id),
            merchant_id=str(merchant),
            roles=["viewer"],
        )
        assert reason(leave) == "LAST_OWNER"


def test_a_passkey_that_sql_wrote_lets_the_last_factor_not_go(deps: Deps, ada: Someone) -> None:
    columns = "(id, person_id, rp_id, credential_id, credential, sign_count, name, created_at, seal)"
    execute(
        deps,
        f"INSERT INTO passkeys {columns} VALUES (:new, :id, :rp, 'y', 'y', 0, 'x', now(), sha256('a'))",
        new=new_id(),
        id=ada.person_id,
        rp=DESK_URL.partition("://")[2].partition(":")[0],
    )
    with ada.acting():
        assert reason(lambda: factors.remove_totp(deps)) == "LAST_FACTOR"


def test_a_link_that_two_made_stays_shut_after_its_requester_was_disabled(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    ann, ben = (operator(deps, new_email(), "admin") for _ in range(2))
    for each in (ann, ben):
        each.add_password_and_totp()
    with ann.acting():
        made = invite_staff(deps, new_email(), "admin")
    people.disable_person(deps, person_id=str(ann.person_id))
    execute(deps, "UPDATE invitations SET withdrawn_at = NULL WHERE id = :id", id=made.invitation.id)
    assert reason(lambda: accept(deps, made)) == "INVITATION_INVALID"


def test_an_act_that_sql_wrote_ends_no_link(deps: Deps, ada: Someone, new_email: Callable[[], str]) -> None:
    made = invite_staff(deps, new_email(), "viewer")
    columns = "actor_kind, actor_name, surface, on_behalf_of, note, request_id, refused, seal"
    execute(
        deps,
        f"INSERT INTO acts (id, at, act, object, changes, {columns}) SELECT :id, now() + interval '1 second',"
        f" 'person.invite', 'invitation:x', jsonb_build_array(jsonb_build_array('email', '', CAST(:email AS text))),"
        f" {columns} FROM acts ORDER BY id LIMIT 1",
        id=new_id(),
        email=made.invitation.email,
    )
    assert accept(deps, made)


def test_a_secret_or_a_passkey_that_nothing_opens_refuses_and_does_not_fail(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    device = Authenticator(DESK_URL)
    register(ada, device)
    execute(deps, "UPDATE totps SET sealed_secret = 'x' WHERE person_id = :id", id=ada.person_id)
    columns = "person_id, rp_id, name, sign_count, created_at"
    execute(
        deps,
        f"INSERT INTO passkeys (id, credential_id, credential, seal, {columns})"
        f" SELECT :new, 'x', 'x', seal, {columns} FROM passkeys WHERE person_id = :id",
        new=new_id(),
        id=ada.person_id,
    )
    clock.advance(minutes=2)
    assert reason(ada.sign_in) == "SIGN_IN_REFUSED"
    register(ada, Authenticator(DESK_URL))  # the browser is told which passkeys there are
    assert sign_in(deps, device)


def test_a_person_whom_sql_disabled_before_is_disabled_by_an_act(deps: Deps, ada: Someone) -> None:
    execute(deps, "UPDATE people SET disabled_at = now() WHERE id = :id", id=ada.person_id)
    people.disable_person(deps, person_id=str(ada.person_id))
    execute(deps, "UPDATE people SET disabled_at = NULL WHERE id = :id", id=ada.person_id)
    assert reason(lambda: authorize(deps, ada.token)) == "SESSION_INVALID"
    assert any("state" in each for each in problems(deps))


def test_a_copied_passkey_that_sql_unmarks_stays_out(deps: Deps, ada: Someone) -> None:
    device = Authenticator(DESK_URL)
    register(ada, device)
    copy = replace(device)
    for _ in range(2):
        sign_in(deps, device)
    assert reason(lambda: sign_in(deps, copy)) == "SIGN_IN_REFUSED"
    execute(
        deps, "UPDATE passkeys SET cloned_at = NULL, sign_count = 0 WHERE person_id = :id", id=ada.person_id
    )
    assert reason(lambda: sign_in(deps, device)) == "SIGN_IN_REFUSED"
    assert any("cloned_at" in each for each in problems(deps))


def test_a_link_that_was_replaced_or_whose_inviter_is_disabled_opens_nothing_again(
    deps: Deps, eve: Someone, ada: Someone, new_email: Callable[[], str]
) -> None:
    replaced = invite_staff(deps, ada.email, "treasury")
    invite_staff(deps, ada.email, "viewer")
    ann = operator(deps, new_email(), "admin")
    with ann.acting():
        hers = invitations.invite_person(
            deps, email=new_email(), name="Eve", roles=["treasury"], merchant_id="", member_roles=[]
        )
    people.disable_person(deps, person_id=str(ann.person_id))
    for each in (replaced, hers):
        execute(deps, "UPDATE invitations SET withdrawn_at = NULL WHERE id = :id", id=each.invitation.id)
        assert reason(lambda made=each: accept(deps, made)) == "INVITATION_INVALID"  # type: ignore[misc]


def test_a_link_made_by_command_for_a_person_who_is_disabled_since_opens_nothing_again(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    ann = operator(deps, new_email(), "admin")
    with actors.acting(replace(CID, on_behalf_of=ann.email.upper())):
        made = invite_staff(deps, new_email(), "treasury")
    people.disable_person(deps, person_id=str(ann.person_id))
    execute(deps, "UPDATE invitations SET withdrawn_at = NULL WHERE id = :id", id=made.invitation.id)
    assert reason(lambda: accept(deps, made)) == "INVITATION_INVALID"


def test_a_link_stays_when_its_inviter_loses_a_role_elsewhere(
    deps: Deps, ada: Someone, new_email: Callable[[], str]
) -> None:
    one, other = new_id(), new_id()
    owner = member(deps, new_email(), one, "owner")
    member(deps, new_email(), other, "owner")
    accept(deps, invite_member(deps, owner.email, other, "owner"), Surface.DASHBOARD)
    with actors.acting(replace(owner.actor, merchant_id=one)):
        made = invite_member(mailing_to_nobody(deps), new_email(), one)
    people.set_roles(deps, person_id=str(owner.person_id), roles=["viewer"], merchant_id=str(other))
    assert accept(deps, mailed(deps, made), Surface.DASHBOARD)


def test_a_link_starts_no_session_of_a_person_whose_factors_sql_took_away(deps: Deps, ada: Someone) -> None:
    made = invite_staff(deps, ada.email, "treasury")
    execute(deps, "DELETE FROM totps WHERE person_id = :id", id=ada.person_id)
    assert accept(deps, made) == ""


# -- roles and accounts that a link must not give


def test_a_recovery_link_gives_no_role_that_sql_wrote_meanwhile(
    deps: Deps, eve: Someone, new_email: Callable[[], str]
) -> None:
    shop = new_id()
    val = member(deps, new_email(), shop, "viewer")
    write = "UPDATE people SET roles = CAST(:roles AS text[]) WHERE id = :id"
    write_member = "UPDATE memberships SET roles = CAST(:roles AS text[]) WHERE person_id = :id"
    execute(deps, write, id=eve.person_id, roles="{viewer,treasury}")
    execute(deps, write_member, id=val.person_id, roles="{owner}")
    made = invitations.recover_person(deps, person_id=str(eve.person_id), merchant_id="")
    of_member = invitations.recover_person(deps, person_id=str(val.person_id), merchant_id=str(shop))
    assert authorize(deps, accept(deps, made)).person.roles == ["viewer"]
    session = sessions.authorize(
        deps, session_token=accept(deps, of_member, Surface.DASHBOARD), surface=Surface.DASHBOARD
    )
    assert session.person.roles_at(shop) == ["viewer"]
    assert [each for each in problems(deps) if str(eve.person_id) in each or str(val.person_id) in each] == []


def test_a_disabled_person_whom_sql_enables_does_nothing(
    deps: Deps, eve: Someone, clock: ManualClock
) -> None:
    people.disable_person(deps, person_id=str(eve.person_id))
    execute(deps, "UPDATE people SET disabled_at = NULL WHERE id = :id", id=eve.person_id)
    clock.advance(minutes=1)
    later = replace(deps, decided_roles=KnownRoles(deps.db))  # what was compared is remembered for seconds
    token = eve.sign_in()
    assert reason(lambda: authorize(later, token)) == "SESSION_INVALID"


def test_a_link_from_before_a_person_became_an_admin_opens_nothing_again(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    email = new_email()
    before = invite_member(deps, email, new_id())
    of_admin = invite_staff(deps, email, "admin")
    execute(deps, "UPDATE invitations SET withdrawn_at = NULL WHERE id = :id", id=before.invitation.id)
    assert reason(lambda: accept(deps, before, Surface.DASHBOARD)) == "INVITATION_INVALID"
    after = invite_member(deps, email, new_id())
    carl = accept(deps, of_admin)
    execute(deps, "UPDATE invitations SET withdrawn_at = NULL WHERE id = :id", id=after.invitation.id)
    assert reason(lambda: accept(deps, after, Surface.DASHBOARD)) == "INVITATION_INVALID"
    assert authorize(deps, carl).person.roles == ["admin"]


def test_who_opened_another_link_first_does_not_share_the_account_of_an_admin(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    email, other = new_email(), new_email()
    of_admin, of_other = invite_staff(deps, email, "admin"), invite_staff(deps, other, "admin")
    for address in (email, other):
        opened = member(deps, address, new_id())
        if address == email:
            opened.add_password_and_totp()
    assert reason(lambda: accept(deps, of_admin)) == "INVITATION_INVALID", "somebody has added factors"
    assert authorize(deps, accept(deps, of_other)).person.roles == ["admin"]
    assert reason(lambda: authorize(deps, opened.token, Surface.DASHBOARD)) == "SESSION_INVALID"

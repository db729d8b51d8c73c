"""The books of people: what a person with the database's password adds to people, sessions and factors is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from kit.base.ids import new_id
from kit.db.books import check_page
from services.identity.operations import factors, people, sessions
from services.identity.store.books import parts
from services.identity.wiring import Deps
from tests.identity.people.authenticator import Authenticator
from tests.identity.people.conftest import DESK_URL
from tests.identity.people.house import (
    PASSWORD,
    Someone,
    accept,
    invite_member,
    invite_staff,
    member,
    operator,
)
from tests.identity.people.test_passkeys import register
from tests.support.clock import ManualClock


def problems(deps: Deps) -> list[str]:
    found = []
    for part in parts(deps.key_vault):
        after, more = "", True
        while more:
            page = check_page(deps.db, part, after=after, limit=1000)
            found += [f"{each.subject}: {each.field} {each.found}; due: {each.due}" for each in page.problems]
            after, more = page.last, page.more
    return found


def execute(deps: Deps, statement: str, **values: object) -> None:
    """With the rights of the service's role, past its operations."""
    with deps.db.transaction() as tx:
        assert tx.execute(text(statement), values).rowcount == 1  # type: ignore[attr-defined]  # that of a DML statement


@pytest.fixture
def ada(deps: Deps, new_email: Callable[[], str]) -> Someone:
    ada = operator(deps, new_email(), "desk", "prices")
    register(ada, Authenticator(DESK_URL))
    return ada


def test_all_that_people_do_leaves_right_books(
    deps: Deps, ada: Someone, new_email: Callable[[], str], clock: ManualClock
) -> None:
    id = str(ada.person_id)
    ada.add_password_and_totp()
    clock.advance(minutes=1)
    ada.sign_in()
    with ada.acting():
        factors.remove_totp(deps)
        factors.set_password(deps, password=f"{PASSWORD} again")
        sessions.end_other_sessions(deps)
    people.set_roles(deps, person_id=id, roles=["viewer"], merchant_id="")
    accept(deps, invite_staff(deps, ada.email, "treasury"))
    people.set_roles(deps, person_id=id, roles=["treasury", "prices"], merchant_id="")
    people.disable_person(deps, person_id=id)
    people.enable_person(deps, person_id=id)
    one, other = new_id(), new_id()
    member(deps, new_email(), one, "owner")
    bob = member(deps, new_email(), one, "finance", "developer")
    accept(deps, invite_member(deps, bob.email, other, "viewer"), bob.surface)
    people.set_roles(deps, person_id=str(bob.person_id), roles=[], merchant_id=str(one))
    people.set_roles(deps, person_id=id, roles=[], merchant_id="")
    assert problems(deps) == []


def test_a_role_that_was_given_past_the_service_is_named(deps: Deps, ada: Someone) -> None:
    id = ada.person_id
    execute(deps, "UPDATE people SET roles = '{admin}' WHERE id = :id", id=id)
    assert problems(deps) == [f"person {id}: roles admin; due: desk, prices, by the last act"]
    execute(deps, "UPDATE people SET roles = '{desk,prices}' WHERE id = :id", id=id)
    assert problems(deps) == []


def test_a_member_that_was_added_or_removed_past_the_service_is_named(
    deps: Deps, ada: Someone, new_email: Callable[[], str]
) -> None:
    merchant = new_id()
    bob = member(deps, new_email(), merchant, "viewer")
    of = {"person": ada.person_id, "merchant": merchant}
    add = "INSERT INTO memberships VALUES (:person, :merchant, '{owner}', now())"
    remove = "DELETE FROM memberships WHERE person_id = :person AND merchant_id = :merchant"
    execute(deps, add, **of)
    execute(deps, remove, person=bob.person_id, merchant=merchant)
    assert sorted(problems(deps)) == sorted(
        [
            f"person {ada.person_id}: roles at merchant {merchant} owner; due: none, by the last act",
            f"person {bob.person_id}: roles at merchant {merchant} none; due: viewer, by the last act",
        ]
    )
    execute(deps, remove, **of)
    execute(deps, add.replace("owner", "viewer"), person=bob.person_id, merchant=merchant)
    assert problems(deps) == []


def test_a_person_that_was_enabled_past_the_service_is_named(deps: Deps, ada: Someone) -> None:
    id = ada.person_id
    people.disable_person(deps, person_id=str(id))
    execute(deps, "UPDATE people SET disabled_at = NULL WHERE id = :id", id=id)
    assert problems(deps) == [f"person {id}: state enabled; due: disabled"]
    people.disable_person(deps, person_id=str(id))
    assert problems(deps) == []


def test_a_factor_or_a_session_that_was_made_past_the_service_is_named(
    deps: Deps, ada: Someone, new_email: Callable[[], str]
) -> None:
    eve = operator(deps, new_email())
    passkey, session, ended = new_id(), new_id(), ada.actor.session_id
    execute(deps, "UPDATE people SET password_hash = 'x' WHERE id = :id", id=eve.person_id)
    execute(
        deps,
        "INSERT INTO passkeys (id, person_id, rp_id, credential_id, credential, sign_count, name, created_at, seal)"
        " SELECT :new, person_id, rp_id, 'another', credential, 0, name, created_at, seal"
        " FROM passkeys WHERE person_id = :of LIMIT 1",
        new=passkey,
        of=ada.person_id,
    )
    execute(
        deps,
        "INSERT INTO sessions (id, person_id, token_hash, surface, way, address, user_agent, started_at, last_seen_at,"
        " seal) VALUES (:new, :of, decode(repeat('ab', 32), 'hex'), 'desk', 'passkey', '', '', now(), now(), '')",
        new=session,
        of=ada.person_id,
    )
    sessions.sign_out(deps, session_token=ada.token)
    execute(deps, "UPDATE sessions SET ended_at = NULL WHERE id = :id", id=ended)
    unsealed = "written past the service; due: one with the seal of identity"
    assert problems(deps) == [
        f"person {eve.person_id}: password set; due: added by the person: an act factor.add",
        f"person {eve.person_id}: password {unsealed}",
        f"passkey {passkey}: passkey of person {ada.person_id}; due: added by that person: an act factor.add",
        f"passkey {passkey}: passkey {unsealed}",
        f"session {session}: session of person {ada.person_id}; due: started by that person: an act session.start",
        f"session {ended}: session live; due: ended",
        f"session {session}: session {unsealed}",
    ]


def test_a_factor_that_was_removed_past_the_service_is_named(deps: Deps, ada: Someone) -> None:
    id = ada.person_id
    ada.add_password_and_totp()
    ada.recovery_codes()
    with deps.db.transaction() as tx:
        passkey = tx.scalar(text("SELECT id FROM passkeys WHERE person_id = :id"), {"id": id})
    unset = "password_hash = NULL, password_set_at = NULL, password_seal = NULL"
    execute(deps, f"UPDATE people SET {unset} WHERE id = :id", id=id)
    execute(deps, "DELETE FROM totps WHERE person_id = :id", id=id)
    execute(deps, "DELETE FROM passkeys WHERE person_id = :id", id=id)
    one = "SELECT code_hash FROM recovery_codes WHERE person_id = :id LIMIT 1"
    execute(deps, f"DELETE FROM recovery_codes WHERE person_id = :id AND code_hash = ({one})", id=id)
    there = "there: its last act is factor.add"
    found = [each for each in problems(deps) if str(id) in each or str(passkey) in each]
    assert sorted(found) == sorted(
        [
            *(
                f"person {id}: {each} missing; due: {there}"
                for each in ("password", "TOTP", "recovery codes")
            ),
            f"passkey {passkey}: row deleted; due: {there}",
        ]
    )

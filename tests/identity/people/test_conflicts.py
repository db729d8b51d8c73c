"""Transactions that lose a deadlock run again: concurrent calls have an answer, and none is INTERNAL or unavailable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg2
import pytest

from deploy.local.waiting import wait_until
from kit.base.ids import new_id
from services.identity.operations import factors, invitations, people, sessions
from services.identity.store import people as stored_people
from services.identity.wiring import Deps
from tests.identity.people.authenticator import Authenticator
from tests.identity.people.conftest import DESK_URL
from tests.identity.people.house import PASSWORD, Someone, accept, authorize, invite_staff, operator, refused
from tests.identity.people.test_passkeys import is_locked, register, sign_in, step_up
from tests.support.clock import ManualClock
from tests.support.databases import owner_url

BREAK = """
CREATE SEQUENCE conflicts;
CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF nextval('conflicts') = 1 THEN RAISE EXCEPTION 'lost' USING ERRCODE = '40P01'; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER conflict AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION conflict();
"""
MEND = "DROP TRIGGER conflict ON {table}; DROP FUNCTION conflict; DROP SEQUENCE conflicts;"


@contextmanager
def losing_once(deps: Deps, table: str) -> Iterator[None]:
    """The first change of the table loses a deadlock."""
    with psycopg2.connect(owner_url(deps.settings.database_url)) as owner, owner.cursor() as cursor:
        cursor.execute(BREAK.format(table=table))
        owner.commit()
        try:
            yield
            cursor.execute("SELECT is_called AND last_value > 1 FROM conflicts")
            assert cursor.fetchall() == [(True,)], f"nothing changed {table} after the conflict"
        finally:
            cursor.execute(MEND.format(table=table))


@pytest.fixture
def ada(deps: Deps, new_email: Callable[[], str], clock: ManualClock) -> Someone:
    someone = operator(deps, new_email())
    someone.add_password_and_totp()
    clock.advance(minutes=2)
    return someone


def test_a_guess_that_loses_a_deadlock_is_counted_again(deps: Deps, ada: Someone) -> None:
    with losing_once(deps, "guesses"), refused("SIGN_IN_REFUSED"):
        ada.sign_in(password="wrong")


def test_sign_ins_and_step_ups_run_again(deps: Deps, ada: Someone, clock: ManualClock) -> None:
    with losing_once(deps, "sessions"):
        ada.token = ada.sign_in()
    clock.advance(seconds=30)
    with losing_once(deps, "totps"):
        ada.token = ada.step_up()
    device = Authenticator(DESK_URL)
    register(ada, device)
    with losing_once(deps, "passkeys"):
        ada.token = sign_in(deps, device)
    with losing_once(deps, "sessions"):
        ada.token = step_up(ada, device)


def test_changes_of_factors_run_again(deps: Deps, ada: Someone, clock: ManualClock) -> None:
    ada.token = ada.sign_in()
    with losing_once(deps, "people"), ada.acting():
        factors.set_password(deps, password=PASSWORD)
    with losing_once(deps, "totps"), ada.acting():
        ada.secret, _ = factors.start_totp(deps)
    with losing_once(deps, "totps"), ada.acting():
        factors.confirm_totp(deps, code=ada.code())
    with losing_once(deps, "recovery_codes"):
        ada.recovery_codes()
    with losing_once(deps, "passkeys"):
        id = register(ada, Authenticator(DESK_URL))
    with losing_once(deps, "totps"), ada.acting():
        factors.remove_totp(deps)
    ada.add_password_and_totp()
    with losing_once(deps, "passkeys"), ada.acting():
        factors.remove_passkey(deps, passkey_id=id)


def test_decisions_about_people_run_again(deps: Deps, ada: Someone) -> None:
    id = str(ada.person_id)
    with losing_once(deps, "people"):
        people.set_roles(deps, person_id=id, roles=["viewer"], merchant_id="")
    with losing_once(deps, "sessions"):
        people.disable_person(deps, person_id=id)
    with losing_once(deps, "people"):
        people.enable_person(deps, person_id=id)


def test_links_are_made_and_opened_again(deps: Deps, new_email: Callable[[], str]) -> None:
    with losing_once(deps, "invitations"):
        made = invite_staff(deps, new_email())
    with losing_once(deps, "people"):
        assert accept(deps, made)
    with losing_once(deps, "invitations"):
        made = invite_staff(deps, new_email())
    with losing_once(deps, "invitations"):
        invitations.withdraw_invitation(deps, invitation_id=str(made.invitation.id))


def test_ending_the_other_sessions_runs_again(deps: Deps, ada: Someone) -> None:
    other = ada.sign_in()
    with losing_once(deps, "sessions"), ada.acting():
        assert sessions.end_other_sessions(deps) == 1
    with refused("SESSION_INVALID"):
        authorize(deps, other)


def test_a_request_of_a_session_and_its_end_do_not_deadlock(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    """The request writes the last use of both the session and the person; the decision ends the person's sessions."""
    clock.advance(minutes=1)
    with deps.db.transaction() as tx, ThreadPoolExecutor(1) as threads:
        stored_people.lock_person(tx, ada.person_id)
        try:
            request = threads.submit(authorize, deps, ada.token)
            wait_until(lambda: is_locked(deps), "the request to wait", timeout_seconds=30)
            sessions.end_all(deps, tx, ada.person_id, but=new_id())
        finally:
            tx.commit()
    assert request.result().person.email == ada.email

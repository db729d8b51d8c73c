"""The surfaces take turns in each kind of calls: those of one leave places to the other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import text

from deploy.local.waiting import wait_until
from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1 import accounts_pb2_grpc as pb_grpc
from kit.base.ids import new_id
from kit.db.database import Database
from kit.rpc.errors import Refused
from kit.rpc.slots import Slots
from services.identity.domain.people import Surface
from services.identity.rpc import SLOTS
from services.identity.wiring import Deps
from tests.identity.people.conftest import served
from tests.identity.people.house import BROWSER, accept, invite_member, invite_staff, token_of

PATIENCE_SECONDS = 60
STRANGERS = 60
"""More than the kind has places, and as many as a sign-in page may get in a second."""
PLACES, REQUESTS = 64, 80
"""The requests of one surface that may be in work and wait, and more than that."""
DASHBOARD, DESK = pb.SURFACE_DASHBOARD, pb.SURFACE_DESK


HOLD = "SET LOCAL idle_in_transaction_session_timeout = 0"
"""The transaction keeps its locks however long the machine stands still."""


@pytest.fixture
def patient(deps: Deps) -> Iterator[Deps]:
    """The service, with statements that wait for a lock as long as a busy machine may need."""
    settings = deps.settings
    db = Database(
        settings.database_url,
        name="patient",
        seals=settings.seals,
        pool_size=settings.connections,
        statement_timeout_seconds=PATIENCE_SECONDS,
        lock_timeout_seconds=PATIENCE_SECONDS,
    )
    yield replace(deps, db=db)
    db.dispose()


def patient_slots() -> list[Slots]:
    """The kinds of calls, with turns that last as long as a busy machine may need."""
    return [
        each
        if each.share is None
        else replace(each, share=replace(each.share, wait_seconds=PATIENCE_SECONDS))
        for each in SLOTS
    ]


def waiting_for_a_lock(deps: Deps) -> int:
    query = text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'patient'"
    )
    with deps.db.transaction() as tx:
        return int(tx.execute(query).scalar_one())


def reason_of(call: Callable[[], object]) -> str:
    try:
        call()
    except Refused as refused:
        return refused.reason
    return ""


@pytest.mark.parametrize(("flooded", "free"), [(DASHBOARD, DESK), (DESK, DASHBOARD)])
def test_sign_ins_that_hang_on_one_surface_leave_places_to_the_other(
    deps: Deps, patient: Deps, flooded: pb.Surface.ValueType, free: pb.Surface.ValueType
) -> None:
    subject = f"{Surface.DASHBOARD.value if flooded == DASHBOARD else Surface.DESK.value} {BROWSER.network}"
    with served(patient) as channel, deps.db.transaction() as tx:
        tx.execute(text(HOLD))
        stub = pb_grpc.SignInServiceStub(channel)

        def sign_in(surface: pb.Surface.ValueType) -> str:
            request = pb.SignInByPasswordRequest(
                email="stranger@example.com",
                password="wrong",
                code="000000",
                surface=surface,
                client=pb.Client(address=BROWSER.address, network=BROWSER.network),
            )
            return reason_of(lambda: stub.SignInByPassword(request, timeout=PATIENCE_SECONDS))

        counter = "INSERT INTO guesses VALUES ('network', :subject, 0, now(), now())"
        tx.execute(text(counter), {"subject": subject})
        with ThreadPoolExecutor(STRANGERS) as threads:
            strangers = [threads.submit(sign_in, flooded) for _ in range(STRANGERS)]
            wait_until(lambda: waiting_for_a_lock(deps) > 0, "a sign-in to hang", timeout_seconds=30)
            wait_until(
                lambda: any(each.done() for each in strangers), "sign-ins to be refused", timeout_seconds=30
            )
            assert sign_in(free) == "SIGN_IN_REFUSED"
            assert {each.result() for each in strangers if each.done()} == {"RATE_LIMITED"}
            tx.rollback()


def test_strangers_of_many_networks_who_guess_a_person_take_no_place_of_that_person(
    deps: Deps, patient: Deps, new_email: Callable[[], str]
) -> None:
    """Nine networks locked everybody out: each had a call that waited, and the line had eight places."""
    email = new_email()
    accept(deps, invite_member(deps, email, new_id()), Surface.DASHBOARD)
    with served(patient) as channel, deps.db.transaction() as tx:
        tx.execute(text(HOLD))
        stub = pb_grpc.SignInServiceStub(channel)

        def sign_in(client: pb.Client) -> str:
            asked = pb.KnowsNetworkRequest(email=email, surface=DASHBOARD, client=client)
            request = pb.SignInByPasswordRequest(
                email=email,
                password="wrong",
                code="000000",
                surface=DASHBOARD,
                client=client,
                known_network=stub.KnowsNetwork(asked, timeout=PATIENCE_SECONDS).known,
            )
            return reason_of(lambda: stub.SignInByPassword(request, timeout=PATIENCE_SECONDS))

        counter = "INSERT INTO guesses VALUES ('person', :subject, 0, now(), now())"
        tx.execute(text(counter), {"subject": f"dashboard {hashlib.sha256(email.encode()).hexdigest()}"})
        with ThreadPoolExecutor(16) as threads:
            strangers = [
                threads.submit(sign_in, pb.Client(address=f"198.51.{n}.9", network=f"198.51.{n}.0/24"))
                for n in range(16)
            ]
            wait_until(
                lambda: sum(each.done() for each in strangers) >= 8,
                "the line of strangers to be full",
                timeout_seconds=30,
            )
            own = pb.Client(address="192.0.2.200", network=BROWSER.network)
            assert sign_in(own) == "SIGN_IN_REFUSED", "the password was compared"
            assert {each.result() for each in strangers if each.done()} == {"DB_UNAVAILABLE"}
            tx.rollback()


def test_links_that_hang_on_the_dashboard_leave_places_to_the_desk(
    deps: Deps, patient: Deps, new_email: Callable[[], str]
) -> None:
    hangs = invite_member(deps, new_email(), new_id())
    opens = invite_staff(deps, new_email())
    with served(patient) as channel, deps.db.transaction() as tx:
        tx.execute(text(HOLD))
        stub = pb_grpc.SignInServiceStub(channel)

        def accept(token: str, surface: pb.Surface.ValueType) -> str:
            request = pb.AcceptInvitationRequest(token=token, surface=surface)
            return reason_of(lambda: stub.AcceptInvitation(request, timeout=PATIENCE_SECONDS))

        tx.execute(text("SELECT FROM invitations WHERE id = :id FOR UPDATE"), {"id": hangs.invitation.id})
        with ThreadPoolExecutor(STRANGERS) as threads:
            strangers = [threads.submit(accept, token_of(hangs), DASHBOARD) for _ in range(STRANGERS)]
            wait_until(
                lambda: any(each.done() for each in strangers), "links to be refused", timeout_seconds=30
            )
            assert accept(token_of(opens), DESK) == ""
            tx.rollback()


def test_requests_of_one_session_leave_places_to_the_other_sessions_of_its_surface(
    deps: Deps, patient: Deps, new_email: Callable[[], str]
) -> None:
    flooding, other = (
        accept(deps, invite_member(deps, new_email(), new_id()), Surface.DASHBOARD) for _ in range(2)
    )
    with served(patient, patient_slots()) as channel, deps.db.transaction() as tx:
        tx.execute(text(HOLD))
        stub = pb_grpc.SignInServiceStub(channel)

        def authorize(token: str) -> str:
            request = pb.AuthorizeRequest(
                session_token=token,
                surface=DASHBOARD,
                client=pb.Client(address=BROWSER.address, network=BROWSER.network),
            )
            return reason_of(lambda: stub.Authorize(request, timeout=PATIENCE_SECONDS))

        tx.execute(text("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE"))
        with ThreadPoolExecutor(REQUESTS + 1) as threads:
            flood = [threads.submit(authorize, flooding) for _ in range(REQUESTS)]
            wait_until(
                lambda: sum(each.done() for each in flood) == REQUESTS - PLACES,
                "the rest to wait",
                timeout_seconds=30,
            )
            refused = [each for each in flood if each.done()]
            victim = threads.submit(authorize, other)
            wait_until(
                lambda: victim.done() or sum(each.done() for each in flood) > len(refused),
                "a request of the session to lose its place",
                timeout_seconds=30,
            )
            tx.rollback()
            assert victim.result() == ""
        assert {each.result() for each in flood} == {"", "RATE_LIMITED"}

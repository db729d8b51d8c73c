"""People, roles and sessions: what is changed holds from the next request."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import UUID

import pytest
from sqlalchemy import text

from kit.base import actors
from kit.base.actors import MEMBER_ROLES, STAFF_ROLES
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from services.identity.domain.people import Surface
from services.identity.operations import accepting, people, sessions
from services.identity.store import people as stored
from services.identity.wiring import Deps
from tests.identity.people.house import (
    BROWSER,
    Someone,
    accept,
    acts_of,
    approvals_of,
    authorize,
    invite_member,
    invite_staff,
    member,
    operator,
    owner_of,
    refused,
    token_of,
)
from tests.support.acting import ANN, BEN, requested
from tests.support.clock import ManualClock


@pytest.fixture
def no_admins(deps: Deps) -> None:
    with deps.db.transaction() as tx:
        tx.execute(text("UPDATE people SET roles = '{viewer}' WHERE 'admin' = ANY (roles)"))


def test_roles_that_change_while_signed_in_hold_from_the_next_request(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    ada = operator(deps, new_email(), "desk")
    people.set_roles(deps, person_id=str(ada.person_id), roles=["treasury", "viewer"], merchant_id="")
    assert ada.actor.roles == {"treasury", "viewer"}
    assert acts_of(deps, f"person:{ada.person_id}")[-1] == ("person.roles", "eve@laptop")
    people.set_roles(deps, person_id=str(ada.person_id), roles=[], merchant_id="")
    with refused("SESSION_INVALID"):
        authorize(deps, ada.token)


def test_the_database_takes_each_role(deps: Deps, new_email: Callable[[], str]) -> None:
    """Its checks name the roles too; a migration changes them (CONTRIBUTING.md#add-a-role)."""
    person_id, merchant_id = operator(deps, new_email()).person_id, new_id()
    with deps.db.transaction() as tx:
        stored.set_staff_roles(tx, person_id, STAFF_ROLES)
        stored.set_member_roles(tx, person_id, merchant_id, MEMBER_ROLES, at=deps.clock.now())
        found = stored.person(tx, person_id)
    assert found is not None
    assert (set(found.roles), set(found.roles_at(merchant_id))) == (set(STAFF_ROLES), set(MEMBER_ROLES))


def test_a_disabled_person_is_out_at_once_and_back_only_with_a_new_session(
    deps: Deps, new_email: Callable[[], str], clock: ManualClock
) -> None:
    ada = operator(deps, new_email())
    ada.add_password_and_totp()
    clock.advance(minutes=1)
    assert people.disable_person(deps, person_id=str(ada.person_id)).disabled_at == clock.now()
    with refused("SESSION_INVALID"):
        authorize(deps, ada.token)
    with refused("SIGN_IN_REFUSED"):
        ada.sign_in()
    people.enable_person(deps, person_id=str(ada.person_id))
    with refused("SESSION_INVALID"):
        authorize(deps, ada.token)
    clock.advance(minutes=1)
    ada.sign_in()
    done = [act for act, _ in acts_of(deps, f"person:{ada.person_id}")]
    assert done.count("person.disable") == done.count("person.enable") == 1


def test_a_link_to_a_disabled_person_opens_nothing(deps: Deps, new_email: Callable[[], str]) -> None:
    merchant_id = new_id()
    bob = member(deps, new_email(), merchant_id, "owner")
    waiting = invite_member(deps, bob.email, new_id())
    people.disable_person(deps, person_id=str(bob.person_id))
    with refused("INVITATION_INVALID"):
        accepting.accept_invitation(deps, token=token_of(waiting), surface=Surface.DASHBOARD, client=BROWSER)


@pytest.mark.usefixtures("no_admins")
def test_the_last_admin_stays(deps: Deps, new_email: Callable[[], str]) -> None:
    first, second = (operator(deps, new_email(), "admin") for _ in range(2))
    people.disable_person(deps, person_id=str(first.person_id))
    with refused("LAST_ADMIN"):
        people.disable_person(deps, person_id=str(second.person_id))
    with refused("LAST_ADMIN"):
        people.set_roles(deps, person_id=str(second.person_id), roles=["desk"], merchant_id="")
    authorize(deps, second.token)
    enable = partial(people.enable_person, deps, person_id=str(first.person_id))
    approvals_of(deps).approve(BEN, requested(ANN, enable))
    people.set_roles(deps, person_id=str(second.person_id), roles=["desk"], merchant_id="")


@pytest.mark.usefixtures("no_admins")
def test_two_admins_who_step_down_at_once_leave_one(deps: Deps, new_email: Callable[[], str]) -> None:
    ids = [str(operator(deps, new_email(), "admin").person_id) for _ in range(2)]
    operator_at_the_command_line = actors.current()

    def step_down(person_id: str) -> str:
        actors.bind(operator_at_the_command_line)
        try:
            people.set_roles(deps, person_id=person_id, roles=["desk"], merchant_id="")
        except Refused as error:
            return error.reason
        return "done"

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(step_down, ids)) == ["LAST_ADMIN", "done"]


def test_the_last_owner_of_a_merchant_stays(deps: Deps, new_email: Callable[[], str]) -> None:
    merchant_id = new_id()
    eve, bob = (member(deps, new_email(), merchant_id, role) for role in ("owner", "viewer"))

    def set_roles(someone: Someone, *roles: str) -> None:
        with actors.acting(owner_of(merchant_id)):
            people.set_roles(
                deps, person_id=str(someone.person_id), roles=roles, merchant_id=str(merchant_id)
            )

    for roles in ((), ("viewer",)):
        with refused("LAST_OWNER"):
            set_roles(eve, *roles)
    set_roles(bob, "owner", "finance")
    set_roles(eve)
    with refused("SESSION_INVALID"):
        authorize(deps, eve.token, Surface.DASHBOARD)
    assert bob.actor.roles == {"owner", "finance"}


def test_links_from_before_a_decision_about_roles_end(deps: Deps, new_email: Callable[[], str]) -> None:
    merchant_id = new_id()
    bob = member(deps, new_email(), merchant_id, "finance")
    ada = operator(deps, new_email(), "desk")
    of_bob = invite_member(deps, bob.email, merchant_id, "owner")
    of_ada = invite_staff(deps, ada.email, "treasury")
    people.set_roles(deps, person_id=str(bob.person_id), roles=[], merchant_id=str(merchant_id))
    people.set_roles(deps, person_id=str(ada.person_id), roles=["viewer"], merchant_id="")
    for made, surface in ((of_bob, Surface.DASHBOARD), (of_ada, Surface.DESK)):
        with refused("INVITATION_INVALID"):
            accept(deps, made, surface)


def test_links_to_and_by_a_disabled_person_end(deps: Deps, new_email: Callable[[], str]) -> None:
    ada = operator(deps, new_email(), "admin")
    operator(deps, new_email(), "admin")
    to_ada = invite_staff(deps, ada.email, "prices")
    with actors.acting(ada.actor):
        by_ada = invite_staff(deps, new_email(), "desk")
    people.disable_person(deps, person_id=str(ada.person_id))
    for made, surface in ((by_ada, Surface.DESK), (to_ada, Surface.DESK)):
        with refused("INVITATION_INVALID"):
            accept(deps, made, surface)


def test_an_owner_changes_members_of_its_own_merchant_only(deps: Deps, new_email: Callable[[], str]) -> None:
    merchant_id, other = new_id(), new_id()
    bob = member(deps, new_email(), other, "owner")
    ada = operator(deps, new_email(), "desk")
    with actors.acting(owner_of(merchant_id)):
        for someone in (bob, ada):
            for merchant in (str(other), ""):
                with refused("MERCHANT_NOT_FOUND"):
                    people.set_roles(
                        deps, person_id=str(someone.person_id), roles=["owner"], merchant_id=merchant
                    )
            with refused("PERSON_NOT_FOUND"):
                people.set_roles(
                    deps, person_id=str(someone.person_id), roles=["owner"], merchant_id=str(merchant_id)
                )


def test_an_owner_sees_of_a_member_what_concerns_its_merchant(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    merchant_id, other = new_id(), new_id()
    bob = member(deps, new_email(), merchant_id, "viewer")
    member(deps, bob.email, other, "owner")
    operator(deps, bob.email, "auditor")
    with actors.acting(owner_of(merchant_id)):
        (listed,) = people.list_people(deps, merchant_id=str(merchant_id), after_email="", limit=0)
        assert listed == people.get_person(deps, person=bob.email)
    assert listed.roles == ()
    assert [each.merchant_id for each in listed.memberships] == [merchant_id]
    assert people.get_person(deps, person=bob.email).roles == ["auditor"]


def test_people_are_listed_page_by_page(deps: Deps, new_email: Callable[[], str]) -> None:
    merchant_id = new_id()
    emails = sorted(member(deps, new_email(), merchant_id).email for _ in range(5))
    listed: list[str] = []
    while len(listed) < 5:
        page = people.list_people(
            deps, merchant_id=str(merchant_id), after_email=listed[-1] if listed else "", limit=2
        )
        listed += [each.email for each in page]
    assert listed == emails


# -- sessions


def test_a_text_that_is_no_address_is_refused_before_the_database_sees_it(deps: Deps) -> None:
    for wrong in ("a\0b", "a" * 300):
        with refused("VALIDATION_ERROR"):
            people.list_people(deps, merchant_id="", after_email=wrong, limit=0)
        with refused("PERSON_NOT_FOUND"):
            people.get_person(deps, person=wrong)


def test_a_session_ends_when_unused_and_after_its_longest_time(
    deps: Deps, new_email: Callable[[], str], clock: ManualClock
) -> None:
    ada = operator(deps, new_email())
    bob = member(deps, new_email(), new_id())
    for _ in range(24):  # 11.6 hours
        clock.advance(minutes=29)
        authorize(deps, ada.token)
        authorize(deps, bob.token, Surface.DASHBOARD)
    clock.advance(minutes=24)
    with refused("SESSION_INVALID"):
        authorize(deps, ada.token)
    clock.advance(minutes=36)
    with refused("SESSION_INVALID"):
        authorize(deps, bob.token, Surface.DASHBOARD)


def test_a_token_counts_on_its_surface_until_its_session_ends(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    ada = operator(deps, new_email())
    with refused("SESSION_INVALID"):
        authorize(deps, ada.token, Surface.DASHBOARD)
    with refused("SESSION_INVALID"):
        authorize(deps, ada.token + "x")
    with refused("SESSION_INVALID"):
        authorize(deps, "x" * 10_000)
    session = authorize(deps, ada.token).session
    sessions.sign_out(deps, session_token=ada.token)
    sessions.sign_out(deps, session_token=ada.token)
    sessions.sign_out(deps, session_token="unknown")
    with refused("SESSION_INVALID"):  # a stolen cookie after the sign-out
        authorize(deps, ada.token)
    assert acts_of(deps, f"session:{session.id}") == [
        ("session.start", ada.email),
        ("session.end", ada.email),
    ]


def test_the_database_has_no_token_of_a_session_or_an_invitation(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    ada = operator(deps, new_email())
    with deps.db.transaction() as tx:
        for table in ("sessions", "invitations", "acts"):
            rows = tx.execute(text(f"SELECT CAST({table}.* AS text) FROM {table}")).scalars().all()
            assert rows
            assert not any(ada.token in row for row in rows)


def test_each_session_can_be_ended_by_its_person_and_by_operators(
    deps: Deps, new_email: Callable[[], str], clock: ManualClock
) -> None:
    ada = operator(deps, new_email())
    ada.add_password_and_totp()
    others = []
    for _ in range(3):
        clock.advance(seconds=30)
        others.append(Someone(deps, ada.email, ada.sign_in(), Surface.DESK))
    eve = operator(deps, new_email())
    with eve.acting():
        for foreign in (str(others[0].actor.session_id), str(new_id()), "none"):
            with refused("SESSION_NOT_FOUND"):
                sessions.end_own_session(deps, session_id=foreign)
    with ada.acting():
        listed = sessions.list_own_sessions(deps)
        assert [each.id for each in listed] == [each.actor.session_id for each in (*reversed(others), ada)]
        sessions.end_own_session(deps, session_id=str(others[0].actor.session_id))
    with refused("SESSION_INVALID"):
        authorize(deps, others[0].token)
    sessions.end_session(deps, session_id=str(others[1].actor.session_id))
    with refused("SESSION_INVALID"):
        authorize(deps, others[1].token)
    with ada.acting():
        assert sessions.end_other_sessions(deps) == 1
    with refused("SESSION_INVALID"):
        authorize(deps, others[2].token)
    (left,) = sessions.list_sessions(deps, person_id=str(ada.person_id))
    assert left.id == ada.actor.session_id


def acts_for(someone: Someone) -> tuple[UUID | None, set[str]]:
    """The merchant that a member acts for, and its roles there."""
    return someone.actor.merchant_id, set(someone.actor.roles)


def test_a_member_of_several_merchants_chooses_one(deps: Deps, new_email: Callable[[], str]) -> None:
    first, second = new_id(), new_id()
    bob = member(deps, new_email(), first, "viewer")
    member(deps, bob.email, second, "finance")
    assert acts_for(bob) == (None, set())
    for foreign in (str(new_id()), "none"):
        with refused("MERCHANT_NOT_FOUND"):
            sessions.choose_merchant(
                deps, session_token=bob.token, surface=Surface.DASHBOARD, merchant_id=foreign
            )
    sessions.choose_merchant(
        deps, session_token=bob.token, surface=Surface.DASHBOARD, merchant_id=str(second)
    )
    assert acts_for(bob) == (second, {"finance"})
    people.set_roles(deps, person_id=str(bob.person_id), roles=[], merchant_id=str(second))
    assert acts_for(bob) == (first, {"viewer"})

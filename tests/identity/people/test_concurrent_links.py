"""Links that are made or used while a decision about a person is under way."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest
from sqlalchemy import text

from kit.base import actors
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from services.identity.domain.people import Surface
from services.identity.operations import accepting, invitations, people
from services.identity.operations.invitations import Invited
from services.identity.wiring import Deps
from tests.identity.people.house import (
    BROWSER,
    Someone,
    accept,
    approvals_of,
    invite_member,
    invite_staff,
    mailed,
    mailing_to_nobody,
    member,
    operator,
    refused,
)
from tests.support.acting import ANN, BEN, CID, requested

ROUNDS = 8


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Returns the result of each call, or its refusal; all begin together."""
    barrier = Barrier(len(calls))

    def made(call: Callable[[], object]) -> object:
        barrier.wait(10)
        try:
            return call()
        except Refused as refusal:
            return refusal

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(made, calls))


def invite(deps: Deps, actor: actors.Actor, email: str, role: str) -> Invited:
    with actors.acting(actor):
        return invitations.invite_person(
            deps, email=email, name="Ada", roles=(role,), merchant_id="", member_roles=()
        )


def test_a_link_that_one_person_makes_beside_an_approval_opens_no_administrators_session(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    operator(deps, new_email(), "admin")
    for _ in range(ROUNDS):
        ada = operator(deps, new_email(), "viewer")
        give = partial(people.set_roles, deps, person_id=str(ada.person_id), roles=["admin"], merchant_id="")
        asked = requested(ANN, give)
        _, made = at_once(
            lambda asked=asked: approvals_of(deps).approve(BEN, asked),  # type: ignore[misc]
            lambda email=ada.email: invite(deps, CID, email, "viewer"),  # type: ignore[misc]
        )
        assert ada.actor.roles == {"admin"}
        if isinstance(made, Invited):
            with refused("INVITATION_INVALID"):
                accept(deps, made)


def test_an_administrator_who_is_disabled_while_inviting_keeps_no_link(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    operator(deps, new_email(), "admin")
    for _ in range(ROUNDS):
        ada = operator(deps, new_email(), "admin")
        actor = ada.actor
        others = [partial(invite, deps, actor, new_email(), "treasury") for _ in range(3)]
        results = at_once(*others, lambda ada=ada: people.disable_person(deps, person_id=str(ada.person_id)))  # type: ignore[misc]
        for made in results:
            if isinstance(made, Invited):
                with refused("INVITATION_INVALID"):
                    accept(deps, made)


def test_links_by_a_person_who_may_no_longer_invite_end(deps: Deps, new_email: Callable[[], str]) -> None:
    merchant_id = new_id()
    operator(deps, new_email(), "admin")
    ada = operator(deps, new_email(), "admin")
    mal = member(deps, new_email(), merchant_id, "owner")
    member(deps, new_email(), merchant_id, "owner")
    by_ada = invite(deps, ada.actor, new_email(), "treasury")
    sending = mailing_to_nobody(deps)
    with mal.acting():
        by_mal = mailed(deps, invite_member(sending, new_email(), merchant_id, "owner"))
    people.set_roles(deps, person_id=str(ada.person_id), roles=["viewer"], merchant_id="")
    people.set_roles(deps, person_id=str(mal.person_id), roles=[], merchant_id=str(merchant_id))
    for made, surface in ((by_ada, Surface.DESK), (by_mal, Surface.DASHBOARD)):
        with refused("INVITATION_INVALID"):
            accept(deps, made, surface)


def test_a_call_that_was_permitted_before_its_author_was_disabled_makes_no_link(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    operator(deps, new_email(), "admin")
    ada = operator(deps, new_email(), "admin")
    actor = ada.actor
    people.disable_person(deps, person_id=str(ada.person_id))
    with refused("NOT_PERMITTED"):
        invite(deps, actor, new_email(), "treasury")


@pytest.mark.parametrize("role", ["prices", "viewer"])
def test_a_link_that_is_used_beside_a_change_of_roles_ends_in_one_order(
    deps: Deps, new_email: Callable[[], str], role: str
) -> None:
    """Both take effect, or the link has ended; neither call fails for the other."""
    for _ in range(ROUNDS):
        ada: Someone = operator(deps, new_email(), "viewer")
        link = invite_staff(deps, ada.email, "desk")
        used, changed = at_once(
            lambda link=link: accepting.accept_invitation(  # type: ignore[misc]
                deps, token=link.link.rpartition("=")[2], surface=Surface.DESK, client=BROWSER
            ),
            lambda ada=ada: people.set_roles(  # type: ignore[misc]
                deps, person_id=str(ada.person_id), roles=[role], merchant_id=""
            ),
        )
        assert not isinstance(changed, Refused)
        assert not isinstance(used, Refused) or used.reason == "INVITATION_INVALID"
        with deps.db.transaction() as tx:
            roles = tx.execute(
                text("SELECT roles FROM people WHERE email = :email"), {"email": ada.email}
            ).scalar_one()
        assert roles == [role]

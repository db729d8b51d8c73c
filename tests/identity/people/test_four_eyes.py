"""Administrators: a second one approves whoever becomes one, and there is no other way to the role."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from fiatgate.approvals.v1 import approvals_pb2
from kit.base.ids import new_id
from services.identity.domain.people import Surface
from services.identity.operations import invitations, people
from services.identity.wiring import Deps
from tests.identity.people.house import (
    accept,
    approvals_of,
    authorize,
    disable_admins,
    invite_member,
    invite_staff,
    operator,
    refused,
)
from tests.support.acting import ANN, BEN, CID, acting, requested


@pytest.fixture(autouse=True)
def one_admin(deps: Deps, new_email: Callable[[], str]) -> None:
    with deps.db.transaction() as tx:
        tx.execute(text("UPDATE people SET roles = '{viewer}' WHERE 'admin' = ANY (roles)"))
    operator(deps, new_email(), "admin")


def invite(deps: Deps, email: str, *roles: str) -> Callable[[], Any]:
    return partial(
        invitations.invite_person,
        deps,
        email=email,
        name="Ada",
        roles=roles,
        merchant_id="",
        member_roles=(),
    )


def test_an_invitation_of_an_admin_is_made_by_two_and_the_checker_gets_the_link(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    asked = requested(ANN, invite(deps, email := new_email(), "admin"))
    approvals = approvals_of(deps)
    (listed,) = approvals.of(f"email:{email}")
    assert listed.summary.startswith(f"Invite {email} with admin; ")
    with refused("OTHER_PERSON_REQUIRED"):
        approvals.approve(ANN, asked)
    link = approvals.link(BEN, asked)
    (made,) = [each for each in invitations.list_invitations(deps, merchant_id="") if each.email == email]
    assert made.invited_by == "ann@example.com"
    token = link.rpartition("=")[2]
    assert authorize(deps, accept(deps, invitations.Invited(invitation=made, link=f"={token}")))


def test_a_link_that_opens_the_session_of_an_admin_needs_two_whatever_its_roles(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    second = operator(deps, new_email(), "admin")
    requested(ANN, invite(deps, second.email, "viewer"))


def test_one_of_two_admins_does_not_get_into_the_account_of_the_other_alone(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    ada, ben = operator(deps, new_email(), "admin"), operator(deps, new_email(), "admin")
    with deps.db.transaction() as tx:
        only = {"emails": [ada.email, ben.email]}
        tx.execute(text("UPDATE people SET roles = '{viewer}' WHERE email <> ALL (:emails)"), only)
    recover = partial(invitations.recover_person, deps, person_id=str(ben.person_id), merchant_id="")
    requested(ada.actor, recover)


def test_a_request_ends_with_the_right_of_its_requester(deps: Deps, new_email: Callable[[], str]) -> None:
    ada, other = operator(deps, new_email(), "admin"), operator(deps, new_email(), "desk")
    give = partial(people.set_roles, deps, person_id=str(other.person_id), roles=["admin"], merchant_id="")
    asked = requested(ada.actor, give)
    people.disable_person(deps, person_id=str(ada.person_id))
    with refused("APPROVAL_STATE_CONFLICT"):
        approvals_of(deps).approve(BEN, asked)


@pytest.mark.parametrize("lost", ["role", "enabled"])
def test_a_requester_whom_sql_gives_the_right_back_has_lost_it(
    deps: Deps, new_email: Callable[[], str], lost: str
) -> None:
    ada, other = operator(deps, new_email(), "admin"), operator(deps, new_email(), "desk")
    give = partial(people.set_roles, deps, person_id=str(other.person_id), roles=["admin"], merchant_id="")
    asked = requested(ada.actor, give)
    if lost == "role":
        people.set_roles(deps, person_id=str(ada.person_id), roles=["viewer"], merchant_id="")
    else:
        people.disable_person(deps, person_id=str(ada.person_id))
    with deps.db.transaction() as tx:
        back = "UPDATE people SET roles = '{admin}', disabled_at = NULL WHERE id = :id"
        tx.execute(text(back), {"id": ada.person_id})
    with refused("APPROVAL_STATE_CONFLICT"):
        approvals_of(deps).approve(BEN, asked)


def test_a_request_by_sql_without_values_stands_against_no_decision(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    ada = operator(deps, new_email(), "desk")
    asked = requested(
        ANN, partial(people.set_roles, deps, person_id=str(ada.person_id), roles=["admin"], merchant_id="")
    )
    with deps.db.transaction() as tx:
        columns = (
            "act, object, merchant_id, summary, note, state, requested_by, requested_as, requested_person"
        )
        tx.execute(
            text(
                "UPDATE approvals SET state = 'rejected', decided_by = 'x', decided_as = 'x',"
                " decided_at = now() WHERE id = :id"
            ),
            {"id": asked},
        )
        tx.execute(
            text(
                f"INSERT INTO approvals (id, requested_at, request, {columns}) SELECT :new, requested_at, '{{}}',"
                f" {columns.replace('state', repr('pending'))} FROM approvals WHERE id = :id"
            ),
            {"new": new_id(), "id": asked},
        )
    assert people.disable_person(deps, person_id=str(ada.person_id)).disabled_at is not None


def test_a_person_becomes_an_admin_by_two(deps: Deps, new_email: Callable[[], str]) -> None:
    ada = operator(deps, new_email(), "desk")
    give = partial(people.set_roles, deps, person_id=str(ada.person_id), roles=["admin"], merchant_id="")
    asked = requested(ANN, give)
    assert ada.actor.roles == {"desk"}
    approvals_of(deps).approve(BEN, asked)
    assert ada.actor.roles == {"admin"}
    with refused("APPROVAL_STATE_CONFLICT"):
        approvals_of(deps).reject(ANN, asked)


@pytest.mark.parametrize("merchant_link", [False, True])
def test_a_link_of_before_opens_no_session_of_the_new_admin(
    deps: Deps, new_email: Callable[[], str], merchant_link: bool
) -> None:
    ada = operator(deps, new_email(), "desk")
    old = (
        invite_member(deps, ada.email, new_id(), "viewer")
        if merchant_link
        else invite_staff(deps, ada.email, "viewer")
    )
    give = partial(people.set_roles, deps, person_id=str(ada.person_id), roles=["admin"], merchant_id="")
    approvals_of(deps).approve(BEN, requested(ANN, give))
    with refused("INVITATION_INVALID"):
        accept(deps, old, Surface.DASHBOARD if merchant_link else Surface.DESK)


def test_a_link_of_before_opens_no_session_of_an_admin_who_is_enabled(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    ada = operator(deps, new_email(), "admin")
    old = invite_staff(deps, ada.email, "viewer")
    people.disable_person(deps, person_id=str(ada.person_id))
    enable = partial(people.enable_person, deps, person_id=str(ada.person_id))
    approvals_of(deps).approve(BEN, requested(ANN, enable))
    with refused("INVITATION_INVALID"):
        accept(deps, old)


def test_roles_that_have_changed_since_the_request_are_not_replaced(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    ada = operator(deps, new_email(), "desk")
    give = partial(people.set_roles, deps, person_id=str(ada.person_id), roles=["admin"], merchant_id="")
    asked = requested(ANN, give)
    people.set_roles(deps, person_id=str(ada.person_id), roles=["viewer"], merchant_id="")
    with refused("APPROVAL_STATE_CONFLICT"):
        approvals_of(deps).approve(BEN, asked)
    assert ada.actor.roles == {"viewer"}


def pending(deps: Deps, asked: str) -> bool:
    found = [each for each in approvals_of(deps).of("") if each.approval_id == asked]
    return found[0].state == approvals_pb2.APPROVAL_STATE_PENDING


def test_requests_without_a_point_are_rejected_with_the_change(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    """Else they would wait for a decision that does nothing, and hold off the next request."""
    disabled, changed, enabled = (operator(deps, new_email(), "desk") for _ in range(3))
    to_invite = requested(ANN, invite(deps, disabled.email, "admin"))
    people.disable_person(deps, person_id=str(disabled.person_id))
    give = partial(people.set_roles, deps, person_id=str(changed.person_id), roles=["admin"], merchant_id="")
    to_give = requested(ANN, give)
    people.set_roles(deps, person_id=str(changed.person_id), roles=["viewer"], merchant_id="")
    assert not pending(deps, to_invite)
    assert not pending(deps, to_give)
    with refused("APPROVAL_STATE_CONFLICT"):
        approvals_of(deps).approve(BEN, to_give)

    kept = requested(ANN, invite(deps, enabled.email, "admin"))
    people.set_roles(deps, person_id=str(enabled.person_id), roles=["viewer"], merchant_id="")
    assert pending(deps, kept)  # the link would still make an administrator
    assert approvals_of(deps).link(BEN, kept)


def test_an_invitation_of_a_person_who_has_the_role_by_now_is_not_approved(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    ada = operator(deps, new_email(), "desk")
    ada.add_password_and_totp()
    asked = requested(ANN, invite(deps, ada.email, "admin"))
    with deps.db.transaction() as tx:  # as a link does that was approved before
        tx.execute(text("UPDATE people SET roles = '{admin}' WHERE email = :email"), {"email": ada.email})
    with refused("APPROVAL_STATE_CONFLICT"):
        approvals_of(deps).approve(BEN, asked)


def test_without_another_active_admin_one_person_is_enough(deps: Deps, new_email: Callable[[], str]) -> None:
    disable_admins(deps)
    first = operator(deps, new_email(), "admin")
    lost = invitations.recover_person(deps, person_id=str(first.person_id), merchant_id="")
    assert lost.link  # of the only one
    requested(ANN, invite(deps, new_email(), "admin"))


def test_the_only_admin_makes_a_second_one_alone_and_the_two_are_needed_for_a_third(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    disable_admins(deps)
    first = operator(deps, new_email(), "admin")
    by_name = replace(CID, on_behalf_of=first.email.upper())
    assert acting(by_name, invite(deps, new_email(), "admin")).link
    requested(CID, invite(deps, new_email(), "admin"))  # another person's request: the admin can approve it
    made = acting(first.actor, invite(deps, new_email(), "admin"))
    assert made.link
    accept(deps, made)
    requested(first.actor, invite(deps, new_email(), "admin"))


def test_switched_off_one_person_is_enough(deps: Deps, new_email: Callable[[], str]) -> None:
    off = replace(deps, settings=deps.settings.model_copy(update={"four_eyes": False}))
    assert invite(off, new_email(), "admin")().link
    assert invite_staff(off, new_email(), "admin").link

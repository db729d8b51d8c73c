"""A link for one use leads to a session, and nothing else does."""

from collections.abc import Callable
from uuid import UUID

import pytest

from kit.base import actors
from kit.base.ids import new_id
from services.accounts.domain import Surface
from services.accounts.operations import factors, invitations, people, sessions
from services.accounts.wiring import Deps
from tests.accounts.conftest import DASHBOARD_URL, DESK_URL
from tests.accounts.house import (
    BROWSER,
    accept,
    acts_of,
    invite_member,
    invite_staff,
    mailed,
    mailing_to_nobody,
    owner_of,
    refused,
    token_of,
)
from tests.support.clock import ManualClock


def test_a_link_leads_to_a_session_of_its_surface_with_its_roles(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    made = invite_staff(deps, email := new_email(), "desk", "prices")
    assert made.link.startswith(f"{DESK_URL}/invitation?token=")
    assert invitations.get_invitation(deps, token=token_of(made), surface=Surface.DESK) == made.invitation
    token = accept(deps, made)
    authorized = sessions.authorize(deps, session_token=token, surface=Surface.DESK)
    assert (authorized.person.email, authorized.person.roles) == (email, ["desk", "prices"])
    assert authorized.stepped_up_until is not None
    assert not authorized.factors.are_complete
    assert acts_of(deps, f"invitation:{made.invitation.id}") == [("person.invite", "eve@laptop")]
    assert acts_of(deps, f"person:{authorized.person.id}") == [("invitation.accept", email)]
    assert acts_of(deps, f"session:{authorized.session.id}") == [("session.start", email)]

    merchant_id = new_id()
    made = invite_member(deps, new_email(), merchant_id, "owner")
    assert made.link.startswith(f"{DASHBOARD_URL}/invitation?token=")
    token = accept(deps, made, Surface.DASHBOARD)
    authorized = sessions.authorize(deps, session_token=token, surface=Surface.DASHBOARD)
    assert authorized.merchant_id == merchant_id


def test_a_link_works_once_on_its_surface_for_72_hours_until_it_is_withdrawn_or_replaced(
    deps: Deps, clock: ManualClock, new_email: Callable[[], str]
) -> None:
    used = invite_staff(deps, new_email())
    accept(deps, used)
    foreign = invite_staff(deps, new_email())
    withdrawn = invite_staff(deps, new_email())
    invitations.withdraw_invitation(deps, invitation_id=str(withdrawn.invitation.id))
    replaced = invite_staff(deps, email := new_email())
    newest = invite_staff(deps, email)
    for made, surface in (
        (used, Surface.DESK),
        (foreign, Surface.DASHBOARD),
        (withdrawn, Surface.DESK),
        (replaced, Surface.DESK),
    ):
        with refused("INVITATION_INVALID"):
            invitations.get_invitation(deps, token=token_of(made), surface=surface)
        with refused("INVITATION_INVALID"):
            accept(deps, made, surface)
    accept(deps, foreign)  # the wrong surface did not use it up
    accept(deps, newest)
    with refused("INVITATION_INVALID"):
        invitations.accept_invitation(deps, token="x" * 43, surface=Surface.DESK, client=BROWSER)
    with refused("INVITATION_NOT_FOUND"):
        invitations.withdraw_invitation(deps, invitation_id=str(used.invitation.id))

    late = invite_staff(deps, new_email())
    clock.advance(hours=72)
    with refused("INVITATION_INVALID"):
        accept(deps, late)


def test_a_link_for_a_known_person_adds_roles_and_lets_them_make_new_factors(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    accept(deps, invite_staff(deps, email := new_email(), "desk"))
    token = accept(deps, invite_staff(deps, email, "treasury"))
    authorized = sessions.authorize(deps, session_token=token, surface=Surface.DESK)
    assert authorized.person.roles == ["desk", "treasury"]
    with actors.acting(sessions.actor_of(authorized.person, Surface.DESK, authorized.session)):
        assert factors.start_totp(deps)[1].startswith("otpauth://totp/Fiatgate:")


def test_an_owner_of_a_merchant_gets_no_session_of_a_person_who_has_roles_elsewhere(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    """Else an owner would invite an operator, open the link alone, and be that operator."""
    merchant_id, other = new_id(), new_id()
    accept(deps, invite_staff(deps, operator := new_email(), "admin"))
    accept(deps, invite_member(deps, elsewhere := new_email(), other, "owner"), Surface.DASHBOARD)
    posting = mailing_to_nobody(deps)
    for email in (operator, elsewhere):
        with actors.acting(owner_of(merchant_id)):
            made = mailed(deps, invite_member(posting, email, merchant_id, "finance"))
        assert accept(deps, made, Surface.DASHBOARD) == ""
        person = people.get_person(deps, person=email)
        assert merchant_id in {each.merchant_id for each in person.memberships}

    with actors.acting(owner_of(merchant_id)):
        made = mailed(deps, invite_member(posting, new_email(), merchant_id, "finance"))
        assert accept(deps, made, Surface.DASHBOARD)  # a new person
        again = mailed(deps, invite_member(posting, made.invitation.email, merchant_id, "finance"))
    assert accept(deps, again, Surface.DASHBOARD)  # of this merchant only: the owner decides over the account


def test_an_owner_gets_no_link_so_without_a_mail_server_it_invites_nobody(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    """Else the owner would open it, set factors, and keep them when the person gets roles elsewhere."""
    merchant_id = new_id()
    with actors.acting(owner_of(merchant_id)), refused("MAIL_REQUIRED"):
        invite_member(deps, new_email(), merchant_id, "finance")
    assert invitations.list_invitations(deps, merchant_id=str(merchant_id)) == []


def test_an_owner_reaches_its_own_merchant_only(deps: Deps, new_email: Callable[[], str]) -> None:
    merchant_id, other = new_id(), new_id()
    foreign = invite_member(deps, email := new_email(), other, "owner")
    accept(deps, foreign, Surface.DASHBOARD)
    waiting = invite_member(deps, new_email(), other)
    sending = mailing_to_nobody(deps)
    with actors.acting(owner_of(merchant_id)):
        with refused("MERCHANT_NOT_FOUND"):
            invite_member(sending, new_email(), other)
        with refused("MERCHANT_NOT_FOUND"):
            invite_staff(sending, new_email(), "admin")
        with refused("MERCHANT_NOT_FOUND"):
            invitations.list_invitations(deps, merchant_id=str(other))
        with refused("INVITATION_NOT_FOUND"):
            invitations.withdraw_invitation(deps, invitation_id=str(waiting.invitation.id))
        with refused("PERSON_NOT_FOUND"):
            people.get_person(deps, person=email)
        assert people.list_people(deps, merchant_id=str(merchant_id), after_email="", limit=0) == []


@pytest.mark.parametrize(
    ("roles", "merchant_id", "member_roles"),
    [
        ((), "", ()),
        (("owner",), "", ()),
        (("desk",), "", ("viewer",)),
        (("desk",), str(UUID(int=1)), ("viewer",)),
        ((), str(UUID(int=1)), ()),
        ((), str(UUID(int=1)), ("admin",)),
        ((), "shop", ("viewer",)),
    ],
)
def test_an_invitation_names_roles_of_one_place(
    deps: Deps, roles: tuple[str, ...], merchant_id: str, member_roles: tuple[str, ...]
) -> None:
    with refused("VALIDATION_ERROR"):
        invitations.invite_person(
            deps,
            email="a@example.com",
            name="A",
            roles=roles,
            merchant_id=merchant_id,
            member_roles=member_roles,
        )


@pytest.mark.parametrize(
    "email",
    [
        "a@[",
        'b@,"',
        "<ann@example.com>",
        "x<ann@example.com>",
        "bob,ann@example.com",
        "cli:root@host",
        "a@b..c",
    ],
)
def test_a_mailbox_has_one_way_to_be_written(deps: Deps, email: str) -> None:
    with refused("VALIDATION_ERROR"):
        invite_staff(deps, email)

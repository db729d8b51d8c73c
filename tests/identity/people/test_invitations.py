"""A link for one use leads to a session, and nothing else does."""

from collections.abc import Callable
from uuid import UUID

import pytest

from kit.base import actors
from kit.base.actors import THE_OPERATOR
from kit.base.ids import new_id
from services.identity.domain.people import (
    MEMBERS_INVITATIONS_A_DAY_MOST,
    MEMBERS_INVITATIONS_OPEN_MOST,
    Surface,
)
from services.identity.operations import accepting, factors, invitations, people, sessions
from services.identity.wiring import Deps
from tests.identity.people.conftest import DASHBOARD_URL, DESK_URL
from tests.identity.people.house import (
    BROWSER,
    Someone,
    accept,
    acts_of,
    authorize,
    invite_member,
    invite_staff,
    mailed,
    mailing_to_nobody,
    member,
    operator,
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
    assert accepting.get_invitation(deps, token=token_of(made), surface=Surface.DESK) == made.invitation
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
            accepting.get_invitation(deps, token=token_of(made), surface=surface)
        with refused("INVITATION_INVALID"):
            accept(deps, made, surface)
    accept(deps, foreign)  # the wrong surface did not use it up
    accept(deps, newest)
    with refused("INVITATION_INVALID"):
        accepting.accept_invitation(deps, token="x" * 43, surface=Surface.DESK, client=BROWSER)
    with refused("INVITATION_NOT_FOUND"):
        invitations.withdraw_invitation(deps, invitation_id=str(used.invitation.id))

    late = invite_staff(deps, new_email())
    clock.advance(hours=72)
    with refused("INVITATION_INVALID"):
        accept(deps, late)


def test_a_link_for_a_known_person_without_factors_adds_roles_and_lets_them_make_factors(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    accept(deps, invite_staff(deps, email := new_email(), "desk"))
    token = accept(deps, invite_staff(deps, email, "treasury"))
    authorized = sessions.authorize(deps, session_token=token, surface=Surface.DESK)
    assert authorized.person.roles == ["desk", "treasury"]
    with actors.acting(sessions.actor_of(authorized.person, Surface.DESK, authorized.session)):
        assert factors.start_totp(deps)[1].startswith("otpauth://totp/Fiatgate:")


def test_a_link_that_adds_roles_starts_no_session_of_a_person_with_factors(
    deps: Deps, new_email: Callable[[], str], clock: ManualClock
) -> None:
    """Else the holder of the link, or of the mailbox, would be the person without any of the factors."""
    ada = operator(deps, new_email(), "desk")
    ada.add_password_and_totp()
    assert accept(deps, invite_staff(deps, ada.email, "treasury")) == ""
    made = invite_member(deps, ada.email, new_id(), "owner")
    assert accept(deps, made, Surface.DASHBOARD) == ""
    clock.advance(minutes=1)
    assert authorize(deps, ada.sign_in()).person.roles == ["desk", "treasury"]


def test_a_recovery_link_starts_a_session_in_which_new_factors_are_made(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    ada = operator(deps, new_email(), "desk")
    ada.add_password_and_totp()
    made = invitations.recover_person(deps, person_id=str(ada.person_id), merchant_id="")
    assert acts_of(deps, f"invitation:{made.invitation.id}") == [("person.recover", "eve@laptop")]
    token = token_of(made)
    with refused("INVITATION_INVALID"):  # the mark is a part of the token
        accepting.accept_invitation(deps, token=token.partition(".")[2], surface=Surface.DESK, client=BROWSER)
    recovered = Someone(deps, ada.email, accept(deps, made), Surface.DESK)
    assert recovered.actor.roles == {"desk"}
    recovered.add_password_and_totp()

    people.disable_person(deps, person_id=str(ada.person_id))
    with refused("PERSON_NOT_FOUND"):
        invitations.recover_person(deps, person_id=str(ada.person_id), merchant_id="")


def test_the_mark_of_a_recovery_link_can_not_be_added_to_another_one(
    deps: Deps, new_email: Callable[[], str]
) -> None:
    token = token_of(invite_staff(deps, new_email()))
    with refused("INVITATION_INVALID"):
        accepting.accept_invitation(deps, token=f"recovery.{token}", surface=Surface.DESK, client=BROWSER)


def test_an_owner_recovers_members_of_its_own_merchant_only(deps: Deps, new_email: Callable[[], str]) -> None:
    merchant_id, other = new_id(), new_id()
    posting = mailing_to_nobody(deps)
    own = member(deps, new_email(), merchant_id)
    own.add_password_and_totp()
    shared = member(deps, new_email(), merchant_id)
    shared.add_password_and_totp()
    accept(deps, invite_member(deps, shared.email, other), Surface.DASHBOARD)
    foreign = member(deps, new_email(), other)
    with actors.acting(owner_of(merchant_id)):
        with refused("PERSON_NOT_FOUND"):
            invitations.recover_person(
                posting, person_id=str(foreign.person_id), merchant_id=str(merchant_id)
            )
        for merchant in (str(other), ""):
            with refused("MERCHANT_NOT_FOUND"):
                invitations.recover_person(posting, person_id=str(own.person_id), merchant_id=merchant)
        links = [
            mailed(
                deps,
                invitations.recover_person(
                    posting, person_id=str(each.person_id), merchant_id=str(merchant_id)
                ),
            )
            for each in (own, shared)
        ]
    of_own, of_shared = (accept(deps, each, Surface.DASHBOARD) for each in links)
    assert of_own
    assert of_shared == ""


def test_members_make_a_bounded_number_of_invitations(
    deps: Deps, new_email: Callable[[], str], clock: ManualClock
) -> None:
    """Each is an e-mail to an address of the owner's choice."""
    merchant_id = new_id()
    posting = mailing_to_nobody(deps)
    with actors.acting(owner_of(merchant_id)):
        made = [
            invite_member(posting, new_email(), merchant_id) for _ in range(MEMBERS_INVITATIONS_OPEN_MOST)
        ]
        with refused("INVITATIONS_LIMITED"):
            invite_member(posting, new_email(), merchant_id)
        for _ in range(MEMBERS_INVITATIONS_A_DAY_MOST - MEMBERS_INVITATIONS_OPEN_MOST):
            invite_member(posting, made[0].invitation.email, merchant_id)  # replaces the one before
        invitations.withdraw_invitation(deps, invitation_id=str(made[-1].invitation.id))
        with refused("INVITATIONS_LIMITED"):
            invite_member(posting, new_email(), merchant_id)
    invite_member(deps, new_email(), merchant_id)  # the operator may
    with actors.acting(owner_of(other := new_id())):
        invite_member(posting, new_email(), other)
    clock.advance(hours=25)
    with actors.acting(owner_of(merchant_id)):
        invite_member(posting, new_email(), merchant_id)


@pytest.mark.parametrize("name", ["Locked, go to evil.example", "see https://x", "a@b", "two\nlines", " "])
def test_a_name_leads_to_no_site(deps: Deps, name: str) -> None:
    with refused("VALIDATION_ERROR"):
        invitations.invite_person(
            deps, email="a@example.com", name=name, roles=("desk",), merchant_id="", member_roles=()
        )


def test_members_do_not_learn_which_operator_invited(deps: Deps, new_email: Callable[[], str]) -> None:
    merchant_id = new_id()
    made = invite_member(deps, new_email(), merchant_id)
    with actors.acting(owner_of(merchant_id)):
        (listed,) = invitations.list_invitations(deps, merchant_id=str(merchant_id))
    opened = accepting.get_invitation(deps, token=token_of(made), surface=Surface.DASHBOARD)
    assert {listed.invited_by, opened.invited_by} == {THE_OPERATOR}
    (listed,) = invitations.list_invitations(deps, merchant_id=str(merchant_id))
    assert listed.invited_by == "cli:eve@laptop"


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

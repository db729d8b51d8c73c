"""Each call about people that changes something leaves exactly its act (tests/test_acts.py has the table)."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from kit.base import actors
from kit.base.ids import new_id
from services.identity.domain.people import Surface
from services.identity.operations import factors, invitations, keys, people, sessions
from services.identity.wiring import Deps
from tests.identity.people.authenticator import Authenticator
from tests.identity.people.conftest import DESK_URL, OPERATOR
from tests.identity.people.house import (
    PASSWORD,
    Someone,
    accept,
    acts_of,
    invite_member,
    invite_staff,
    operator,
)
from tests.identity.people.test_passkeys import register, sign_in
from tests.support.clock import ManualClock
from tests.support.contracts import permissions_of
from tests.test_acts import ACT_OF


class Count:
    """The acts that calls leave, and the methods that were tried."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self.tried: set[str] = set()

    def assert_leaves(self, method: str, call: Callable[[], object], *more: str) -> None:
        """`more`: the acts that follow from the call's own."""
        before = len(acts_of(self._deps))
        call()
        left = [act for act, _ in acts_of(self._deps)[before:]]
        assert sorted(left) == sorted([ACT_OF[method], *more]), method
        self.tried.add(method)

    def assert_leaves_none(self, call: Callable[[], object]) -> None:
        before = len(acts_of(self._deps))
        call()
        assert len(acts_of(self._deps)) == before


def of_people(count: Count, deps: Deps, new_email: Callable[[], str]) -> None:
    merchant = new_id()
    invited = []
    count.assert_leaves("PeopleService/InvitePerson", lambda: invited.append(invite_staff(deps, new_email())))
    count.assert_leaves(
        "SignInService/AcceptInvitation", lambda: accept(deps, invited.pop()), "session.start"
    )
    other = invite_member(deps, new_email(), merchant)
    id = str(other.invitation.id)
    count.assert_leaves(
        "PeopleService/WithdrawInvitation", lambda: invitations.withdraw_invitation(deps, invitation_id=id)
    )
    eve = operator(deps, new_email(), "desk")

    def set_roles() -> object:
        return people.set_roles(deps, person_id=str(eve.person_id), roles=["viewer"], merchant_id="")

    def disable() -> object:
        return people.disable_person(deps, person_id=str(eve.person_id))

    def enable() -> object:
        return people.enable_person(deps, person_id=str(eve.person_id))

    count.assert_leaves("PeopleService/SetRoles", set_roles)
    count.assert_leaves_none(set_roles)
    count.assert_leaves("PeopleService/DisablePerson", disable, "session.end")
    count.assert_leaves_none(disable)
    count.assert_leaves("PeopleService/EnablePerson", enable)
    count.assert_leaves(
        "PeopleService/RecoverPerson",
        lambda: invitations.recover_person(deps, person_id=str(eve.person_id), merchant_id=""),
    )
    count.assert_leaves_none(enable)
    count.assert_leaves("ActorKeysService/RotateActorKey", lambda: keys.rotate_actor_key(deps))


def of_factors(count: Count, ada: Someone, clock: ManualClock) -> str:
    """Returns the id of Ada's passkey."""
    deps = ada.deps
    passkeys: list[str] = []
    device = Authenticator(DESK_URL)
    count.assert_leaves("OwnAccountService/RegisterPasskey", lambda: passkeys.append(register(ada, device)))
    with ada.acting():
        count.assert_leaves(
            "OwnAccountService/SetPassword", lambda: factors.set_password(deps, password=PASSWORD)
        )
        count.assert_leaves_none(lambda: setattr(ada, "secret", factors.start_totp(deps)[0]))
        count.assert_leaves(
            "OwnAccountService/ConfirmTotp", lambda: factors.confirm_totp(deps, code=ada.code())
        )
        count.assert_leaves("OwnAccountService/MakeRecoveryCodes", lambda: factors.make_recovery_codes(deps))
    clock.advance(minutes=1)  # a code is used once
    count.assert_leaves("SignInService/SignInByPassword", ada.sign_in)
    count.assert_leaves("SignInService/SignInByPasskey", lambda: sign_in(deps, device))
    clock.advance(minutes=1)
    count.assert_leaves("SignInService/StepUp", lambda: setattr(ada, "token", ada.step_up()))
    return passkeys[0]


def of_sessions(count: Count, ada: Someone) -> None:
    deps = ada.deps

    def another() -> tuple[str, UUID]:
        with actors.acting(OPERATOR):
            made = invitations.recover_person(deps, person_id=str(ada.person_id), merchant_id="")
        token = accept(deps, made)
        return token, sessions.authorize(deps, session_token=token, surface=Surface.DESK).session.id

    with ada.acting():
        sessions.end_other_sessions(deps)
        another()
        count.assert_leaves("OwnAccountService/EndOtherSessions", lambda: sessions.end_other_sessions(deps))
        count.assert_leaves_none(lambda: sessions.end_other_sessions(deps))
        _, one = another()
        count.assert_leaves(
            "OwnAccountService/EndOwnSession", lambda: sessions.end_own_session(deps, session_id=str(one))
        )
    _, one = another()
    count.assert_leaves("PeopleService/EndSession", lambda: sessions.end_session(deps, session_id=str(one)))
    token, _ = another()
    count.assert_leaves("SignInService/SignOut", lambda: sessions.sign_out(deps, session_token=token))
    count.assert_leaves_none(lambda: sessions.sign_out(deps, session_token=token))


def test_each_change_leaves_exactly_one_act_and_none_when_nothing_changes(
    deps: Deps, new_email: Callable[[], str], clock: ManualClock
) -> None:
    count = Count(deps)
    of_people(count, deps, new_email)
    ada = operator(deps, new_email())
    passkey_id = of_factors(count, ada, clock)
    of_sessions(count, ada)
    with ada.acting():
        count.assert_leaves("OwnAccountService/RemoveTotp", lambda: factors.remove_totp(deps))
        ada.add_password_and_totp()
        count.assert_leaves(
            "OwnAccountService/RemovePasskey", lambda: factors.remove_passkey(deps, passkey_id=passkey_id)
        )
    own = {
        each
        for each in permissions_of("identity")
        if not each.startswith(("AuditService/", "MerchantsService/"))
    }
    assert count.tried == ACT_OF.keys() & own

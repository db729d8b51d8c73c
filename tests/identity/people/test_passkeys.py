"""Passkeys: registered and used with an authenticator in software, for one host, one challenge, one device."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import text

from deploy.local.waiting import wait_until
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from services.identity.credentials.passkeys import RelyingParty
from services.identity.domain.people import Surface
from services.identity.operations import factors, invitations, signing_in
from services.identity.store import people
from services.identity.wiring import Deps
from tests.identity.people.authenticator import PRESENT, Authenticator
from tests.identity.people.conftest import DASHBOARD_URL, DESK_URL
from tests.identity.people.house import (
    BROWSER,
    Someone,
    accept,
    acts_of,
    authorize,
    invite_staff,
    member,
    operator,
    refused,
)
from tests.support.clock import ManualClock


def register(someone: Someone, device: Authenticator, *, name: str = "Laptop") -> str:
    """The id of the new passkey."""
    with someone.acting():
        challenge_id, options = factors.start_passkey_registration(someone.deps)
        answer = device.create(options)
        made = factors.register_passkey(
            someone.deps, challenge_id=str(challenge_id), credential=answer, name=name
        )
        return str(made.id)


def sign_in(deps: Deps, device: Authenticator, surface: Surface = Surface.DESK) -> str:
    challenge_id, options = signing_in.start_passkey(deps, surface=surface, session_token="")
    return signing_in.sign_in_by_passkey(
        deps, challenge_id=str(challenge_id), credential=device.get(options), surface=surface, client=BROWSER
    )


def step_up(someone: Someone, device: Authenticator) -> str:
    challenge_id, options = signing_in.start_passkey(
        someone.deps, surface=someone.surface, session_token=someone.token
    )
    return signing_in.step_up(
        someone.deps,
        session_token=someone.token,
        surface=someone.surface,
        client=BROWSER,
        challenge_id=str(challenge_id),
        credential=device.get(options),
    )


@pytest.fixture
def ada(deps: Deps, new_email: Callable[[], str]) -> Someone:
    return operator(deps, new_email())


@pytest.fixture
def device(ada: Someone) -> Authenticator:
    made = Authenticator(DESK_URL)
    register(ada, made)
    return made


def test_a_passkey_signs_in_without_a_name_and_steps_up(
    deps: Deps, ada: Someone, device: Authenticator, clock: ManualClock
) -> None:
    ada.token = sign_in(deps, device)
    authorized = authorize(deps, ada.token)
    assert (authorized.person.email, authorized.session.way.value) == (ada.email, "passkey")
    assert authorized.factors.are_complete
    clock.advance(minutes=5)
    assert authorize(deps, ada.token).stepped_up_until is None
    before, ada.token = ada.token, step_up(ada, device)
    assert authorize(deps, ada.token).stepped_up_until is not None
    with refused("SESSION_INVALID"):
        authorize(deps, before)
    with ada.acting():
        (listed,) = factors.list_factors(deps).passkeys
    assert (listed.name, listed.last_used_at) == ("Laptop", clock.now())


def test_a_counter_that_goes_back_is_refused_and_the_passkey_counts_no_more(
    deps: Deps, ada: Someone, device: Authenticator
) -> None:
    copy = replace(device)
    sign_in(deps, device)
    sign_in(deps, device)
    with refused("SIGN_IN_REFUSED"):
        sign_in(deps, copy)
    with refused("SIGN_IN_REFUSED"):
        sign_in(deps, device)
    with ada.acting():
        assert factors.list_factors(deps).passkeys == []
    assert ("passkey.cloned", ada.email) in acts_of(deps, act="passkey.cloned")


def test_a_device_that_counts_nothing_signs_in_again_and_again(deps: Deps, ada: Someone) -> None:
    device = Authenticator(DESK_URL, counts=False)
    register(ada, device)
    for _ in range(3):
        sign_in(deps, device)


def test_a_challenge_has_one_answer_within_five_minutes(
    deps: Deps, ada: Someone, device: Authenticator, clock: ManualClock
) -> None:
    def answer(challenge_id: object, credential: str) -> str:
        return signing_in.sign_in_by_passkey(
            deps,
            challenge_id=str(challenge_id),
            credential=credential,
            surface=Surface.DESK,
            client=BROWSER,
        )

    challenge_id, options = signing_in.start_passkey(deps, surface=Surface.DESK, session_token="")
    credential = device.get(options)
    answer(challenge_id, credential)
    with refused("SIGN_IN_REFUSED"):  # replayed
        answer(challenge_id, credential)

    challenge_id, options = signing_in.start_passkey(deps, surface=Surface.DESK, session_token="")
    with refused("SIGN_IN_REFUSED"):  # of another challenge
        answer(challenge_id, credential)
    answer(challenge_id, device.get(options))

    challenge_id, options = signing_in.start_passkey(deps, surface=Surface.DESK, session_token="")
    clock.advance(minutes=5)
    with refused("SIGN_IN_REFUSED"):
        answer(challenge_id, device.get(options))
    for unknown in ("none", "ключ", "x" * 2000):
        with refused("SIGN_IN_REFUSED"):
            answer(unknown, "{}")


@pytest.mark.parametrize(
    "broken",
    [
        {"origin": DASHBOARD_URL},
        {"origin": "https://evil.example"},
        {"flags": PRESENT},  # without verification of its user
        {"key": Authenticator("").key},
        {"credential_id": b"another"},
        {"user_handle": b"another person"},
    ],
    ids=lambda broken: next(iter(broken)),
)
def test_an_answer_that_proves_nothing_is_refused(
    deps: Deps, ada: Someone, device: Authenticator, broken: dict[str, object]
) -> None:
    with refused("SIGN_IN_REFUSED"):
        sign_in(deps, replace(device, **broken))  # type: ignore[arg-type]
    sign_in(deps, device)


@pytest.mark.parametrize("garbage", ["", "{}", "[]", "null", "nonsense", '{"rawId": 1}', "x" * 20_000])
def test_garbage_is_refused(deps: Deps, ada: Someone, garbage: str) -> None:
    challenge_id, _ = signing_in.start_passkey(deps, surface=Surface.DESK, session_token="")
    with refused("SIGN_IN_REFUSED"):
        signing_in.sign_in_by_passkey(
            deps, challenge_id=str(challenge_id), credential=garbage, surface=Surface.DESK, client=BROWSER
        )
    with ada.acting():
        challenge_id, _ = factors.start_passkey_registration(deps)
        with refused("PASSKEY_INVALID"):
            factors.register_passkey(deps, challenge_id=str(challenge_id), credential=garbage, name="Laptop")


def test_a_challenge_is_for_its_purpose_its_session_and_its_surface(
    deps: Deps, ada: Someone, device: Authenticator, new_email: Callable[[], str]
) -> None:
    challenge_id, options = signing_in.start_passkey(deps, surface=Surface.DESK, session_token="")
    with refused("SIGN_IN_REFUSED"):  # one to sign in does not step up
        signing_in.step_up(
            deps,
            session_token=ada.token,
            surface=Surface.DESK,
            client=BROWSER,
            challenge_id=str(challenge_id),
            credential=device.get(options),
        )
    challenge_id, options = signing_in.start_passkey(deps, surface=Surface.DESK, session_token=ada.token)
    with refused("SIGN_IN_REFUSED"):  # and the other way round
        signing_in.sign_in_by_passkey(
            deps,
            challenge_id=str(challenge_id),
            credential=device.get(options),
            surface=Surface.DESK,
            client=BROWSER,
        )
    eve = operator(deps, new_email())
    with refused("SIGN_IN_REFUSED"):  # another person's passkey steps nobody up
        step_up(eve, device)
    with eve.acting():
        challenge_id, options = factors.start_passkey_registration(deps)
    with ada.acting(), refused("PASSKEY_INVALID"):
        factors.register_passkey(
            deps, challenge_id=str(challenge_id), credential=Authenticator(DESK_URL).create(options), name="x"
        )


def test_a_strangers_challenges_are_not_stored(deps: Deps, device: Authenticator) -> None:
    def stored() -> int:
        with deps.db.transaction() as tx:
            return int(tx.execute(text("SELECT count(*) FROM challenges")).scalar_one())

    before = stored()
    for _ in range(3):
        challenge_id, options = signing_in.start_passkey(deps, surface=Surface.DESK, session_token="")
        with refused("SIGN_IN_REFUSED"):
            signing_in.sign_in_by_passkey(
                deps,
                challenge_id=challenge_id,
                credential=replace(device, credential_id=b"another").get(options),
                surface=Surface.DESK,
                client=BROWSER,
            )
    assert stored() == before
    sign_in(deps, device)
    assert stored() == before + 1


def test_of_two_answers_at_once_one_counts(deps: Deps, ada: Someone) -> None:
    device = Authenticator(DESK_URL, counts=False)
    register(ada, device)
    challenge_id, options = signing_in.start_passkey(deps, surface=Surface.DESK, session_token="")
    credential = device.get(options)

    def answer(_number: int) -> bool:
        try:
            signing_in.sign_in_by_passkey(
                deps,
                challenge_id=challenge_id,
                credential=credential,
                surface=Surface.DESK,
                client=BROWSER,
            )
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(answer, range(4))) == 1


def test_a_person_starts_at_most_ten_sessions_a_minute(
    deps: Deps, ada: Someone, device: Authenticator, clock: ManualClock
) -> None:
    clock.advance(minutes=1)
    for _ in range(10):
        sign_in(deps, device)
    with refused("SIGN_IN_DELAYED"):
        sign_in(deps, device)
    clock.advance(minutes=1)
    sign_in(deps, device)


def test_a_decision_about_the_person_is_before_or_after_a_sign_in_by_passkey(
    deps: Deps, ada: Someone, device: Authenticator
) -> None:
    with deps.db.transaction() as tx:
        people.lock_person(tx, ada.person_id)  # as the decision does first
        people.set_disabled(tx, ada.person_id, deps.clock.now())
        with ThreadPoolExecutor(1) as threads:
            try:
                signing_in_meanwhile = threads.submit(sign_in, deps, device)
                wait_until(lambda: is_locked(deps), "the sign-in to wait", timeout_seconds=30)
            finally:
                tx.commit()
    with refused("SIGN_IN_REFUSED"):
        signing_in_meanwhile.result()


def is_locked(deps: Deps) -> bool:
    query = text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    with deps.db.transaction() as tx:
        return bool(tx.execute(query).scalar_one())


def test_a_passkey_of_the_other_host_leaves_a_link_time_to_add_factors(
    deps: Deps, new_email: Callable[[], str], clock: ManualClock
) -> None:
    desk = RelyingParty("https://desk.example.com")
    deps = replace(deps, relying_parties={**deps.relying_parties, Surface.DESK: desk})
    bob = member(deps, new_email(), new_id())
    register(bob, Authenticator(DASHBOARD_URL))
    assert accept(deps, invite_staff(deps, bob.email)) == "", "he has a way to sign in"
    link = invitations.recover_person(deps, person_id=str(bob.person_id), merchant_id="")
    bob = Someone(deps, bob.email, accept(deps, link), Surface.DESK)
    clock.advance(minutes=20)
    bob.add_password_and_totp()


def test_wrong_guesses_of_the_network_do_not_delay_a_passkey(
    deps: Deps, ada: Someone, device: Authenticator
) -> None:
    for number in range(20):
        with refused("SIGN_IN_REFUSED"):
            Someone(deps, f"guess{number}@example.com", "", Surface.DESK).sign_in(
                password="wrong", code="000000", address=BROWSER.address
            )
    with refused("SIGN_IN_DELAYED"):
        ada.sign_in(password="wrong", code="000000", address=BROWSER.address)
    ada.token = sign_in(deps, device)
    for _ in range(25):
        with refused("SIGN_IN_REFUSED"):
            step_up(ada, replace(device, credential_id=b"another"))
    step_up(ada, device)


def test_a_device_is_registered_once(ada: Someone, device: Authenticator) -> None:
    with refused("PASSKEY_INVALID"):
        register(ada, device)


def test_the_last_way_in_stays(
    deps: Deps, ada: Someone, device: Authenticator, new_email: Callable[[], str]
) -> None:
    with ada.acting():
        (only,) = factors.list_factors(deps).passkeys
        with refused("LAST_FACTOR"):
            factors.remove_passkey(deps, passkey_id=str(only.id))
    second = register(ada, Authenticator(DESK_URL), name="Phone")
    with ada.acting():
        factors.remove_passkey(deps, passkey_id=str(only.id))
        with refused("FACTOR_NOT_FOUND"):
            factors.remove_passkey(deps, passkey_id=str(only.id))
        with refused("FACTOR_NOT_FOUND"):
            factors.remove_totp(deps)
    ada.add_password_and_totp()
    with ada.acting():
        factors.remove_passkey(deps, passkey_id=second)
        with refused("LAST_FACTOR"):
            factors.remove_totp(deps)
    with refused("SIGN_IN_REFUSED"):
        sign_in(deps, device)


def test_a_new_person_adds_factors_after_the_link_and_later_ones_need_a_step_up(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    clock.advance(minutes=20)  # more than a step-up lasts: a person who has nothing can't step up
    device = Authenticator(DESK_URL)
    register(ada, device)
    register(ada, Authenticator(DESK_URL), name="Phone")  # to register is to prove
    clock.advance(minutes=5)
    with refused("STEP_UP_REQUIRED"):
        register(ada, Authenticator(DESK_URL), name="Another")
    ada.token = step_up(ada, device)
    register(ada, Authenticator(DESK_URL), name="Another")

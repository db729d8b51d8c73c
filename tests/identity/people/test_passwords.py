"""Signing in by password and code: each code once, and few guesses."""

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from argon2 import Parameters, PasswordHasher, extract_parameters
from sqlalchemy import text

from kit.base.ids import new_id
from kit.rpc.errors import Refused
from services.identity.credentials.passwords import weakness_of
from services.identity.domain.people import PATIENCE, Client, Failures, Surface, delay_after
from services.identity.operations import factors, sessions, signing_in
from services.identity.wiring import Deps
from tests.identity.people.house import (
    PASSWORD,
    Someone,
    acts_of,
    authorize,
    member,
    network_of,
    operator,
    refused,
)
from tests.support.clock import START, ManualClock

_networks = count(1)


@pytest.fixture
def ada(deps: Deps, new_email: Callable[[], str], clock: ManualClock) -> Someone:
    someone = operator(deps, new_email())
    someone.add_password_and_totp()
    clock.advance(minutes=2)
    return someone


@pytest.fixture
def address() -> str:
    """In a network that no other test uses."""
    return f"198.18.{next(_networks)}.9"


def test_password_and_code_lead_to_a_session_that_is_stepped_up(deps: Deps, ada: Someone) -> None:
    authorized = authorize(deps, ada.sign_in())
    assert authorized.person.email == ada.email
    assert authorized.factors.are_complete
    assert authorized.stepped_up_until is not None
    assert (authorized.session.way.value, authorized.session.address) == ("password", "192.0.2.7")


def test_a_code_counts_once_and_no_earlier_one_after_it(deps: Deps, ada: Someone, clock: ManualClock) -> None:
    before = ada.code()
    clock.advance(seconds=30)
    now = ada.code()
    ada.sign_in(code=now)
    for used in (now, before):
        with refused("SIGN_IN_REFUSED"):
            ada.sign_in(code=used)
    clock.advance(seconds=30)
    ada.sign_in()


def test_of_two_sign_ins_with_one_code_at_once_one_gets_in(deps: Deps, ada: Someone) -> None:
    code = ada.code()

    def attempt(_number: int) -> bool:
        try:
            ada.sign_in(code=code)
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(attempt, range(4))) == 1


def test_a_phone_may_be_half_a_minute_off_and_no_more(deps: Deps, ada: Someone, clock: ManualClock) -> None:
    code = ada.code()
    clock.advance(seconds=60)
    with refused("SIGN_IN_REFUSED"):
        ada.sign_in(code=code)
    code = ada.code()
    clock.advance(seconds=30)
    ada.sign_in(code=code)


def test_each_recovery_code_gets_in_once_and_new_ones_replace_them(deps: Deps, ada: Someone) -> None:
    ada.token = ada.sign_in()
    codes = ada.recovery_codes()
    assert len(set(codes)) == 10
    ada.sign_in(code=codes[0])
    ada.sign_in(code=codes[1].lower().replace("-", " "))
    for used in codes[:2]:
        with refused("SIGN_IN_REFUSED"):
            ada.sign_in(code=used)
    with ada.acting():
        assert factors.list_factors(deps).unused_recovery_codes == 8
    again = ada.recovery_codes()
    with refused("SIGN_IN_REFUSED"):
        ada.sign_in(code=codes[2])
    ada.sign_in(code=again[0])


def test_a_recovery_code_lets_in_and_add_a_factor_and_nothing_that_needs_a_step_up(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    ada.token = ada.sign_in()
    code = ada.recovery_codes()[0]
    ada.token = ada.sign_in(code=code)
    authorized = authorize(deps, ada.token)
    assert (authorized.session.way.value, authorized.stepped_up_until) == ("recovery_code", None)
    assert authorized.may_add_factors
    ada.add_password_and_totp()
    assert authorize(deps, ada.token).stepped_up_until is None, "the new factor proves itself in a step-up"
    clock.advance(minutes=1)
    ada.token = ada.step_up()
    assert authorize(deps, ada.token).stepped_up_until is not None


def test_a_recovery_code_adds_factors_for_five_minutes(deps: Deps, ada: Someone, clock: ManualClock) -> None:
    ada.token = ada.sign_in()
    ada.token = ada.sign_in(code=ada.recovery_codes()[0])
    clock.advance(minutes=5)
    assert not authorize(deps, ada.token).may_add_factors
    with ada.acting(), refused("STEP_UP_REQUIRED"):
        factors.start_totp(deps)


def test_a_recovery_code_does_not_step_up(deps: Deps, ada: Someone) -> None:
    ada.token = ada.sign_in()
    code = ada.recovery_codes()[0]
    with refused("SIGN_IN_REFUSED"):
        ada.step_up(code=code)


def test_a_password_without_a_code_or_of_another_surface_is_refused(deps: Deps, ada: Someone) -> None:
    for code in ("", "000000"):
        with refused("SIGN_IN_REFUSED"):
            ada.sign_in(code=code)
    ada.surface = Surface.DASHBOARD
    with refused("SIGN_IN_REFUSED"):
        ada.sign_in()


@pytest.mark.parametrize("cost", [{}], ids=["of every deployment"])
def test_unknown_and_known_people_get_the_same_answer_after_the_same_work(
    deps: Deps, ada: Someone, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work is one Argon2id hash with the parameters of the stored passwords."""
    hashes: list[Parameters] = []
    verify = PasswordHasher.verify

    def recorded(hasher: PasswordHasher, stored: str, password: str) -> bool:
        hashes.append(extract_parameters(stored))
        return verify(hasher, stored, password)

    monkeypatch.setattr(PasswordHasher, "verify", recorded)
    answers, work = [], []
    for email in (ada.email, "nobody@example.com"):
        hashes.clear()
        with pytest.raises(Refused) as caught:
            Someone(deps, email, "", Surface.DESK).sign_in(
                password="wrong " * 3, code="000000", address=address
            )
        answers.append((caught.value.reason, caught.value.message, dict(caught.value.metadata)))
        work.append(list(hashes))
    assert answers[0] == answers[1]
    assert work[0] == work[1]
    assert [(each.time_cost, each.memory_cost) for each in work[0]] == [(3, 64 * 1024)]


def test_each_wrong_guess_beyond_five_doubles_the_delay_of_known_and_unknown_people(
    deps: Deps, ada: Someone, clock: ManualClock, address: str
) -> None:
    for someone in (ada, Someone(deps, "stranger@example.com", "", Surface.DESK)):
        delays = []
        for _ in range(8):
            with refused("SIGN_IN_REFUSED"):
                someone.sign_in(password="wrong", code="000000", address=address)
            with deps.db.transaction() as tx:
                counted = text(
                    "SELECT delayed_until FROM guesses WHERE kind = 'person' AND subject = :subject"
                )
                subject = f"desk {hashlib.sha256(someone.email.encode()).hexdigest()}"
                until = tx.execute(counted, {"subject": subject}).scalar_one()
            delays.append((until - clock.now()).total_seconds())
            clock.set(until)
            clock.advance(seconds=1)
        assert delays == [0, 0, 0, 0, 2, 4, 8, 16]


def test_failures_are_forgiven_one_by_one() -> None:
    patience = PATIENCE["network"]
    failed = Failures(3, START)
    assert failed.at(START + timedelta(minutes=4), patience) == failed
    later = failed.at(START + timedelta(minutes=9), patience)
    assert later == Failures(2, START + timedelta(minutes=5))
    assert later.at(START + timedelta(minutes=10), patience).count == 1
    assert failed.at(START + timedelta(days=1), patience).count == 0


def test_a_delayed_guess_is_not_checked_even_if_it_is_right(
    deps: Deps, ada: Someone, clock: ManualClock, address: str
) -> None:
    for _ in range(5):
        with refused("SIGN_IN_REFUSED"):
            ada.sign_in(password="wrong", address=address)
    with pytest.raises(Refused) as caught:
        ada.sign_in(address=address)
    assert (caught.value.reason, dict(caught.value.metadata)) == (
        "SIGN_IN_DELAYED",
        {"retry_after_seconds": "2"},
    )
    clock.advance(seconds=2)
    ada.sign_in(address=address)
    clock.advance(seconds=30)
    with refused("SIGN_IN_REFUSED"):  # a right one forgets the wrong ones before it
        ada.sign_in(password="wrong", address=address)
    ada.sign_in(address=address)


def test_ten_thousand_wrong_passwords_take_months(deps: Deps, ada: Someone, address: str) -> None:
    most = PATIENCE["person"].longest
    assert delay_after(10_000, PATIENCE["person"]) == delay_after(20, PATIENCE["person"]) == most
    assert sum((delay_after(each, PATIENCE["person"]) for each in range(10_000)), most * 0).days > 90
    with deps.db.transaction() as tx:
        tx.execute(text("UPDATE guesses SET failures = 9999 WHERE kind = 'person'"))
    with refused("SIGN_IN_REFUSED"):
        ada.sign_in(password="wrong", address=address)
    with deps.db.transaction() as tx:
        newest = text(
            "SELECT delayed_until - last_at FROM guesses WHERE kind = 'network' AND subject = :network"
        )
        assert (
            tx.execute(newest, {"network": f"desk {network_of(address)}"}).scalar_one().total_seconds() == 0
        )
    with refused("SIGN_IN_REFUSED"):
        ada.sign_in(password="wrong", address=address)


def test_guesses_from_elsewhere_do_not_delay_a_person_in_a_known_network(
    deps: Deps, ada: Someone, new_email: Callable[[], str], address: str
) -> None:
    for _ in range(5):
        with refused("SIGN_IN_REFUSED"):
            ada.sign_in(password="wrong", address=address)
    with refused("SIGN_IN_DELAYED"):
        ada.sign_in(address="203.0.113.5")
    ada.sign_in(address="192.0.2.99")
    for _ in range(5):
        with refused("SIGN_IN_REFUSED"):
            ada.sign_in(password="wrong", address="192.0.2.99")
    with refused("SIGN_IN_DELAYED"):  # which guesses from the own network do
        ada.sign_in(address="192.0.2.7")


def test_a_delayed_guess_costs_no_argon2(
    deps: Deps, ada: Someone, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        with refused("SIGN_IN_REFUSED"):
            ada.sign_in(password="wrong", address=address)
    monkeypatch.setattr(PasswordHasher, "verify", None)
    with refused("SIGN_IN_DELAYED"):
        ada.sign_in(address=address)


@pytest.mark.parametrize(
    ("network", "known"),
    [
        ("192.0.2.0/24", True),
        ("192.0.2.7/32", True),
        ("192.0.2.8/32", False),
        ("198.51.100.0/24", False),
        ("2001:db8::/64", False),
        ("", False),
    ],
)
def test_a_network_is_known_for_a_person_who_has_signed_in_there(
    deps: Deps, ada: Someone, new_email: Callable[[], str], network: str, known: bool
) -> None:
    other = operator(deps, new_email())
    for session in (ada, other):
        sessions.sign_out(deps, session_token=session.token)
    client = Client(address="192.0.2.8", user_agent="", network=network)
    assert signing_in.knows_network(deps, email=f" {ada.email.upper()} ", client=client) is known
    assert not signing_in.knows_network(deps, email="nobody@example.com", client=client)


@pytest.mark.parametrize(
    ("address", "network", "shares"),
    [
        ("::ffff:192.0.2.7", "192.0.2.0/24", True),
        ("2001:db8::7", "2001:db8::/64", True),
        ("2001:db8:1::7", "2001:db8::/64", False),
        ("", "192.0.2.0/24", False),
        ("192.0.2.8", "", True),
    ],
)
def test_an_address_is_in_a_network(address: str, network: str, shares: bool) -> None:
    browser = Client(address="192.0.2.8", user_agent="", network=network)
    assert browser.shares_network_with(address) is shares


def test_a_network_that_guesses_many_people_is_delayed_and_its_neighbour_is_not(
    deps: Deps, ada: Someone, address: str
) -> None:
    for number in range(20):
        stranger = Someone(deps, f"guess{number}@example.com", "", Surface.DESK)
        with refused("SIGN_IN_REFUSED"):
            stranger.sign_in(password="wrong", code="000000", address=address)
    with refused("SIGN_IN_DELAYED"):
        ada.sign_in(address=address.replace(".9", ".200"))
    ada.sign_in(address="203.0.113.5")


def test_concurrent_guesses_are_all_counted(deps: Deps, ada: Someone, address: str) -> None:
    def guess(_number: int) -> str:
        try:
            ada.sign_in(password="wrong", address=address)
        except Refused as error:
            return error.reason
        return ""

    with ThreadPoolExecutor(8) as threads:
        reasons = list(threads.map(guess, range(12)))
    assert reasons.count("SIGN_IN_REFUSED") == 5
    assert reasons.count("SIGN_IN_DELAYED") == 7


def test_guesses_on_one_surface_delay_nobody_on_the_other(
    deps: Deps, ada: Someone, new_email: Callable[[], str], address: str
) -> None:
    merchant_id = new_id()
    member(deps, ada.email, merchant_id)
    on_dashboard = replace(ada, surface=Surface.DASHBOARD)
    for _ in range(5):
        with refused("SIGN_IN_REFUSED"):
            on_dashboard.sign_in(password="wrong", address=address)
    with refused("SIGN_IN_DELAYED"):
        on_dashboard.sign_in(address=address)
    for number in range(15):
        stranger = Someone(deps, f"guess{number}@example.com", "", Surface.DASHBOARD)
        with refused("SIGN_IN_REFUSED"):
            stranger.sign_in(password="wrong", code="000000", address=address)
    with refused("SIGN_IN_DELAYED"):
        Someone(deps, new_email(), "", Surface.DASHBOARD).sign_in(code="000000", address=address)
    ada.sign_in(address=address)


def test_the_own_wrong_codes_delay_a_step_up_and_guesses_of_strangers_do_not(
    deps: Deps, ada: Someone, clock: ManualClock, address: str
) -> None:
    ada.token = ada.sign_in(address=address)
    for number in range(20):
        with refused("SIGN_IN_REFUSED"):
            Someone(deps, f"guess{number}@example.com", "", Surface.DESK).sign_in(
                password="wrong", code="000000", address=address
            )
    for _ in range(5):
        with refused("SIGN_IN_REFUSED"):
            ada.sign_in(password="wrong", address="203.0.113.9")
    clock.advance(seconds=30)
    ada.token = ada.step_up(address=address)
    for _ in range(5):
        with refused("SIGN_IN_REFUSED"):
            ada.step_up(code="000000")
    with refused("SIGN_IN_DELAYED"):
        ada.step_up()
    clock.advance(seconds=30)
    ada.token = ada.step_up()


def test_a_step_up_and_a_refused_one_are_acts_of_the_person(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    ada.token = ada.sign_in()
    clock.advance(seconds=30)
    session = f"session:{ada.actor.session_id}"
    with refused("SIGN_IN_REFUSED"):
        ada.step_up(code="000000")
    ada.token = ada.step_up()
    assert acts_of(deps, session)[1:] == [("session.step_up", ada.email)] * 2
    with deps.db.transaction() as tx:
        query = text(
            "SELECT refused, note FROM acts WHERE object = :object AND act = 'session.step_up' ORDER BY id"
        )
        assert [tuple(row) for row in tx.execute(query, {"object": session})] == [
            ("SIGN_IN_REFUSED", ""),
            ("", "TOTP"),
        ]


def test_a_clock_that_was_ahead_opens_nothing_and_locks_nobody_out(
    deps: Deps, ada: Someone, clock: ManualClock, address: str
) -> None:
    now = clock.now()
    clock.advance(days=1)
    ada.token = ada.sign_in(address=address)
    for _ in range(6):
        with pytest.raises(Refused):
            ada.sign_in(password="wrong", address=address)
    with refused("SIGN_IN_DELAYED"):
        ada.sign_in(address=address)
    clock.set(now)
    assert authorize(deps, ada.token).stepped_up_until is None
    with refused("STEP_UP_REQUIRED"), ada.acting():
        factors.set_password(deps, password="another obelisk violin")
    with refused("SIGN_IN_REFUSED"):  # looked at, and wrong
        ada.sign_in(password="wrong", address=address)
    clock.advance(minutes=31)
    with refused("SESSION_INVALID"):  # its last use was the one by the right clock
        authorize(deps, ada.token)


def test_counts_that_sql_wrote_delay_and_lock_nobody_out(
    deps: Deps, ada: Someone, clock: ManualClock, address: str
) -> None:
    for _ in range(2):
        with refused("SIGN_IN_REFUSED"):
            ada.sign_in(password="wrong", address=address)
        with deps.db.transaction() as tx:
            filled = tx.scalars(text("UPDATE guesses SET failures = 2147483647 RETURNING kind")).all()
        assert sorted(filled) == ["network", "person"]
    clock.advance(minutes=15)
    ada.sign_in(address=address)


def test_a_person_has_at_most_twenty_sessions_and_the_oldest_ends(
    deps: Deps, ada: Someone, clock: ManualClock
) -> None:
    made = [ada]
    for _ in range(20):
        clock.advance(seconds=30)
        made.append(Someone(deps, ada.email, ada.sign_in(), Surface.DESK))
        for each in made[1:]:
            authorize(deps, each.token)
    with refused("SESSION_INVALID"):
        authorize(deps, ada.token)
    with made[-1].acting():
        assert len(sessions.list_own_sessions(deps)) == 20


def test_a_sign_in_with_the_old_password_starts_no_session_after_the_new_one(
    deps: Deps, ada: Someone, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new one is set while the old one is compared."""
    ada.token = ada.sign_in()
    clock.advance(seconds=30)
    fits = deps.passwords.fits

    def set_meanwhile(stored: str | None, password: str) -> bool:
        fitted = fits(stored, password)
        with ada.acting():
            factors.set_password(deps, password="another obelisk violin")
        return fitted

    monkeypatch.setattr(deps.passwords, "fits", set_meanwhile)
    with refused("SIGN_IN_REFUSED"):
        ada.sign_in()


# -- setting a password


def test_a_new_password_ends_the_other_sessions(deps: Deps, ada: Someone, clock: ManualClock) -> None:
    other = ada.sign_in()
    clock.advance(minutes=5)
    with refused("STEP_UP_REQUIRED"), ada.acting():
        factors.set_password(deps, password="another obelisk violin")
    current = Someone(deps, ada.email, ada.sign_in(), Surface.DESK, ada.secret)
    with current.acting():
        factors.set_password(deps, password="another obelisk violin")
    authorize(deps, current.token)
    for ended in (other, ada.token):
        with refused("SESSION_INVALID"):
            authorize(deps, ended)
    assert ("factor.add", ada.email) in acts_of(deps, f"person:{ada.person_id}")


@pytest.mark.parametrize(
    "password",
    [
        "short",
        "password1234",
        "Password123!",
        "P@ssw0rd2023",
        "qwertyuiop12",
        "1qaz2wsx3edc",
        "123456789012",
        "aaaaaaaaaaaa",
        "abcabcabcabc",
        "iloveyou2024",
        "Summer2024!!",
        "admin123admin123",
        "letmein letmein",
        "fiatgate2024!",
        "ada.lovelace1990",
        "x" * 257,
    ],
)
def test_a_common_password_is_refused(password: str) -> None:
    assert weakness_of(password, own=("ada.lovelace@example.com", "Ada Lovelace"))


@pytest.mark.parametrize(
    "password", [PASSWORD, "correct horse battery staple", "xK9$vq2LmZ8w", "ключ от дома 7"]
)
def test_an_unusual_one_is_taken(password: str) -> None:
    assert weakness_of(password, own=("ada.lovelace@example.com", "Ada Lovelace")) == ""

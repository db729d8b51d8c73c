"""Guesses of cookies and passwords, from networks that a proxy names: people who are known go on."""

import hashlib
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
import requests

from console.strangers import PER_MINUTE
from tests.console.house import HTTP_SECONDS, PASSWORD, START_PAGES, House, Person, new_merchant, title_of
from tests.console.second import second_console

COOKIE: Final = "fiatgate-dashboard"
MORE: Final = 40
ATTACKER, ANOTHER, OWN, ELSEWHERE = "198.51.100.1", "198.51.100.2", "192.0.2.1", "203.0.113.1"
GUESSER: Final = "198.51.101.1"


@pytest.fixture(scope="module")
def dashboard(house: House, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A process of its own, behind a proxy."""
    log: Path = tmp_path_factory.mktemp("dashboard") / "log"
    with second_console("dashboard", house, log, FIATGATE_TRUSTED_PROXIES="127.0.0.0/8") as url:
        yield url


@pytest.fixture
def member(house: House, dashboard: str) -> Person:
    """A member who has signed in from the own network, with password and code."""
    person = house.person("owner", merchant=new_merchant())
    person.url = dashboard
    person.http.headers["X-Forwarded-For"] = OWN
    person.add_factors()
    person.post("/sign-out")
    assert title_of(person.sign_in()) in START_PAGES
    return person


def guesses_of_cookies(url: str, network: str, count: int) -> Counter[int]:
    """The answers to so many random cookies, all at once."""

    def guess(_: int) -> int:
        return requests.get(
            url,
            headers={"X-Forwarded-For": network, "Cookie": f"{COOKIE}={secrets.token_urlsafe(32)}"},
            timeout=HTTP_SECONDS,
            allow_redirects=False,
        ).status_code

    with ThreadPoolExecutor(count) as threads:
        return Counter(threads.map(guess, range(count)))


def guesses_of_passwords(url: str, networks: Sequence[str], email: str) -> Counter[int]:
    def guess(network: str) -> int:
        return requests.post(
            f"{url}/sign-in",
            data={"email": email, "password": "wrong", "code": "000000"},
            headers={"X-Forwarded-For": network, "Sec-Fetch-Site": "same-origin"},
            timeout=HTTP_SECONDS,
        ).status_code

    with ThreadPoolExecutor(len(networks)) as threads:
        return Counter(threads.map(guess, networks))


def test_invented_links_cost_their_network_and_a_true_one_opens(house: House, dashboard: str) -> None:
    def guess(network: str) -> int:
        page = f"{dashboard}/invitation?token={secrets.token_urlsafe(32)}"
        return requests.get(page, headers={"X-Forwarded-For": network}, timeout=HTTP_SECONDS).status_code

    with ThreadPoolExecutor(50) as threads:
        guesses = Counter(threads.map(guess, [GUESSER] * (PER_MINUTE + MORE)))
        assert set(guesses) == {404, 429}
        flood = threads.map(guess, [f"198.18.{number}.1" for number in range(200)])
        link = house.invited("owner", merchant=new_merchant()).partition("/invitation")[2]
        page = requests.get(f"{dashboard}/invitation{link}", timeout=HTTP_SECONDS)
        assert page.status_code == 200
        assert set(flood) == {404}


def test_challenges_for_many_networks_keep_no_network_from_its_own(dashboard: str) -> None:
    def challenge(network: str) -> int:
        headers = {"X-Forwarded-For": network, "Sec-Fetch-Site": "same-origin"}
        return requests.post(
            f"{dashboard}/sign-in/challenge", headers=headers, timeout=HTTP_SECONDS
        ).status_code

    with ThreadPoolExecutor(100) as threads:
        answers = Counter(threads.map(challenge, [f"198.19.{number % 200}.1" for number in range(400)]))
    assert answers == {200: 400}


def test_random_cookies_cost_their_network_and_a_session_goes_on(dashboard: str, member: Person) -> None:
    flooded = guesses_of_cookies(dashboard, ATTACKER, PER_MINUTE + MORE)
    assert set(flooded) == {303, 429}
    assert flooded[303] >= PER_MINUTE
    assert guesses_of_cookies(dashboard, ANOTHER, 1) == {303: 1}
    member.http.headers["X-Forwarded-For"] = ATTACKER
    assert title_of(member.get("/")) in START_PAGES, "a session that is known costs nothing"


def test_guesses_from_many_networks_do_not_keep_a_person_out_of_a_known_network(
    house: House, dashboard: str, member: Person
) -> None:
    member.post("/sign-out")
    guessed = guesses_of_passwords(dashboard, [f"198.51.{n}.7" for n in range(40)], member.email)
    assert set(guessed) <= {422, 429, 503}
    subject = f"dashboard {hashlib.sha256(member.email.encode()).hexdigest()}"
    later = "UPDATE guesses SET delayed_until = now() + interval '5 minutes' WHERE subject = %s"
    house.database(later, subject)
    elsewhere = Person(dashboard, member.email)
    elsewhere.http.headers["X-Forwarded-For"] = ELSEWHERE
    wrong = {"email": member.email, "password": PASSWORD, "code": "000000"}
    answer = elsewhere.post("/sign-in", wrong)
    assert answer.status_code == 422
    assert "Too many wrong attempts." in answer.text
    assert title_of(member.sign_in(step=1)) in START_PAGES

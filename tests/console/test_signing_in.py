"""Links, passwords, codes, cookies and step-ups, by people without scripts: each misuse gets a clear answer."""

import re
from html import unescape
from typing import Final

import pytest
import requests

from tests.console.house import (
    HTTP_SECONDS,
    PASSWORD,
    START_PAGES,
    House,
    Person,
    new_email,
    new_merchant,
    signed_out,
    text_of,
    title_of,
)

BAD_LINK: Final = "This link does not work"
COOKIE: Final = "fiatgate-desk"


@pytest.fixture(scope="module")
def operator(house: House) -> Person:
    """An operator with password and authenticator app, signed out. No test signs in as this person with the code of
    now or later.
    """
    operator = house.person("desk")
    operator.add_factors()
    operator.post("/sign-out")
    return operator


# -- links


def test_a_program_that_follows_the_link_does_not_use_it_up(house: House) -> None:
    link = house.invited("viewer")
    for _ in range(3):
        page = requests.get(link, timeout=HTTP_SECONDS)
        assert (page.status_code, title_of(page)) == (200, "Welcome to Fiatgate")
        assert "Set-Cookie" not in page.headers
    person = Person(house.desk, "")
    assert title_of(person.accept(link)) == "How will you sign in?"


def test_a_used_link_does_not_work_again(house: House) -> None:
    link = house.invited("viewer")
    Person(house.desk, "").accept(link)
    thief = Person(house.desk, "")
    answer = thief.accept(link)
    assert (answer.status_code, title_of(answer)) == (404, BAD_LINK)
    assert signed_out(thief.get("/"))


def test_an_expired_link_does_not_work(house: House) -> None:
    email = new_email()
    link = house.invited("viewer", email=email)
    earlier = "UPDATE invitations SET expires_at = expires_at - interval '72 hours' WHERE email = %s"
    house.database(earlier, email)
    answer = Person(house.desk, email).accept(link)
    house.database(earlier.replace("-", "+"), email)  # the books are compared in other tests
    assert (answer.status_code, title_of(answer)) == (404, BAD_LINK)


@pytest.mark.parametrize("token", ["", "none", "a" * 43, "a" * 5000, "%00", "ü", "<script>"])
def test_an_invented_link_does_not_work(house: House, token: str) -> None:
    answer = requests.get(f"{house.desk}/invitation", params={"token": token}, timeout=HTTP_SECONDS)
    assert (answer.status_code, title_of(answer)) == (404, BAD_LINK)
    answer = Person(house.desk, "").accept(f"token={token}")
    assert (answer.status_code, title_of(answer)) == (404, BAD_LINK)


def test_a_link_to_the_dashboard_does_not_work_on_the_desk_and_stays_unused(house: House) -> None:
    link = house.invited("owner", merchant=new_merchant())
    assert link.startswith(house.dashboard)
    assert title_of(Person(house.desk, "").accept(link)) == BAD_LINK
    assert title_of(Person(house.dashboard, "").accept(link)) == "How will you sign in?"


# -- password and code


def test_a_person_signs_in_by_password_and_a_code_that_counts_once(house: House) -> None:
    person = house.person("desk")
    assert "You can’t come back yet." in person.get("/").text
    person.add_factors()
    assert "You can’t come back yet." not in person.get("/").text
    assert "You are signed out." in person.post("/sign-out").text
    code = person.code(0)
    assert title_of(person.sign_in(code=code)) in START_PAGES
    thief = Person(house.desk, person.email)
    answer = thief.post("/sign-in", {"email": person.email, "password": PASSWORD, "code": code})
    assert (answer.status_code, title_of(answer)) == (422, "Sign in")
    assert "That did not work." in text_of(answer)


def test_a_recovery_code_signs_in_once_and_does_not_step_up(house: House) -> None:
    person = house.person("desk")
    person.add_factors()
    page = person.post("/account/recovery-codes")
    codes = [each.partition("</code>")[0] for each in page.text.split("<li><code>")[1:]]
    assert (title_of(page), len(set(codes))) == ("Your recovery codes", 10)
    person.post("/sign-out")
    assert title_of(person.sign_in(code=codes[0])) in START_PAGES
    person.post("/sign-out")
    assert signed_out(person.sign_in(code=codes[0]))
    person.sign_in(code=codes[1])
    house.end_step_up(person.email)
    answer = person.post("/step-up?to=/account", {"step_up_code": codes[2]})
    assert (answer.status_code, title_of(answer)) == (422, "Confirm that it is you")


def test_unknown_people_and_wrong_passwords_have_the_same_answer(house: House, operator: Person) -> None:
    answers = [
        Person(house.desk, "").post("/sign-in", fields)
        for fields in (
            {"email": operator.email, "password": "not the password", "code": "000000"},
            {"email": operator.email, "password": PASSWORD, "code": "000000"},
            {"email": "nobody@example.com", "password": PASSWORD, "code": "000000"},
        )
    ]
    assert {answer.status_code for answer in answers} == {422}
    bodies = {answer.text.replace(operator.email, "").replace("nobody@example.com", "") for answer in answers}
    assert len(bodies) == 1


def test_after_some_wrong_passwords_the_next_attempt_waits(house: House) -> None:
    person = house.person("desk")
    person.add_factors()
    person.post("/sign-out")
    fields = {"email": person.email, "password": "wrong", "code": "000000"}
    answers = [person.post("/sign-in", fields) for _ in range(8)]
    assert "Too many wrong attempts." in text_of(answers[-1])
    assert "Too many wrong attempts." in text_of(person.sign_in())


@pytest.fixture(scope="module")
def newcomer(house: House) -> Person:
    return house.person("desk")


@pytest.mark.parametrize(
    ("password", "repeated", "reason"),
    [
        ("short", "short", "12 characters or more"),
        ("passwordpassword", "passwordpassword", "too common"),
        (PASSWORD, PASSWORD + "s", "not the same"),
    ],
)
def test_a_weak_or_misspelt_password_is_refused_with_its_reason(
    newcomer: Person, password: str, repeated: str, reason: str
) -> None:
    answer = newcomer.post("/account/password", {"password": password, "repeated": repeated})
    assert (answer.status_code, reason in answer.text) == (422, True)


def test_a_wrong_code_shows_the_same_secret_again(newcomer: Person) -> None:
    person = newcomer
    first = person.post("/account/totp").text
    secret = first.partition('name="secret" value="')[2].partition('"')[0]
    uri = unescape(first.partition('name="uri" value="')[2].partition('"')[0])
    again = person.post("/account/totp/confirm", {"secret": secret, "uri": uri, "code": "000000"})
    assert again.status_code == 422
    assert f'name="secret" value="{secret}"' in again.text


# -- cookies


def test_a_stolen_cookie_is_of_no_use_after_the_sign_out(house: House, operator: Person) -> None:
    person = house.person("desk")
    stolen = person.http.cookies[COOKIE]
    person.post("/sign-out")
    thief = Person(house.desk, "")
    thief.http.cookies.set(COOKIE, stolen, domain="localhost.local")
    assert signed_out(thief.get("/account"))
    assert signed_out(thief.post("/account/sessions/end-others"))


def test_each_sign_in_makes_a_new_token_and_ends_the_one_before(house: House) -> None:
    person = house.person("desk")
    person.add_factors()
    before = person.http.cookies[COOKIE]
    person.sign_in()
    assert person.http.cookies[COOKIE] != before
    thief = Person(house.desk, "")
    thief.http.cookies.set(COOKIE, before, domain="localhost.local")
    assert signed_out(thief.get("/"))


def test_a_cookie_of_the_desk_means_nothing_to_the_dashboard(house: House) -> None:
    operator = house.person("admin")
    thief = Person(house.dashboard, "")
    thief.http.cookies.set("fiatgate-dashboard", operator.http.cookies[COOKIE], domain="localhost.local")
    assert signed_out(thief.get("/"))
    assert title_of(operator.get("/")) in START_PAGES


@pytest.mark.parametrize("cookie", ["none", "a" * 4000, '"', "%00", "a" * 43])
def test_an_invented_cookie_leads_to_the_sign_in(house: House, cookie: str) -> None:
    headers = {"Cookie": f"{COOKIE}={cookie}"}
    answer = requests.get(f"{house.desk}/people?after=x", headers=headers, timeout=HTTP_SECONDS)
    assert (answer.status_code, title_of(answer)) == (200, "Sign in")
    assert 'name="to" value="/people?after=x"' in answer.text


def test_a_session_ends_after_the_idle_time(house: House) -> None:
    person = house.person("desk")
    house.database(
        "UPDATE sessions SET last_seen_at = now() - interval '31 minutes' WHERE person_id = "
        "(SELECT id FROM people WHERE email = %s)",
        person.email,
    )
    answer = person.get("/")
    assert signed_out(answer)
    assert "You were signed out" in answer.text


@pytest.mark.parametrize(
    "to", ["//evil.example", "https://evil.example", "/\\evil.example", "/%0d%0aX: y", "javascript:1", ""]
)
def test_the_sign_in_leads_to_no_other_site(newcomer: Person, to: str) -> None:
    answer = newcomer.get("/sign-in", params={"to": to}, allow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")


# -- step-up


def test_a_form_without_step_up_goes_on_after_the_code(house: House) -> None:
    admin = house.person("admin")
    admin.add_factors()
    house.end_step_up(admin.email)
    email = new_email()
    wrong = admin.post("/people/invite", {"email": "grace", "name": "Grace Hopper", "role:desk": "on"})
    assert title_of(wrong) == "Invite a person", "a wrong form gets its errors before anything is proved"
    form = {"email": email, "name": "Grace Hopper", "role:desk": "on", "step_up_about": "Invite this person"}
    asked = admin.post("/people/invite", form)
    assert title_of(asked) == "Confirm that it is you"
    shown = re.sub(r"<[^>]+>", " ", asked.text)
    assert all(each in shown for each in ("Invite this person", "Grace Hopper", email)), shown
    assert re.search(r"Roles\s+desk", shown)
    assert f'name="email" value="{email}"' in asked.text
    fields = {
        "email": email,
        "name": "Grace Hopper",
        "role:desk": "on",
        "step_up_goes_on": "on",
        "step_up_code": "000000",
    }
    wrong = admin.post("/step-up?to=/people/invite", fields)
    assert (wrong.status_code, title_of(wrong)) == (422, "Confirm that it is you")
    assert f'name="email" value="{email}"' in wrong.text
    before = admin.http.cookies[COOKIE]
    done = admin.post("/step-up?to=/people/invite", fields | {"step_up_code": admin.code()})
    assert [each.status_code for each in done.history] == [307]
    assert title_of(done) == "The link for Grace Hopper"
    assert admin.http.cookies[COOKIE] != before


def test_a_typed_password_is_not_copied_into_the_page_of_the_step_up(house: House) -> None:
    person = house.person("desk")
    person.add_factors()
    house.end_step_up(person.email)
    asked = person.post("/account/password", {"password": PASSWORD, "repeated": PASSWORD})
    assert title_of(asked) == "Confirm that it is you"
    assert PASSWORD not in asked.text
    done = person.post(
        "/step-up?to=/account/password", {"step_up_code": person.code(), "step_up_goes_on": ""}
    )
    assert title_of(done) == "Set a password"


# -- sessions


def test_a_person_ends_another_session_of_hers_and_none_of_another_person(
    house: House, newcomer: Person
) -> None:
    person = house.person("desk")
    person.add_factors()
    other = Person(house.desk, person.email, totp=person.totp)
    other.sign_in()
    listed = person.get("/account/sessions").text
    (path, *_) = re.findall(r'action="(/account/sessions/[^"]+/end)"', listed)
    assert "has ended already" in newcomer.post(path).text
    assert not signed_out(other.get("/"))
    assert "last complete way to sign in" in person.post("/account/totp/remove").text
    assert "The session has ended." in person.post(path).text
    assert signed_out(other.get("/"))
    assert "has ended already" in person.post(path).text


# -- secrets


def test_no_log_has_a_token_a_password_or_a_code(house: House) -> None:
    link = house.invited("desk")
    person = Person(house.desk, "")
    person.accept(link)
    person.add_factors()
    secrets = [link.partition("token=")[2], person.http.cookies[COOKIE], PASSWORD, person.totp]
    log = house.log()
    assert "/account/totp/confirm" in log
    assert not [each for each in secrets if each in log]

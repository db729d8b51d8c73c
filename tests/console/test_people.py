"""People and roles, without scripts: changes count from the next request, and an owner reaches its own members only."""

import re
from html import unescape

import pytest

from kit.base.ids import parse_id
from tests.console.house import START_PAGES, House, Person, new_email, new_merchant, signed_out, title_of


@pytest.fixture(scope="module")
def admin(house: House) -> Person:
    return house.person("admin", name="Ada Lovelace")


@pytest.fixture(scope="module")
def merchant() -> str:
    return new_merchant()


@pytest.fixture(scope="module")
def owner(house: House, merchant: str) -> Person:
    return house.person("owner", merchant=merchant, name="Mary Somerville")


def id_of(viewer: Person, other: Person) -> str:
    found = re.search(
        rf'href="/people/([0-9a-f-]{{36}})">(?:(?!</th>).)*{re.escape(other.email)}',
        viewer.get("/people").text,
        re.DOTALL,
    )
    assert found is not None
    return found[1]


# -- the desk


def test_an_invited_person_gets_the_roles_of_the_form(house: House, admin: Person) -> None:
    email = new_email()
    fields = {"email": email, "name": "Grace Hopper", "role:desk": "on", "role:prices": "on"}
    made = admin.post("/people/invite", fields)
    assert title_of(made) == "The link for Grace Hopper"
    link = made.text.partition('readonly value="')[2].partition('"')[0]
    grace = Person(house.desk, email)
    grace.accept(link)
    home = grace.get("/").text
    assert "deals, cases, requisites" in home
    assert "currencies, methods, rates" in home
    assert "withdrawals</p>" not in home


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"email": "no address", "name": "X", "role:desk": "on"}, "E-mail address: "),
        ({"email": "x@example.com", "name": "", "role:desk": "on"}, "Name: "),
        ({"email": "x@example.com", "name": "X"}, "Roles: "),
    ],
)
def test_a_form_with_a_fault_comes_back_with_what_was_typed(
    admin: Person, fields: dict[str, str], sentence: str
) -> None:
    answer = admin.post("/people/invite", fields)
    assert (answer.status_code, title_of(answer)) == (422, "Invite a person")
    problem = answer.text.partition('role="alert">')[2].partition("</p>")[0]
    assert sentence in problem
    assert f'value="{fields["email"]}"' in answer.text


def test_roles_count_from_the_next_request(house: House, admin: Person) -> None:
    other = house.person("auditor")
    assert other.get("/people").status_code == 200
    assert 'href="/people"' in other.get("/").text
    admin.post(f"/people/{id_of(admin, other)}/roles", {"role:viewer": "on"})
    assert 'href="/people"' not in other.get("/").text
    assert (other.get("/people").status_code, title_of(other.get("/people"))) == (403, "Not permitted")


def test_a_disabled_person_is_signed_out_and_may_come_back_when_enabled(house: House, admin: Person) -> None:
    other = house.person("desk")
    other.add_factors()
    path = f"/people/{id_of(admin, other)}"
    assert "The person is disabled" in admin.post(f"{path}/disable").text
    assert signed_out(other.get("/"))
    assert signed_out(other.sign_in())
    assert "may sign in again" in admin.post(f"{path}/enable").text
    assert title_of(other.sign_in(step=1)) in START_PAGES


def test_a_person_who_has_lost_all_gets_a_link_that_signs_in_and_no_invitation_does(
    house: House, admin: Person
) -> None:
    other = house.person("desk")
    other.add_factors()
    path = f"/people/{id_of(admin, other)}"
    stranger = Person(house.desk, other.email)
    invited = stranger.accept(house.invited("treasury", email=other.email))
    assert signed_out(invited)
    assert "Sign in as you always do" in invited.text
    made = admin.post(f"{path}/recover")
    assert title_of(made) == "The link for Ada Lovelace"
    stranger.accept(made.text.partition('readonly value="')[2].partition('"')[0])
    assert "deals, cases, requisites" in stranger.get("/").text
    stranger.add_factors()


def test_a_disabled_administrator_waits_for_a_second_one(house: House, admin: Person) -> None:
    other = house.person("admin")
    house.person("admin")  # who could approve it
    path = f"/people/{id_of(admin, other)}"
    admin.post(f"{path}/disable")
    answer = admin.post(f"{path}/enable")
    assert answer.status_code == 202
    assert 'role="status"><p>The request is recorded.' in answer.text
    request = answer.text.partition('href="/approvals/identity/')[2].partition('"')[0]
    assert parse_id(request)
    listed = admin.get("/people").text
    assert "Waiting for a second person" in listed
    assert f'href="/approvals/identity/{request}"' in listed
    answer = admin.post(f"{path}/roles", {"role:admin": "on", "role:desk": "on"})
    assert answer.status_code in (200, 422)


def test_an_administrator_who_disables_oneself_reads_that_it_happened(house: House, admin: Person) -> None:
    other = house.person("admin")
    answer = other.post(f"/people/{id_of(admin, other)}/disable")
    assert title_of(answer) == "Sign in"
    assert "You are disabled, and all your sessions have ended." in answer.text


def test_a_person_without_roles_stays_in_the_list(house: House, admin: Person) -> None:
    other = house.person("desk")
    path = f"/people/{id_of(admin, other)}"
    admin.post(f"{path}/roles", {})
    assert f'href="{path}"' in admin.get("/people").text
    assert signed_out(other.get("/"))


def test_roles_that_a_colleague_changed_meanwhile_are_not_set_from_an_older_page(
    house: House, admin: Person
) -> None:
    path = f"/people/{id_of(admin, house.person('desk', 'treasury'))}"
    (was,) = re.findall(r'name="was" value="([^"]*)"', admin.get(path).text)
    admin.post(f"{path}/roles", {"role:desk": "on", "was": was})
    stale = admin.post(f"{path}/roles", {"role:desk": "on", "role:treasury": "on", "was": was})
    assert stale.status_code == 422
    assert "Another person changed this meanwhile, to “desk”" in unescape(stale.text)
    assert 'name="role:treasury" value="on" checked' not in stale.text
    (now,) = re.findall(r'name="was" value="([^"]*)"', stale.text)
    assert now == "desk"
    assert "The roles are set." in admin.post(f"{path}/roles", {"role:viewer": "on", "was": now}).text


def test_a_page_that_only_refuses_is_not_offered(house: House) -> None:
    auditor = house.person("auditor")
    answer = auditor.get("/people/invite")
    assert answer.status_code == 403
    assert "for people with the role admin or owner" in answer.text


def test_an_administrator_ends_the_session_of_another(house: House, admin: Person) -> None:
    other = house.person("desk")
    path = f"/people/{id_of(admin, other)}"
    session = admin.get(path).text.partition(f'action="{path}/sessions/')[2].partition("/end")[0]
    assert "The session has ended." in admin.post(f"{path}/sessions/{session}/end").text
    assert signed_out(other.get("/"))


def test_a_withdrawn_invitation_does_not_work(house: House, admin: Person) -> None:
    email = new_email()
    link = house.invited("desk", email=email)
    page = admin.get("/people").text
    at = page.index(email)
    invitation = page[at:].partition("/people/invitations/")[2].partition("/withdraw")[0]
    answer = admin.post(f"/people/invitations/{invitation}/withdraw")
    assert "The invitation is revoked" in answer.text
    assert title_of(Person(house.desk, email).accept(link)) == "This link does not work"


# -- the dashboard


def test_an_owner_invites_by_mail_only_and_removes_a_member(
    house: House, owner: Person, merchant: str
) -> None:
    """An owner never gets the link, which goes by e-mail: without a mail server the operator invites."""
    assert "The link goes by e-mail." in owner.get("/people/invite").text.partition('<form class="card"')[0]
    email = new_email()
    made = owner.post("/people/invite", {"email": email, "name": "Emmy Noether", "role:developer": "on"})
    assert made.status_code == 422
    assert "no e-mail can be sent from here" in made.text
    member = Person(house.dashboard, email)
    member.accept(house.invited("developer", merchant=merchant, email=email))
    assert merchant in member.get("/").text
    assert member.get("/people").status_code == 403
    answer = owner.post(f"/people/{id_of(owner, member)}/remove")
    assert "no longer a member" in answer.text
    assert signed_out(member.get("/"))


def test_the_last_owner_stays_owner(owner: Person) -> None:
    own = id_of(owner, owner)
    for path, fields in ((f"/people/{own}/remove", {}), (f"/people/{own}/roles", {"role:finance": "on"})):
        answer = owner.post(path, fields)
        assert (answer.status_code, "last owner" in answer.text) == (422, True), path


def test_an_owner_cannot_invite_to_the_staff(house: House, owner: Person) -> None:
    """The dashboard has no such boxes; a form made by hand has."""
    email = new_email()
    answer = owner.post("/people/invite", {"email": email, "name": "X", "role:admin": "on"})
    assert (answer.status_code, title_of(answer)) == (422, "Invite a person")


def test_the_pages_of_operators_are_not_on_the_dashboard(owner: Person) -> None:
    own = id_of(owner, owner)
    assert owner.post(f"/people/{own}/disable").status_code == 404
    assert owner.post(f"/people/{own}/enable").status_code == 404


def test_a_member_of_two_merchants_chooses_one(house: House) -> None:
    email, first, second = new_email(), new_merchant(), new_merchant()
    member = house.person("owner", merchant=first, email=email)
    member.accept(house.invited("finance", merchant=second, email=email))
    for path in ("/account", "/account/sessions", "/account/totp"):  # a person's own pages need no merchant
        assert member.get(path).url.endswith(path)
    member.post("/merchant", {"merchant_id": second})
    home = member.get("/").text
    assert second in home
    assert 'href="/people"' not in home
    assert member.get("/people").status_code == 403
    member.post("/merchant", {"merchant_id": first})
    assert member.get("/people").status_code == 200
    answer = member.post("/merchant", {"merchant_id": new_merchant()})
    assert "You are not a member of this merchant." in answer.text

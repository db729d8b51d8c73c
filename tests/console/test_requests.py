"""Rules of every address of both surfaces. The addresses are read from the routes, so a new one can't be forgotten."""

import re
from itertools import cycle
from pathlib import Path
from typing import Final

import falcon.asgi
import pytest
import requests

from console.app import navigation_of
from console.config import DeskSettings
from console.page import Page
from console.signin.cookie import SessionCookie
from console.surfaces import DESK
from console.surfaces import surface_of as surface_with
from kit.base.ids import new_id
from kit.rpc.permissions import Permission
from kit.web.files import FilesResource
from kit.web.health import AliveResource, ReadyResource
from tests.console.house import HTTP_SECONDS, START_PAGES, House, Person, new_merchant, title_of
from tests.console.routes import ADDRESSES, SETTINGS, WITHOUT_SESSION, address_of, routes_of
from tests.console.second import second_console
from tests.support.contracts import permissions_of

ROOT: Final = Path(__file__).parents[2]
OF_MACHINES: Final = (AliveResource, ReadyResource, FilesResource)


@pytest.fixture(scope="module", params=["desk", "dashboard"])
def signed_in(request: pytest.FixtureRequest, house: House) -> Person:
    if request.param == "desk":
        return house.person("admin")
    return house.person("owner", merchant=new_merchant())


def surface_of(person: Person, house: House) -> str:
    return "desk" if person.url == house.desk else "dashboard"


@pytest.mark.parametrize("surface", SETTINGS)
def test_every_address_is_checked_unless_it_is_for_machines(surface: str) -> None:
    found = routes_of(surface)
    assert len(found) > 30
    unchecked = {path for _, path, resource in found if not isinstance(resource, (Page, *OF_MACHINES))}
    assert unchecked == set()
    opened = {
        path for _, path, resource in found if isinstance(resource, Page) and not resource.needs_session
    }
    assert opened == WITHOUT_SESSION


@pytest.mark.parametrize("surface", SETTINGS)
def test_addresses_read_with_get_and_change_with_post(surface: str) -> None:
    assert {method for method, _, _ in routes_of(surface)} == {"GET", "HEAD", "POST"}


def test_every_post_from_another_site_is_refused(house: House, signed_in: Person) -> None:
    heads = [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}]
    heads += [{"Origin": "https://evil.example"}, {"Origin": "null"}]
    forms = [path for method, path, _ in routes_of(surface_of(signed_in, house)) if method == "POST"]
    assert len(forms) > 15
    tries = [("/account/password", each) for each in heads]
    for path, head in [*tries, *zip(forms, cycle(heads), strict=False)]:
        answer = signed_in.http.post(
            signed_in.url + address_of(path), data={"token": "x"}, headers=head, timeout=HTTP_SECONDS
        )
        assert (answer.status_code, title_of(answer)) == (400, "That did not work"), (path, head)
    assert title_of(signed_in.get("/")) in START_PAGES


def test_every_page_needs_a_session(house: House, signed_in: Person) -> None:
    stranger = Person(signed_in.url, "")
    for method, path, resource in routes_of(surface_of(signed_in, house)):
        if not isinstance(resource, Page) or path in WITHOUT_SESSION:
            continue
        answer = stranger.http.request(
            method, stranger.url + address_of(path, "x"), timeout=HTTP_SECONDS, allow_redirects=False
        )
        if resource.is_unattended:
            assert (answer.status_code, answer.content) == (204, b""), path
            continue
        assert answer.status_code == 303, f"{method} {path}"
        assert answer.headers["Location"].startswith("/sign-in"), f"{method} {path}"


def test_no_answer_is_kept_and_every_page_has_the_policy(signed_in: Person) -> None:
    for path in ("/", "/account", "/people", "/nowhere", "/sign-in", "/invitation?token=x"):
        answer = signed_in.get(path)
        assert answer.headers["Cache-Control"] == "no-store", path
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'"), path
        assert "unsafe" not in policy
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert not re.search(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", answer.text), path


def test_the_cookie_is_for_this_host_and_no_script(house: House) -> None:
    answer = Person(house.desk, "").post(
        "/invitation",
        {"token": house.invited("viewer").partition("token=")[2]},
        allow_redirects=False,
    )
    name, *attributes = answer.headers["Set-Cookie"].split("; ")
    assert name.startswith("fiatgate-desk=")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Lax"]


def test_with_https_the_cookie_is_secure_and_bound_to_the_host() -> None:
    resp = falcon.asgi.Response()
    cookie = SessionCookie(DESK, is_https=True)
    cookie.set(resp, "token")
    (written,) = [value for name, value in resp._asgi_headers() if name == b"set-cookie"]
    name, *attributes = written.decode().split("; ")
    assert name == "__Host-fiatgate-desk=token"
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Lax", "Secure"]


def test_behind_tls_browsers_are_told_to_stay_there_and_one_network_has_a_limit(
    house: House, tmp_path: Path
) -> None:
    settings = {"FIATGATE_DESK_URL": "https://desk.example.com", "FIATGATE_DESK_REQUESTS_PER_MINUTE": "5"}
    with second_console("desk", house, tmp_path / "log", **settings) as url:
        token = house.invited("viewer").partition("token=")[2]
        accepted = Person(url, "").post("/invitation", {"token": token}, allow_redirects=False)
        assert accepted.headers["Set-Cookie"].startswith("__Host-fiatgate-desk=")
        assert "Secure" in accepted.headers["Set-Cookie"]
        page = requests.get(f"{url}/sign-in", timeout=HTTP_SECONDS)
        assert page.headers["Strict-Transport-Security"].startswith("max-age=")
        answers = [requests.get(f"{url}/sign-in", timeout=HTTP_SECONDS) for _ in range(6)]
        assert (answers[-1].status_code, title_of(answers[-1])) == (429, "Too many requests")
        assert int(answers[-1].headers["Retry-After"]) > 0
        assert requests.get(f"{url}/healthz", timeout=HTTP_SECONDS).status_code == 200


def test_a_person_has_a_limit_and_takes_nothing_from_colleagues_behind_the_same_address(
    house: House, tmp_path: Path
) -> None:
    people = [house.person("viewer") for _ in range(2)]
    with second_console("desk", house, tmp_path / "log", FIATGATE_DESK_REQUESTS_PER_MINUTE="5") as url:
        for person in people:
            person.url = url
        assert people[1].get("/account").status_code == 200
        assert 429 in [people[0].get("/account").status_code for _ in range(20)]
        assert people[1].get("/account").status_code == 200
        anonymous = [requests.get(f"{url}/sign-in", timeout=HTTP_SECONDS).status_code for _ in range(20)]
        assert 429 in anonymous, "requests without a session have a limit per network"
        assert people[1].get("/account").status_code == 200


READ_BY: Final[dict[str, Permission]] = {
    "/invoices": permissions_of("invoices")["DealDeskService/ListAllInvoices"],
    "/find": permissions_of("invoices")["FindService/Find"],
    "/deals-system": permissions_of("invoices")["DealDeskService/GetDealsSystem"],
    "/": permissions_of("invoices")["QueuesService/ListQueues"],
    "/webhooks": permissions_of("webhooks")["WebhooksService/ListEvents"],
    "/parked": permissions_of("webhooks")["ParkedService/ListParked"],
    "/health": permissions_of("catalog")["StatusService/GetStatus"],
    "/live": permissions_of("invoices")["QueuesService/ListQueues"],
    "/deals": permissions_of("invoices")["DealDeskService/ListDeals"],
    "/bank": permissions_of("bank")["BankService/ListLines"],
    "/cases": permissions_of("invoices")["DealDeskService/ListCases"],
    "/merchants": permissions_of("identity")["MerchantsService/ListMerchants"],
    "/merchants/members": permissions_of("identity")["PeopleService/ListPeople"],
    "/owners": permissions_of("identity")["MerchantsService/GetOwner"],
    "/categories": permissions_of("identity")["MerchantsService/ListCategories"],
    "/people": permissions_of("identity")["PeopleService/ListPeople"],
    "/audit": permissions_of("catalog")["AuditService/ListActs"],
    "/rates": permissions_of("catalog")["CatalogService/ListRates"],
    "/methods": permissions_of("catalog")["CatalogService/GetCatalog"],
    "/currencies": permissions_of("catalog")["CatalogService/GetCatalog"],
    "/requisites": permissions_of("invoices")["DealDeskService/ListRequisites"],
    "/reports": permissions_of("invoices")["ReportsService/GetReport"],
    "/addresses": permissions_of("withdrawals")["WithdrawalsService/ListAddresses"],
    "/links": permissions_of("invoices")["InvoicesService/CreateInvoiceByHand"],
    "/settings": permissions_of("identity")["MerchantsService/GetMerchant"],
    "/keys": permissions_of("identity")["MerchantsService/ListApiKeys"],
    "/balance": permissions_of("withdrawals")["WithdrawalsService/ListTransfers"],
    "/withdrawals": permissions_of("withdrawals")["WithdrawalsService/ListAllWithdrawals"],
    "/corrections": permissions_of("withdrawals")["CorrectionsService/ListCorrections"],
    "/refunds": permissions_of("withdrawals")["RefundsService/ListRefunds"],
    "/debts": permissions_of("withdrawals")["CorrectionsService/ListDebts"],
    "/withdrawal-methods": permissions_of("withdrawals")["WithdrawalsService/ListWithdrawalMethods"],
    "/approvals": permissions_of("withdrawals")["ApprovalsService/ListApprovals"],
}
"""The permission of the call by which each page of the navigation is read."""


@pytest.mark.parametrize("surface", SETTINGS)
def test_the_navigation_shows_each_page_to_the_roles_that_may_read_it(surface: str) -> None:
    links = navigation_of(surface_with(SETTINGS[surface](**ADDRESSES)))
    assert {link.path: link.roles for link in links} == {
        link.path: READ_BY[link.path].roles(surface) for link in links
    }


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8081", "https://192.0.2.1", "http://desk.example.com", "https://example.com/desk"],
)
def test_an_address_that_is_not_safe_or_has_no_passkeys_is_refused_at_start(url: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        DeskSettings(desk_url=url, **ADDRESSES)


def test_a_body_that_is_too_large_is_refused(signed_in: Person) -> None:
    answer = signed_in.post("/people/invite", {"name": "a" * 40_000})
    assert (answer.status_code, title_of(answer)) == (413, "That was too long")


@pytest.mark.parametrize("site", ["same-origin", "none", "cross-site"])
def test_a_notice_in_a_link_that_another_person_sent_is_not_shown(signed_in: Person, site: str) -> None:
    of_us = site == "same-origin"
    for report, sentence in (
        ("notice=deal-confirmed", "the merchant is credited"),
        ("problem=case_state_conflict", "the case was answered already"),
        (f"asked=withdrawals:{new_id()}", "The request is recorded"),
    ):
        page = signed_in.get(f"/account?{report}", headers={"Sec-Fetch-Site": site}).text
        assert (sentence in page) == of_us, report


@pytest.mark.parametrize("body", [b"\xff\xfe", b"&" * 20_000, b"a=1&" * 100, b"%" * 99], ids=repr)
def test_a_body_that_is_no_form_is_refused(signed_in: Person, body: bytes) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = signed_in.http.post(
        f"{signed_in.url}/people/invite", data=body, headers=headers, timeout=HTTP_SECONDS
    )
    assert answer.status_code in (400, 409, 422)  # 409: it names no merchant that it was shown for


def test_health_needs_no_session_and_names_the_services(house: House) -> None:
    assert requests.get(f"{house.desk}/healthz", timeout=HTTP_SECONDS).json() == {"status": "alive"}
    ready = requests.get(f"{house.dashboard}/readyz", timeout=HTTP_SECONDS).json()
    assert ready == {"status": "ready", "services": {"identity": "serving"}}


def test_the_templates_have_a_page_each() -> None:
    """A page that no route shows, and no other page includes, would be a stub."""
    root = Path(__file__).parents[2] / "console"
    code = "".join(path.read_text() for path in root.rglob("*.py"))
    code += "".join(path.read_text().replace('.html"', '"') for path in root.rglob("templates/*.html"))
    parents = {"layout", "list", "account", "home", "macros"}
    names = {path.stem for path in root.rglob("templates/*.html")} - parents
    assert not {name for name in names if f'"{name}"' not in code}

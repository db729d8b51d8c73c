"""Every role sees and may do exactly its table.

The pages come from the navigation and their links, the forms from the pages, and the roles of a form from PERMISSIONS
of the services, by the calls that the code behind the form makes. So a new page is tested, and no table is written
twice.
"""

import ast
import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import unescape
from types import ModuleType
from typing import Any, Final

import pytest

from console.app import navigation_of
from console.page import Page
from console.surfaces import DESK
from console.ui.pages import EXPORTS_NOTHING
from console.wiring import Deps
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.services import SERVICES
from kit.rpc.permissions import Permission
from tests.console.conftest import Staff
from tests.console.house import Person
from tests.console.routes import places_of
from tests.gateway.desk import Desk
from tests.support.contracts import permissions_of
from tests.support.stack import Stack

FORM: Final = re.compile(
    r'<form [^>]*?method="post"[^>]*? action="([^"?]+)[^"]*"[^>]*>(.*?)</form>', re.DOTALL
)
FIELD: Final = re.compile(
    r'<(?:input|select|textarea|button)[^>]*? name="([^"]+)"(?:[^>]*? value="([^"]*)")?'
)
LINK: Final = re.compile(r'href="(/[^"#]*)"')
SENDS: Final = re.compile(r'<button(?! type="button")').search
PAGES_PER_ROUTE: Final = 2
PAGES_MOST: Final = 200
OWN: Final = ("/account", "/sign-", "/step-up", "/invitation", "/static/")
"""The person's own pages, alike for all roles."""
DECIDES: Final = "ApprovalsService/"
"""A service knows the roles of each request; the table has those of all its requests together."""


@dataclass(frozen=True)
class Place:
    """A route of the desk, and the names of what answers it."""

    path: str
    resource: Any
    responders: Mapping[str, str]

    def fits(self, address: str) -> bool:
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(self.path))
        return re.fullmatch(pattern, address.partition("?")[0]) is not None


@cache
def places() -> list[Place]:
    return [Place(*each) for each in places_of("desk")]


@cache
def route_of(address: str) -> str:
    """The route of an address, the most exact one when several fit; the address itself when it leads nowhere."""
    fitting = [each.path for each in places() if each.fits(address)]
    return min(fitting, key=lambda path: path.count("{"), default=address)


def place_at(path: str) -> Place:
    found = [each for each in places() if each.path == path]
    assert found, f"{path} leads nowhere"
    return found[0]


# -- the table


STUBS: Final = {
    name: match[1]
    for name, kind in Deps.__annotations__.items()
    if (match := re.search(r"(\w+Service)AsyncStub", kind))
}


@cache
def permissions() -> dict[str, list[Permission]]:
    """The permissions by method; a contract of several services has one of each."""
    found: dict[str, list[Permission]] = {}
    for service in SERVICES:
        for method, permission in permissions_of(service).items():
            found.setdefault(method, []).append(permission)
    return found


def functions_in(name: ast.Name | ast.Attribute, of: type, module: ModuleType) -> Iterator[Any]:
    """Yields the function that a name in the code of a class means: of its module, of another one, or a method."""
    if isinstance(name, ast.Name):
        yield getattr(module, name.id, None)
    elif isinstance(name.value, ast.Name):
        place = of if name.value.id == "self" else getattr(module, name.value.id, None)
        if place is of or isinstance(place, ModuleType):
            yield getattr(place, name.attr, None)


def stub_in(node: ast.expr, named: Mapping[str, str]) -> str | None:
    """The contract of a stub: `deps.deals`, `deps.find[name]`, or a name for one of them."""
    place = node.value if isinstance(node, ast.Subscript) else node
    if isinstance(place, ast.Name):
        return named.get(place.id)
    return STUBS.get(place.attr) if isinstance(place, ast.Attribute) else None


def names_of_stubs(code: ast.AST) -> dict[str, str]:
    """The names that a function gives to stubs: `deals = self.deps.deals`."""
    found = {}
    for node in ast.walk(code):
        if isinstance(node, ast.Assign):
            pairs = [(node.targets[0], node.value)]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = [*zip(node.targets[0].elts, node.value.elts, strict=True)]
            for target, value in pairs:
                if isinstance(target, ast.Name) and (stub := stub_in(value, {})):
                    found[target.id] = stub
    return found


def calls_behind(place: Place, method: str) -> set[str]:
    """The calls of the code that answers, with those of the functions of the console that it uses."""
    found: set[str] = set()
    waiting, seen = [getattr(type(place.resource), place.responders[method])], set()
    while waiting:
        function = waiting.pop()
        if not inspect.isfunction(function) or function in seen:
            continue
        seen.add(function)
        module = inspect.getmodule(function)
        if module is None or not module.__name__.startswith("console."):
            continue
        code = ast.parse(textwrap.dedent(inspect.getsource(function)))
        named = names_of_stubs(code)
        for node in ast.walk(code):
            if isinstance(node, ast.Name | ast.Attribute):
                waiting += functions_in(node, type(place.resource), module)
            if isinstance(node, ast.Attribute) and (stub := stub_in(node.value, named)):
                found.add(f"{stub}/{node.attr}")
    return found & permissions().keys()


@cache
def pressed_by(path: str) -> frozenset[str]:
    """The roles that may make every change behind a form; of a form that only checks what was typed, every read."""
    calls = calls_behind(place_at(path), "POST")
    assert calls, f"the form of {path} calls nothing"
    changing = {call for call in calls if any(row.changes for row in permissions()[call])}
    needed = (
        frozenset[str]().union(*(row.roles("desk") for row in permissions()[call]))
        for call in changing or calls
    )
    return frozenset(DESK.roles).intersection(*needed)


@cache
def is_decision(path: str) -> bool:
    return any(call.startswith(DECIDES) for call in calls_behind(place_at(path), "POST"))


# -- the pages


@dataclass(frozen=True)
class Seen:
    """A page as one person got it.

    forms  the address that a form posts to, by its route, with its fields
    links  the addresses that it links to
    """

    status: int
    forms: Mapping[str, tuple[str, Mapping[str, str]]]
    links: tuple[str, ...]


def seen_by(person: Person, address: str) -> Seen:
    answer = person.get(address, allow_redirects=False)
    if "text/html" not in answer.headers.get("Content-Type", ""):
        return Seen(answer.status_code, {}, ())
    forms = {}
    for found in FORM.finditer(answer.text):
        action = unescape(found[1])
        if SENDS(found[2]) and not action.startswith(OWN):  # without a button it can be read, not sent
            fields = {unescape(name): unescape(value or "") for name, value in FIELD.findall(found[0])}
            forms[route_of(action)] = (action, fields)
    links = (unescape(each) for each in LINK.findall(answer.text))
    return Seen(answer.status_code, forms, tuple(each for each in links if not each.startswith(OWN)))


def walk(person: Person) -> dict[str, Seen]:
    """The pages that a person reaches by links from the start page, some of each route."""
    waiting, taken = ["/"], Counter[str]()
    found: dict[str, Seen] = {}
    while waiting and len(found) < PAGES_MOST:
        address = waiting.pop(0)
        path = route_of(address)
        if address in found or taken[path] >= PAGES_PER_ROUTE:
            continue
        taken[path] += 1
        found[address] = seen_by(person, address)
        waiting += found[address].links
    return found


@pytest.fixture(scope="module")
def people(staff: Staff) -> dict[str, Person]:
    """An operator of each role."""
    return {role: staff(role) for role in DESK.roles}


@pytest.fixture(scope="module")
def _things(stack: Stack) -> Iterator[None]:
    """A deal that waits, one in appeal, late money, and a merchant with a finished invoice."""
    with Desk(stack) as desk:
        currency = desk.currency()
        method = desk.method(currency)
        desk.requisite(method)
        shop = desk.open_shop(currency)
        paid, waiting, appealed, late = (
            desk.mark_paid(shop.create()["invoice_id"], method) for _ in range(4)
        )
        desk.deals.ConfirmDeal(pb.ConfirmDealRequest(deal_id=paid.deal_id))
        desk.checkout.OpenCustomerAppeal(
            pb.OpenCustomerAppealRequest(invoice_id=appealed.invoice_id, note="Paid")
        )
        desk.deals.RejectDeal(pb.RejectDealRequest(deal_id=late.deal_id))
        desk.checkout.OpenCase(pb.OpenCaseRequest(invoice_id=late.invoice_id, note="It came later"))
        yield
        desk.deals.RejectDeal(pb.RejectDealRequest(deal_id=waiting.deal_id))
        desk.deals.ResolveAppeal(pb.ResolveAppealRequest(deal_id=appealed.deal_id, rejected=True))


@pytest.fixture(scope="module")
def walks(people: dict[str, Person], _things: None) -> dict[str, dict[str, Seen]]:
    """The pages that an administrator reaches, as each role gets them."""
    addresses = walk(people["admin"])
    return {role: {each: seen_by(person, each) for each in addresses} for role, person in people.items()}


def test_each_link_that_a_role_sees_opens(walks: dict[str, dict[str, Seen]]) -> None:
    for role, pages in walks.items():
        closed = {route_of(address) for address, page in pages.items() if page.status >= 400}
        linked = {link for page in pages.values() for link in page.links if route_of(link) in closed}
        assert linked == set(), role
        linked = {each.path for each in navigation_of(DESK) if each.group and role in each.roles}
        assert linked <= set(pages["/"].links), role


def test_each_page_of_another_role_is_refused(people: dict[str, Person]) -> None:
    """Each page and file without a field in its address that belongs to an entry of the navigation."""
    opened_by = {each.path: each.roles for each in navigation_of(DESK)}
    pages = {
        each.path: (opened_by[each.resource.link] or {*DESK.roles})
        - (EXPORTS_NOTHING if each.path.endswith(".csv") else set())
        for each in places()
        if isinstance(each.resource, Page) and each.resource.link and "GET" in each.responders
        if "{" not in each.path
    }
    assert len(pages) >= 2
    for role, person in people.items():
        for path in (path for path, roles in pages.items() if role not in roles):
            assert person.get(path).status_code == 403, f"{role}: {path}"


def test_each_form_is_shown_to_the_roles_that_may_send_it(
    walks: dict[str, dict[str, Seen]],
) -> None:
    wrong = []
    for role, pages in walks.items():
        for address, as_admin in walks["admin"].items():
            page = pages[address]
            if page.status != 200:
                continue
            refused = {path for path in page.forms if role not in pressed_by(path)}
            wrong += [f"{role} sees {path} at {address}, and would be refused" for path in refused]
            allowed = {path for path in as_admin.forms if role in pressed_by(path) and not is_decision(path)}
            hidden = allowed - page.forms.keys()
            wrong += [f"{role} does not see {path} at {address}" for path in hidden]
    assert not wrong, "\n".join(wrong)


def test_each_form_that_a_role_does_not_see_changes_nothing(
    people: dict[str, Person], walks: dict[str, dict[str, Seen]]
) -> None:
    """The service refuses it; a form that only asks whether one is sure may be answered, and leaves no act."""
    forms = {path: form for page in walks["admin"].values() for path, form in page.forms.items()}
    assert forms
    for role, person in people.items():
        hidden = {path: form for path, form in forms.items() if role not in pressed_by(path)}
        before = acts_by(person, people["admin"])
        answers = Counter(
            person.post(action, {name: value or "1" for name, value in fields.items()}).status_code
            for action, fields in hidden.values()
        )
        assert bool(hidden) == (answers[403] > 0), role
        assert acts_by(person, people["admin"]) == before, role


def acts_by(person: Person, reader: Person) -> list[str]:
    rows = reader.rows("/audit.csv", author=person.email)
    return [row["id"] for row in rows if not row["refused"]]

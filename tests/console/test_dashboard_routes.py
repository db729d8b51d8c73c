"""Every route of the dashboard: another merchant's ids answer as ids of nothing, and the roles are those of the table
in docs/merchants.md.

The routes come from the router, the fields of a request from the code behind it, and the table from the document. A
route, a field or a role that is missing in one of them fails here.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psycopg2
import pytest

from console.app import navigation_of
from console.list_page import ListPage
from console.page import Page
from console.surfaces import DASHBOARD
from console.ui.pages import FOR_MERCHANT
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2
from gateway.pay import brand
from kit.base.ids import new_id
from tests.console.house import House, Person
from tests.console.payouts import TRON_ADDRESS, added
from tests.console.routes import WITHOUT_SESSION, fields_read, places_of
from tests.gateway.desk import Desk, Shop, settled, unique
from tests.support.pictures import PNG
from tests.support.receiver import Receiver
from tests.support.stack import Stack

ROOT: Final = Path(__file__).parents[2]
WALLETS: Final = (
    "TA4Y62o6YC2Zsck9rZVGTvqW1AQ7X9zTnj",
    "T9yED5xMV5ARV98BexN97aLZ1UUq7eKSxm",
    "TEYe8MyUAzPerx8dfEWUfFHxjtQwG9ipFx",
)
"""Of the other merchant, of nobody, and of the first merchant."""
NO_EVENT: Final = "999999999"
NAME: Final = "Chairs of another one"
HASH: Final = f"{uuid4().hex}{uuid4().hex}"
COLOUR: Final = "336699"
OF_PERSON: Final = ("/account", "/sign-out", "/step-up", "/merchant")
"""Pages of the person, not of a merchant: alike for all roles."""

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("invoice_id", "invoice"), ("invoice",)),
    **dict.fromkeys(("event_id", "event"), ("event",)),
    **dict.fromkeys(("merchant_id", "merchant", FOR_MERCHANT), ("merchant",)),
    **dict.fromkeys(("key_id", "newest_key_id"), ("key",)),
    "link_id": ("link",),
    "withdraw_uuid": ("withdrawal",),
    "transaction": ("hash",),
    "refund_id": ("refund",),
    "external": ("refund_order",),
    "address_id": ("address",),
    "address": ("address", "wallet"),
    "order": ("order",),
    "number": ("case",),
    "customer": ("customer",),
    "person_id": ("person",),
    "author": ("email",),
    "invitation_id": ("invitation",),
    "session_id": ("session",),
    "passkey_id": ("passkey",),
    "q": (
        "invoice",
        "refund",
        "refund_order",
        "order",
        "customer",
        "event",
        "withdrawal",
        "hash",
        "wallet",
        "email",
    ),
    "object": ("invoice", "key", "withdrawal", "person"),
}
"""The kinds of things that a field of a path, of a query or of a form names; each is tried."""
AFTER: Final = {
    "/invoices": "invoice",
    "/cases": "case",
    "/links": "invoice",
    "/links/many": "link",
    "/webhooks": "event",
    "/balance": "transfer",
    "/balance/changes": "transfer",
    "/withdrawals": "withdrawal",
    "/refunds": "refund",
    "/people": "email",
    "/audit": "act",
}
"""The kind of thing after which the next page of a list begins."""
SHOWN_TO_CUSTOMERS: Final = frozenset({"colour", "name", "logo", "kept"})
"""Fields of paths and forms for looks of payment pages: customers of all merchants see them."""
PLAIN: Final = {
    *("account", "account_from", "account_kind", "bank", "expected", "holder", "reason"),
    *("act", "agreed", "although_used", "amount", "amount_from", "amount_to", "asked", "challenge_id"),
    *("by", "period"),
    *(
        "by_user",
        "code",
        "credential",
        "currency",
        "days",
        "email",
        "fee",
        "from",
        "group",
        "lang",
        "least",
        "limit",
    ),
    *("made_order", "memo", "method", "month", "most", "note", "notice", "password", "preview", "problem"),
    *(
        "purpose",
        "repeated",
        "request_key",
        "secret",
        "signature",
        "since",
        "sort",
        "stage",
        "state",
        "status",
    ),
    *("step_up_challenge", "step_up_code", "step_up_credential", "step_up_goes_on", "to", "type"),
    *("answer", "every", "text", "until", "uri", "valid_days", "was"),
}
"""Fields that name no merchant's thing. Only the page that asks a challenge or makes a request_key has it."""
DEEDS: Final = {
    "resend": "resends",
    "test": "tests",
    "cancel": "cancels",
    "deactivate": "deactivates",
    **dict.fromkeys(("keys", "rotate", "/links/new", "/links/many/new"), "makes"),
    **dict.fromkeys(("invite", "roles", "recover", "remove", "withdraw"), "changes"),
    **dict.fromkeys(("settings", "logo", "use"), "changes"),
    "late-money": "decides",
    "answer": "answers",
    "addresses": "adds",
    "/addresses/{address_id}/remove": "removes",
    "/withdrawals/new": "requests",
    "/refunds/new": "requests",
    "account": "gives",
}
"""The word of the table for a form, by the end of its address or by all of it."""
TRIES: Final = 3
"""Of a page: the start page counts webhooks, whose attempts go on meanwhile."""
_AGE: Final = re.compile(r"\b\d+ (?:s|min|h|d)\b")
"""An age, or the time that is left: it may change between two requests."""
_ROWS: Final = re.compile("(?s)<tbody.*?</tbody>")
"""The list below a form: attempts of webhooks go on meanwhile. No id of another merchant stands in it either."""
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|\b[0-9]{9,}|\blink-\w{8}\b")


@dataclass(frozen=True)
class Route:
    """One address of the dashboard with one method, and what answers it."""

    method: str
    path: str
    resource: Any
    has_form: bool

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def named(self) -> list[str]:
        """The fields of the path that name things."""
        fields = re.findall(r"{(\w+)}", self.path)
        unknown = set(fields) - KINDS.keys() - SHOWN_TO_CUSTOMERS
        assert not unknown, f"{self}: name the kinds of {unknown}"
        return [each for each in fields if each in KINDS]

    @property
    def entry(self) -> str:
        """The entry of the navigation that it belongs to."""
        return f"/{self.path.removesuffix('.csv').split('/')[1]}"


@cache
def routes() -> list[Route]:
    """All of them but those without a session, and those for machines."""
    return [
        Route(method, path, resource, "POST" in methods)
        for path, resource, methods in places_of("dashboard")
        for method in methods
        if isinstance(resource, Page) and path not in WITHOUT_SESSION and method != "HEAD"
    ]


def fields_of(route: Route) -> list[tuple[str, str]]:
    """The fields of query and form that the code of the page reads and that name things, each with a kind."""
    names = fields_read(route.resource, route.method) - {"after"}
    is_list = isinstance(route.resource, ListPage)
    unknown = names - KINDS.keys() - PLAIN - SHOWN_TO_CUSTOMERS
    assert not unknown, f"{route} reads {unknown}: name the kinds of these fields, or that they name nothing"
    if route.method == "POST" and route.resource.needs_merchant:
        names.add(FOR_MERCHANT)
    found = [(name, kind) for name in sorted(names & KINDS.keys()) for kind in KINDS[name]]
    if is_list and route.method == "GET":
        path = route.path.removesuffix(".csv")
        assert path in AFTER, f"name the kind of the rows of {path}"
        found.append(("after", AFTER[path]))
    return found


# -- two merchants


@dataclass(frozen=True)
class Neighbours:
    """Owners of two merchants.

    theirs   ids of things of the other merchant by kind
    nothing  ids of no thing
    own      ids of the first merchant's things that all roles may try; else ids of no thing
    address  of the first merchant's book, which may be used
    newest_key  of the first merchant
    """

    house: House
    owner: Person
    stranger: Person
    merchant: str
    currency: str
    theirs: Mapping[str, str]
    nothing: Mapping[str, str]
    own: Mapping[str, str]
    address: str
    newest_key: str
    logo: str
    receiver: Receiver

    def form(self, route: Route) -> dict[str, str]:
        """The fields without which the page refuses a form before the service is asked."""
        forms = {
            "/links/new": {"amount": "900.00", "currency": self.currency, "customer": unique("c")}
            | {"made_order": unique("link")},
            "/links/many/new": {"amount": "900.00", "currency": self.currency},
            "/addresses": {"method": "1", "address": TRON_ADDRESS, "name": "Wallet"},
            "/withdrawals/new": {"address": self.address, "amount": "20", "fee": "1.000000", "agreed": "on"}
            | {"request_key": str(new_id())},
            "/refunds/new": {"account_from": "customer", "amount": "10", "agreed": "on"}
            | {"request_key": str(new_id()), "invoice": self.nothing["invoice"]},
            "/refunds/{refund_id}/account": {"account_kind": "free", "account": "Box 7", "holder": "Ada"},
            "/withdrawals/{withdraw_uuid}/cancel": {"stage": "requested"},
            "/settings": {"group": "addresses", "fail_url": f"https://shop.example/{unique()}"},
            "/settings/late-money": {"late_money": "return", "was:late_money": "credit"},
            "/cases/{number}/answer": {"answer": "credit"},
            "/keys/{key_id}/rotate": {"newest_key_id": self.newest_key},
            "/settings/logo/use": {"logo": self.logo},
            "/people/invite": {"email": f"{unique()}@example.com", "name": "Ada", "role:viewer": "on"},
        }
        return forms.get(route.path, {}) if route.method == "POST" else {}


def first(pattern: str, page: str) -> str:
    found = re.search(pattern, page)
    assert found, pattern
    return found[1]


def session_of(person: Person, stack: Stack) -> str:
    """The id of a person's session: its own page names it by no link."""
    with closing(psycopg2.connect(stack.superuser_url("identity"))) as connection:
        cursor = connection.cursor()
        query = "SELECT sessions.id FROM sessions JOIN people ON people.id = person_id WHERE email = %s"
        cursor.execute(query, [person.email])
        ((id,),) = cursor.fetchall()
        return str(id)


def late_money(desk: Desk, shop: Shop, method: str) -> int:
    """The number of a new case of the merchant."""
    id = shop.create()["invoice_id"]
    desk.choose(id, method)
    desk.cancel(id)
    request = invoices_pb2.OpenCaseRequest(invoice_id=id, note="I paid")
    return desk.checkout.OpenCase(request).case.number


@pytest.fixture(scope="module")
def neighbours(stack: Stack, house: House) -> Iterator[Neighbours]:
    with Desk(stack) as desk, Receiver() as receiver:
        currency = desk.currency()
        method = desk.method(currency)
        desk.requisite(method)
        ours, other = desk.open_shop(currency), desk.open_shop(currency, name=NAME)
        customer = unique("customer")
        created = other.create(callback_url=receiver.url(), amount="90000.00", customer_id=customer)
        mine = ours.create(callback_url=receiver.url("mine"), amount="90000.01")
        for each in (created, mine):
            desk.confirm(each["invoice_id"], method)
        settled(lambda: min(float(desk.available(each)) for each in (ours, other)) > 500, "the credits")
        owner = house.person("owner", merchant=ours.merchant_id)
        stranger = house.person("owner", merchant=other.merchant_id, name="A stranger")
        for person in (owner, stranger):
            house.step_up(person)

        def withdrawn() -> str:
            request = withdrawals_pb2.CreateWithdrawalRequest(
                merchant_id=other.merchant_id,
                withdrawal_method_id=1,
                address=WALLETS[0],
                amount="20",
                request_key=str(uuid4()),
            )
            return desk.withdrawals.CreateWithdrawal(request).withdrawal.withdraw_uuid

        waiting, sent = withdrawn(), withdrawn()
        for step in (
            withdrawals_pb2.ProcessWithdrawalRequest(withdraw_uuid=sent),
            withdrawals_pb2.CompleteWithdrawalRequest(withdraw_uuid=sent, external_tx_id=HASH),
        ):
            name = type(step).__name__.removesuffix("Request")
            getattr(desk.withdrawals, name)(step)
        receiver.wait_for(1)
        receiver.wait_for(1, path="mine")
        house.invited("viewer", merchant=other.merchant_id)
        people = stranger.get("/people").text
        form = {"amount": "900.00", "currency": currency}
        made = stranger.post("/links/many/new", form, allow_redirects=False)
        transfers = withdrawals_pb2.ListTransfersRequest(merchant_id=other.merchant_id)
        refund_order = str(new_id())
        asked = {"invoice": created["invoice_id"], "amount": "10", "account_from": "customer", "agreed": "on"}
        refund = stranger.post("/refunds/new", asked | {"request_key": refund_order}, allow_redirects=False)
        theirs = {
            "invoice": created["invoice_id"],
            "order": created["external_id"],
            "customer": customer,
            "link": made.headers["Location"].rpartition("/")[2],
            "event": first(r'href="/webhooks/(\d+)"', stranger.get("/webhooks?state=all").text),
            "case": str(late_money(desk, other, method)),
            "merchant": other.merchant_id,
            "withdrawal": waiting,
            "refund": first(r"^/refunds/([0-9a-f-]{36})", refund.headers["Location"]),
            "refund_order": refund_order,
            "wallet": WALLETS[0],
            "hash": HASH,
            "address": added(house, stranger, "Of a stranger", usable=True, address=WALLETS[0]),
            "key": first(r'action="/keys/([0-9a-f-]+)/deactivate"', stranger.get("/keys").text),
            "person": first(r'href="/people/([0-9a-f-]{36})"', people),
            "email": stranger.email,
            "invitation": first(r'action="/people/invitations/([0-9a-f-]+)/withdraw"', people),
            "session": session_of(stranger, stack),
            "passkey": str(new_id()),
            "transfer": desk.withdrawals.ListTransfers(transfers).transfers[0].transfer_id,
            "act": first(r"\n([0-9a-f-]{36}),", stranger.get("/audit.csv").text),
        }
        nothing = {kind: str(new_id()) for kind in theirs} | {
            "event": NO_EVENT,
            "case": "999999999",
            "wallet": WALLETS[1],
            "hash": uuid4().hex + uuid4().hex,
            "email": f"{unique()}@example.com",
        }
        event = first(r'href="/webhooks/(\d+)"', owner.get("/webhooks?state=all").text)
        yield Neighbours(
            house,
            owner,
            stranger,
            ours.merchant_id,
            currency,
            theirs,
            nothing,
            own=nothing | {"invoice": mine["invoice_id"], "event": event},
            address=added(house, owner, "Own", usable=True, address=WALLETS[2]),
            newest_key=first(r'name="newest_key_id" value="([^"]+)"', owner.get("/keys").text),
            logo=desk.merchants.KeepLogo(merchants_pb2.KeepLogoRequest(logo=PNG)).logo,
            receiver=receiver,
        )


@dataclass(frozen=True)
class Answer:
    """An answer without the ids that the request has, and without ages: status, place of a redirect, words."""

    status: int
    place: str
    words: str


def answered(
    person: Person,
    route: Route,
    ids: Mapping[str, str],
    form: Mapping[str, str],
    given: tuple[str, str] | None = None,
) -> tuple[Answer, str]:
    """The answer to a request with these ids, and as it was sent."""
    shown = {"colour": COLOUR, "name": brand.stylesheet_name(COLOUR), "logo": "none"}
    parts = shown | {name: ids[KINDS[name][0]] for name in route.named}
    values = dict(form) | ({given[0]: ids[given[1]]} if given else {})
    if route.method == "GET":
        answer = person.get(route.path.format(**parts), params=values, allow_redirects=False)
    else:
        answer = person.post(route.path.format(**parts), values, allow_redirects=False)
    page = answer.text if route.method == "GET" else _ROWS.sub("", answer.text)
    text = _AGE.sub("", " ".join(unescape(re.sub("<[^>]+>", " ", page)).split()))
    for id in {*parts.values(), *values.values()} - {*shown.values()}:
        if len(id) > 2:
            text = text.replace(id, "").replace(id[:13], "")
    text = text.replace("first 8 characters", "")  # 8 may be the number of an event
    if given and given[1] == "event":  # a number, perhaps of one digit
        text = re.sub(rf"(?<![\w:.,-]){ids['event']}(?![\w:.,-])", "", text)  # not of a date, time, amount
    place = _ID.sub("", answer.headers.get("Location", ""))
    return Answer(answer.status_code, place, _ID.sub("", text)), answer.text + answer.headers.get(
        "Location", ""
    )


def kept_by(person: Person) -> dict[str, str]:
    """What a merchant has, and all acts on it."""
    lists = ("invoices", "withdrawals", "refunds", "addresses", "balance", "audit")
    pages = ("/settings", *(f"/{each}.csv" for each in lists))
    return {path: person.get(path).text for path in pages}


# -- another merchant


def test_another_merchants_ids_answer_as_ids_of_nothing_on_every_route(neighbours: Neighbours) -> None:
    owner, theirs, nothing = neighbours.owner, neighbours.theirs, neighbours.nothing
    neighbours.house.step_up(owner)
    before, events = kept_by(neighbours.stranger), len(neighbours.receiver.received())
    tried, typed, wrong = 0, {"event", "case"}, []  # their numbers may stand for many things
    for route in sorted(routes(), key=lambda each: each.method):
        for given in (None, *fields_of(route)):
            if not (route.named or given):
                continue
            for _ in range(TRIES if route.method == "GET" else 1):
                there, page = answered(owner, route, theirs, neighbours.form(route), given)
                missing, _ = answered(owner, route, nothing, neighbours.form(route), given)
                if there == missing:
                    break
            else:
                wrong.append(f"{route} {given}: {there} but {missing}")
            sent = {given[1] if given else "", *(KINDS[name][0] for name in route.named)}
            typed |= sent if route.method == "POST" else set()  # own things may have them from now on
            shown = [kind for kind, id in theirs.items() if kind not in sent | typed and id in page]
            if shown or NAME in page:
                wrong.append(f"{route} {given}: shows {shown or NAME} of another merchant")
            if route.named and there.status not in (303, 404, 409, 422):
                wrong.append(f"{route}: {there.status} to what is not the merchant's")
            tried += 1
    assert not wrong, "\n".join(wrong)
    assert tried > 80
    assert len(neighbours.receiver.received()) == events
    assert kept_by(neighbours.stranger) == before


def test_these_ids_are_those_of_things_that_their_owner_sees(neighbours: Neighbours) -> None:
    """So that the test above compares two answers, and not the same one twice."""
    stranger, theirs = neighbours.stranger, neighbours.theirs
    for path in (
        "/invoices/{invoice}",
        "/webhooks/{event}",
        "/withdrawals/{withdrawal}",
        "/refunds/{refund}",
        "/people/{person}",
        "/links/many/{link}",
    ):
        assert stranger.get(path.format(**theirs)).status_code == 200, path
    for page, *kinds in (
        ("/people", "invitation", "email"),
        ("/keys", "key"),
        ("/balance.csv", "transfer"),
        ("/addresses.csv", "address", "wallet"),
        ("/invoices.csv", "order", "customer"),
        ("/withdrawals.csv", "hash", "withdrawal"),
        ("/refunds.csv", "refund", "refund_order"),
        ("/audit.csv", "act"),
    ):
        text = stranger.get(page).text
        for kind in kinds:
            assert theirs[kind] in text, kind
    for kind in ("withdrawal", "refund"):
        assert "/cancel" in stranger.get(f"/{kind}s/{theirs[kind]}").text, "nobody canceled it"
    for query in ("order={order}", "customer={customer}"):
        assert theirs["invoice"] in stranger.get(f"/invoices?{query}".format(**theirs)).text


# -- roles


def table() -> dict[str, dict[str, str]]:
    """The cells of the table of roles by page and role."""
    text = (ROOT / "docs/merchants.md").read_text()
    rows = [
        [each.strip() for each in line.strip("|").split("|")]
        for line in first(r"(?s)\n(\| page \|.*?)\n\n", text).splitlines()
    ]
    head, _, *lines = rows
    assert tuple(head[1:]) == tuple(DASHBOARD.roles)
    return {line[0]: dict(zip(head[1:], line[1:], strict=True)) for line in lines}


def may(route: Route, cell: str) -> bool:
    """Whether a cell allows a route: who may do anything at a page reads it."""
    words = cell.replace(",", " ").split()
    if route.path.endswith(".csv"):
        return "files" in words
    if route.method == "POST" or (route.has_form and route.path != route.entry):
        end = route.path.rpartition("/")[2]
        assert route.path in DEEDS or end in DEEDS, f"name the word of the table for {route}"
        return DEEDS.get(route.path, DEEDS.get(end)) in words
    return bool(words)


@pytest.mark.parametrize("role", DASHBOARD.roles)
def test_each_role_may_do_on_every_route_what_the_table_says(neighbours: Neighbours, role: str) -> None:
    names = {each.path: each.name for each in navigation_of(DASHBOARD)} | {"/": "Home"}
    cells = table()
    assert cells.keys() == set(names.values())
    person = neighbours.house.person(role, merchant=neighbours.merchant)
    neighbours.house.step_up(person)
    home = person.get("/").text
    wrong = []
    for link in navigation_of(DASHBOARD):
        if link.group and (f'href="{link.path}"' in home) != bool(cells[link.name][role]):
            wrong.append(f"{link.path} in the navigation")
    for route in routes():
        if route.path.startswith(OF_PERSON):
            continue
        form = {
            name: neighbours.own[KINDS[name][0]]
            for name, _ in fields_of(route)
            if name not in ("after", FOR_MERCHANT)
        }
        answer, _ = answered(person, route, neighbours.own, form | neighbours.form(route))
        allowed = may(route, cells[names[route.entry]][role])
        if (answer.status != 403) != allowed:
            wrong.append(f"{route}: {answer.status}, the table says {'yes' if allowed else 'no'}")
    assert not wrong, "\n".join(wrong)

"""Both surfaces of the session's stack, and browsers with and without scripts."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, ViewportSize, sync_playwright

from tests.console.house import House, Person
from tests.console.till import Till
from tests.gateway.desk import Desk
from tests.gateway.pay.conftest import launched
from tests.support.stack import Stack

DESKTOP = ViewportSize(width=1100, height=780)
Open = Callable[..., Page]


@pytest.fixture(scope="session")
def house(stack: Stack) -> Iterator[House]:
    """One for the session; its tests make people of their own."""
    urls = stack.home.running_stack()["consoles"]
    with grpc.insecure_channel(stack.addresses["identity"]) as channel:
        yield House(urls["console-desk"], urls["console-dashboard"], stack, channel)


class Staff:
    """Operators of the desk, one for each set of roles, made at the first use."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._people: dict[frozenset[str], Person] = {}

    def __call__(self, *roles: str) -> Person:
        """The operator with these roles and both factors, signed in, with a fresh step-up."""
        wanted = frozenset(roles)
        if wanted not in self._people:
            self._people[wanted] = self._house.person(*roles, name=f"Ada {' '.join(sorted(roles)).title()}")
            self._people[wanted].add_factors()
        found = self._people[wanted]
        self._house.step_up(found)
        return found

    def page(self, open_page: Open, *roles: str, **options: Any) -> Page:
        return with_cookies(open_page(**options), self(*roles))


def with_cookies(page: Page, person: Person) -> Page:
    cookies = [
        {"name": each.name, "value": each.value or "", "url": person.url} for each in person.http.cookies
    ]
    page.context.add_cookies(cookies)  # type: ignore[arg-type]
    return page


@pytest.fixture(scope="session")
def staff(house: House) -> Staff:
    return Staff(house)


@pytest.fixture(scope="session")
def till(stack: Stack) -> Iterator[Till]:
    """One for the session. Tests that look at its queues clear them."""
    with Desk(stack) as desk:
        currency = desk.currency()
        method = desk.method(currency)
        desk.requisite(method)
        yield Till(desk, desk.open_shop(currency), method)


@pytest.fixture(scope="module", autouse=True)
def _forgiven(house: House) -> None:
    """Each file begins without failed sign-ins of this machine's network: all tests of a session share its counter."""
    house.database("DELETE FROM guesses WHERE kind = 'network'")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium for one file. Meanwhile Playwright has an event loop in this thread: `apart` runs another one."""
    with sync_playwright() as playwright:
        opened = launched(playwright.chromium)
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """`open_page(scripts=False, color_scheme="dark", …)`: a browser of a person. All that its pages load must come from
    us, and our own policy must allow it.
    """
    complaints: list[str] = []
    with ExitStack() as contexts:

        def open_one(*, scripts: bool = True, **options: Any) -> Page:
            context = browser.new_context(
                **({"viewport": DESKTOP, "locale": "en-GB"} | options), java_script_enabled=scripts
            )
            contexts.callback(context.close)
            context.set_default_timeout(10_000)
            page = context.new_page()

            def complain(message: ConsoleMessage) -> None:
                if message.type in ("error", "warning") and message.location["url"] != page.url:
                    complaints.append(message.text)

            def stay(request: Request) -> None:
                if urlsplit(request.url).hostname not in ("localhost", "127.0.0.1"):
                    complaints.append(f"asked {request.url}")

            page.on("request", stay)
            page.on("console", complain)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            return page

        yield open_one
    assert complaints == []

"""Both surfaces of the session's stack, and browsers with and without scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, ViewportSize, sync_playwright

from tests.console.house import House
from tests.gateway.pay.conftest import launched
from tests.support.stack import Stack

DESKTOP = ViewportSize(width=1100, height=780)
Open = Callable[..., Page]


@pytest.fixture(scope="session")
def house(stack: Stack) -> Iterator[House]:
    """One for the session; its tests make people of their own."""
    urls = stack.home.running_stack()["consoles"]
    with grpc.insecure_channel(stack.addresses["accounts"]) as channel:
        yield House(urls["console-desk"], urls["console-dashboard"], stack, channel)


@pytest.fixture(scope="module", autouse=True)
def _forgiven(house: House) -> None:
    """Each file begins without failed sign-ins of this machine's network: all tests of a session share its counter."""
    house.database("DELETE FROM guesses WHERE kind = 'network'")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; as for the customer's page, not for the whole session."""
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
                if urlsplit(request.url).hostname != "localhost":
                    complaints.append(f"asked {request.url}")

            page.on("request", stay)
            page.on("console", complain)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            return page

        yield open_one
    assert complaints == []

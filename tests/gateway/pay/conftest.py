"""A browser for the customer's page: one for all files, and a fresh context, as a new customer has it, per test."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserType,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
    sync_playwright,
)

from tests.gateway.desk import Desk, Shop

PHONE: Final = ViewportSize(width=320, height=640)
CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome")
Open = Callable[..., Page]


def _chromium() -> str:
    """Debian's Chromium, installed when we may; playwright's own download is not needed."""
    found = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (
            ["update"],
            ["install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"],
        ):
            quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run(
                ["apt-get", "-qq", *command], env=quiet, check=False, capture_output=True, timeout=600
            )
        found = shutil.which("chromium")
    if found is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, headless. Not for the whole session: while Playwright is open an event loop runs in this thread, and
    tests of asyncio could not start another.
    """
    _chromium()  # or skip
    with sync_playwright() as playwright:
        opened = launched(playwright.chromium)
        yield opened
        opened.close()


def launched(browsers: BrowserType, *arguments: str) -> Browser:
    """Chromium's sandbox refuses root, and containers often have no /dev/shm to speak of."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    return browsers.launch(
        executable_path=_chromium(), args=["--disable-dev-shm-usage", *sandbox, *arguments]
    )


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """`open_page(scripts=False, locale="ar", …)`: a small phone of a new customer, other options as playwright's.

    Whatever its pages ask for must come from us and be allowed by our own policy: nothing may be complained about.
    """
    complaints: list[str] = []
    with ExitStack() as contexts:

        def open_one(*, scripts: bool = True, **options: Any) -> Page:
            context = browser.new_context(
                **({"viewport": PHONE, "locale": "en-GB"} | options), java_script_enabled=scripts
            )
            contexts.callback(context.close)
            context.set_default_timeout(10_000)
            page = context.new_page()

            def complain(message: ConsoleMessage) -> None:
                if message.location["url"] != page.url:  # that the page itself is a 404 is no news
                    complaints.append(message.text)

            def stay(request: Request) -> None:
                """Whatever a page of ours loads is ours as well; where it leads to is another matter."""
                ours, asked = urlsplit(request.frame.url), urlsplit(request.url)
                is_loaded = ours.path.startswith("/pay/") and not request.is_navigation_request()
                if is_loaded and asked.netloc != ours.netloc:
                    complaints.append(f"{request.frame.url} asked {request.url}")

            page.on("request", stay)
            page.on("console", complain)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            return page

        yield open_one
    assert complaints == []


@pytest.fixture
def page(open_page: Open) -> Page:
    return open_page()


@pytest.fixture(scope="session")
def referenced(desk: Desk, currency: str, method: str) -> Shop:
    """A shop as `shop` is one; the transfers to its only method carry references, and it has two accounts."""
    code = desk.method(currency, takes_reference=True)
    for account in ("4000002500003155", "4000003800000446"):
        desk.requisite(code, account=account)
    return desk.shop(currency, allowed_methods=[code])

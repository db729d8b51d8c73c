"""The desk and the dashboard: every address, as a person who is signed in sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import MagicMock

import falcon.inspect
import pyotp
import requests

from console.app import routes as console_routes
from console.config import DashboardSettings, DeskSettings
from console.surfaces import DASHBOARD, DESK
from gateway.app import routes as gateway_routes
from kit.base.clock import SystemClock
from tests.referee.pages import seen_on

if TYPE_CHECKING:
    from tests.referee.day import Day

PASSWORD: Final = "a lamp beside the green table"
UNUSUAL: Final = re.compile("/(sign-out|account/sessions/end-others|account/totp/remove|people/.*/disable)")
"""Steps that would end the visitor's own session, or its way to sign in."""


def addresses(surface: str) -> list[tuple[str, Sequence[str]]]:
    """Every address of the gateway, the desk or the dashboard, with its methods."""
    settings: Any = MagicMock(public_url="https://pay.example.com")
    for name in ("", "page_", "network_page_"):
        setattr(settings, f"{name}requests_per_minute", 0)
    settings.rate_limit_per_minute = settings.strangers_per_minute = 0
    if surface == "gateway":
        app = gateway_routes(MagicMock(settings=settings))
    else:
        settings.__class__ = DeskSettings if surface == "desk" else DashboardSettings
        app = console_routes(MagicMock(surface=DESK if surface == "desk" else DASHBOARD, settings=settings))
    return sorted(
        (route.path, [each.method for each in route.methods if not each.internal])
        for route in falcon.inspect.inspect_routes(app)
    )


def visit(day: Day, surface: str) -> None:
    """Signs in by the link of the command line, adds both factors, opens every address, sends every form empty."""
    part, link = surface, day.names[f"{surface}_link"]
    origin = link.partition("/invitation")[0]
    browser = requests.Session()
    own = {"for_merchant": day.names["shop"]} if surface == "dashboard" else {}

    def ask(
        method: str, path: str, fields: dict[str, str] | None = None, *, step: str = ""
    ) -> requests.Response:
        answer = browser.request(
            method,
            origin + path,
            data=own | fields if fields is not None else None,
            headers={"Sec-Fetch-Site": "same-origin"} if method == "POST" else {},
            allow_redirects=False,
            stream=True,  # that of a live page does not end
            timeout=30,
        )
        day.record(part, step or f"{method} {path}", status=answer.status_code, **seen_on(answer))
        answer.close()
        return answer

    for path in ("/", "/sign-in"):
        ask("GET", path)
    token = link.partition("token=")[2]
    ask("GET", f"/invitation?token={token}", step="GET /invitation")
    ask("POST", "/invitation", {"token": "none"})
    ask("POST", "/invitation", {"token": token})
    setup = ask("POST", "/account/totp", {}).text
    (secret,) = re.findall(r'name="secret" value="([A-Z2-7]+)"', setup)
    (uri,) = re.findall(r'name="uri" value="([^"]+)"', setup)
    totp = pyotp.TOTP(secret)
    code = totp.at(SystemClock().now())
    ask("POST", "/account/totp/confirm", {"secret": secret, "uri": unescape(uri), "code": code})
    ask("POST", "/account/password", {"password": PASSWORD, "repeated": PASSWORD})
    for path, methods in addresses(surface):
        if "GET" in methods:
            for filled in _filled(day, surface, path):
                ask("GET", filled, step=f"GET {path}")
    for path, methods in addresses(surface):
        if "POST" in methods and not UNUSUAL.match(path):
            filled = re.sub(r"\{(\w+)\}", lambda found: _UNKNOWN.get(found[1], day.names["unknown"]), path)
            ask("POST", filled, {}, step=f"POST {path}")


_UNKNOWN: Final = {"service": "catalog", "number": "999999", "event_id": "999999", "currency_code": "ZZZ"}


def _filled(day: Day, surface: str, path: str) -> Iterator[str]:
    """The address with ids of the day; where the day has none, with an unknown one."""
    given = {
        "merchant_id": "shop",
        "deal_id": "paid_deal",
        "invoice_id": "paid",
        "requisite_id": "requisite",
        "event_id": "event",
        "withdraw_uuid": "sent",
        "number": "case",
        "approval_id": "approval",
        "key_id": "key",
        "person_id": f"{surface}_person",
        "owner_id": "owner",
        "logo": "logo",
    }
    fixed = {"currency_code": "QQC", "method_code": "quo-bank", "service": "invoices", "code": "QQ-TRC20"}
    fixed |= {"kind": "appeal", "colour": "1d5bb8"}
    yield re.sub(
        r"\{(\w+)\}",
        lambda found: (
            fixed.get(found[1]) or str(day.names.get(given.get(found[1], ""), day.names["unknown"]))
        ),
        path,
    )

"""Test mode, in which the stack is, and live mode: a gateway beside it that says it is live."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final, Literal

import pytest
import requests

from gateway.config import GatewaySettings
from gateway.wiring import Deps
from tests.gateway.desk import HTTP_SECONDS, Shop, code_of
from tests.gateway.process import NOWHERE, SERVICES, gateway_process
from tests.support.stack import Stack

BANNER: Final = "Test mode: no real money"
NO_ID: Final = "0192f0c1-2345-7abc-8def-0123456789ab"


@pytest.fixture(scope="module")
def live(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("live") / "gateway.log"
    with gateway_process(stack.addresses, log, FIATGATE_MODE="live") as url:
        yield url


def test_answers_about_money_are_marked(shop: Shop) -> None:
    assert shop.api_key.startswith("fg_test_")
    created = shop.create()
    listed = shop.get("/api/v1/invoices").json()["data"]
    read = shop.get(f"/api/v1/invoices/{created['invoice_id']}").json()["data"]
    assert [each["test"] for each in (created, *listed, read)] == [True] * (len(listed) + 2)


@pytest.mark.parametrize(("mode", "marked"), [("live", {"a": 1}), ("test", {"a": 1, "test": True})])
def test_in_live_mode_answers_have_no_mark(mode: Literal["live", "test"], marked: dict[str, Any]) -> None:
    addresses: dict[str, Any] = {f"{name}_address": NOWHERE for name in SERVICES}
    deps: Any = SimpleNamespace(settings=GatewaySettings(mode=mode, **addresses))
    assert Deps.marked(deps, {"a": 1}) == marked


@pytest.mark.parametrize("path", ["/api/v1/invoices", "/api/v1/balance"])
def test_a_key_of_the_other_mode_is_refused_as_such(stack: Stack, shop: Shop, live: str, path: str) -> None:
    own, other = shop.api_key, shop.api_key.replace("_test_", "_live_")
    answers = [
        requests.get(url + path, headers={"X-Api-Key": key}, timeout=HTTP_SECONDS)
        for url, key in ((live, own), (stack.url, other), (live, other))
    ]
    assert [code_of(each) for each in answers] == ["API_KEY_WRONG_MODE"] * 2 + ["API_KEY_INVALID"]
    assert {each.status_code for each in answers} == {403}


def test_every_page_has_the_banner_in_test_mode_alone(stack: Stack, shop: Shop, live: str) -> None:
    paths = [f"/pay/{shop.create()['invoice_id']}", f"/pay/{NO_ID}", "/docs", "/docs/guide"]
    shown = {
        url: [BANNER in requests.get(url + path, timeout=HTTP_SECONDS).text for path in paths]
        for url in (stack.url, live)
    }
    assert shown == {stack.url: [True] * 4, live: [False] * 4}
    for console in stack.home.running_stack()["consoles"].values():
        assert BANNER in requests.get(f"{console}/sign-in", timeout=HTTP_SECONDS).text

"""Test mode, in which the stack is, and live mode: a gateway beside it that says it is live."""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final, Literal
from urllib.parse import quote

import pytest
import requests

from gateway.config import GatewaySettings
from gateway.wiring import Deps
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop, code_of, settled
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


def test_live_mode_has_no_address_of_test_mode(stack: Stack, shop: Shop, live: str) -> None:
    invoice_id = shop.create()["invoice_id"]
    for url, keys, statuses in (
        (live, {}, [404] * 3),
        (stack.url, {"X-Api-Key": shop.api_key}, [404, 200, 303]),
    ):
        paths = ("/api/v1/x", f"/api/v1/test/invoices/{invoice_id}/select", f"/pay/{invoice_id}/simulate")
        asked = [
            requests.post(
                url + path,
                headers=keys,
                data=None if path.startswith("/api") else {"step": "confirm"},
                timeout=HTTP_SECONDS,
                allow_redirects=False,
            )
            for path in paths
        ]
        assert [each.status_code for each in asked] == statuses
        assert code_of(asked[0]) == "NOT_FOUND" and (url != live or code_of(asked[1]) == "NOT_FOUND")
    described = requests.get(f"{live}/api/v1/openapi.json", timeout=HTTP_SECONDS).text
    assert "/test/" not in described and "Test mode" not in described and "Simulate" not in described


def simulate(shop: Shop, reference: str, step: str, **body: str) -> Any:
    path = f"/api/v1/test/invoices/{quote(reference, safe='')}/{step}"
    answer = shop.post(path, **({"json": body} if body else {}))
    return answer.json()["data"] if answer.ok else code_of(answer)


def test_a_program_takes_a_payment_to_its_end(desk: Desk, shop: Shop, method: str) -> None:
    created = shop.create()
    reference = created["external_id"]
    assert simulate(shop, reference, "confirm") == "DEAL_STATE_CONFLICT"
    assert simulate(shop, reference, "select")["deal"]["payment_method_code"] == method
    assert simulate(shop, reference, "mark-paid")["deal"]["sub_status"] == "awaiting_confirmation"
    assert simulate(shop, reference, "resolve", amount="1000000.00") == "ADJUSTMENT_INVALID"
    adjusted = simulate(shop, reference, "resolve", amount="1.50")
    assert (adjusted["status"], adjusted["final_amount"], adjusted["test"]) == ("success", "1.50", True)
    assert adjusted == shop.get(f"/api/v1/invoices/{created['invoice_id']}").json()["data"]
    assert simulate(shop, reference, "cancel") == "INVOICE_FINISHED"
    assert simulate(shop, reference, "win") == "NOT_FOUND"
    settled(lambda: desk.available(shop) != "0.000000", "the credit")


def test_a_program_reaches_no_other_merchants_invoice(desk: Desk, shop: Shop, currency: str) -> None:
    other = desk.open_shop(currency)
    assert simulate(other, shop.create()["invoice_id"], "cancel") == "INVOICE_NOT_FOUND"


@pytest.mark.parametrize(
    ("customer_id", "code"),
    [
        ("test_no_requisites", "NO_AVAILABLE_REQUISITES"),
        ("test_rate_limit", "CUSTOMER_RATE_LIMIT"),
        ("test_deals_disabled", "DEALS_SYSTEM_DISABLED"),
        ("test_unavailable", "DB_UNAVAILABLE"),
        ("test_rate_limited", "RATE_LIMITED"),
    ],
)
def test_a_customer_id_gets_the_refusal_that_it_asks_for(shop: Shop, customer_id: str, code: str) -> None:
    assert code_of(shop.post("/api/v1/create-invoice", json=shop.body(customer_id=customer_id))) == code


def pressed(stack: Stack, invoice_id: str, words: str) -> str:
    """Presses the button without scripts and returns the page that follows."""
    page = f"{stack.url}/pay/{invoice_id}"
    html = requests.get(page, timeout=HTTP_SECONDS).text
    (form,) = re.findall(
        rf'<form method="post" action="/pay/{invoice_id}/simulate">\n(.*?)<button>{words}<', html, re.DOTALL
    )
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form.rpartition("<form")[2]))
    return requests.post(
        f"{page}/simulate", data=fields, headers={"Origin": stack.url}, timeout=HTTP_SECONDS
    ).text


@pytest.mark.parametrize(
    ("words", "shown", "status"),
    [
        ("The money came", "Payment received", "success"),
        ("Half of it came", "Part payment accepted", "success"),
        ("No money came", "The payment did not go through", "fail"),
        ("The money comes too late", "Your case number is", "expired"),
    ],
)
def test_a_button_of_the_page_does_what_the_bank_would(
    stack: Stack, desk: Desk, shop: Shop, method: str, words: str, shown: str, status: str
) -> None:
    invoice_id = shop.create()["invoice_id"]
    desk.choose(invoice_id, method)
    assert shown in pressed(stack, invoice_id, words)
    assert shop.get(f"/api/v1/invoices/{invoice_id}").json()["data"]["status"] == status


def test_every_page_has_the_banner_in_test_mode_alone(stack: Stack, shop: Shop, live: str) -> None:
    paths = [f"/pay/{shop.create()['invoice_id']}", f"/pay/{NO_ID}", "/docs", "/docs/guide"]
    shown = {
        url: [BANNER in requests.get(url + path, timeout=HTTP_SECONDS).text for path in paths]
        for url in (stack.url, live)
    }
    assert shown == {stack.url: [True] * 4, live: [False] * 4}
    for console in stack.home.running_stack()["consoles"].values():
        assert BANNER in requests.get(f"{console}/sign-in", timeout=HTTP_SECONDS).text

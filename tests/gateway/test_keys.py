"""One call for all who wait for the same answer, and keys that are used until their lease ends: on the real stack."""

import re
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from deploy.local.waiting import wait_until
from fiatgate.merchants.v1 import merchants_pb2
from gateway.openapi.document import operations
from kit.base.clock import SystemClock
from kit.base.ids import new_id
from tests.gateway.conformance import documented
from tests.gateway.desk import Desk, Shop, code_of
from tests.support.stack import Stack

CLIENTS = 24
REQUESTS = 8
"""More than enough to reach both workers of the gateway."""
AUTHENTICATE = "/fiatgate.merchants.v1.MerchantsService/Authenticate"


def authenticate_calls(stack: Stack) -> float:
    (address,) = stack.home.running_stack()["metrics"]["identity"]
    text = requests.get(f"http://{address}/metrics", timeout=10).text
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    calls = [each for each in samples if each.name == "fiatgate_rpc_calls_total"]
    return sum(each.value for each in calls if each.labels["method"] == AUTHENTICATE)


def test_requests_that_wait_for_one_key_share_a_call(stack: Stack, desk: Desk, shop: Shop) -> None:
    made = desk.merchants.CreateApiKey(merchants_pb2.CreateApiKeyRequest(merchant_id=shop.merchant_id))
    key = {"X-Api-Key": made.api_key}  # a key that has no lease yet
    before = authenticate_calls(stack)
    with psycopg2.connect(stack.superuser_url("identity")) as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE")  # whoever asks now has to wait
        with ThreadPoolExecutor(CLIENTS) as threads:
            asked = [threads.submit(shop.get, "/api/v1/currencies", headers=key) for _ in range(CLIENTS)]
            wait_until(lambda: _waiting_for_lock(stack) > 0, "a call to wait", timeout_seconds=10)
            connection.rollback()
            answers = [each.result() for each in asked]
    connection.close()
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.headers["X-Request-Id"] for answer in answers}) == CLIENTS
    # Two gateway workers, one call under way and one after it each; more only for those that came later still.
    assert 0 < authenticate_calls(stack) - before < CLIENTS


def test_a_deactivated_key_is_refused_from_the_next_request_on_whatever_is_under_way(
    stack: Stack, desk: Desk, shop: Shop
) -> None:
    request = merchants_pb2.CreateApiKeyRequest(merchant_id=shop.merchant_id)
    for _ in range(2):
        made = desk.merchants.CreateApiKey(request)
        stop = threading.Event()

        def traffic(key: str = made.api_key, stop: threading.Event = stop) -> Counter[int]:
            seen: Counter[int] = Counter()
            while not stop.is_set() and sum(seen.values()) < 2000:
                url = f"{shop.url}/api/v1/withdrawals/{new_id()}"  # a list has a bound per merchant
                seen[requests.get(url, headers={"X-Api-Key": key}, timeout=20).status_code] += 1
            return seen

        with ThreadPoolExecutor(8) as threads:
            loads = [threads.submit(traffic) for _ in range(8)]
            desk.merchants.DeactivateApiKey(merchants_pb2.DeactivateApiKeyRequest(key_id=made.key_id))
            after = [shop.get("/api/v1/withdrawals", headers={"X-Api-Key": made.api_key}) for _ in range(10)]
            stop.set()
            statuses = sum((load.result() for load in loads), Counter())
        assert [code_of(answer) for answer in after] == ["API_KEY_INVALID"] * 10
        assert set(statuses) <= {404, 403}


def deactivate(desk: Desk, shop: Shop) -> None:
    desk.merchants.DeactivateApiKey(merchants_pb2.DeactivateApiKeyRequest(key_id=shop.key_id))


def deactivate_again(desk: Desk, shop: Shop) -> None:
    """After a first act that was committed, and was cut off before its answer."""
    now = SystemClock().now()
    change = "UPDATE api_keys SET deactivated_at = :now WHERE id = :id"
    act = ("key.deactivate", f"key:{shop.key_id}", {"deactivated_at": now})
    desk.stack.decide("identity", change, *act, now=now, id=shop.key_id)
    deactivate(desk, shop)


def ban(desk: Desk, shop: Shop) -> None:
    desk.merchants.BanMerchant(merchants_pb2.BanMerchantRequest(merchant_id=shop.merchant_id))


def block(desk: Desk, shop: Shop) -> None:
    desk.merchants.BlockOwner(merchants_pb2.BlockOwnerRequest(email=shop.owner_email))


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (deactivate, "API_KEY_INVALID"),
        (deactivate_again, "API_KEY_INVALID"),
        (ban, "MERCHANT_BLOCKED"),
        (block, "OWNER_BLOCKED"),
    ],
)
def test_a_merchant_that_was_stopped_is_refused_although_its_key_was_just_used(
    desk: Desk, currency: str, act: Callable[[Desk, Shop], None], reason: str
) -> None:
    used = desk.shop(currency)
    answers = [used.get("/api/v1/currencies") for _ in range(REQUESTS)]
    assert {answer.status_code for answer in answers} == {200}
    act(desk, used)
    answers = [used.get("/api/v1/currencies") for _ in range(REQUESTS)]
    assert [code_of(answer) for answer in answers] == [reason] * REQUESTS


def test_changed_options_hold_from_the_answer_on(desk: Desk, currency: str, method: str) -> None:
    code = desk.category("0.04")
    used = desk.shop(currency, category_code=code, allowed_methods=[method])

    def commissions() -> set[str]:
        offers = [used.get(f"/api/v1/payment-methods?currency={currency}").json()["data"] for _ in range(4)]
        return {offer["max_commission"] for each in offers for offer in each}

    before = commissions()
    desk.merchants.SetCategory(merchants_pb2.SetCategoryRequest(code=code, commission="0.3"))
    assert len(before) == len(after := commissions()) == 1
    assert before != after
    change = merchants_pb2.ConfigureMerchantRequest(
        merchant_id=used.merchant_id, allowed_methods=merchants_pb2.AllowedCodes(codes=["none"])
    )
    desk.merchants.ConfigureMerchant(change)
    assert commissions() == set()


def _waiting_for_lock(stack: Stack) -> int:
    with (
        psycopg2.connect(stack.home.running_stack()["postgres_url"]) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        row = cursor.fetchone()
    connection.close()
    return int(row[0]) if row else 0


SCOPE_OF: dict[str, str] = {
    "createInvoice": "invoices:write",
    "cancelInvoice": "invoices:write",
    "createRefund": "refunds:write",
    "resendInvoiceWebhook": "webhooks:write",
    "simulateStep": "invoices:write",
}
"""Each other operation that is no GET needs a row."""


@pytest.mark.parametrize("scope", ["read", "invoices:write", "refunds:write", "webhooks:write"])
def test_a_key_may_do_what_its_scope_says_and_nothing_else(desk: Desk, shop: Shop, scope: str) -> None:
    request = merchants_pb2.CreateApiKeyRequest(merchant_id=shop.merchant_id, scopes=[scope])
    headers = {"X-Api-Key": desk.merchants.CreateApiKey(request).api_key}
    for path, verb, operation in operations(documented()):
        if not path.startswith("/api/"):
            continue
        needed = "read" if verb == "get" else SCOPE_OF[operation["operationId"]]
        answer = shop.request(verb, re.sub(r"\{.*?\}", str(new_id()), path), headers=headers)
        if needed == scope:
            assert answer.status_code < 400 or code_of(answer) != "API_KEY_SCOPE_MISSING", path
        else:
            assert (answer.status_code, code_of(answer)) == (403, "API_KEY_SCOPE_MISSING"), path
            assert answer.json()["error"]["details"] == {"scope": needed}

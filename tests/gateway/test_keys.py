"""One call for all who wait for the same answer, and still nothing remembered: on the real stack."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import requests

from deploy.local.waiting import wait_until
from fiatgate.merchants.v1 import merchants_pb2
from kit.base.ids import new_id
from tests.gateway.desk import Desk, Shop, code_of
from tests.support.stack import Stack

CLIENTS = 24


def authenticate_calls(stack: Stack) -> int:
    log = stack.home.logs / "merchants.log"
    return sum("MerchantsService/Authenticate" in line for line in log.read_text().splitlines())


def test_requests_that_wait_for_one_key_share_a_call(stack: Stack, shop: Shop) -> None:
    before = authenticate_calls(stack)
    with psycopg2.connect(stack.superuser_url("merchants")) as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE")  # whoever asks now has to wait
        with ThreadPoolExecutor(CLIENTS) as threads:
            asked = [threads.submit(shop.get, "/api/v1/currencies") for _ in range(CLIENTS)]
            wait_until(lambda: _waiting_for_lock(stack) > 0, "a call to wait", timeout_seconds=10)
            connection.rollback()
            answers = [each.result() for each in asked]
    connection.close()
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.headers["X-Request-Id"] for answer in answers}) == CLIENTS
    # Two gateway workers, one call under way and one after it each; more only for those that came later still.
    assert authenticate_calls(stack) - before < CLIENTS


def test_a_deactivated_key_is_refused_from_the_next_request_on_whatever_is_under_way(
    stack: Stack, desk: Desk, shop: Shop
) -> None:
    request = merchants_pb2.CreateApiKeyRequest(merchant_id=shop.merchant_id)
    for _ in range(5):
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


def _waiting_for_lock(stack: Stack) -> int:
    with (
        psycopg2.connect(stack.home.running_stack()["postgres_url"]) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        row = cursor.fetchone()
    connection.close()
    return int(row[0]) if row else 0

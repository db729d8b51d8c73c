"""One test per code of docs/api.md#error-codes, through HTTP, on the whole stack."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import requests

from fiatgate.invoices.v1 import invoices_pb2
from gateway.json.problems import PROBLEMS
from gateway.openapi.document import codes_of, document, operations
from kit.base.clock import SystemClock
from services.catalog.domain import Origin, Rate
from services.catalog.store.rates import seal_of_rate
from tests.gateway.conformance import assert_documented
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop, code_of, settled, unique
from tests.gateway.strangers import Watched
from tests.support.receiver import Answer, Receiver
from tests.support.stack import Stack

CREATE = "/api/v1/create-invoice"
SOMEBODYS = "0192f0c1-2345-7abc-8def-0123456789ab"


def assert_refused(response: requests.Response, code: str) -> dict[str, object]:
    """The documented code with its documented status; returns `error`."""
    assert code_of(response) == code, response.text
    assert response.status_code == PROBLEMS[code].status
    assert response.headers["Content-Type"] == "application/json"
    error: dict[str, object] = response.json()["error"]
    return error


# -- authentication


@pytest.mark.parametrize(("path", "verb"), [(path, method) for path, method, _ in operations(document())])
def test_api_key_missing_and_api_key_invalid_on_every_path(shop: Shop, path: str, verb: str) -> None:
    address = path.format(invoice_ref=SOMEBODYS, withdraw_uuid=SOMEBODYS, step="confirm")
    keyless = requests.request(verb, shop.url + address, timeout=HTTP_SECONDS)
    assert_documented(keyless)
    assert_refused(keyless, "API_KEY_MISSING")
    for key, code in (("", "API_KEY_MISSING"), ("x", "API_KEY_INVALID")):
        assert_refused(shop.request(verb, address, headers={"X-Api-Key": key}), code)


def test_merchant_not_active(desk: Desk, currency: str) -> None:
    assert_refused(desk.shop(currency, active=False).get("/api/v1/invoices"), "MERCHANT_NOT_ACTIVE")


# -- create-invoice


def test_duplicate_external_id_names_the_first_invoice(shop: Shop) -> None:
    first = shop.create()
    error = assert_refused(
        shop.post(CREATE, json=shop.body(external_id=first["external_id"])), "DUPLICATE_EXTERNAL_ID"
    )
    assert error["details"] == {
        "invoice_id": first["invoice_id"],
        "status": "pending",
        "payment_link": first["payment_link"],
        "amount": first["amount"],
        "currency": first["currency"],
    }


def test_pending_invoice_exists(shop: Shop) -> None:
    first = shop.create()
    error = assert_refused(
        shop.post(CREATE, json=shop.body(customer_id=first["customer_id"])), "PENDING_INVOICE_EXISTS"
    )
    assert error["details"] == {"invoice_id": first["invoice_id"], "payment_link": first["payment_link"]}


def test_customer_rate_limit_says_when_to_come_back(desk: Desk, shop: Shop) -> None:
    customer = unique("customer")
    for _ in range(5):
        desk.cancel(shop.create(customer_id=customer)["invoice_id"])
    error = assert_refused(shop.post(CREATE, json=shop.body(customer_id=customer)), "CUSTOMER_RATE_LIMIT")
    details = error["details"]
    assert isinstance(details, dict)
    assert list(details) == ["window_minutes", "limit", "next_allowed_at", "customer_id"]
    assert (details["window_minutes"], details["limit"], details["customer_id"]) == (60, 5, customer)
    assert datetime.fromisoformat(details["next_allowed_at"]).utcoffset() is not None


@pytest.mark.parametrize(
    ("changes", "code", "details"),
    [
        ({"currency_code": "ZZZ"}, "CURRENCY_INVALID", {"currency": "ZZZ"}),
        ({"amount": "9.99"}, "AMOUNT_BELOW_MIN", {"minimum": "10.00", "currency": ...}),
        ({"amount": "100000.01"}, "AMOUNT_ABOVE_MAX", {"maximum": "100000.00", "currency": ...}),
        (
            {"callback_url": None, "fail_url": None},
            "MISSING_REQUIRED_URLS",
            {"fields": ["callback_url", "fail_url"]},
        ),
    ],
)
def test_an_order_that_cannot_be_taken(
    shop: Shop, changes: dict[str, str | None], code: str, details: dict[str, object]
) -> None:
    if details.get("currency") is ...:
        details = details | {"currency": shop.currency}
    error = assert_refused(shop.post(CREATE, json=shop.body(**changes)), code)
    assert error["details"] == details


def test_payment_method_not_found(desk: Desk, currency: str) -> None:
    """The amount is within the currency's bounds but in no method's range."""
    method = desk.method(currency, min_sum="20", max_sum="5000")
    desk.requisite(method)
    shop = desk.shop(currency, allowed_methods=[method])
    assert_refused(shop.post(CREATE, json=shop.body(amount="15.00")), "PAYMENT_METHOD_NOT_FOUND")


def test_deals_system_disabled(desk: Desk, shop: Shop) -> None:
    desk.deals.SetDealsSystem(invoices_pb2.SetDealsSystemRequest(enabled=False))
    try:
        settled(
            lambda: shop.post(CREATE, json=shop.body()).status_code == 503, "the switch to be seen everywhere"
        )
        response = shop.post(CREATE, json=shop.body())
    finally:
        desk.deals.SetDealsSystem(invoices_pb2.SetDealsSystemRequest(enabled=True))
    assert_refused(response, "DEALS_SYSTEM_DISABLED")
    assert 5 <= int(response.headers["Retry-After"]) <= 10


def test_no_available_requisites(desk: Desk, currency: str) -> None:
    """Without an account, and for an amount that no account can take."""
    disabled, busy = desk.method(currency), desk.method(currency)
    requisite_id = desk.requisite(disabled)
    desk.requisite(busy)
    shop = desk.shop(currency, allowed_methods=[disabled])
    assert shop.create()
    desk.deals.DisableRequisite(invoices_pb2.DisableRequisiteRequest(requisite_id=requisite_id))
    assert_refused(shop.post(CREATE, json=shop.body()), "NO_AVAILABLE_REQUISITES")
    shop = desk.shop(currency, allowed_methods=[busy])
    desk.choose(shop.create(amount="499.00")["invoice_id"], busy)
    response = shop.post(CREATE, json=shop.body(amount="499.00"))
    assert assert_refused(response, "NO_AVAILABLE_REQUISITES")["details"] == {}  # the cause is for operators
    assert 5 <= int(response.headers["Retry-After"]) <= 10
    assert shop.create(amount="499.01")


# -- reading invoices and webhooks


@pytest.mark.parametrize("suffix", ["", "/webhooks"])
def test_invoice_not_found(shop: Shop, suffix: str) -> None:
    assert_refused(shop.get(f"/api/v1/invoices/{SOMEBODYS}{suffix}"), "INVOICE_NOT_FOUND")
    assert_refused(shop.get(f"/api/v1/invoices/no-such-order{suffix}"), "INVOICE_NOT_FOUND")


def test_invoices_not_found(desk: Desk, shop: Shop) -> None:
    assert_refused(desk.shop(shop.currency).get("/api/v1/invoices"), "INVOICES_NOT_FOUND")
    shop.create()
    assert_refused(shop.get("/api/v1/invoices?currency=zzz"), "INVOICES_NOT_FOUND")


def test_webhook_not_found(shop: Shop) -> None:
    invoice = shop.create()
    assert_refused(
        shop.post(f"/api/v1/invoices/{invoice['invoice_id']}/webhooks/resend"), "WEBHOOK_NOT_FOUND"
    )


def test_webhook_resend_cooldown(desk: Desk, shop: Shop, receiver: Receiver) -> None:
    path = _ended_with_callback(desk, shop, receiver.url())
    settled(lambda: shop.get(f"{path}/webhooks").json()["events_count"] == 1, "the webhook")
    settled(lambda: _status_of_event(shop, path) == "success", "the first delivery")
    assert shop.post(f"{path}/webhooks/resend").json()["resend"]["ok"] is True
    response = shop.post(f"{path}/webhooks/resend")
    error = assert_refused(response, "WEBHOOK_RESEND_COOLDOWN")
    assert error["details"] == {"retry_after_seconds": int(response.headers["Retry-After"])}
    assert 0 < int(response.headers["Retry-After"]) <= 60


def test_webhook_resend_conflict(desk: Desk, shop: Shop, receiver: Receiver) -> None:
    receiver.answer(Answer(delay_seconds=10))
    path = _ended_with_callback(desk, shop, receiver.url())
    receiver.wait_for(1)
    assert_refused(shop.post(f"{path}/webhooks/resend"), "WEBHOOK_RESEND_CONFLICT")


def _ended_with_callback(desk: Desk, shop: Shop, callback_url: str) -> str:
    """An invoice that ended at once; returns its path."""
    invoice = shop.create(callback_url=callback_url)
    desk.cancel(invoice["invoice_id"])
    return f"/api/v1/invoices/{invoice['invoice_id']}"


def _status_of_event(shop: Shop, path: str) -> str:
    status: str = shop.get(f"{path}/webhooks").json()["events"][0]["status"]
    return status


# -- currencies and payment methods


@pytest.fixture
def own_desk(stack: Stack) -> Iterator[Desk]:
    """Its currencies are disabled after the test: a wrong rate would refuse the currencies of all merchants."""
    with Desk(stack) as opened:
        yield opened


def insert_rate(desk: Desk, currency: str, *, age_minutes: int) -> None:
    """A rate of an operator, by SQL, with its seal."""
    rate = Rate(Decimal(90), Origin.OPERATOR, SystemClock().now() - timedelta(minutes=age_minutes))
    desk.catalog_database(
        "INSERT INTO rates (currency_code, source_rate, origin, taken_at, document, seal)"
        " VALUES (%s, %s, 'operator', %s, '{\"quotes\": []}', %s)",
        currency,
        rate.source_rate,
        rate.taken_at,
        seal_of_rate(desk.stack.seals_of("catalog"), currency, rate),
    )


@pytest.mark.parametrize(
    ("age_minutes", "code"),
    [
        (121, "RATES_UNAVAILABLE"),  # older than RATES_MAX_AGE_SECONDS
        (-5, "RATES_INVALID"),  # of a time that is to come
    ],
)
def test_a_rate_of_another_time(own_desk: Desk, age_minutes: int, code: str) -> None:
    currency = own_desk.currency(rate=None)
    insert_rate(own_desk, currency, age_minutes=age_minutes)
    response = own_desk.shop(currency).get("/api/v1/currencies")
    assert_refused(response, code)
    assert 5 <= int(response.headers["Retry-After"]) <= 10


def test_no_invoice_is_created_while_no_method_can_quote(own_desk: Desk) -> None:
    currency = own_desk.currency(rate=None)
    insert_rate(own_desk, currency, age_minutes=1)
    method = own_desk.method(currency)
    own_desk.requisite(method)
    shop = own_desk.open_shop(currency)
    invoice = shop.create()
    insert_rate(own_desk, currency, age_minutes=121)  # a newer decision, which has lapsed

    def refused() -> bool:
        return shop.post(CREATE, json=shop.body()).status_code == 503

    settled(refused, "the refusal")
    response = shop.post(CREATE, json=shop.body())
    assert_refused(response, "DEALS_SYSTEM_DISABLED")
    assert 5 <= int(response.headers["Retry-After"]) <= 10
    page = requests.get(invoice["payment_link"], timeout=HTTP_SECONDS).text
    assert "There is no valid exchange rate right now, so this cannot be paid." in page
    assert "in a minute" not in page


def test_rate_invalid(own_desk: Desk) -> None:
    """Its rate after the markup is no number above zero."""
    currency = own_desk.currency(markup="1")
    error = assert_refused(own_desk.shop(currency).get("/api/v1/currencies"), "RATE_INVALID")
    assert error["details"] == {"currency": currency}


def test_rate_not_found(desk: Desk) -> None:
    assert_refused(desk.shop(desk.currency(rate=None)).get("/api/v1/currencies"), "RATE_NOT_FOUND")


@pytest.mark.parametrize(("asked", "shown"), [("zzz", "ZZZ"), ("Euro!", "EURO!"), ("%00", "\0")])
def test_currency_not_found(shop: Shop, asked: str, shown: str) -> None:
    error = assert_refused(shop.get(f"/api/v1/payment-methods?currency={asked}"), "CURRENCY_NOT_FOUND")
    assert error["currency"] == shown


def test_merchant_category_missing(desk: Desk, currency: str) -> None:
    assert_refused(
        desk.shop(currency, category_code=None).get("/api/v1/payment-methods"), "MERCHANT_CATEGORY_MISSING"
    )


def test_merchant_category_not_found(desk: Desk, currency: str) -> None:
    """A row of a merchant may name a category that does not exist: no foreign key holds it."""
    shop = desk.shop(currency)
    change = "UPDATE merchants SET category_code = :code WHERE id = :id"
    code = unique("nowhere")
    act = ("merchant.configure", f"merchant:{shop.merchant_id}", {"category_code": code})
    desk.stack.decide("identity", change, *act, code=code, id=shop.merchant_id)
    assert_refused(shop.get("/api/v1/payment-methods"), "MERCHANT_CATEGORY_NOT_FOUND")


@pytest.mark.usefixtures("method")
def test_merchant_category_rate_invalid(desk: Desk, currency: str) -> None:
    """The category takes all of the money, and the method wants its part besides."""
    shop = desk.shop(currency, category_code=desk.category("1"))
    assert_refused(shop.get("/api/v1/payment-methods"), "MERCHANT_CATEGORY_RATE_INVALID")


# -- withdrawals


def test_withdrawals_not_found(shop: Shop) -> None:
    assert_refused(shop.get("/api/v1/withdrawals"), "WITHDRAWALS_NOT_FOUND")


@pytest.mark.parametrize("ref", [SOMEBODYS, "no-uuid", SOMEBODYS.replace("-", ""), "%00"])
def test_withdrawal_not_found(shop: Shop, ref: str) -> None:
    assert_refused(shop.get(f"/api/v1/withdrawals/{ref}"), "WITHDRAWAL_NOT_FOUND")


# -- any call


def test_validation_error(shop: Shop) -> None:
    error = assert_refused(shop.post(CREATE, json={}), "VALIDATION_ERROR")
    details = error["details"]
    assert isinstance(details, list)
    assert [fault["loc"] for fault in details] == [
        ["body", "amount"],
        ["body", "currency_code"],
        ["body", "customer_id"],
        ["body", "external_id"],
    ]
    assert {fault["code"] for fault in details} == {"missing"}


def test_internal_error(crippled: Watched, shop: Shop) -> None:
    """A neighbour that talks about something else is a mistake nobody planned for."""
    error = assert_refused(replace(shop, url=crippled.url).get("/api/v1/invoices"), "INTERNAL_ERROR")
    assert str(error["error_id"]) in crippled.log.read_text()


def test_db_unavailable(crippled: Watched, shop: Shop) -> None:
    """A service that is away, here withdrawals; its database away gives the same (tests/e2e)."""
    response = replace(shop, url=crippled.url).get("/api/v1/withdrawals")
    assert_refused(response, "DB_UNAVAILABLE")
    assert 5 <= int(response.headers["Retry-After"]) <= 10


def test_every_documented_code_has_a_test() -> None:
    tested = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [each.code for each in codes_of(document()) if f'"{each.code}"' not in tested] == []

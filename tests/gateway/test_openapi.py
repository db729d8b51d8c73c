"""openapi.yaml says what the gateway does, and nothing else: routes, codes, bounds, members, real answers.

Besides, every request of these tests is compared with it: tests/gateway/conformance.py.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from unittest.mock import MagicMock
from urllib.parse import quote
from uuid import UUID

import pytest
import requests
from falcon.inspect import inspect_routes
from jsonschema_rs import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from fiatgate.bank.v1 import feed_pb2
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from fiatgate.withdrawals.v1 import corrections_pb2, refunds_pb2, withdrawals_pb2
from gateway.access.auth import OPEN_PATHS
from gateway.api import catalog, invoices, money, refunds, webhooks, withdrawals
from gateway.app import routes
from gateway.config import GatewaySettings
from gateway.feed import lines
from gateway.json.body import CreateInvoice
from gateway.json.problems import PROBLEMS
from gateway.links import Links
from gateway.openapi.document import codes_of, document, errors_of, example_of, operations, resolved
from gateway.openapi.page import render
from services.webhooks.domain import FinishedInvoice, payload_of
from tests.gateway.conformance import documented, validator
from tests.gateway.desk import Desk, Shop, code_of, settled, unique
from tests.gateway.process import NOWHERE, SERVICES
from tests.support.receiver import Receiver
from tests.support.stack import Stack

INVOICE_ID: Final = "0192f0c1-2345-7abc-8def-0123456789ab"
CODES: Final = {each.code: each for each in codes_of(documented())}
OPERATIONS: Final = list(operations(documented()))
OF_MERCHANTS: Final = [each for each in OPERATIONS if each[0].startswith("/api/")]
"""tests/gateway/test_feed.py has the others."""

# Reasons for operators and for the customer's page: no call of /api/v1 is refused with one of them.
NOT_OF_THE_API: Final = {
    "API_KEY_NOT_FOUND", "CASE_NOT_FOUND", "CASE_STATE_CONFLICT", "CATEGORY_NOT_FOUND",
    "DEAL_NOT_FOUND", "EDIT_CONFLICT", "ERROR_REASON_UNSPECIFIED", "LINK_BUSY", "LINK_ENDED", "LINK_NOT_FOUND",
    "MERCHANT_NOT_FOUND", "MERCHANT_STATE_CONFLICT", "OWNER_NOT_FOUND", "PROOF_NOT_FOUND",
    "REFUND_NOT_FOUND", "REFUND_STATE_CONFLICT",
    "RATE_JUMPS", "RATE_NOT_HELD", "REQUISITE_NOT_FOUND", "SIGNING_SECRET_NOT_FOUND", "WEBHOOK_EVENT_NOT_FOUND",
    "WITHDRAWAL_ADDRESS_INVALID", "WITHDRAWAL_AMOUNT_INVALID", "WITHDRAWAL_METHOD_NOT_FOUND",
    "WITHDRAWAL_STATE_CONFLICT",
}  # fmt: skip


def test_the_document_is_valid_openapi() -> None:
    OpenAPIV31SpecValidator(documented()).validate()


def test_the_document_has_every_route_and_no_other() -> None:
    for mode in ("live", "test"):
        addresses: Any = {f"{name}_address": NOWHERE for name in SERVICES}
        settings = GatewaySettings(**addresses, mode=mode)
        app = routes(MagicMock(links=Links(settings.public_url), settings=settings))
        there = {each.path for each in inspect_routes(app)}
        described = {each for each in there if each.startswith(("/api/", "/feed/"))}
        assert described - OPEN_PATHS == set(document(is_test=mode == "test")["paths"])
        assert any("test" in each or "simulate" in each for each in there) is (mode == "test")


def test_the_document_has_every_code_of_the_api_and_no_other() -> None:
    assert set(CODES) == set(PROBLEMS) - NOT_OF_THE_API


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_code_has_the_status_words_and_members_that_are_answered(code: str) -> None:
    more = {"VALIDATION_ERROR": [422]}  # see the prose of docs/api.md#errors
    problem, told = PROBLEMS[code], CODES[code]
    assert told.statuses == [problem.status, *more.get(code, [])]
    assert told.text.startswith(problem.message)
    answered = [(f"details.{name}", convert) for name, convert in problem.details.items()]
    assert [(name, type(each)) for name, each in told.members.items()] == [
        (name, convert if isinstance(convert, type) else list)
        for name, convert in [*answered, *problem.members.items()]
    ]


@pytest.mark.parametrize("name", documented()["components"]["schemas"])
def test_the_example_of_an_object_is_valid(name: str) -> None:
    example = example_of(documented(), documented()["components"]["schemas"][name])
    assert not list(validator({"$ref": f"#/components/schemas/{name}"}).iter_errors(example))


@pytest.mark.parametrize("name", documented()["components"]["responses"])
def test_the_examples_of_an_error_are_valid(name: str) -> None:
    response = documented()["components"]["responses"][name]
    schema = response["content"]["application/json"]["schema"]
    for example in errors_of(documented(), response).values():
        assert not list(validator(schema).iter_errors(example))


# -- what generators of clients need (`make generators` runs nine of them)

ANSWERS: Final = [
    (where, response["content"]["application/json"]["schema"])
    for where, response in (
        (f"{path} {status}", resolved(documented(), each))
        for path, _, operation in OPERATIONS
        for status, each in operation["responses"].items()
    )
]


def inner(schema: Any) -> Iterator[dict[str, Any]]:
    """The schema and all within it."""
    if isinstance(schema, dict):
        yield schema
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from inner(each)


def test_generators_get_only_what_they_understand() -> None:
    for each in inner(documented()):
        assert not isinstance(each.get("const", ""), bool | int), "few can make a boolean or integer constant"
        assert "\\u" not in str(each.get("pattern")), "Go's expressions have no such escape"
        assert each.get("default", "") is not None, "openapi-typescript makes such a member required"
    (webhook,) = (each["post"] for each in documented()["webhooks"].values())
    of_endpoints = {tag for _, _, each in OPERATIONS for tag in each["tags"]}
    assert not of_endpoints & set(webhook["tags"]), (
        "the class of the webhook would overwrite that of the endpoints"
    )
    assert all(len(each["tags"]) == 1 for _, _, each in OPERATIONS), "one class for each endpoint"


def test_an_error_has_one_schema() -> None:
    """A generator can't choose from `oneOf` without a discriminator: openapi-generator and ogen fail."""
    for where, schema in ANSWERS:
        if int(where.split()[-1]) >= 400:
            assert set(schema) == {"$ref"} and "oneOf" not in resolved(documented(), schema), where
    errors = {schema["$ref"].rpartition("/")[2] for where, schema in ANSWERS if int(where.split()[-1]) >= 400}
    assert errors == {"ErrorAnswer", "InvalidFields", "Refusal"}


def test_clients_bear_new_members_and_values() -> None:
    """Generated clients refuse others than these, unless the schema says that there may be more."""
    schemas = {**documented()["components"]["schemas"], **dict(ANSWERS)}
    for request in ("CreateInvoice", "CreateRefund", "Simulate", "PostLines", "NewBankLine"):
        del schemas[request]
    for name, schema in schemas.items():
        for each in inner(schema):
            assert "enum" not in each, f"{name}: x-extensible-enum"
            if each.get("type") == "object" and "properties" in each:
                assert each["additionalProperties"] is True, name


def test_the_example_of_create_invoice_passes_the_gateways_own_check() -> None:
    body = documented()["paths"]["/api/v1/create-invoice"]["post"]["requestBody"]
    CreateInvoice.model_validate(body["content"]["application/json"]["example"])


@pytest.mark.parametrize("allowed", [True, False])
def test_http_callbacks_are_documented_where_they_are_allowed(allowed: bool) -> None:
    described = document(http_callbacks=allowed)["components"]["schemas"]["CreateInvoice"]
    url = described["properties"]["callback_url"]
    assert Draft202012Validator(url).is_valid("http://127.0.0.1:9000/") is allowed


MARKED: Final = {"CreatedInvoice", "Invoice", "Withdrawal", "Refund", "WebhookPayload"}


@pytest.mark.parametrize("is_test", [True, False])
def test_the_mark_of_test_mode_is_documented_where_it_is_given(is_test: bool) -> None:
    schemas = document(is_test=is_test)["components"]["schemas"]
    marked = {name for name, each in schemas.items() if "test" in each.get("properties", {})}
    assert marked == (MARKED if is_test else set())


# -- members of answers, against what writes them

LINKS = Links("https://pay.example.com")
INVOICE = invoices_pb2.Invoice(
    status=invoices_pb2.INVOICE_STATUS_PENDING,
    deal=invoices_pb2.Deal(status=invoices_pb2.DEAL_STATUS_PENDING),
)
EVENT = webhooks_pb2.WebhookEvent(status=webhooks_pb2.EVENT_STATUS_PENDING, request_payload=b"{}")
ATTEMPT = webhooks_pb2.Attempt(
    trigger=webhooks_pb2.ATTEMPT_TRIGGER_AUTO, status=webhooks_pb2.ATTEMPT_STATUS_SUCCESS
)
WITHDRAWAL = withdrawals_pb2.Withdrawal(status=withdrawals_pb2.WITHDRAWAL_STATUS_PENDING)
REFUND = refunds_pb2.Refund(status=refunds_pb2.REFUND_STATUS_READY, origin=refunds_pb2.REFUND_ORIGIN_CREDITED)
POSTED_LINE = feed_pb2.PostedLine(
    direction=feed_pb2.LINE_DIRECTION_CREDIT, status=feed_pb2.LINE_STATUS_BOOKED
)
CORRECTION = corrections_pb2.Correction(kind=corrections_pb2.CORRECTION_KIND_REVERSAL)
FINISHED = FinishedInvoice(
    event_id=UUID(int=1),
    event_type="invoice.expired",
    invoice_id=UUID(int=2),
    merchant_id=UUID(int=3),
    key_id=UUID(int=4),
    external_id="order-1",
    status="expired",
    sub_status=None,
    finished_at=datetime(2026, 1, 15, tzinfo=UTC),
    expires_at=datetime(2026, 1, 15, tzinfo=UTC),
    amount="100.50",
    currency="EUR",
    rate_usd=None,
    callback_url=None,
    success_url=None,
    fail_url=None,
    is_adjusted=False,
    original_amount=None,
    adjusted_amount=None,
    reason="ttl_expired",
)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("CreatedInvoice", invoices.created_invoice_to_json(INVOICE, LINKS)),
        ("Invoice", invoices.invoice_to_json(INVOICE, LINKS)),
        ("Deal", invoices.deal_to_json(INVOICE.deal)),
        ("Currency", catalog.currency_offer_to_json(catalog_pb2.CurrencyOffer())),
        (
            "PaymentMethod",
            catalog.method_offer_to_json(catalog_pb2.MethodOffer(), Links("https://pay.example")),
        ),
        ("Withdrawal", withdrawals.withdrawal_to_json(WITHDRAWAL)),
        ("Refund", refunds.refund_to_json(REFUND)),
        ("Correction", money.correction_to_json(CORRECTION)),
        ("PostedOutcome", lines.outcome_to_json(feed_pb2.PostedOutcome(outcome=feed_pb2.OUTCOME_CREATED))),
        ("BankLine", lines.line_to_json(POSTED_LINE)),
        ("Balance", money.balance_to_json(withdrawals_pb2.GetBalanceResponse())),
        ("BalanceChange", money.balance_to_json(withdrawals_pb2.MerchantBalance())),
        (
            "StatementLine",
            money.transfer_to_json(withdrawals_pb2.Transfer(kind=withdrawals_pb2.TRANSFER_KIND_FEE)),
        ),
        ("Address", withdrawals.address_to_json(withdrawals_pb2.WithdrawalAddress())),
        ("WebhookEvent", webhooks.event_to_json(EVENT)),
        ("WebhookAttempt", webhooks.attempt_to_json(ATTEMPT)),
        ("WebhookPayload", json.loads(payload_of(FINISHED))),
    ],
)
def test_an_object_has_the_members_that_are_written(name: str, written: dict[str, Any]) -> None:
    schema = documented()["components"]["schemas"][name]
    optional = {"test"} | ({"metadata"} if name == "WebhookPayload" else set())
    assert [each for each in schema["properties"] if each not in optional] == schema["required"]
    assert schema["required"] == list(written)


def test_the_payload_of_a_webhook_is_as_documented() -> None:
    schema = {"$ref": "#/components/schemas/WebhookPayload"}
    for fact in (FINISHED, replace(FINISHED, metadata={"basket": "7"})):
        assert not list(validator(schema).iter_errors(json.loads(payload_of(fact))))


# -- real answers; many more are compared by every other test of the gateway


def test_a_purchase_and_its_webhook_are_as_documented(
    desk: Desk, shop: Shop, method: str, receiver: Receiver
) -> None:
    invoice = shop.create(callback_url=receiver.url(), external_id=f"{unique('order')}/ü?%")
    desk.confirm(invoice["invoice_id"], method)
    path = f"/api/v1/invoices/{quote(invoice['external_id'], safe='')}"
    (received,) = receiver.wait_for(1)
    schema = {"$ref": "#/components/schemas/WebhookPayload"}
    payload = json.loads(received.body)
    assert not list(validator(schema).iter_errors(payload)) and payload["test"] is True
    for header in documented()["webhooks"]["invoice-finished"]["post"]["parameters"]:
        assert re.search(header["schema"].get("pattern", "."), received.headers[header["name"].lower()])
    settled(lambda: shop.get(f"{path}/webhooks").json()["events"][0]["status"] == "success", "the delivery")
    assert shop.get(path).json()["data"]["deal"]["status"] == "completed"
    assert shop.post(f"{path}/webhooks/resend").json()["resend"]["ok"] is True
    assert shop.get("/api/v1/invoices").json()["total"] >= 1
    assert shop.get("/api/v1/currencies/").status_code == 200
    assert shop.get(f"/api/v1/payment-methods?currency={shop.currency}").status_code == 200


BOUNDED = [
    (path, parameter["name"], parameter["schema"])
    for path, _, operation in OF_MERCHANTS
    for parameter in (resolved(documented(), each) for each in operation.get("parameters", ()))
    if parameter["in"] == "query"
]


def values_of(schema: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What the schema takes, and what lies just outside of it."""
    if "enum" in schema:
        return schema["enum"], [schema["enum"][0].upper(), "x"]
    if schema["type"] == "integer":
        low, high = schema["minimum"], schema.get("maximum")
        return [str(low), str(high or 10**30)], [str(low - 1), "1.0", "x", *([str(high + 1)] if high else [])]
    if schema.get("format") == "uuid":
        return [], ["x", INVOICE_ID[1:]]
    if schema.get("format") == "date-time":
        good = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.25+05:30", "2026-01-01T00:00:00%2B00:00"]
        return good, ["2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "1999-01-01T00:00:00Z"]
    if "maxLength" in schema:
        return ["x", "x" * schema["maxLength"]], ["x" * (schema["maxLength"] + 1), "a%00b"]
    if re.match(schema["pattern"], "2026-01"):
        return ["2026-01", "2099-12"], ["2026-13", "2026-1", "1999-12", "x"]
    return ["EUR", "eur"], ["EU", "EURO", "E1R"]


@pytest.mark.parametrize(("path", "name", "schema"), BOUNDED, ids=lambda value: str(value)[:40])
def test_a_query_parameter_has_its_documented_bounds(
    shop: Shop, path: str, name: str, schema: dict[str, Any]
) -> None:
    """Nothing matching is 404: the value was understood. payment-methods says 404 for what is no code, too."""
    good, bad = values_of(schema)
    assert all(shop.get(f"{path}?{name}={value}").status_code in (200, 404) for value in good)
    for value in bad:
        refused = shop.get(f"{path}?{name}={value}")
        if path.endswith("payment-methods"):
            assert refused.status_code == 404
        else:
            assert [fault["field"] for fault in refused.json()["details"]] == [name]
            assert refused.status_code == 422


@pytest.mark.parametrize(("path", "verb"), [(path, verb) for path, verb, _ in OF_MERCHANTS])
def test_an_unknown_query_parameter_is_refused(shop: Shop, path: str, verb: str) -> None:
    refused = shop.request(verb, re.sub(r"\{.*?\}", INVOICE_ID, path) + "?curency=EUR")
    (fault,) = refused.json()["details"]
    assert (refused.status_code, fault["field"]) == (422, "curency")
    takes_it = "currency" in {name for where, name, _ in BOUNDED if where == path}
    assert ("did you mean currency?" in fault["message"]) is takes_it


@pytest.mark.parametrize("path", dict.fromkeys(path for path, _, _ in OF_MERCHANTS))
def test_only_the_documented_methods_are_taken(shop: Shop, path: str) -> None:
    documented_methods = {method.upper() for method in documented()["paths"][path]}
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - documented_methods:
        response = shop.request(method, re.sub(r"\{.*?\}", INVOICE_ID, path))
        assert code_of(response) == "METHOD_NOT_ALLOWED"
        assert set(response.headers["Allow"].split(", ")) - {"OPTIONS"} == documented_methods


# -- how it is served


def test_it_is_served_without_a_key_for_tools_anywhere(stack: Stack) -> None:
    response = requests.get(f"{stack.url}/api/v1/openapi.json", timeout=10)
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    served = response.json()
    assert served["servers"] == [{"url": stack.url}]
    assert served["paths"] == documented()["paths"]
    again = requests.get(response.url, headers={"If-None-Match": response.headers["ETag"]}, timeout=10)
    assert (again.status_code, again.content) == (304, b"")


def test_the_page_has_every_endpoint_code_and_recipe_and_nothing_from_elsewhere(stack: Stack) -> None:
    response = requests.get(f"{stack.url}/docs/", timeout=10)
    html = response.text
    assert response.headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    assert "unsafe" not in response.headers["Content-Security-Policy"]
    loaded = re.findall(r'<(?:link|img|iframe|script)[^>]*(?:href|src)="([^"]+)"', html)
    assert [each for each in loaded if not each.startswith(("/docs-static/", "data:,"))] == []
    for each in loaded:
        if each.startswith("/"):
            file = requests.get(stack.url + each, timeout=10)
            kind = "css" if each.endswith(".css") else "javascript"
            assert (file.status_code, file.headers["Content-Type"]) == (200, f"text/{kind}; charset=utf-8")
    anchors = set(re.findall(r'id="([^"]+)"', html))
    assert {operation["operationId"] for _, _, operation in OPERATIONS} | set(CODES) <= anchors
    assert set(re.findall(r'href="#([^"]+)"', html)) <= anchors
    assert "hash_equals" in html and "timingSafeEqual" in html and "hmac.Equal" in html


def test_a_page_behind_a_prefix_finds_its_files() -> None:
    html = render(documented(), prefix="/pay-by-fiat", is_test=False)
    assert 'href="/pay-by-fiat/docs-static/' in html
    assert 'href="/pay-by-fiat/api/v1/openapi.json"' in html

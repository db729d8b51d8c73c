"""Bad input gets the documented code in the documented shape; never a 500, never half an invoice.

`BODIES` is the one table of values of create-invoice: the gateway over HTTP and the schema of openapi.yaml judge each
of them alike.
"""

import gzip
import json
from typing import Any, Final

import pytest
import requests
from jsonschema_rs import Draft202012Validator

from gateway.api.references import MAX_CHARACTERS
from tests.gateway.conformance import documented
from tests.gateway.desk import HTTP_SECONDS, Shop, code_of, unique

CREATE: Final = "/api/v1/create-invoice"
JSON_TYPE: Final = {"Content-Type": "application/json"}


def post_raw(
    shop: Shop, body: bytes | str, content_type: str | None = "application/json"
) -> requests.Response:
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    return shop.post(
        CREATE, data=data, headers={} if content_type is None else {"Content-Type": content_type}
    )


def assert_body_invalid(response: requests.Response, *loc: str) -> None:
    """The first shape of docs/api.md#validation-errors: 400 and a list of {loc, code, message}."""
    assert (response.status_code, code_of(response)) == (400, "VALIDATION_ERROR"), response.text
    details = response.json()["error"]["details"]
    assert details and all(fault["loc"][0] == "body" for fault in details)
    if loc:
        assert [fault["loc"][: 1 + len(loc)] for fault in details] == [["body", *loc]], details


def assert_fields_invalid(response: requests.Response, *fields: str) -> None:
    """The 422 shape: {error, message, code, details: [{field, message}]}."""
    assert response.status_code == 422, response.text
    body = response.json()
    assert list(body) == ["error", "message", "code", "details", "successful", "request_id"]
    assert body["request_id"] == response.headers["X-Request-Id"]
    assert [fault["field"] for fault in body["details"]] == list(fields)


# -- bodies that are no strict JSON


NO_JSON: Final = [
    b"", b" ", b"{", b"amount=1", b"[]", b"null", b'"text"', b"1", b"{}{}",
    b'{"amount": NaN}', b'{"amount": Infinity}', b'{"amount": -Infinity}', b'{"amount": 01}',
    b"{'amount': '1'}", b'{"amount": "1",}', b'{"amount": "1"} // paid',
    b'\xff\xfe{"a": 1}', b'\xef\xbb\xbf{"amount": "1"}', '{"amount": "1"}'.encode("utf-16"),
    b'{"customer_id": "\xc3\x28"}', b'{"amount": "1", "amount": "2"}', b'{"amount": "1", "\\u0061mount": "2"}',
    b'{"x": {"a": 1, "a": 2}}', b"[" * 60_000, b'{"a":' * 10_000, b'{"amount": "1\n"}', b'{"amount": "\x00"}',
]  # fmt: skip


@pytest.mark.parametrize("body", NO_JSON, ids=lambda body: repr(body[:24]))
def test_a_body_that_is_not_strict_json_is_refused(shop: Shop, body: bytes) -> None:
    assert_body_invalid(post_raw(shop, body))


def test_a_body_has_the_type_json_in_utf_8(shop: Shop) -> None:
    form, latin = "application/x-www-form-urlencoded", "application/json; charset=latin-1"
    many = "application/json" + "(" * 2000
    for refused in (None, "", "text/plain", form, "application/jsonx", latin, many):
        assert_body_invalid(post_raw(shop, json.dumps(shop.body()), refused))
    for parameters in ("", "; charset=utf-8", ';charset="UTF-8"', "; charset=utf8", ";", "; version=1"):
        assert post_raw(shop, json.dumps(shop.body()), f"Application/JSON{parameters}").status_code == 201


def test_a_compressed_body_is_refused_whatever_is_in_it(shop: Shop) -> None:
    for body in (json.dumps(shop.body()).encode(), gzip.compress(json.dumps(shop.body()).encode())):
        refused = shop.post(CREATE, data=body, headers={**JSON_TYPE, "Content-Encoding": "gzip"})
        assert_body_invalid(refused)
        assert refused.json()["error"]["details"][0]["code"] == "content_encoding"


# -- members


NO_TEXTS: Final[list[Any]] = ["", "a\u0000b", 5, True, ["x"], {"x": 1}]
NO_URLS: Final[list[Any]] = [
    *NO_TEXTS, "shop.example/hook", "//shop.example/hook", "/thanks", "ftp://shop.example/", "javascript:alert(1)",
    "https://", "https:///path", "https://user@shop.example/", "https://user:password@shop.example/",
    "https://shop.example/a b", "https://shop.example/\r\nX-Injected: 1", "https://shop.example/\t",
    "https://shop.example\\@evil.example/", 'https://shop.example/"><script>', " https://shop.example/",
    "https://shop.example/\u2028", "https://shop.example/\u00a0", "https://shop.example/\u202emoc.elpmaxe",
    "https://shop.example/" + "a" * 2048,
]  # fmt: skip
# URLs that a pattern can't tell from good ones: the gateway alone refuses them.
UNREACHABLE: Final = [
    "https://shop.example:0/", "https://shop.example:65536/", "https://shop.example:port/", "https://[::1/",
    "https://.../hook", "https://-/hook", "https://a..b/", "https://a-.b/",
]  # fmt: skip
URLS: Final = [
    "http://shop.example:8443/a?b#c", "https://shop.example?order=1", "https://[2001:db8::1]/",
    "https://пример.example/سپاس\u200cگزار?für=日本", "https://shop.example/".ljust(2048, "a"),
]  # fmt: skip
BODIES: Final[dict[str, tuple[list[Any], list[Any]]]] = {
    "amount": (
        ["100.5", "00100.50", "0" * 60 + "100.5"],
        [100, 100.5, True, None, [], {}, "", " ", " 100", "100 ", "100\n", "-1", "+1", "1e3", "1E3", "0x10", "1_000",
         "1,000", "1.", ".5", "1.2.3", "NaN", "Infinity", "１００", "١٠٠", "1\u0000", "💰"],
    ),
    "currency_code": ([], ["eur", "EU", "EURO", "EUR\n", "ЕUR", "E R", "", 978, None]),
    "customer_id": (["💡" * 128, "é" * 128, "a\nb"], [*NO_TEXTS, None, "x" * 129, "💡" * 129]),
    "external_id": (["a/b?c#d%2F", "...", "💡" * 128], [*NO_TEXTS, None, "x" * 129, ".", ".."]),
    "purpose": (["p" * 512, "💡" * 512], [*NO_TEXTS, "x" * 513]),
    "callback_url": (URLS, NO_URLS),
    "success_url": (URLS, NO_URLS),
    "fail_url": (URLS, NO_URLS),
    "metadata": (
        [{"basket": "7"}, {"b": "", "a": "ü\n"}, {"k" * 40: "💡" * 500}, {str(n): "x" for n in range(20)}],
        ["x", 1, [], [{"a": "b"}], {"": "x"}, {"k" * 41: "x"}, {"a": "x" * 501}, {"a": 1}, {"a": None}, {"a": {}},
         {"a": "b\0"}, {"a\0": "b"}, {str(n): "x" for n in range(21)}],
    ),
    "unknown": ([1, {"a": [1, None]}], []),
}  # fmt: skip


def says(schema: Any, body: dict[str, Any]) -> bool:
    return Draft202012Validator(schema, validate_formats=True).is_valid(body)


@pytest.mark.parametrize("name", BODIES)
def test_a_member_is_judged_as_it_is_documented(shop: Shop, name: str) -> None:
    schema = documented()["components"]["schemas"]["CreateInvoice"]
    good, bad = BODIES[name]
    for value in good:
        body = shop.body() | {
            name: (unique() + value)[:128] if name.endswith("_id") and len(value) == 128 else value
        }
        assert says(schema, body), f"{value!r} is not documented"
        created = shop.post(CREATE, json=body)
        assert created.status_code == 201, f"{value!r} is refused: {created.text}"
        if name not in ("amount", "unknown"):
            assert created.json()[name] == body[name]
    for value in bad:
        body = shop.body() | {name: value}
        assert not says(schema, body), f"{value!r} is documented"
        assert_body_invalid(shop.post(CREATE, json=body), name)
    if name.endswith("_url"):
        for url in UNREACHABLE:
            assert_body_invalid(shop.post(CREATE, json=shop.body() | {name: url}), name)


def test_null_is_absent(shop: Shop) -> None:
    assert shop.post(CREATE, json=shop.body() | {"purpose": None}).json()["purpose"] is None
    for name in ("callback_url", "success_url", "fail_url"):
        response = shop.post(CREATE, json=shop.body() | {name: None})
        assert response.json()["error"]["details"] == {"fields": [name]}


@pytest.mark.parametrize("surrogate", ["\\ud800", "\\udfff", "\\ude00\\ud83d"])
def test_half_a_character_is_refused(shop: Shop, surrogate: str) -> None:
    assert_body_invalid(post_raw(shop, json.dumps(shop.body()).replace("Two lamps", surrogate)), "purpose")


def test_a_whole_character_in_two_halves_is_one(shop: Shop) -> None:
    body = json.dumps(shop.body()).replace("Two lamps", "\\ud83d\\udca1")
    assert post_raw(shop, body).json()["purpose"] == "💡"


def test_numbers_beyond_all_bounds_in_unknown_members_cost_nothing(shop: Shop) -> None:
    body = json.dumps(shop.body())[:-1] + ', "x": 1e999999999, "y": ' + "9" * 50_000 + "}"
    assert post_raw(shop, body).status_code == 201


def test_unknown_members_are_ignored(shop: Shop) -> None:
    assert shop.create(status="success", merchant_id="another")["status"] == "pending"


# -- amounts


@pytest.mark.parametrize(
    "amount",
    ["9999999999999.99", "9" * 18, "9" * 19, "9" * 41, "1" + "0" * 60_000, "9" * 300 + ".99"],
    ids=lambda amount: f"{len(amount)} characters",
)
def test_an_amount_of_any_size_is_above_the_maximum(shop: Shop, amount: str) -> None:
    assert code_of(shop.post(CREATE, json=shop.body(amount=amount))) == "AMOUNT_ABOVE_MAX"
    unknown = shop.post(CREATE, json=shop.body(amount=amount, currency_code="ZZZ"))
    assert code_of(unknown) == "CURRENCY_INVALID"  # it comes first, however large the amount


def test_more_than_two_decimals_is_the_other_shape(shop: Shop) -> None:
    for amount in ("100.001", "100.500", "0.000", "1." + "0" * 50, "1." + "9" * 60_000):
        assert_fields_invalid(shop.post(CREATE, json=shop.body(amount=amount)), "amount")
    first = shop.post(CREATE, json=shop.body(amount="100.001", customer_id=""))
    assert_body_invalid(first, "customer_id")  # the schema comes before the decimals


def test_zero_is_below_the_minimum(shop: Shop) -> None:
    for amount in ("0", "0.00", "00000"):
        assert code_of(shop.post(CREATE, json=shop.body(amount=amount))) == "AMOUNT_BELOW_MIN"


# -- large bodies


def test_a_large_body_is_refused_on_any_path_and_the_connection_lives_on(shop: Shop) -> None:
    bodies: list[Any] = [b"a" * (64 * 1024 + 1), b"a" * 10_000_000, (b"a" * 1000 for _ in range(2000))]
    nowhere = requests.post(f"{shop.url}/nowhere", data=b"a" * 100_000, timeout=HTTP_SECONDS)
    assert code_of(nowhere) == "PAYLOAD_TOO_LARGE"
    for body in bodies:
        response = shop.post(CREATE, data=body, headers=JSON_TYPE)
        assert (response.status_code, code_of(response)) == (413, "PAYLOAD_TOO_LARGE")
    with requests.Session() as session:
        session.post(f"{shop.url}{CREATE}", data=b"a" * 1_000_000, timeout=HTTP_SECONDS)
        assert session.get(f"{shop.url}/healthz", timeout=HTTP_SECONDS).status_code == 200


def test_a_body_of_exactly_64_kib_is_read(shop: Shop) -> None:
    assert post_raw(shop, json.dumps(shop.body()).encode().ljust(64 * 1024)).status_code == 201


# -- query values: tests/gateway/test_query.py and test_openapi.py have those that are wrong


def test_a_methods_query_without_one_value_is_told(shop: Shop) -> None:
    """A currency of any other form is CURRENCY_NOT_FOUND there."""
    for query in ("currency=", "currency=EUR&currency=EUR"):
        assert_fields_invalid(shop.get(f"/api/v1/payment-methods?{query}"), "currency")


# -- keys


def test_a_key_is_compared_to_the_letter(shop: Shop) -> None:
    own = shop.api_key
    strange = ["x", "fg_", "fg_' OR 1=1", "\xe9", "k" * 8000]
    for key in (*strange, own + "x", own[:-1], own.swapcase(), f'"{own}"', own + "\xa0"):
        refused = shop.get("/api/v1/invoices", headers={"X-Api-Key": key})
        assert (refused.status_code, code_of(refused)) == (403, "API_KEY_INVALID"), key


def test_spaces_around_the_key_are_not_part_of_it(shop: Shop) -> None:
    """RFC 9110 section 5.5: a header's value is without the whitespace around it; no server of ours ever sees it."""
    shop.create()
    assert shop.get("/api/v1/invoices", headers={"X-Api-Key": f"{shop.api_key} "}).status_code == 200


# -- addresses


def test_an_unknown_address_is_told_in_the_envelope(shop: Shop) -> None:
    unknown = "/nowhere /api/v1 /api/v2/invoices /api/v1/invoices/a/b /api/v1//invoices //api/v1/invoices"
    for path in (*unknown.split(), "///api/v1/openapi.json", "/%2e%2e/"):
        response = shop.get(path)
        assert (response.status_code, code_of(response)) == (404, "NOT_FOUND"), path


def test_a_method_that_http_has_but_we_do_not_is_told(shop: Shop) -> None:
    """test_openapi.py has the usual methods on every path."""
    assert code_of(shop.request("PURGE", "/api/v1/currencies")) == "METHOD_NOT_ALLOWED"


def test_a_reference_that_no_invoice_can_have_is_not_found(shop: Shop) -> None:
    strange = ["%00", "%FF", "%C3%28", "%ED%A0%80", "%", "%zz", "%2e%2e%2f", "' OR 1=1 --"]
    for ref in (*strange, "x" * (MAX_CHARACTERS + 1), "%F0%9F%92%A1" * (MAX_CHARACTERS + 1)):
        for suffix in ("", "/webhooks"):
            assert code_of(shop.get(f"/api/v1/invoices/{ref}{suffix}")) == "INVOICE_NOT_FOUND"
        assert code_of(shop.post(f"/api/v1/invoices/{ref}/webhooks/resend")) == "INVOICE_NOT_FOUND"

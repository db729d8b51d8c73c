"""Bad input gets the documented code in the documented shape; never a 500, never half an invoice."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
import requests

from tests.gateway.desk import Shop, code_of, unique

CREATE = "/api/v1/create-invoice"
JSON_TYPE = {"Content-Type": "application/json"}


def post_raw(
    shop: Shop, body: bytes | str, content_type: str | None = "application/json"
) -> requests.Response:
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    headers = {} if content_type is None else {"Content-Type": content_type}
    return shop.post(CREATE, data=data, headers=headers)


def assert_body_invalid(response: requests.Response, *loc: str) -> None:
    """Asserts the first shape of docs/api.md#validation-errors: 400 and a list of {loc, code, message}."""
    assert response.status_code == 400, response.text
    assert code_of(response) == "VALIDATION_ERROR"
    details = response.json()["error"]["details"]
    assert details
    for fault in details:
        assert set(fault) == {"loc", "code", "message"}
        assert fault["loc"][0] == "body"
    if loc:
        assert [fault["loc"] for fault in details] == [["body", *loc]], details


def assert_fields_invalid(response: requests.Response, *fields: str) -> None:
    """The 422 shape: {error, message, code, details: [{field, message}]}."""
    assert response.status_code == 422, response.text
    body = response.json()
    assert list(body) == ["error", "message", "code", "details", "successful", "request_id"]
    assert (body["error"], body["code"], body["successful"]) == ("VALIDATION_ERROR", 422, False)
    assert body["request_id"] == response.headers["X-Request-Id"]
    assert [fault["field"] for fault in body["details"]] == list(fields)


# -- what is no JSON, or not strictly

A_VALID_MEMBER = '"customer_id": "c"'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"amount=1",
        b"[]",
        b"null",
        b'"text"',
        b"1",
        b"{}{}",
        b'{"amount": NaN}',
        b'{"amount": Infinity}',
        b'{"amount": -Infinity}',
        b'{"amount": 01}',
        b"{'amount': '1'}",
        b'{"amount": "1",}',
        b'{"amount": "1"} // paid',
        b'\xff\xfe{"a": 1}',
        b'\xef\xbb\xbf{"amount": "1"}',
        '{"amount": "1"}'.encode("utf-16"),
        b'{"customer_id": "\xc3\x28"}',
        b'{"amount": "1", "amount": "2"}',
        b'{"amount": "1", "\\u0061mount": "2"}',
        b'{"x": {"a": 1, "a": 2}}',
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b'{"amount": "1\n"}',
        b'{"amount": "\x00"}',
    ],
    ids=lambda body: repr(body[:24]),
)
def test_a_body_that_is_not_strict_json_is_refused(shop: Shop, body: bytes) -> None:
    assert_body_invalid(post_raw(shop, body))


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "application/json; charset=latin-1",
    ],
)
def test_a_body_of_another_type_is_refused(shop: Shop, content_type: str | None) -> None:
    assert_body_invalid(post_raw(shop, json.dumps(shop.body()), content_type))


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json; charset=utf8",
        "application/json;",
        "application/json; version=1",
    ],
)
def test_json_may_say_that_it_is_utf_8(shop: Shop, content_type: str) -> None:
    assert post_raw(shop, json.dumps(shop.body()), content_type).status_code == 201


def test_a_compressed_body_is_refused_whatever_is_in_it(shop: Shop) -> None:
    for body in (json.dumps(shop.body()).encode(), gzip.compress(json.dumps(shop.body()).encode())):
        refused = shop.post(CREATE, data=body, headers={**JSON_TYPE, "Content-Encoding": "gzip"})
        assert_body_invalid(refused)
        assert refused.json()["error"]["details"][0]["code"] == "content_encoding"


@pytest.mark.parametrize("amount", ["9" * 18, "9" * 19, "9" * 41, "1" + "0" * 60_000, "9" * 300 + ".99"])
def test_an_amount_of_any_size_is_above_the_maximum(shop: Shop, amount: str) -> None:
    assert code_of(shop.post(CREATE, json=shop.body(amount=amount))) == "AMOUNT_ABOVE_MAX"
    unknown = shop.post(CREATE, json=shop.body(amount=amount, currency_code="ZZZ"))
    assert code_of(unknown) == "CURRENCY_INVALID"  # it comes first, however large the amount


@pytest.mark.parametrize("amount", ["100.000", "1." + "0" * 50, "1." + "9" * 60_000])
def test_too_many_decimals_are_told_whatever_their_number(shop: Shop, amount: str) -> None:
    assert_fields_invalid(shop.post(CREATE, json=shop.body(amount=amount)), "amount")


def test_leading_zeros_do_not_change_an_amount(shop: Shop) -> None:
    assert shop.create(amount="0" * 60 + "100.5")["amount"] == "100.50"


@pytest.mark.parametrize("external_id", [".", ".."])
def test_an_external_id_that_no_client_could_ask_for_is_refused(shop: Shop, external_id: str) -> None:
    assert_body_invalid(shop.post(CREATE, json=shop.body(external_id=external_id)), "external_id")


@pytest.mark.parametrize(
    "url", ["https://.../hook", "https://-/hook", "https://a..b/", "https://a-.b/", "https://"]
)
def test_a_callback_that_could_never_be_reached_is_refused(shop: Shop, url: str) -> None:
    assert_body_invalid(shop.post(CREATE, json=shop.body(callback_url=url)), "callback_url")


def test_numbers_beyond_all_bounds_in_unknown_members_cost_nothing(shop: Shop) -> None:
    body = json.dumps(shop.body())[:-1] + ', "x": 1e999999999, "y": ' + "9" * 50_000 + "}"
    assert post_raw(shop, body).status_code == 201


def test_unknown_members_are_ignored(shop: Shop) -> None:
    created = shop.create(status="success", merchant_id="another", nested={"a": [1, None]})
    assert created["status"] == "pending"


# -- members of the wrong form


@pytest.mark.parametrize(
    "amount",
    [
        100,
        100.5,
        True,
        None,
        [],
        {},
        "",
        " ",
        " 100",
        "100 ",
        "100\n",
        "-1",
        "+1",
        "1e3",
        "1E3",
        "0x10",
        "1_000",
        "1,000",
        "1.",
        ".5",
        "1.2.3",
        "NaN",
        "Infinity",
        "１００",
        "١٠٠",
        "1\u0000",
        "💰",
    ],
    ids=lambda amount: repr(amount)[:20],
)
def test_an_amount_of_the_wrong_form_is_refused(shop: Shop, amount: Any) -> None:
    response = shop.post(CREATE, json=shop.body() | {"amount": amount})
    assert_body_invalid(response, "amount")


@pytest.mark.parametrize("amount", ["100.001", "100.500", "0.000"])
def test_more_than_two_decimals_is_the_other_shape(shop: Shop, amount: str) -> None:
    assert_fields_invalid(shop.post(CREATE, json=shop.body(amount=amount)), "amount")


def test_the_schema_comes_before_the_decimals(shop: Shop) -> None:
    response = shop.post(CREATE, json=shop.body(amount="100.001", customer_id=""))
    assert_body_invalid(response, "customer_id")


@pytest.mark.parametrize("amount", ["0", "0.00", "00000"])
def test_zero_is_below_the_minimum(shop: Shop, amount: str) -> None:
    assert code_of(shop.post(CREATE, json=shop.body(amount=amount))) == "AMOUNT_BELOW_MIN"


def test_a_huge_amount_is_above_the_maximum(shop: Shop) -> None:
    assert code_of(shop.post(CREATE, json=shop.body(amount="9999999999999.99"))) == "AMOUNT_ABOVE_MAX"


@pytest.mark.parametrize("code", ["eur", "EU", "EURO", "EUR\n", "ЕUR", "E R", "", 978, None])
def test_a_currency_code_of_the_wrong_form_is_refused(shop: Shop, code: Any) -> None:
    assert_body_invalid(shop.post(CREATE, json=shop.body() | {"currency_code": code}), "currency_code")


@pytest.mark.parametrize(("name", "most"), [("customer_id", 128), ("external_id", 128), ("purpose", 512)])
def test_texts_are_measured_in_characters(shop: Shop, name: str, most: int) -> None:
    longest = unique() + "💡" * most
    assert shop.create(**{name: longest[:most]})[name] == longest[:most]
    assert_body_invalid(shop.post(CREATE, json=shop.body(**{name: "x" * (most + 1)})), name)


@pytest.mark.parametrize(
    "name", ["customer_id", "external_id", "purpose", "callback_url", "success_url", "fail_url"]
)
@pytest.mark.parametrize("value", ["", "a\u0000b", 5, True, ["x"], {"x": 1}], ids=repr)
def test_a_text_of_the_wrong_form_is_refused(shop: Shop, name: str, value: Any) -> None:
    assert_body_invalid(shop.post(CREATE, json=shop.body() | {name: value}), name)


@pytest.mark.parametrize("surrogate", ["\\ud800", "\\udfff", "\\ude00\\ud83d"])
def test_half_a_character_is_refused(shop: Shop, surrogate: str) -> None:
    body = json.dumps(shop.body()).replace("Two lamps", surrogate)
    assert_body_invalid(post_raw(shop, body), "purpose")


def test_a_whole_character_in_two_halves_is_one(shop: Shop) -> None:
    body = json.dumps(shop.body()).replace("Two lamps", "\\ud83d\\udca1")
    assert post_raw(shop, body).json()["purpose"] == "💡"


@pytest.mark.parametrize("name", ["purpose", "callback_url", "success_url", "fail_url"])
def test_null_is_absent(shop: Shop, name: str) -> None:
    response = shop.post(CREATE, json=shop.body() | {name: None})
    if name == "purpose":
        assert response.json()["purpose"] is None
    else:
        assert response.json()["error"]["details"] == {"fields": [name]}


@pytest.mark.parametrize(
    "url",
    [
        "shop.example/hook",
        "//shop.example/hook",
        "ftp://shop.example/",
        "javascript:alert(1)",
        "https://",
        "https:///path",
        "https://user@shop.example/",
        "https://user:password@shop.example/",
        "https://shop.example:0/",
        "https://shop.example:65536/",
        "https://shop.example:port/",
        "https://[::1/",
        "https://shop.example/a b",
        "https://shop.example/\r\nX-Injected: 1",
        "https://shop.example/\t",
        "https://shop.example\\@evil.example/",
        'https://shop.example/"><script>',
        " https://shop.example/",
        "https://shop.example/\u2028",
        "https://shop.example/\u00a0",
        "https://shop.example/\u202emoc.elpmaxe",
        "https://shop.example/" + "a" * 2048,
    ],
    ids=lambda url: url[:32],
)
@pytest.mark.parametrize("name", ["callback_url", "success_url"])
def test_a_url_of_the_wrong_form_is_refused(shop: Shop, name: str, url: str) -> None:
    assert_body_invalid(shop.post(CREATE, json=shop.body(**{name: url})), name)


def test_a_url_may_have_2048_characters(shop: Shop) -> None:
    url = "https://shop.example/".ljust(2048, "a")
    assert shop.create(callback_url=url, success_url=url, fail_url=url)["callback_url"] == url


def test_a_url_may_be_in_any_script(shop: Shop) -> None:
    url = "https://пример.example/سپاس\u200cگزار?für=日本"
    assert shop.create(success_url=url)["success_url"] == url


# -- large bodies


@pytest.mark.parametrize("size", [64 * 1024 + 1, 10_000_000])
def test_a_large_body_is_refused_and_the_answer_arrives(shop: Shop, size: int) -> None:
    response = post_raw(shop, b"a" * size)
    assert response.status_code == 413
    assert code_of(response) == "PAYLOAD_TOO_LARGE"


def test_a_large_body_without_a_length_is_refused(shop: Shop) -> None:
    chunks = (b"a" * 1000 for _ in range(2000))
    response = shop.post(CREATE, data=chunks, headers=JSON_TYPE)
    assert response.status_code == 413
    assert code_of(response) == "PAYLOAD_TOO_LARGE"


def test_a_body_that_says_it_is_too_large_is_refused_on_any_path(shop: Shop) -> None:
    response = requests.post(f"{shop.url}/nowhere", data=b"a" * 100_000, timeout=10)
    assert code_of(response) == "PAYLOAD_TOO_LARGE"


def test_the_connection_lives_on_after_a_large_body(shop: Shop) -> None:
    with requests.Session() as session:
        session.post(f"{shop.url}{CREATE}", data=b"a" * 1_000_000, timeout=10)
        assert session.get(f"{shop.url}/healthz", timeout=5).status_code == 200


def test_a_body_of_exactly_64_kib_is_read(shop: Shop) -> None:
    body = json.dumps(shop.body()).encode()
    assert post_raw(shop, body.ljust(64 * 1024)).status_code == 201


# -- query values


@pytest.mark.parametrize("path", ["/api/v1/invoices", "/api/v1/withdrawals"])
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("page=0", "page"),
        ("page=-1", "page"),
        ("page=abc", "page"),
        ("page=", "page"),
        ("page=1.5", "page"),
        ("page=" + 4400 * "9", "page"),
        ("per_page=0", "per_page"),
        ("per_page=501", "per_page"),
        ("per_page=10000000000000000000000", "per_page"),
        ("status=paid", "status"),
        ("status=SUCCESS", "status"),
        ("status=", "status"),
        ("status=%00", "status"),
        ("order=up", "order"),
        ("page=1&page=1", "page"),
        ("status=pending&status=pending", "status"),
    ],
)
def test_a_bad_query_value_is_told(shop: Shop, path: str, query: str, field: str) -> None:
    assert_fields_invalid(shop.get(f"{path}?{query}"), field)


@pytest.mark.parametrize("code", ["EURO", "E1R", "", "%00%00%00", "%FF%FF%FF", "EUR&currency=EUR"])
def test_a_bad_currency_filter_is_told(shop: Shop, code: str) -> None:
    assert_fields_invalid(shop.get(f"/api/v1/invoices?currency={code}"), "currency")


@pytest.mark.parametrize("query", ["currency=", "currency=EUR&currency=EUR"])
def test_a_methods_query_without_one_value_is_told(shop: Shop, query: str) -> None:
    assert_fields_invalid(shop.get(f"/api/v1/payment-methods?{query}"), "currency")


# -- keys


def test_an_empty_key_is_missing(shop: Shop) -> None:
    response = shop.get("/api/v1/invoices", headers={"X-Api-Key": ""})
    assert (response.status_code, code_of(response)) == (401, "API_KEY_MISSING")


@pytest.mark.parametrize("key", ["x", "fg_", "fg_' OR 1=1", "\xe9", "k" * 8000])
def test_a_strange_key_is_invalid(shop: Shop, key: str) -> None:
    response = shop.get("/api/v1/invoices", headers={"X-Api-Key": key})
    assert (response.status_code, code_of(response)) == (403, "API_KEY_INVALID")


def test_a_key_is_compared_to_the_letter(shop: Shop) -> None:
    for key in (
        shop.api_key + "x",
        shop.api_key[:-1],
        shop.api_key.swapcase(),
        f'"{shop.api_key}"',
        shop.api_key + "\xa0",
    ):
        assert code_of(shop.get("/api/v1/invoices", headers={"X-Api-Key": key})) == "API_KEY_INVALID"


def test_spaces_around_the_key_are_not_part_of_it(shop: Shop) -> None:
    """RFC 9110 section 5.5: a header's value is without the whitespace around it; no server of ours ever sees it."""
    shop.create()
    assert shop.get("/api/v1/invoices", headers={"X-Api-Key": f"{shop.api_key} "}).status_code == 200


# -- addresses


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/api/v1",
        "/api/v2/invoices",
        "/api/v1/invoices/a/b",
        "/api/v1//invoices",
        "//api/v1/invoices",
        "///api/v1/openapi.json",
        "/%2e%2e/",
    ],
)
def test_an_unknown_address_is_told_in_the_envelope(shop: Shop, path: str) -> None:
    response = shop.get(path)
    assert (response.status_code, code_of(response)) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("verb", "path", "allowed"),
    [
        ("GET", CREATE, "POST"),
        ("PUT", CREATE, "POST"),
        ("POST", "/api/v1/invoices", "GET"),
        ("DELETE", "/api/v1/invoices/x", "GET"),
        ("PATCH", "/api/v1/currencies", "GET"),
        ("PURGE", "/api/v1/currencies", "GET"),
    ],
)
def test_a_wrong_method_is_told_with_the_right_one(shop: Shop, verb: str, path: str, allowed: str) -> None:
    response = shop.request(verb, path)
    assert (response.status_code, code_of(response)) == (405, "METHOD_NOT_ALLOWED")
    assert allowed in response.headers["Allow"].split(", ")


@pytest.mark.parametrize(
    "ref",
    [
        "%00",
        "%FF",
        "%C3%28",
        "%ED%A0%80",
        "%",
        "%zz",
        "x" * 129,
        "%F0%9F%92%A1" * 129,
        "%2e%2e%2f",
        "' OR 1=1 --",
    ],
)
def test_a_reference_that_no_invoice_can_have_is_not_found(shop: Shop, ref: str) -> None:
    for suffix in ("", "/webhooks"):
        assert code_of(shop.get(f"/api/v1/invoices/{ref}{suffix}")) == "INVOICE_NOT_FOUND"
    assert code_of(shop.post(f"/api/v1/invoices/{ref}/webhooks/resend")) == "INVOICE_NOT_FOUND"

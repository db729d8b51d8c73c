"""The feed over HTTP: every answer is a documented one, and a key opens its own door only."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import requests

from demo import folder_connector
from fiatgate.bank.v1 import feed_pb2 as pb
from fiatgate.bank.v1.feed_pb2_grpc import FeedServiceStub
from gateway.feed.lines import LINES_MOST, PostLines
from gateway.walls.uploads import FEED_BODY_MAX_BYTES
from services.bank.operations import feed
from tests.gateway.conformance import assert_documented, documented
from tests.gateway.desk import Shop, code_of, unique
from tests.support.stack import Stack

PATH = "/feed/v1/lines"


def line(source_id: str, account: str, **changes: Any) -> dict[str, Any]:
    return {
        "source_id": source_id,
        "account": account,
        "direction": "credit",
        "amount": "10.50",
        "currency_code": "EUR",
        "status": "booked",
        "booked_on": "2026-01-02",
        "text": "for the order",
    } | changes


class Key:
    """A connector's key for one account."""

    def __init__(self, stack: Stack) -> None:
        self.stub = FeedServiceStub(stack.channel("bank"))
        self.url = stack.url + PATH
        self.account = re.sub("[^0-9A-Z]", "", unique("FEED").upper())
        account = pb.FeedAccount(account=self.account, currency_code="EUR")
        made = self.stub.CreateConnector(pb.CreateConnectorRequest(name=self.account, accounts=[account]))
        self.id, self.key = made.connector_id, made.key

    def call(self, method: str = "POST", key: str | None = None, **options: Any) -> requests.Response:
        headers = {"X-Api-Key": self.key if key is None else key} | options.pop("headers", {})
        response = requests.request(method, self.url, headers=headers, timeout=15, **options)
        assert_documented(response)
        return response

    def post(self, *lines: dict[str, Any], **options: Any) -> requests.Response:
        return self.call(json={"lines": lines}, **options)


@pytest.fixture(scope="module")
def key(stack: Stack) -> Key:
    return Key(stack)


def test_lines_are_posted_and_read_back(key: Key) -> None:
    posted = key.post(line("a", key.account), line("b", key.account, status="pending", booked_on=None))
    assert [(each["source_id"], each["outcome"]) for each in posted.json()["data"]] == [
        ("a", "created"),
        ("b", "created"),
    ]
    again = key.post(line("a", key.account), line("b", key.account), line("a", key.account, amount="10.51"))
    assert [each["outcome"] for each in again.json()["data"]] == ["duplicate", "updated", "conflict"]
    assert "amount" in again.json()["data"][2]["why"]
    found = key.call("GET", params={"account": key.account.lower()}).json()["data"]
    assert sorted((each["source_id"], each["amount"], each["status"], each["text"]) for each in found) == [
        ("a", "10.50", "booked", "for the order"),
        ("b", "10.50", "booked", "for the order"),
    ]
    one = key.call("GET", params={"source_id": "a", "limit": "1"}).json()["data"]
    assert [each["source_id"] for each in one] == ["a"]
    assert key.call("GET", params={"after_line_id": found[-1]["line_id"]}).json()["data"] == []


def test_a_post_without_lines_is_the_heartbeat(key: Key) -> None:
    assert key.post().json()["data"] == []
    found = key.stub.ListConnectors(pb.ListConnectorsRequest()).connectors
    assert next(each for each in found if each.connector_id == key.id).HasField("heard_at")


def test_a_key_opens_its_own_door_only(key: Key, shop: Shop, stack: Stack) -> None:
    other = Key(stack)
    refused = key.post(line("c", key.account), line("d", other.account))
    assert (refused.status_code, code_of(refused)) == (403, "FEED_ACCOUNT_NOT_ALLOWED")
    assert refused.json()["error"]["details"] == {"account": other.account, "currency": "EUR"}
    assert key.call("GET", params={"source_id": "c"}).json()["data"] == []
    assert other.call("GET", params={"account": key.account}).json()["data"] == []
    assert code_of(key.post(key=shop.api_key)) == "API_KEY_INVALID"
    assert code_of(shop.get("/api/v1/balance", headers={"X-Api-Key": key.key})) == "API_KEY_INVALID"
    other.stub.RevokeConnector(pb.RevokeConnectorRequest(connector_id=other.id))
    assert code_of(other.post()) == "API_KEY_INVALID"
    assert (key.post(key="").status_code, code_of(key.post(key=""))) == (401, "API_KEY_MISSING")


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        (b"{", ["body"]),
        (b'{"lines": [], "lines": []}', ["body"]),
        (b"[]", ["body"]),
        (b"{}", ["body", "lines"]),
        (b'{"lines": [1]}', ["body", "lines", "0"]),
        (b'{"lines": [' + b",".join([b"{}"] * (LINES_MOST + 1)) + b"]}", ["body", "lines"]),
        (b'{"lines": [' + b"[" * 20_000, ["body"]),
    ],
    ids=["broken", "twice", "no object", "no lines", "a number", "501 lines", "nested"],
)
def test_a_body_that_is_no_post_is_refused(key: Key, body: bytes, loc: list[str]) -> None:
    refused = key.call(data=body, headers={"Content-Type": "application/json"})
    assert (refused.status_code, code_of(refused)) == (400, "VALIDATION_ERROR")
    assert loc in [fault["loc"] for fault in refused.json()["error"]["details"]]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("source_id", ""),
        ("source_id", "x" * 201),
        ("account", "\0"),
        ("direction", "in"),
        ("amount", 10),
        ("amount", "1e3"),
        ("amount", "0"),
        ("amount", "1.001"),
        ("currency_code", "eur"),
        ("status", "done"),
        ("booked_on", "2026-02-30"),
        ("booked_on", "20261128"),
        ("booked_on", None),
        ("text", "x" * 2001),
    ],
)
def test_a_wrong_value_is_named_by_its_line(key: Key, field: str, value: Any) -> None:
    refused = key.post(line("e", key.account), line("f", key.account) | {field: value})
    assert [fault["loc"] for fault in refused.json()["error"]["details"]] == [["body", "lines", "1", field]]
    assert key.call("GET", params={"source_id": "e"}).json()["data"] == []


def test_a_large_body_and_a_wrong_query_are_refused(key: Key) -> None:
    large = key.call(data=b" " * (FEED_BODY_MAX_BYTES + 1), headers={"Content-Type": "application/json"})
    assert code_of(large) == "PAYLOAD_TOO_LARGE"
    for params in ({"limit": "0"}, {"limit": "1001"}, {"after_line_id": "x"}, {"acount": "1"}):
        refused = key.call("GET", params=params)
        assert [fault["field"] for fault in refused.json()["details"]] == list(params)


def test_the_example_of_a_connector_posts_each_file_once(
    key: Key, stack: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line(f"file-{number}", key.account) for number in range(LINES_MOST + 1)]
    (tmp_path / "1.json").write_text(json.dumps(lines))
    heads = ("source_id", "account", "direction", "amount", "currency_code", "status", "booked_on", "text")
    rows = [heads, [lines[0][head] for head in heads], ["file-csv", *(lines[0][head] for head in heads[1:])]]
    (tmp_path / "2.csv").write_text("\n".join(",".join(row) for row in rows))
    (tmp_path / "3.json").write_text(json.dumps([lines[0] | {"amount": "1.00"}]))
    folder_connector.post_folder(stack.url, key.key, tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "1.json.done",
        "2.csv.done",
        "3.json.conflict",
    ]
    (tmp_path / "4.json").write_text("[{}]")
    (tmp_path / "5.json").write_text("[")
    (tmp_path / "6.json").write_text(json.dumps([line("file-6", key.account)]))
    folder_connector.post_folder(stack.url, key.key, tmp_path)
    ends = sorted(each.name for each in tmp_path.iterdir())[3:]
    assert ends == ["4.json.refused", "5.json.refused", "6.json.done"]
    assert "4.json: " in (said := capsys.readouterr().err) and "source_id" in said
    (tmp_path / "7.json").write_text("[]")
    with pytest.raises(OSError, match="403"):
        folder_connector.post_folder(stack.url, "fgc_wrong", tmp_path)
    for name, there in {"file-0": 1, f"file-{LINES_MOST}": 1, "file-csv": 1, "file-6": 1}.items():
        assert len(key.call("GET", params={"source_id": name}).json()["data"]) == there


def test_only_the_documented_methods_are_taken(key: Key) -> None:
    for method in ("PUT", "PATCH", "DELETE"):
        assert code_of(key.call(method)) == "METHOD_NOT_ALLOWED"


def test_the_bound_of_lines_is_the_same_everywhere_and_the_example_is_right() -> None:
    body = documented()["paths"][PATH]["post"]["requestBody"]["content"]["application/json"]
    PostLines.model_validate(body["example"])
    schema = documented()["components"]["schemas"]["PostLines"]
    assert feed.LINES_MOST == LINES_MOST == schema["properties"]["lines"]["maxItems"]

"""An operator's work with the command, against the whole stack: set up, sell, settle, look, prove."""

import csv
import hashlib
import itertools
import os
import pwd
import socket
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import requests
from google.protobuf.message import Message

from cli.commands import merchants
from deploy.local.waiting import wait_until
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2
from kit.base.clock import SystemClock
from kit.base.ids import new_id
from kit.base.money import money_text
from tests.cli.command_line import Fiatgate, run
from tests.support.pictures import PNG
from tests.support.receiver import Receiver

TRON_ADDRESS = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
HTTP_SECONDS = 15
SETTLE_SECONDS = 30
CURRENCY = "QQC"  # of this module alone
UNKNOWN = "01000000-0000-7000-8000-000000000000"

_cents = itertools.count(50_001)


def like(value: Any, message: type[Message]) -> bool:
    """Whether a JSON object has the fields of a message: all of them, and no others."""
    return list(value) == [field.name for field in message.DESCRIPTOR.fields]


@pytest.fixture
def shop(fiatgate: Fiatgate) -> dict[str, str]:
    """A merchant in the demo world: merchant_id, api_key."""
    merchant = fiatgate(
        *("merchants", "create", "Corner shop", "--owner", f"{new_id().hex}@shop.example", "--active"),
        *("--category", "standard", "--callback-url", "https://shop.example/hook"),
        *("--success-url", "https://shop.example/thanks", "--fail-url", "https://shop.example/sorry"),
    )
    key = fiatgate("keys", "create", merchant["merchant_id"], "--name", "till")
    return {"merchant_id": merchant["merchant_id"], "api_key": key["api_key"], "key_id": key["key_id"]}


def test_the_list_of_merchants_reads_all_pages(fiatgate: Fiatgate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merchants, "PAGE", 1)
    owner = f"{new_id().hex}@shop.example"
    made = [fiatgate("merchants", "create", f"Shop {number}", "--owner", owner) for number in range(3)]
    listed = [merchant["merchant_id"] for merchant in fiatgate("merchants", "list")]
    assert listed[:3] == [merchant["merchant_id"] for merchant in reversed(made)]


def test_a_merchant_is_made_with_its_brand(fiatgate: Fiatgate, tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(PNG)
    create = ("merchants", "create", "Lamp shop", "--owner", f"{new_id().hex}@shop.example")
    made = fiatgate(
        *(*create, "--colour", "#1d5bb8", "--logo", str(tmp_path / "logo.png")),
        *("--frame-origins", "https://shop.example, https://lamps.example"),
    )
    brand = made["branding"]
    assert (brand["colour"], brand["logo"]) == ("#1d5bb8", hashlib.sha256(PNG).hexdigest())
    assert brand["frame_origins"] == ["https://shop.example", "https://lamps.example"]
    assert fiatgate("merchants", "show", made["merchant_id"])["branding"] == brand
    assert fiatgate.refused(*create, "--colour", "blue") == "VALIDATION_ERROR"
    assert run(*create, "--logo", str(tmp_path / "none.png")).exit_code == 2


def create_invoice(fiatgate: Fiatgate, shop: dict[str, str], **changes: str) -> dict[str, Any]:
    cents = next(_cents)
    body = {
        "amount": f"{cents // 100}.{cents % 100:02}",
        "currency_code": "EUR",
        "customer_id": new_id().hex,
        "external_id": new_id().hex,
    } | changes
    answer = fiatgate.stack.request("POST", "/api/v1/create-invoice", api_key=shop["api_key"], json=body)
    assert answer.status_code == 201, answer.text
    invoice: dict[str, Any] = answer.json()
    return invoice


def test_a_merchant_is_made_configured_banned_and_let_in_again(fiatgate: Fiatgate) -> None:
    owner = f"{new_id().hex}@shop.example"
    made = fiatgate("merchants", "create", "Corner shop", "--owner", owner)
    assert like(made, merchants_pb2.Merchant)
    assert (made["status"], made["owner_email"], made["category_code"]) == ("inactive", owner, None)
    id = made["merchant_id"]
    for words in (("create", "Corner shop", "--owner", owner), ("set", id)):
        refused = run("merchants", *words, "--category", "nope")
        assert (refused.exit_code, "fiatgate categories list" in refused.err) == (1, True)
    wrong = run("categories", "set", "corner", "--commission", "101")
    assert (wrong.exit_code, "0 to 100 per cent" in wrong.err) == (2, True)
    fiatgate("categories", "set", "corner", "--commission", "5%")
    corner = {"code": "corner", "commission": "0.05", "refunds_return_commission": False}
    assert corner in fiatgate("categories", "list")
    changed = fiatgate(
        *("merchants", "set", id, "--name", "Lamp shop", "--category", "corner", "--client-share", "25 %"),
        *("--callback-url", "https://shop.example/hook", "--currencies", "EUR, USD"),
    )
    assert (changed["name"], changed["client_share"]) == ("Lamp shop", "0.25")
    assert changed["allowed_currencies"] == ["EUR", "USD"]
    remarked = run("merchants", "set", id, "--currencies", "EUR,QQX", "--methods", "nope")
    assert remarked.exit_code == 0
    assert "no currency QQX yet" in remarked.err
    assert "no payment method nope yet" in remarked.err
    assert "currency EUR" not in remarked.err
    emptied = fiatgate("merchants", "set", id, "--callback-url", "", "--currencies", "", "--methods", "")
    assert (emptied["callback_url"], emptied["allowed_currencies"]) == (None, [])
    assert emptied["category_code"] == "corner"
    assert [fiatgate("merchants", word, id)["status"] for word in ("activate", "ban", "unban")] == [
        "active",
        "banned",
        "active",
    ]
    offered = fiatgate("merchants", "methods", id)
    assert offered["refused"] == ""
    assert {each["method"]["method"]["method_code"] for each in offered["methods"]} == {
        each["method_code"] for each in fiatgate("methods", "list")
    }
    assert fiatgate("owners", "block", owner)["blocked"] is True
    assert fiatgate("owners", "show", owner)["blocked_at"] is not None
    assert [
        each["merchant_id"] for each in fiatgate("merchants", "list", "--owner", owner, "--owner-blocked")
    ] == [id]
    assert fiatgate("merchants", "show", id)["owner_blocked"] is True
    assert fiatgate("owners", "unblock", owner)["blocked"] is False
    second = fiatgate("merchants", "create", "Second shop", "--owner", owner, "--active")
    assert f"{owner} is not blocked and has 2 merchants." in fiatgate.shown("owners", "show", owner)
    found = fiatgate("merchants", "list", "--owner", owner, "--name", "second", "--status", "active")
    assert [each["merchant_id"] for each in found] == [second["merchant_id"]]
    assert fiatgate("merchants", "list", "--owner", owner, "--category", "nope") == []
    listed = {each["merchant_id"]: each for each in fiatgate("merchants", "list")}
    assert {listed[id]["owner_email"], listed[second["merchant_id"]]["owner_email"]} == {owner}
    assert "Lamp shop" in fiatgate.shown("merchants", "show", id)


def test_a_key_opens_the_api_until_it_is_deactivated(fiatgate: Fiatgate, shop: dict[str, str]) -> None:
    made = fiatgate("keys", "create", shop["merchant_id"], "--name", "second")
    assert list(made) == ["key_id", "api_key", "secret"]
    listed = fiatgate("keys", "list", shop["merchant_id"])
    assert [(each["name"], each["active"]) for each in listed] == [("second", True), ("till", True)]
    assert all(made["api_key"] not in str(each) and made["secret"] not in str(each) for each in listed)

    def status() -> int:
        return fiatgate.stack.request("GET", "/api/v1/currencies", api_key=made["api_key"]).status_code

    assert status() == 200
    assert fiatgate("keys", "deactivate", made["key_id"])["active"] is False
    assert status() == 403


def test_what_is_sold_is_set_and_listed(fiatgate: Fiatgate, tmp_path: Path) -> None:
    currency = ("currencies", "set", CURRENCY, "--name", "Quo", "--symbol", "Q", "--decimals", "2")
    made = fiatgate(*currency, "--min", "5", "--max", "500", "--markup", "2")
    assert like(made, catalog_pb2.Currency)
    assert (made["min_amount"], made["max_amount"], made["enabled"]) == ("5.00", "500.00", True)
    rate = fiatgate("rates", "set", CURRENCY, "50")
    assert rate["rate"] == "49.00"
    assert datetime.fromisoformat(rate["fresh_until"]) > datetime.fromisoformat(rate["taken_at"])
    assert fiatgate.refused("rates", "set", CURRENCY, "500") == "RATE_JUMPS"
    assert "It counts until" in run("rates", "set", CURRENCY, "50", "--valid", "24h").err
    assert "until another one is set" in run("rates", "set", CURRENCY, "50", "--valid", "until-replaced").err
    assert fiatgate("rates", "set", CURRENCY, "50", "--valid", "until-replaced")["fresh_until"] is None
    assert fiatgate.refused("rates", "set", CURRENCY, "500", "--anyway") == "APPROVAL_REQUIRED"
    (asked,) = fiatgate("approvals", "list", "--object", f"currency:{CURRENCY}")
    fiatgate("approvals", "approve", asked["approval_id"], "--yes", "--as", "ben@example.com")
    (state,) = [each for each in fiatgate("rates", "list") if each["currency_code"] == CURRENCY]
    (before,) = state["in_force"]["sources"]
    assert (before["source"], before["rate"]) == ("rate before", "50")
    assert fiatgate("rates", "set", CURRENCY, "50")["sources"] == []  # taken back by one person
    assert CURRENCY in [each["currency_code"] for each in fiatgate("rates", "list")]
    method = fiatgate(
        *(
            "methods",
            "set",
            "quo-cash",
            "--currency",
            CURRENCY,
            "--name",
            "Cash",
            "--min",
            "5",
            "--max",
            "50",
        ),
        *("--minutes", "20", "--commission", "1"),
    )
    assert like(method, catalog_pb2.PaymentMethod)
    assert method in fiatgate("methods", "list")

    def add() -> bool:  # invoices hears of the new method a moment later
        return run("requisites", "add", "quo-cash", "--holder", "A. Holder", "--account", "17").exit_code == 0

    wait_until(add, "invoices to know the method", timeout_seconds=SETTLE_SECONDS)
    added = fiatgate("requisites", "list", "--method", "quo-cash")
    assert like(added[0], invoices_pb2.Requisite)
    id = added[0]["requisite_id"]
    assert fiatgate("requisites", "disable", id)["enabled"] is False
    assert fiatgate("requisites", "enable", id)["enabled"] is True
    accounts = tmp_path / "accounts.csv"
    accounts.write_text("account,holder,bank,max_deals\n18,Ann Holder,First Bank,5\n17,Ben Holder,,\n")
    wrong = run("requisites", "add-list", "quo-cash", str(accounts))
    assert (wrong.exit_code, "The method has this account already" in wrong.out) == (1, True)
    assert len(fiatgate("requisites", "list", "--method", "quo-cash")) == 1
    accounts.write_text("18,Ann Holder,First Bank,5\n19,Ben Holder\n")
    assert [each["max_deals"] for each in fiatgate("requisites", "add-list", "quo-cash", str(accounts))] == [
        5,
        100,
    ]
    story = fiatgate("requisites", "show", id)
    assert [each["act"] for each in story["acts"]] == [
        f"requisite.{word}" for word in ("enable", "disable", "add")
    ]
    assert "disabled" in run("requisites", "show", id[:13]).out
    assert [
        each["account"]
        for each in fiatgate("requisites", "list", "--method", "quo-cash", "--text", "ann hold")
    ] == ["18"]
    assert fiatgate("rates", "history", CURRENCY, "--days", "2")[-1]["last"] == "50"
    disabled = fiatgate(*currency, "--min", "5", "--max", "500", "--disabled")
    assert disabled in fiatgate("currencies", "list")
    assert [each for each in fiatgate("rates", "pull") if each["currency_code"] == "EUR"]


def test_a_purchase_is_made_with_the_checkout_commands_and_paid_out(
    fiatgate: Fiatgate, shop: dict[str, str], receiver: Receiver
) -> None:
    invoice = create_invoice(fiatgate, shop, callback_url=receiver.url())
    id, merchant = invoice["invoice_id"], shop["merchant_id"]
    chosen = fiatgate("checkout", "select", id, "eur-card")
    assert like({name: chosen[name] for name in chosen if name != "requisite"}, invoices_pb2.Invoice)
    assert like(chosen["requisite"], invoices_pb2.Requisite)
    deal_id = chosen["deal"]["deal_id"]
    assert fiatgate("checkout", "mark-paid", id)["deal"]["mark_paid_at"] is not None
    assert deal_id in [each["deal_id"] for each in fiatgate("deals", "list", "--status", "pending")]
    queue = fiatgate("deals", "list", "--queue", "--order", invoice["external_id"])
    assert [each["deal_id"] for each in queue] == [deal_id]
    assert fiatgate("deals", "list", "--queue", "--customer", "somebody else") == []
    assert like(fiatgate("deals", "confirm", deal_id, "--as", "eve@example.com"), invoices_pb2.Deal)
    story = fiatgate("deals", "show", deal_id)
    assert [step["actor"] for step in story["history"]][:2] == ["customer", "customer"]
    author = f"cli:{pwd.getpwuid(os.getuid()).pw_name}@{socket.gethostname()} for eve@example.com"
    assert story["history"][2]["actor"] == author
    for ref in (id, invoice["external_id"]):
        assert fiatgate("invoices", "show", ref, "--merchant", merchant)["status"] == "success"

    receiver.wait_for(1)
    (event,) = fiatgate("webhooks", "list", id)
    assert like(event, webhooks_pb2.WebhookEvent)
    wait_until(
        lambda: fiatgate("webhooks", "show", str(event["event_id"]))["status"] == "success",
        "the delivery to be written down",
        timeout_seconds=SETTLE_SECONDS,
    )
    of_type = ("webhooks", "list", "--merchant", event["merchant_id"], "--type", "success")
    assert event["event_id"] in [each["event_id"] for each in fiatgate(*of_type)]
    assert fiatgate(*of_type, "--status", "retrying") == []
    shown = fiatgate("webhooks", "show", str(event["event_id"]))
    assert shown["request_payload"].encode() == receiver.received()[0].body
    assert len(shown["attempts"]) == 1
    assert receiver.url() in fiatgate.shown("webhooks", "list", id)
    assert fiatgate("webhooks", "prune", "--older-than-days", "36500") == {"deleted": 0}

    due = story["merchant_usdt"]
    wait_until(
        lambda: fiatgate("balance", merchant)["available"] == due,
        f"a credit of {due} USDT",
        timeout_seconds=SETTLE_SECONDS,
    )
    check_timeline(fiatgate, id, author, due)
    _pay_out(fiatgate, merchant)


def check_timeline(fiatgate: Fiatgate, invoice_id: str, author: str, due: str) -> None:
    moments = {each["title"]: each for each in fiatgate("invoices", "show", invoice_id)["timeline"]}
    steps = [
        "Invoice created",
        "Payment method chosen",
        "Marked paid",
        "Payment confirmed",
        "Invoice paid",
    ]
    assert list(moments)[:5] == steps
    assert set(moments) - set(steps) == {
        "Credited to the merchant",
        "Webhook made",
        "Webhook attempt 1 delivered",
    }
    assert moments["Payment confirmed"]["by"] == author
    assert moments["Payment method chosen"]["details"]["rate from"].startswith("the median of its sources, ")
    credit = moments["Credited to the merchant"]
    assert (credit["service"], credit["details"]["credit"]) == ("withdrawals", f"{due} USDT")
    assert credit["details"]["balance after it"] == f"{due} USDT"
    assert moments["Webhook attempt 1 delivered"]["details"]["answer"] == "HTTP 200"
    assert "Credited to the merchant" in fiatgate.shown("invoices", "show", invoice_id)


def test_a_withdrawal_method_is_made_changed_and_switched_off(fiatgate: Fiatgate) -> None:
    before = fiatgate("withdrawals", "methods")
    method = (
        "withdrawals",
        "set-method",
        f"M-{new_id().hex}",
        "--network",
        "TRC20",
        "--name",
        "USDT on Tron",
    )
    made = fiatgate(*method, "--fee", "1", "--min", "5")
    assert like(made, withdrawals_pb2.WithdrawalMethod)
    changed = fiatgate(*method, "--fee", "0.5", "--min", "2", "--disabled")
    assert changed == made | {"network_fee": "0.500000", "min_amount": "2.000000", "enabled": False}
    assert fiatgate("withdrawals", "methods") == [*before, changed]
    assert fiatgate.refused(*method, "--fee", "2", "--min", "2") == "VALIDATION_ERROR"


def _pay_out(fiatgate: Fiatgate, merchant: str) -> None:
    methods = fiatgate("withdrawals", "methods")
    assert like(methods[0], withdrawals_pb2.WithdrawalMethod)
    create = ("withdrawals", "create", merchant, "--method", "1", "--address", TRON_ADDRESS, "--amount", "20")
    key = str(new_id())
    first = fiatgate(*create, "--request-key", key)
    assert like(first, withdrawals_pb2.Withdrawal)
    assert fiatgate(*create, "--request-key", key) == first, "a repeated request pays once"
    assert fiatgate("withdrawals", "process", first["withdraw_uuid"])["substatus"] == "processing"
    assert fiatgate.refused("withdrawals", "cancel", first["withdraw_uuid"], "--by-user") == (
        "WITHDRAWAL_STATE_CONFLICT"
    )
    mark = ("withdrawals", "complete", first["withdraw_uuid"], "--tx", f"tx-{key}")
    assert fiatgate.refused(*mark) == "NOT_A_HASH"
    done = fiatgate("withdrawals", "complete", first["withdraw_uuid"], "--tx", f"tx-{key}", "--yes")
    assert (done["status"], done["external_tx_id"]) == ("success", f"tx-{key}")
    failed = fiatgate(*create)["withdraw_uuid"]
    assert fiatgate("withdrawals", "fail", failed, "--substatus", "invalid_address")["status"] == "failed"
    canceled = fiatgate(*create)["withdraw_uuid"]
    assert fiatgate("withdrawals", "cancel", canceled)["substatus"] == "cancelled_by_admin"
    listed = fiatgate("withdrawals", "list", "--merchant", merchant)
    assert [each["status"] for each in listed] == ["cancelled", "failed", "success"]
    assert fiatgate("withdrawals", "list", "--merchant", merchant, "--status", "pending") == []
    balance = fiatgate("balance", merchant)
    assert like(balance, withdrawals_pb2.GetBalanceResponse)
    assert (balance["reserved"], balance["withdrawn"]) == ("0.000000", "20.000000")
    assert "credited, less what went back" in fiatgate.shown("balance", merchant)
    of_merchant = ("withdrawals", "list", "--merchant", merchant)
    assert fiatgate(*of_merchant, "--stage", "done", "--oldest-first") == listed[::-1]
    assert fiatgate(*of_merchant, "--tx", f"TX-{key}") == [done]
    assert fiatgate(*of_merchant, "--address", TRON_ADDRESS, "--amount-from", "20.000001") == []
    lines = run(*of_merchant, "--csv").out.splitlines()
    assert [line.partition(",")[0] for line in lines] == [
        "withdraw_uuid",
        *(each["withdraw_uuid"] for each in listed),
    ]
    story = fiatgate("withdrawals", "show", first["withdraw_uuid"])
    assert [each["title"] for each in story["timeline"]] == ["Requested", "Being sent", "Sent"]
    assert dict(story["timeline"][-1]["details"]) == {"transaction": f"tx-{key}"}
    assert [each["kind"] for each in story["transfers"]] == ["reserve", "pay", "fee"]
    shown = fiatgate.shown("withdrawals", "show", first["withdraw_uuid"])
    assert "Being sent by cli:" in shown
    _state_the_month(fiatgate, merchant, balance)


def _state_the_month(fiatgate: Fiatgate, merchant: str, balance: dict[str, str]) -> None:
    """The statement of this month begins with nothing and ends with the balance; in CSV it is the same."""
    month = ("balance", merchant, "--month", f"{SystemClock().now():%Y-%m}")
    statement = fiatgate(*month)
    assert statement["opening"] == dict.fromkeys(("available", "reserved", "owed"), "0.000000")
    assert statement["closing"] == {name: balance[name] for name in ("available", "reserved", "owed")}
    assert statement["transfers"][-1]["after"] == statement["closing"]
    kinds = [each["kind"] for each in statement["transfers"]]
    assert kinds == ["credit", "reserve", "pay", "fee", "reserve", "release", "reserve", "release"]
    assert {each["kind"]: each["count"] for each in statement["sums"]} == Counter(kinds)
    last = statement["transfers"][-1]["transfer_id"]
    assert fiatgate(*month, "--after", last)["transfers"] == []
    in_csv = list(csv.DictReader(run(*month, "--csv").out.splitlines()))
    assert [each["transfer_id"] for each in in_csv] == [
        each["transfer_id"] for each in statement["transfers"]
    ]
    assert in_csv[-1]["available_after"] == balance["available"]
    assert f"{money_text(balance['available'], 'USDT')} available" in fiatgate.shown(*month)


@pytest.mark.parametrize(
    ("words", "status", "sub_status"),
    [
        (("--paid",), "completed", "successfully_paid"),
        (("--amount", "100.00"), "completed", "completed_with_adjustment"),
        (("--received", "100.00"), "completed", "completed_with_adjustment"),
        (("--reject",), "failed", "appeal_rejected"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_an_appeal_ends_as_paid_paid_less_or_rejected(
    fiatgate: Fiatgate, shop: dict[str, str], words: tuple[str, ...], status: str, sub_status: str
) -> None:
    invoice = create_invoice(fiatgate, shop)
    deal_id = fiatgate("checkout", "select", invoice["invoice_id"], "eur-card")["deal"]["deal_id"]
    fiatgate("checkout", "mark-paid", invoice["invoice_id"])
    assert fiatgate("deals", "appeal", deal_id, "--note", "a look closer")["status"] == "appeal"
    if "100.00" in words:
        fiatgate.by_two("deals", "resolve", deal_id, *words)
    else:
        fiatgate("deals", "resolve", deal_id, *words)
    resolved = fiatgate("deals", "show", deal_id)
    assert (resolved["status"], resolved["sub_status"]) == (status, sub_status)


def test_invoices_are_canceled_and_deals_rejected(fiatgate: Fiatgate, shop: dict[str, str]) -> None:
    by_operator, by_customer, rejected = (create_invoice(fiatgate, shop)["invoice_id"] for _ in range(3))
    assert fiatgate("invoices", "cancel", by_operator, "--as", "eve@example.com")["status"] == "canceled"
    assert fiatgate("checkout", "cancel", by_customer)["status"] == "canceled"
    deal_id = fiatgate("checkout", "select", rejected, "eur-card")["deal"]["deal_id"]
    assert fiatgate("deals", "reject", deal_id, "--note", "nothing came")["status"] == "failed"


def test_the_switch_stops_new_invoices(fiatgate: Fiatgate, shop: dict[str, str]) -> None:
    assert fiatgate("deals", "system", "show")["enabled"] is True
    assert fiatgate("deals", "system", "off")["enabled"] is False
    try:
        answer = fiatgate.stack.request(
            "POST",
            "/api/v1/create-invoice",
            api_key=shop["api_key"],
            json={"amount": "100", "currency_code": "EUR", "customer_id": "c", "external_id": "e"},
        )
        assert answer.json()["error"]["code"] == "DEALS_SYSTEM_DISABLED"
    finally:
        assert fiatgate("deals", "system", "on")["enabled"] is True


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("deals", "confirm", UNKNOWN), "DEAL_NOT_FOUND"),
        (("merchants", "show", UNKNOWN), "MERCHANT_NOT_FOUND"),
        (("merchants", "create", "Shop", "--owner", "nobody"), "VALIDATION_ERROR"),
        (("balance", "nonsense"), "MERCHANT_NOT_FOUND"),
        (("rates", "set", "EUR", "0"), "VALIDATION_ERROR"),
        (("rates", "accept", "EUR"), "RATE_NOT_HELD"),
        (("webhooks", "show", "999999999"), "WEBHOOK_EVENT_NOT_FOUND"),
        (("invoices", "show", "none", "--merchant", UNKNOWN), "INVOICE_NOT_FOUND"),
        (
            (
                "withdrawals",
                "create",
                UNKNOWN,
                *("--method", "1", "--address", TRON_ADDRESS, "--amount", "9"),
            ),
            "INSUFFICIENT_BALANCE",
        ),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else value,
)
def test_a_refusal_says_its_code_first(fiatgate: Fiatgate, words: tuple[str, ...], code: str) -> None:
    assert fiatgate.refused(*words) == code


def test_the_demo_goes_through_and_says_each_step(fiatgate: Fiatgate) -> None:
    steps = fiatgate("demo", "--anyway")  # other tests have made merchants
    assert len(steps) >= 9
    assert all(list(step) == ["step", "detail"] for step in steps)
    details = {step["step"]: step["detail"] for step in steps}
    assert "from Alex Customer" in details["Bank sends today's statement"]
    assert "signature valid" in details["Merchant receives one signed webhook"]
    assert fiatgate("bank", "demo-statement")["state"] == "taken"


def test_status_is_well_on_a_stack_that_is_well(fiatgate: Fiatgate) -> None:
    def well() -> bool:
        return run("status", "--json").exit_code == 0

    wait_until(well, "everything to be well", timeout_seconds=SETTLE_SECONDS)
    rows = fiatgate("status")
    services = {"identity", "catalog", "invoices", "withdrawals", "webhooks", "bank"}
    assert {row["service"] for row in rows} == services | {"gateway", "console-desk", "console-dashboard"}
    assert "delivery" in fiatgate.shown("status")
    assert requests.get(f"{fiatgate.stack.url}/readyz", timeout=HTTP_SECONDS).status_code == 200

"""`fiatgate approvals`: two people at the command line, against the whole stack."""

import io
import json
import sys
from decimal import Decimal
from typing import Any, Final

import pytest

from deploy.local.waiting import wait_until
from kit.base.ids import new_id
from tests.cli.command_line import Fiatgate, run

TRON_ADDRESS: Final = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
SETTLE_SECONDS: Final = 60
ANN: Final = ("--as", "ann@example.com")
BEN: Final = ("--as", "ben@example.com")


def made_withdrawal(fiatgate: Fiatgate, amount: str = "1000") -> dict[str, Any]:
    """A pending withdrawal of a merchant who has sold enough for it."""
    merchant = fiatgate(
        *("merchants", "create", "Piano shop", "--owner", f"{new_id().hex}@shop.example", "--active"),
        *("--category", "standard", "--callback-url", "https://shop.example/hook"),
        *("--success-url", "https://shop.example/thanks", "--fail-url", "https://shop.example/sorry"),
    )["merchant_id"]
    api_key = fiatgate("keys", "create", merchant, "--name", "till")["api_key"]
    body = {"amount": "2900.00", "currency_code": "EUR", "customer_id": "c", "external_id": new_id().hex}
    answer = fiatgate.stack.request("POST", "/api/v1/create-invoice", api_key=api_key, json=body)
    assert answer.status_code == 201, answer.text
    deal = fiatgate("checkout", "select", answer.json()["invoice_id"], "eur-card")["deal"]
    fiatgate("checkout", "mark-paid", answer.json()["invoice_id"])
    fiatgate("deals", "confirm", deal["deal_id"])
    wait_until(
        lambda: Decimal(fiatgate("balance", merchant)["available"]) >= Decimal(amount),
        "the credit",
        timeout_seconds=SETTLE_SECONDS,
    )
    create = ("withdrawals", "create", merchant, "--method", "1", "--address", TRON_ADDRESS)
    made: dict[str, Any] = fiatgate(*create, "--amount", amount)
    return made


def restart(fiatgate: Fiatgate, service: str) -> None:
    """Returns when the service answers this process's channel again, and the gateway's as well."""
    fiatgate.stack.restart(service)
    wait_until_well(fiatgate, service)


def wait_until_well(fiatgate: Fiatgate, service: str) -> None:
    def is_well() -> bool:
        states = json.loads(run("status", "--json").out)
        return any(each["service"] == service and each["healthy"] for each in states)

    wait_until(is_well, f"{service} to answer again", timeout_seconds=SETTLE_SECONDS)
    fiatgate.stack.wait_until_ready()


def test_one_person_requests_and_another_approves_also_after_a_restart(fiatgate: Fiatgate) -> None:
    made = made_withdrawal(fiatgate)
    id = made["withdraw_uuid"]

    refused = run("withdrawals", "process", id, *ANN)
    assert (refused.exit_code, refused.out) == (1, "")
    assert refused.err.startswith("APPROVAL_REQUIRED  Another person must approve this: Send ")
    assert f"to {TRON_ADDRESS}" in refused.err
    approval_id = refused.err.partition("approvals approve ")[2].split()[0]
    assert f"The other person: fiatgate approvals approve {approval_id} --as THEIR_EMAIL\n" in refused.err

    again = run("withdrawals", "process", id, *BEN)
    assert "ann@example.com requested this, and you can approve it: Send " in again.err
    assert f"With the same --as: fiatgate approvals approve {approval_id}\n" in again.err

    (listed,) = fiatgate("approvals", "list", "--object", f"withdrawal:{id}")
    assert (listed["approval_id"], listed["service"], listed["state"]) == (
        approval_id,
        "withdrawals",
        "pending",
    )
    assert listed["requested_by"].endswith(" for ann@example.com")
    assert "Send " in fiatgate.shown("approvals", "list")
    pending = next(each for each in fiatgate("status") if each["service"] == "withdrawals")["gauges"]
    assert {each["name"]: each["value"] for each in pending}["approvals_pending"] >= 1

    assert fiatgate.refused("approvals", "approve", approval_id, "--yes", *ANN) == "OTHER_PERSON_REQUIRED"
    restart(fiatgate, "withdrawals")
    told = fiatgate.shown("approvals", "approve", approval_id[:-1], "--yes", "--note", "as agreed", *BEN)
    assert told.startswith("Approved and done: Send ")
    shown = fiatgate("approvals", "show", approval_id)
    assert (shown["state"], shown["decision_note"]) == ("approved", "as agreed")
    assert shown["decided_by"].endswith(" for ben@example.com")
    (now,) = fiatgate("withdrawals", "list", "--merchant", made["merchant_id"])
    assert now["substatus"] == "processing"
    refusal = fiatgate.refused("approvals", "approve", approval_id, "--yes", "--as", "cid@example.com")
    assert refusal == "APPROVAL_STATE_CONFLICT"


def test_a_question_shows_what_approval_does_and_a_no_changes_nothing(
    fiatgate: Fiatgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_withdrawal(fiatgate)
    assert fiatgate.refused("withdrawals", "process", made["withdraw_uuid"], *ANN) == "APPROVAL_REQUIRED"
    (listed,) = fiatgate("approvals", "list", "--object", f"withdrawal:{made['withdraw_uuid']}")
    approval_id = listed["approval_id"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    asked = run("approvals", "approve", approval_id, *BEN)
    assert asked.exit_code == 1
    assert f"requested: {listed['summary']}" in asked.out
    assert run("approvals", "approve", approval_id, "--json", *BEN).exit_code == 2

    told = run("approvals", "reject", approval_id, "--note", "call them first", *ANN)
    assert (told.exit_code, told.out[:15]) == (0, "Rejected: Send ")
    assert told.err == "Check the address of --as: ann@example.com is no person of the staff.\n"
    states = [each["state"] for each in fiatgate("approvals", "list", "--object", listed["object"])]
    assert states == []
    (kept,) = fiatgate("approvals", "list", "--state", "rejected", "--object", listed["object"])
    assert kept["decision_note"] == "call them first"
    decided = ("approvals", "list", "--state", "decided", "--object", listed["object"])
    assert fiatgate(*decided, "--oldest-first") == [kept]
    assert fiatgate(*decided, "--after", approval_id) == []
    assert [line.partition(",")[0] for line in run(*decided, "--csv").out.splitlines()] == [
        "approval_id",
        approval_id,
    ]


def test_an_address_of_no_active_person_of_the_staff_is_named_before_and_after_the_decision(
    fiatgate: Fiatgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = f"{new_id().hex}@example.com"
    id = made_withdrawal(fiatgate)["withdraw_uuid"]
    assert fiatgate.refused("withdrawals", "process", id, "--as", email) == "APPROVAL_REQUIRED"
    (listed,) = fiatgate("approvals", "list", "--object", f"withdrawal:{id}")
    approve = ("approvals", "approve", listed["approval_id"], *BEN)
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    asked = run(*approve).out
    assert "Check the address of --as: ben@example.com is no person of the staff.\n" in asked
    assert f"Check the requester: {email} is no person of the staff.\n" in asked
    with fiatgate.stack.without("identity"):
        done = run(*approve, "--yes")
    assert (done.exit_code, "Check" in done.err) == (0, False), "without identity nothing is known"
    wait_until_well(fiatgate, "identity")


def test_a_change_reports_the_waiting_request_that_it_rejects(fiatgate: Fiatgate) -> None:
    id = made_withdrawal(fiatgate)["withdraw_uuid"]
    assert fiatgate.refused("withdrawals", "process", id, *ANN) == "APPROVAL_REQUIRED"
    failed = run("withdrawals", "fail", id)
    assert failed.exit_code == 0
    assert failed.err.startswith("This has rejected a request that waited: Send ")
    assert "for ann@example.com)" in failed.err


def test_an_unknown_request_is_named_as_such(fiatgate: Fiatgate) -> None:
    for words in (("show", "ffff"), ("approve", "ffff", "--yes"), ("reject", "ffff")):
        assert fiatgate.refused("approvals", *words) == "APPROVAL_NOT_FOUND"

"""Rejecting many deals with one command, against the whole stack."""

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from cli import connection, moments
from fiatgate.invoices.v1 import invoices_pb2 as pb
from services.invoices.domain.states import SUB_STATUSES
from tests.cli.command_line import Fiatgate, run
from tests.cli.test_operating import UNKNOWN, create_invoice, shop  # noqa: F401  a fixture

REJECT = ("deals", "reject")
GROUPS = ("Case", "Deal", "Requisite", "Invoice", "History", "Pictures")
AWAITING_PAYMENT, AWAITING_CONFIRMATION, APPEAL = range(3)


@pytest.fixture
def deals(fiatgate: Fiatgate, shop: dict[str, str]) -> list[dict[str, Any]]:  # noqa: F811  the fixture
    opened = []
    for state in (AWAITING_PAYMENT, AWAITING_CONFIRMATION, APPEAL):
        invoice_id = create_invoice(fiatgate, shop)["invoice_id"]
        deal = fiatgate("checkout", "select", invoice_id, "eur-card")["deal"]
        if state != AWAITING_PAYMENT:
            fiatgate("checkout", "mark-paid", invoice_id)
        if state == APPEAL:
            fiatgate("deals", "appeal", deal["deal_id"])
        opened.append(deal)
    return opened


def states(fiatgate: Fiatgate, deals: list[dict[str, Any]]) -> list[str]:
    return [fiatgate("deals", "show", deal["deal_id"])["sub_status"] for deal in deals]


class Operator:
    """Stands in for the terminal: answers a question, after something has happened."""

    def __init__(self, answer: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        self._answer = answer
        self._meanwhile = meanwhile

    def readline(self) -> str:
        self._meanwhile()
        return f"{self._answer}\n"


def test_all_open_deals_of_a_merchant_are_rejected_and_no_others(
    fiatgate: Fiatgate,
    shop: dict[str, str],  # noqa: F811  the fixture
    deals: list[dict[str, Any]],
) -> None:
    of_shop = (*REJECT, "--merchant", shop["merchant_id"])
    assert fiatgate(*of_shop, "--yes", "--method", "sepa") == []
    assert fiatgate(*of_shop, "--yes", "--older-than", "1d") == []
    assert fiatgate(*of_shop, "--yes", "--overdue") == []
    marked = fiatgate(
        *of_shop, "--yes", "--status", "appeal", "--note", "nothing came", "--as", "eve@example.com"
    )
    assert marked == [
        {
            "deal_id": deals[APPEAL]["deal_id"],
            "outcome": "rejected",
            "status": "failed",
            "sub_status": "appeal_rejected",
        }
    ]
    last = fiatgate("deals", "show", deals[APPEAL]["deal_id"])["history"][-1]
    assert last["actor"].endswith(" for eve@example.com")
    assert last["note"] == "nothing came"
    rest = fiatgate(*of_shop, "--yes", "--older-than", "0s")
    assert {row["deal_id"] for row in rest} == {deal["deal_id"] for deal in deals[:APPEAL]}
    assert states(fiatgate, deals) == ["rejected_by_operator", "rejected_by_operator", "appeal_rejected"]
    assert fiatgate(*of_shop, "--yes") == []


def test_the_operator_sees_the_deals_and_may_say_no(
    fiatgate: Fiatgate,
    shop: dict[str, str],  # noqa: F811  the fixture
    deals: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = [deal["deal_id"] for deal in deals]
    monkeypatch.setattr(sys, "stdin", Operator("n"))
    refused = run(*REJECT, *ids)
    assert refused.exit_code == 1
    assert all(id in refused.out for id in ids)
    assert refused.out.count(fiatgate("merchants", "show", shop["merchant_id"])["name"]) == len(ids)
    invoice = fiatgate("invoices", "show", deals[0]["invoice_id"], "--merchant", shop["merchant_id"])
    account = fiatgate("deals", "show", ids[0])["requisite"]["account"]
    assert all(text in refused.out for text in (invoice["customer_id"], invoice["external_id"], account))
    assert "1 of 3 customers still has time to pay. Reject these 3 deals?" in refused.err
    assert states(fiatgate, deals) == ["awaiting_payment", "awaiting_confirmation", "opened_by_operator"]
    monkeypatch.setattr(sys, "stdin", Operator("y"))
    agreed = run(*REJECT, *ids)
    assert (agreed.exit_code, agreed.out.splitlines()[-1].strip()) == (0, "3 of 3 rejected")
    assert states(fiatgate, deals) == ["rejected_by_operator", "rejected_by_operator", "appeal_rejected"]


def test_a_deal_that_changes_while_the_operator_reads_stays_as_it_is_and_the_others_go_on(
    fiatgate: Fiatgate, deals: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = deals[AWAITING_PAYMENT]

    def customer_pays() -> None:
        connection.checkout().MarkPaid(pb.MarkPaidRequest(invoice_id=paid["invoice_id"]))

    monkeypatch.setattr(sys, "stdin", Operator("y", customer_pays))
    ended = run(*REJECT, *(deal["deal_id"] for deal in deals))
    assert ended.exit_code == 1
    assert "changed" in ended.out
    assert ended.out.splitlines()[-1].strip() == "2 of 3 rejected"
    assert states(fiatgate, deals) == ["awaiting_confirmation", "rejected_by_operator", "appeal_rejected"]


def test_one_pending_deal_is_rejected_at_once_and_one_in_appeal_after_a_yes(
    fiatgate: Fiatgate, deals: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rejected = [fiatgate(*REJECT, deal["deal_id"])["sub_status"] for deal in deals[:APPEAL]]
    assert rejected == ["rejected_by_operator", "rejected_by_operator"]
    appeal = deals[APPEAL]["deal_id"]
    assert run(*REJECT, appeal, "--json").exit_code == 2
    monkeypatch.setattr(sys, "stdin", Operator("n"))
    refused = run(*REJECT, appeal)
    assert (refused.exit_code, appeal in refused.out) == (1, True)
    assert fiatgate("deals", "show", appeal)["sub_status"] == "opened_by_operator"
    assert fiatgate(*REJECT, appeal, "--yes")["sub_status"] == "appeal_rejected"
    assert fiatgate.refused(*REJECT, deals[0]["deal_id"]) == "DEAL_STATE_CONFLICT"
    for wrong in (UNKNOWN, "nope"):
        ended = run(*REJECT, appeal, wrong, "--yes")
        assert (ended.exit_code, ended.err.split()[0], f"No such deal: {wrong}" in ended.err) == (
            *(1, "DEAL_NOT_FOUND", True),
        )


def test_a_batch_has_a_bound(fiatgate: Fiatgate, shop: dict[str, str], deals: list[dict[str, Any]]) -> None:  # noqa: F811
    of_shop = (*REJECT, "--merchant", shop["merchant_id"], "--yes")
    oldest, youngest = fiatgate(*of_shop, "--limit", "2"), fiatgate(*of_shop, "--limit", "2")
    assert [row["deal_id"] for row in (*oldest, *youngest)] == [deal["deal_id"] for deal in deals]


def test_customers_who_still_may_pay_are_left_out(
    fiatgate: Fiatgate,
    shop: dict[str, str],  # noqa: F811  the fixture
    deals: list[dict[str, Any]],
) -> None:
    of_shop = ("--merchant", shop["merchant_id"], "--sub-status", "awaiting_confirmation")
    assert [each["deal_id"] for each in fiatgate("deals", "list", *of_shop)] == [deals[1]["deal_id"]]
    assert [each["deal_id"] for each in fiatgate(*REJECT, *of_shop, "--yes")] == [deals[1]["deal_id"]]


def test_the_list_has_what_an_operator_compares(
    fiatgate: Fiatgate,
    shop: dict[str, str],  # noqa: F811  the fixture
    deals: list[dict[str, Any]],
) -> None:
    of_shop = ("deals", "list", "--merchant", shop["merchant_id"])
    newest, *_ = listed = fiatgate(*of_shop)
    assert [each["deal_id"] for each in listed] == [deal["deal_id"] for deal in reversed(deals)]
    whole = fiatgate("deals", "show", newest["deal_id"])
    invoice = fiatgate("invoices", "show", whole["invoice_id"], "--merchant", shop["merchant_id"])
    assert newest == {name: whole[name] for name in pb.Deal.DESCRIPTOR.fields_by_name} | {
        "account": whole["requisite"]["account"],
        "customer_id": invoice["customer_id"],
        "external_id": invoice["external_id"],
    }
    heading, _, first, *_ = fiatgate.shown(*of_shop).splitlines()
    assert heading.split() == [
        *("deal", "state", "age", "paid", "amount", "reference", "account", "sender", "merchant", "order"),
        *("customer", "method"),
    ]
    assert all(newest[name] in first for name in ("deal_id", "account", "customer_id", "external_id"))


def test_a_deal_and_a_case_are_shown_in_groups_with_the_customers_text(
    fiatgate: Fiatgate, deals: list[dict[str, Any]]
) -> None:
    deal = deals[AWAITING_CONFIRMATION]
    amount = f"amount to send {deal['amount_fiat']} {deal['currency_code']}"
    account = fiatgate("deals", "show", deal["deal_id"])["requisite"]["account"]
    fiatgate("checkout", "appeal", deal["invoice_id"], "--note", "sent at noon")
    lines = _words(fiatgate.shown("deals", "show", deal["deal_id"]))
    assert [line for line in lines if line in GROUPS] == ["Deal", "Requisite", "Invoice", "History"]
    for first in ("customer's text sent at noon", amount, f"account {account}"):
        assert lines.count(first) == 1

    fiatgate("deals", "reject", deal["deal_id"], "--yes")
    late = pb.OpenCaseRequest(invoice_id=deal["invoice_id"], note="sent late")
    number = connection.checkout().OpenCase(late).case.number
    lines = _words(fiatgate.shown("cases", "show", str(number)))
    assert [line for line in lines if line in GROUPS] == ["Case", "Deal", "Requisite", "Invoice"]
    for first in ("customer's text sent late", "picture none", amount, f"account {account}"):
        assert lines.count(first) == 1
    assert sum(deal["deal_id"] in line for line in lines) == 1
    assert sum(deal["invoice_id"] in line for line in lines) == 1


def _words(shown: str) -> list[str]:
    return [" ".join(line.split()) for line in shown.splitlines()]


def test_a_sub_status_that_no_deal_can_have_is_refused(fiatgate: Fiatgate) -> None:
    assert fiatgate.refused("deals", "list", "--sub-status", "nonsense") == "VALIDATION_ERROR"
    for sub_status in SUB_STATUSES:
        fiatgate("deals", "list", "--sub-status", sub_status, "--limit", "1")


@pytest.mark.parametrize("command", [("deals", "reject"), ("deals", "list"), ("requisites", "list")])
def test_an_unknown_method_is_refused(fiatgate: Fiatgate, command: tuple[str, str]) -> None:
    refused = run(*command, "--method", "nope")
    assert (refused.exit_code, refused.err.split()[0]) == (1, "PAYMENT_METHOD_NOT_FOUND")
    assert "fiatgate methods list" in refused.err


def test_ids_and_options_together_are_named_as_the_mistake() -> None:
    refused = run(*REJECT, UNKNOWN, "--status", "pending")
    assert "both IDs and options that choose deals were given" in " ".join(
        refused.err.replace("│", " ").split()
    )


@pytest.mark.parametrize(
    "words",
    [
        (),
        (UNKNOWN, "--overdue"),
        ("--overdue", "--json"),
        ("--status", "completed", "--yes"),
        ("--older-than", "yesterday"),
        ("--older-than", "999999d"),
        (UNKNOWN, UNKNOWN, "--limit", "1"),
    ],
    ids=" ".join,
)
def test_what_is_not_said_clearly_rejects_nothing(words: tuple[str, ...]) -> None:
    assert run(*REJECT, *words).exit_code == 2


@pytest.mark.parametrize(
    ("text", "seconds"), [("0s", 0), ("90s", 90), ("30m", 1800), ("24h", 86_400), ("7d", 604_800)]
)
def test_an_age_has_a_unit(text: str, seconds: int) -> None:
    assert moments.age(text) == timedelta(seconds=seconds)

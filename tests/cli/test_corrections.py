"""`fiatgate corrections` on a real stack, and what `fiatgate verify` says when SQL changed what they made."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from fiatgate.invoices.v1 import invoices_pb2
from kit.base.ids import new_id
from tests.cli.command_line import Fiatgate, run
from tests.cli.test_verify import behind_its_back, problems, verify
from tests.gateway.desk import Desk, Shop, settled
from tests.support.stack import Stack

SAYS = ("--reason", "As the bank says", "--evidence", "BR-77")


@dataclass
class Books:
    """A shop whose money was corrected in each way."""

    desk: Desk
    shop: Shop
    method: str
    fiatgate: Fiatgate
    ids: dict[str, str] = field(default_factory=dict)
    start: Decimal = Decimal(0)
    made: dict[str, dict[str, Any]] = field(default_factory=dict)

    def make(self, kind: str, *options: str) -> dict[str, Any]:
        """Makes a correction by two people; returns it."""
        self.fiatgate.by_two_if_needed("corrections", "make", "--kind", kind, *options, *SAYS)
        made: dict[str, Any] = self.fiatgate("corrections", "list", "--merchant", self.shop.merchant_id)[0]
        assert made["kind"] == kind
        self.made[kind] = made
        return made

    def paid(self) -> str:
        invoice_id: str = self.shop.create(amount="900.00")["invoice_id"]
        before = Decimal(self.desk.available(self.shop))
        self.desk.confirm(invoice_id, self.method)
        settled(lambda: Decimal(self.desk.available(self.shop)) > before, "the credit")
        return invoice_id

    def rejected(self) -> str:
        invoice_id: str = self.shop.create(amount="900.00")["invoice_id"]
        deal = self.desk.mark_paid(invoice_id, self.method)
        self.desk.deals.RejectDeal(invoices_pb2.RejectDealRequest(deal_id=deal.deal_id))
        return invoice_id


@pytest.fixture(scope="module")
def books(stack: Stack) -> Iterator[Books]:
    with pytest.MonkeyPatch.context() as patched, Desk(stack) as desk:
        patched.setenv("FIATGATE_HOME", str(stack.home.folder))
        currency = desk.currency()
        method = desk.method(currency)
        desk.requisite(method)
        made = Books(desk, desk.open_shop(currency), method, Fiatgate(stack))
        made.ids |= {"paid": made.paid(), "late": made.rejected(), "more": made.paid()}
        made.start = Decimal(desk.available(made.shop))
        made.make("late_credit", "--invoice", made.ids["late"], "--received", "450.00")
        made.make("surplus", "--invoice", made.ids["more"], "--received", "1012.50")
        made.make("manual_credit", "--merchant", made.shop.merchant_id, "--amount", "3")
        made.make("reversal", "--invoice", made.ids["paid"], "--amount", "2")
        made.make("manual_debit", "--merchant", made.shop.merchant_id, "--amount", "100")
        yield made
        ended = verify()
        assert ended.exit_code == 0, f"left behind: {ended.out}"


def test_each_kind_moves_its_money(books: Books) -> None:
    late, more, debit = (books.made[kind] for kind in ("late_credit", "surplus", "manual_debit"))
    # 1012.50 came in all; 900 with the customer's 2.5 % were asked for.
    assert more["received_amount"] == "90.00"
    assert (late["received_amount"], late["currency_code"]) == ("450.00", books.shop.currency)
    # 450 less the customer's 2.5 %, less the merchant's 2.5 %, at 90.
    assert (late["conversion_rate"], late["amount"]) == ("90.00", "4.756050")
    assert {each["owed"] for kind, each in books.made.items() if kind != "manual_debit"} == {"0.000000"}
    available = books.start + Decimal(late["amount"]) + Decimal(more["amount"]) + 3 - 2
    assert Decimal(debit["owed"]) == 100 - available
    (debt,) = [
        each
        for each in books.fiatgate("corrections", "debts")
        if each["merchant_id"] == books.shop.merchant_id
    ]
    assert debt["owed"] == debit["owed"]
    balance = books.fiatgate("balance", books.shop.merchant_id)
    assert (balance["available"], balance["owed"]) == ("0.000000", debit["owed"])
    ended = verify()
    assert ended.exit_code == 0
    listed = books.fiatgate("corrections", "list", "--limit", "1000")
    assert json.loads(ended.out)["checked"]["corrections"] == len(listed) >= len(books.made)


def test_another_rate_is_for_two_people_and_echoed(books: Books) -> None:
    rate = ("--invoice", books.rejected(), "--received", "90.00", "--rate", "80.00")
    checked = books.fiatgate("corrections", "check", "--kind", "late_credit", *rate)
    assert (checked["conversion_rate"], checked["locked_rate"], checked["needs_approval"]) == (
        "80.00",
        "90.00",
        True,
    )
    refused = run("corrections", "make", "--kind", "late_credit", *rate, *SAYS, "--json")
    assert "at 80.00" in refused.err
    assert "not at 90.00 that the deal has locked" in refused.err
    asked = json.loads(refused.err)["error"]["details"]["approval_id"]
    books.fiatgate("approvals", "reject", asked, "--note", "no")


@pytest.mark.parametrize(
    ("kind", "invoice", "came"), [("late_credit", "late", "90.00"), ("surplus", "more", "1012.50")]
)
def test_money_that_came_is_credited_once(books: Books, kind: str, invoice: str, came: str) -> None:
    options = ("--kind", kind, "--invoice", books.ids[invoice], "--received", came)
    made = ("corrections", "make", *options, *SAYS)
    assert books.fiatgate.refused(*made) == "CORRECTION_INVALID"
    returned = ("refunds", "request", "--origin", kind.partition("_")[0], "--invoice", books.ids[invoice])
    assert books.fiatgate.refused(*returned, "--amount", "90.00", "--case", "7") == "REFUND_INVALID"


def test_money_is_late_for_an_unpaid_invoice_only(books: Books) -> None:
    for kind, invoice in (("late_credit", "paid"), ("surplus", "late")):
        options = ("--invoice", books.ids[invoice], "--received", "1012.50")
        refused = run("corrections", "make", "--kind", kind, *options, *SAYS, "--json")
        assert json.loads(refused.err)["error"]["code"] == "CORRECTION_INVALID"


TAMPERINGS = {
    "an amount": ("late_credit", "amount = amount + 1", "amount = amount - 1"),
    "what came": (
        "late_credit",
        "received_amount = received_amount + 1",
        "received_amount = received_amount - 1",
    ),
    "a rate": ("surplus", "conversion_rate = conversion_rate - 1", "conversion_rate = conversion_rate + 1"),
    "a currency": ("surplus", "currency_code = 'XXX'", "currency_code = '{currency}'"),
    "a kind": ("late_credit", "kind = 'surplus'", "kind = 'late_credit'"),
    "an invoice": ("reversal", "invoice_id = '{late}'", "invoice_id = '{paid}'"),
    "what is owed": ("manual_debit", "owed = owed - 1", "owed = owed + 1"),
    "a reason": ("reversal", "reason = 'another'", "reason = 'As the bank says'"),
    "evidence": ("reversal", "evidence = 'another'", "evidence = 'BR-77'"),
    "a merchant": ("manual_credit", "merchant_id = '{late}'", "merchant_id = '{merchant}'"),
    "a case": ("late_credit", "case_number = 7", "case_number = NULL"),
}


@pytest.mark.parametrize("what", TAMPERINGS)
def test_a_changed_correction_is_found(books: Books, what: str) -> None:
    kind, change, undo = TAMPERINGS[what]
    known = books.ids | {"merchant": books.shop.merchant_id, "currency": books.shop.currency}
    made = books.made[kind]
    with behind_its_back(books.desk.stack, "withdrawals") as database:
        database.execute(
            f"UPDATE corrections SET {change.format(**known)} WHERE id = %s", (made["correction_id"],)
        )
    found = problems(verify())
    assert any(made["correction_id"] in each for each in found), found
    with behind_its_back(books.desk.stack, "withdrawals") as database:
        database.execute(
            f"UPDATE corrections SET {undo.format(**known)} WHERE id = %s", (made["correction_id"],)
        )


GONE = {
    "a correction": "corrections WHERE id = '{reversal}'",
    "its transfer": "transfers WHERE reference = 'correction:{reversal}'",
    "the debt of one": "transfers WHERE reference = 'correction:{manual_debit}:owed'",
    "its act": "acts WHERE object = 'correction:{reversal}'",
}


@pytest.mark.parametrize("what", GONE)
def test_a_deleted_row_is_found(books: Books, what: str) -> None:
    rows = GONE[what].format(**{kind: each["correction_id"] for kind, each in books.made.items()})
    table = rows.partition(" ")[0]
    with behind_its_back(books.desk.stack, "withdrawals") as database:
        database.execute(f"CREATE TABLE kept AS SELECT * FROM {rows}; DELETE FROM {rows}")
    found = problems(verify())
    assert any("correction" in each for each in found), found
    with behind_its_back(books.desk.stack, "withdrawals") as database:
        database.execute(f"INSERT INTO {table} SELECT * FROM kept; DROP TABLE kept")


def test_a_second_reversal_that_sql_wrote_is_found(books: Books) -> None:
    made = str(new_id())
    with behind_its_back(books.desk.stack, "withdrawals") as database:
        database.execute(
            "INSERT INTO corrections (id, kind, merchant_id, invoice_id, amount, owed, reason, evidence, request_key,"
            " created_at) SELECT %s, kind, merchant_id, invoice_id, 1000, 0, reason, evidence, %s, created_at"
            " FROM corrections WHERE merchant_id = %s AND kind = 'reversal'",
            (made, made, books.shop.merchant_id),
        )
    found = problems(verify())
    assert any(f"Transfer correction:{made} of 1000.000000 is missing" in each for each in found), found
    assert any(f"Invoice {books.ids['paid']} lost" in each for each in found), found
    assert any(made in each and "act is none" in each for each in found), found
    with behind_its_back(books.desk.stack, "withdrawals") as database:
        database.execute("DELETE FROM corrections WHERE id = %s", (made,))


def test_a_surplus_is_named_by_all_that_came(books: Books) -> None:
    surplus = ("corrections", "make", "--kind", "surplus", "--invoice", books.ids["paid"], *SAYS)
    refused = run(*surplus, "--received", "922.50")
    assert "are paid already: more came in all" in refused.err
    made = run(*surplus, "--received", "932.50")
    assert made.out.endswith(f" USDT for 10.00 {books.shop.currency} that came beyond what was asked.\n")

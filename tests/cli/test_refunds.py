"""`fiatgate refunds` on a real stack, each end of a refund, and what `fiatgate verify` says when SQL changed one."""

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

IBAN = ("--kind", "iban", "--account", "DE89370400440532013000", "--holder", "Mia Muster")


@dataclass
class Books:
    """A shop with paid invoices of 900.00, and a refund in each state."""

    desk: Desk
    shop: Shop
    method: str
    fiatgate: Fiatgate
    made: dict[str, dict[str, Any]] = field(default_factory=dict)

    def paid(self) -> str:
        invoice_id: str = self.shop.create(amount="900.00")["invoice_id"]
        before = Decimal(self.desk.available(self.shop))
        self.desk.confirm(invoice_id, self.method)
        settled(lambda: Decimal(self.desk.available(self.shop)) > before, "the credit")
        return invoice_id

    def request(self, invoice_id: str, *options: str) -> dict[str, Any]:
        of = ("--invoice", invoice_id, "--merchant", self.shop.merchant_id)
        made: dict[str, Any] = self.fiatgate("refunds", "request", *of, *options)
        return made

    def step(self, word: str, refund: dict[str, Any], *options: str) -> dict[str, Any]:
        done: dict[str, Any] = self.fiatgate("refunds", word, refund["refund_id"], *options)
        return done

    def money(self) -> tuple[str, str]:
        balance = self.fiatgate("balance", self.shop.merchant_id)
        return balance["available"], balance["reserved"]


@pytest.fixture(scope="module")
def books(stack: Stack) -> Iterator[Books]:
    with pytest.MonkeyPatch.context() as patched, Desk(stack) as desk:
        patched.setenv("FIATGATE_HOME", str(stack.home.folder))
        currency = desk.currency()
        method = desk.method(currency)
        desk.requisite(method)
        made = Books(desk, desk.open_shop(currency), method, Fiatgate(stack))
        invoices = [made.paid() for _ in range(3)]
        for number, end in enumerate(
            ("succeeded", "failed", "canceled", "sent", "ready", "waiting_for_account")
        ):
            refund = made.request(invoices[number % 3], "--amount", "90.00")
            if end not in ("waiting_for_account", "canceled"):
                refund = made.step("account", refund, *IBAN)
            if end in ("succeeded", "failed", "sent"):
                refund = made.step("send", refund, "--bank-reference", f"CLI-{number}")
            if end == "succeeded":
                refund = made.step("complete", refund)
            if end == "failed":
                refund = made.step("fail", refund, "--failure", "The bank refused the account")
            if end == "canceled":
                made.fiatgate("refunds", "cancel", refund["refund_id"])
                refund = made.step("show", refund)
            assert refund["status"] == end
            made.made[end] = refund
        yield made
        ended = verify()
        assert ended.exit_code == 0, f"left behind: {ended.out}"


def test_a_refund_holds_its_money_until_it_ends(books: Books) -> None:
    # 90.00 at 90: one USDT each. Three of them wait, one is gone, two gave it back.
    assert {each["amount"] for each in books.made.values()} == {"1.000000"}
    available, reserved = books.money()
    assert reserved == "3.000000"
    again = books.request(books.paid(), "--amount", "45.00")
    assert books.money()[1] == "3.500000"
    books.fiatgate("refunds", "cancel", again["refund_id"])
    assert books.money()[1] == reserved
    assert Decimal(books.money()[0]) > Decimal(available)


def test_the_list_has_them_by_status_and_the_desk_the_whole_account(books: Books) -> None:
    listed = books.fiatgate("refunds", "list", "--merchant", books.shop.merchant_id, "--status", "ready")
    assert [each["refund_id"] for each in listed] == [books.made["ready"]["refund_id"]]
    shown = books.step("show", books.made["ready"])
    assert shown["account"] == {
        "kind": "iban",
        "account": "DE89370400440532013000",
        "holder": "Mia Muster",
        "bank": "",
    }


def test_no_more_than_was_paid_goes_back_and_nothing_of_a_reversed_invoice(books: Books) -> None:
    invoice = books.paid()
    of = ("refunds", "request", "--invoice", invoice, "--merchant", books.shop.merchant_id)
    assert books.fiatgate.refused(*of, "--amount", "1000.00") == "REFUND_INVALID"
    says = ("--reason", "Not paid", "--evidence", "BR-1")
    reverse = ("corrections", "make", "--kind", "reversal", "--invoice", invoice, "--amount", "1", *says)
    books.fiatgate.by_two_if_needed(*reverse)
    assert books.fiatgate.refused(*of, "--amount", "10.00") == "REFUND_INVALID"


def test_a_case_ends_as_its_money_did_and_verify_names_one_that_did_not(books: Books) -> None:
    invoice = books.shop.create(amount="900.00")["invoice_id"]
    deal = books.desk.mark_paid(invoice, books.method)
    books.desk.deals.RejectDeal(invoices_pb2.RejectDealRequest(deal_id=deal.deal_id))
    case = books.desk.checkout.OpenCase(invoices_pb2.OpenCaseRequest(invoice_id=invoice)).case
    resolve = ("cases", "resolve", str(case.number), "--outcome", "Done", "--ended-as")
    for end, missing in (("credit", "was credited"), ("return", "goes back")):
        refused = run(*resolve, end)
        assert (refused.exit_code, missing in refused.err) == (2, True), refused.err
    back = ("--origin", "late", "--case", str(case.number), "--amount", "90.00")
    refund = books.request(invoice, *back)
    assert run(*resolve, "credit").exit_code == 2
    assert books.fiatgate(*resolve, "return")["ended_as"] == "return"
    assert verify().exit_code == 0

    def named(missing: str) -> bool:
        return any(f"case {case.number} ended as {missing}" in each for each in problems(verify()))

    def says(end: str) -> None:
        with behind_its_back(books.desk.stack, "invoices") as database:
            database.execute("UPDATE cases SET ended_as = %s WHERE number = %s", (end, case.number))

    says("credit")
    assert named("credit, and no late money")
    says("return")
    books.fiatgate("refunds", "cancel", refund["refund_id"])
    assert named("return, and no late money")
    books.request(invoice, *back)


def test_a_late_credit_that_was_taken_back_ends_no_case(books: Books) -> None:
    invoice = books.shop.create(amount="900.00")["invoice_id"]
    deal = books.desk.mark_paid(invoice, books.method)
    books.desk.deals.RejectDeal(invoices_pb2.RejectDealRequest(deal_id=deal.deal_id))
    case = books.desk.checkout.OpenCase(invoices_pb2.OpenCaseRequest(invoice_id=invoice)).case
    make = ("corrections", "make", "--invoice", invoice, "--reason", "As the bank says", "--evidence", "BR-9")
    resolve = ("cases", "resolve", str(case.number), "--outcome", "Done", "--ended-as", "credit")
    books.fiatgate(*make, "--kind", "late_credit", "--received", "90.00")
    books.fiatgate.by_two_if_needed(*make, "--kind", "reversal")
    refused = run(*resolve)
    assert (refused.exit_code, "was credited" in refused.err) == (2, True), refused.err
    books.fiatgate(*make, "--kind", "late_credit", "--received", "90.00")
    assert books.fiatgate(*resolve)["ended_as"] == "credit"
    books.fiatgate.by_two_if_needed(*make, "--kind", "reversal")
    assert verify().exit_code == 0


TAMPERINGS = {
    "an amount": ("succeeded", "amount = amount + 1", "amount = amount - 1"),
    "the fiat": ("ready", "refund_amount = refund_amount + 1", "refund_amount = refund_amount - 1"),
    "a status": ("ready", "status = 'sent'", "status = 'ready'"),
    "an end": ("failed", "status = 'succeeded', failure = NULL", "status = 'failed', failure = '{failure}'"),
    "an account": ("ready", "account = 'GB82WEST12345698765432'", "account = 'DE89370400440532013000'"),
    "a holder": ("sent", "holder = 'Mallory'", "holder = 'Mia Muster'"),
    "a bank reference": ("succeeded", "bank_reference = 'BR-99'", "bank_reference = 'CLI-0'"),
    "an invoice": ("canceled", "invoice_id = id", "invoice_id = '{invoice_id}'"),
    "a merchant": ("canceled", "merchant_id = id", "merchant_id = '{merchant_id}'"),
    "an order": ("sent", "external_id = 'another'", "external_id = '{external_id}'"),
}


@pytest.mark.parametrize("what", TAMPERINGS)
def test_a_changed_refund_is_found(books: Books, what: str) -> None:
    end, change, undo = TAMPERINGS[what]
    made = books.made[end]
    with behind_its_back(books.desk.stack, "withdrawals") as database:
        database.execute(f"UPDATE refunds SET {change} WHERE id = %s", (made["refund_id"],))
    found = problems(verify())
    assert any(made["refund_id"] in each for each in found), found
    with behind_its_back(books.desk.stack, "withdrawals") as database:
        database.execute(f"UPDATE refunds SET {undo.format(**made)} WHERE id = %s", (made["refund_id"],))


@pytest.mark.parametrize(
    "rows",
    [
        "refunds WHERE id = '{sent}'",
        "transfers WHERE reference = 'refund:{sent}:reserve'",
        "transfers WHERE reference = 'refund:{succeeded}:pay'",
        "transfers WHERE reference = 'refund:{failed}:release'",
    ],
)
def test_a_deleted_row_of_a_refund_is_found(books: Books, rows: str) -> None:
    rows = rows.format(**{end: each["refund_id"] for end, each in books.made.items()})
    with behind_its_back(books.desk.stack, "withdrawals") as database:
        database.execute(f"CREATE TABLE kept AS SELECT * FROM {rows}; DELETE FROM {rows}")
    found = problems(verify())
    assert any("refund" in each for each in found), found
    with behind_its_back(books.desk.stack, "withdrawals") as database:
        database.execute(f"INSERT INTO {rows.partition(' ')[0]} SELECT * FROM kept; DROP TABLE kept")


def test_a_refund_without_reservation_that_sql_wrote_is_found(books: Books) -> None:
    made = str(new_id())
    with behind_its_back(books.desk.stack, "withdrawals") as database:
        database.execute(
            "INSERT INTO refunds SELECT (jsonb_populate_record(refunds, jsonb_build_object('id', %s::text,"
            " 'external_id', %s::text))).* FROM refunds WHERE id = %s",
            (made, made, books.made["ready"]["refund_id"]),
        )
    found = problems(verify())
    assert any(f"Transfer refund:{made}:reserve of 1.000000 is missing" in each for each in found), found
    assert any(made in each and "act is none" in each for each in found), found
    with behind_its_back(books.desk.stack, "withdrawals") as database:
        database.execute("DELETE FROM refunds WHERE id = %s", (made,))


def test_the_search_finds_a_refund_by_each_of_its_references(books: Books) -> None:
    made = books.made["succeeded"]
    for text, place in (
        (made["refund_id"], "id"),
        (made["external_id"], "external_id"),
        ("cli-0", "bank_reference"),
    ):
        found = books.fiatgate("find", text)
        assert ("refund", made["refund_id"], place) in {
            (each["kind"], each["id"], each["field"]) for each in found
        }

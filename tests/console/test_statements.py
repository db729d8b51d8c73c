"""Statements: all of them together are the ledger, to the cent, and one on paper adds up."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from html import unescape
from typing import Any, Final
from uuid import uuid4

import psycopg2
import pytest

from fiatgate.withdrawals.v1 import corrections_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from fiatgate.withdrawals.v1.corrections_pb2_grpc import CorrectionsServiceStub
from kit.base.clock import SystemClock
from kit.base.ids import new_id
from kit.base.money import amount_text
from kit.base.proto import timestamp_from
from kit.rpc.client import channel
from tests.console.conftest import Open, Staff, with_cookies
from tests.console.house import House, Person, text_of
from tests.console.looks import looks_right
from tests.e2e.test_other_merchants import TRON_ADDRESS
from tests.gateway.desk import Desk, Shop, settled
from tests.support.acting import second_person
from tests.support.stack import Stack

Ledger = Mapping[tuple[str, str], Decimal]
"""What arrived at an account less what left it, by the account's kind and merchant; one of the system has none."""

Sums = defaultdict[tuple[str, str], Decimal]

AVAILABLE: Final = {
    **dict.fromkeys(("credit", "release", "correction_credit"), 1),
    **dict.fromkeys(("reserve", "correction_debit", "debt_paid"), -1),
}
RESERVED: Final = {"reserve": 1, "pay": -1, "fee": -1, "release": -1}
OWED: Final = {"owed": 1, "debt_paid": -1}
ACCOUNTS: Final = {"available": AVAILABLE, "reserved": RESERVED, "owed": OWED}
SYSTEM: Final = {
    **dict.fromkeys(("credit", "correction_credit"), ("settlement", -1)),
    **dict.fromkeys(("correction_debit", "owed"), ("settlement", 1)),
    "pay": ("paid_out", 1),
    "fee": ("fees", 1),
}
PAID: Final = 6
"""Invoices of each shop: two of each of three months."""


def months() -> list[tuple[datetime, datetime]]:
    """The present month and the three before it, the oldest first: its first moment and that of the next one."""
    end = (SystemClock().now().replace(day=1) + timedelta(days=31)).replace(day=1)
    found: list[tuple[datetime, datetime]] = []
    until = datetime(end.year, end.month, 1, tzinfo=UTC)
    for _ in range(4):
        since = (until - timedelta(days=1)).replace(day=1)
        found.append((since, until))
        until = since
    return found[::-1]


@dataclass(frozen=True)
class Books:
    """Two shops with months of credits and with withdrawals, and who reads their statements."""

    desk: Desk
    shops: list[Shop]
    readers: dict[str, Person]

    @property
    def merchants(self) -> list[str]:
        return [each.merchant_id for each in self.shops]

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(psycopg2.connect(self.desk.stack.superuser_url("withdrawals"))) as connection:
            cursor = connection.cursor()
            cursor.execute(statement, values)
            return cursor.fetchall()

    def ledger(self) -> Ledger:
        """By the rows themselves: the two merchants' accounts, and their part of the system's."""
        rows = self.sql(
            "SELECT accounts.kind, coalesce(accounts.merchant_id::text, ''), sum(signed) FROM transfers"
            " JOIN accounts AS debit ON debit.id = debit_account"
            " JOIN accounts AS credit ON credit.id = credit_account"
            " CROSS JOIN LATERAL (VALUES (debit_account, -amount), (credit_account, amount)) AS legs (account, signed)"
            " JOIN accounts ON accounts.id = account"
            " WHERE coalesce(debit.merchant_id, credit.merchant_id) = ANY(%s::uuid[]) GROUP BY 1, 2",
            self.merchants,
        )
        return {(kind, merchant): amount for kind, merchant, amount in rows if amount}


def _added(found: Sums, merchant: str, kind: str, amount: Decimal) -> None:
    found["merchant_available", merchant] += AVAILABLE.get(kind, 0) * amount
    found["merchant_reserved", merchant] += RESERVED.get(kind, 0) * amount
    found["merchant_owed", merchant] -= OWED.get(kind, 0) * amount
    if kind in SYSTEM:
        account, sign = SYSTEM[kind]
        found[account, ""] += sign * amount


def by_service(books: Books) -> Ledger:
    """The sums of all statements of all months, each of which begins with the closing of the one before."""
    found: Sums = defaultdict(Decimal)
    for merchant in books.merchants:
        before = pb.MerchantBalance(available="0.000000", reserved="0.000000", owed="0.000000")
        for since, until in months():
            month = books.desk.withdrawals.GetStatement(
                pb.GetStatementRequest(
                    merchant_id=merchant,
                    created_from=timestamp_from(since),
                    created_before=timestamp_from(until),
                )
            )
            assert month.opening == before, f"{merchant} {since:%Y-%m}"
            for each in month.sums:
                kind = pb.TransferKind.Name(each.kind).removeprefix("TRANSFER_KIND_").lower()
                _added(found, merchant, kind, Decimal(each.amount))
            before = month.closing
        assert found["merchant_available", merchant] == Decimal(before.available)
        assert found["merchant_reserved", merchant] == Decimal(before.reserved)
        assert found["merchant_owed", merchant] == -Decimal(before.owed)
    return {key: amount for key, amount in found.items() if amount}


def by_files(books: Books) -> Ledger:
    """The sums of the lines of all CSV files of all months, as members of the merchants get them."""
    found: Sums = defaultdict(Decimal)
    for merchant, reader in books.readers.items():
        for since, _ in months():
            for line in reader.rows("/balance.csv", month=f"{since:%Y-%m}"):
                changed = [Decimal(line[f"{each}_change"] or 0) for each in ACCOUNTS]
                amount = Decimal(line["amount"])
                _added(found, merchant, line["kind"], amount)
                assert changed == [of.get(line["kind"], 0) * amount for of in ACCOUNTS.values()]
                assert Decimal(line["available_after"]) == found["merchant_available", merchant]
                assert Decimal(line["reserved_after"]) == found["merchant_reserved", merchant]
                assert Decimal(line["owed_after"]) == -found["merchant_owed", merchant]
    return {key: amount for key, amount in found.items() if amount}


@pytest.fixture(scope="module")
def books(stack: Stack, house: House) -> Iterator[Books]:
    with Desk(stack) as desk:
        currency = desk.currency()
        method = desk.method(currency)
        desk.requisite(method)
        shops = [desk.open_shop(currency, name=name) for name in ("Lamps & Sons", "Chairs")]
        for shop in shops:
            for number in range(PAID):
                invoice_id = shop.create(amount=f"{900 + number}.37")["invoice_id"]
                if number:
                    desk.confirm(invoice_id, method)
                else:
                    desk.accept_part(desk.mark_paid(invoice_id, method).deal_id, "800.00")
        for shop in shops:
            request = pb.ListTransfersRequest(merchant_id=shop.merchant_id)

            def credited(request: pb.ListTransfersRequest = request) -> bool:
                return len(desk.withdrawals.ListTransfers(request).transfers) == PAID

            settled(credited, "the credits")
            transfers = desk.withdrawals.ListTransfers(request).transfers
            for number, id in enumerate(
                each.transfer_id for each in transfers
            ):  # two on the first moment of a month, the others within it
                at = months()[number // 2][0] + timedelta(days=9 * (number % 2))
                desk.database("withdrawals", _FORGE + "SET created_at = %s WHERE id = %s", at, id)
        paid, canceled = (_withdrawn(desk, shops[0], amount) for amount in ("20", "10.5"))
        desk.withdrawals.CancelWithdrawal(pb.CancelWithdrawalRequest(withdraw_uuid=canceled))
        desk.withdrawals.ProcessWithdrawal(pb.ProcessWithdrawalRequest(withdraw_uuid=paid))
        desk.withdrawals.CompleteWithdrawal(
            pb.CompleteWithdrawalRequest(withdraw_uuid=paid, external_tx_id=uuid4().hex * 2)
        )
        _withdrawn(desk, shops[1], "30")
        _corrected(desk, shops[1].merchant_id, transfers[0].invoice_id)
        readers = {each.merchant_id: house.person("finance", merchant=each.merchant_id) for each in shops}
        yield Books(desk, shops, readers)


_FORGE: Final = "SET session_replication_role = replica; UPDATE transfers "
"""Past all triggers: what no process of ours can do."""


def _withdrawn(desk: Desk, shop: Shop, amount: str) -> str:
    request = pb.CreateWithdrawalRequest(
        merchant_id=shop.merchant_id,
        withdrawal_method_id=1,
        address=TRON_ADDRESS,
        amount=amount,
        request_key=str(uuid4()),
    )
    withdraw_uuid: str = desk.withdrawals.CreateWithdrawal(request).withdrawal.withdraw_uuid
    return withdraw_uuid


def _corrected(desk: Desk, merchant_id: str, invoice_id: str) -> None:
    """A part of a credit goes back, then more than there is, and then a part of the debt is paid."""
    address = desk.stack.addresses["withdrawals"]
    with channel(address, name="withdrawals") as opened, second_person(address) as by_two:
        make = CorrectionsServiceStub(opened).MakeCorrection
        for kind, amount, reason, invoice in (
            ("REVERSAL", "1.5", "The bank took a part back", invoice_id),
            ("MANUAL_DEBIT", "100000", "Paid twice in May", ""),
            ("MANUAL_CREDIT", "40", "For the outage", ""),
        ):
            request = corrections_pb2.MakeCorrectionRequest(
                kind=corrections_pb2.CorrectionKind.Value(f"CORRECTION_KIND_{kind}"),
                merchant_id="" if invoice else merchant_id,
                invoice_id=invoice,
                amount=amount,
                reason=reason,
                evidence="BR-7",
                request_key=str(uuid4()),
            )
            by_two(partial(make, request))


def opening_of(page: str, account: str) -> Decimal:
    return _sum(page, "Before", account)


def closing_of(page: str, account: str) -> Decimal:
    return _sum(page, "After", account)


def _sum(page: str, row: str, account: str) -> Decimal:
    (amount,) = re.findall(rf'<th scope="row">{row}<.*?data-label="{account}".*?money">([0-9.,]+)', page)
    return Decimal(amount.replace(",", ""))


def changes(page: str, account: str) -> list[Decimal]:
    """Returns the signed amounts of those listed transfers that moved the account."""
    transfers = page.partition("<h2>Transfers</h2>")[2]
    found = re.findall(rf'data-label="{account}" class="num">([+−])<span class="money">([0-9.,]+)', transfers)
    return [Decimal(amount.replace(",", "")) * (1 if sign == "+" else -1) for sign, amount in found]


@contextmanager
def altered(books: Books) -> Iterator[None]:
    """One transfer of the past has a cent more."""
    ((id,),) = books.sql(
        "SELECT transfers.id FROM transfers JOIN accounts ON accounts.id = credit_account"
        " WHERE merchant_id = %s::uuid AND reference LIKE 'invoice:%%' ORDER BY created_at LIMIT 1",
        books.merchants[1],
    )
    books.desk.database("withdrawals", _FORGE + "SET amount = amount + 0.01 WHERE id = %s", id)
    try:
        yield
    finally:
        books.desk.database("withdrawals", _FORGE + "SET amount = amount - 0.01 WHERE id = %s", id)


def test_all_statements_together_are_the_ledger(books: Books) -> None:
    ledger = books.ledger()
    assert {kind for kind, _ in ledger} == {
        *("merchant_available", "merchant_reserved", "merchant_owed", "settlement", "paid_out", "fees")
    }
    assert sum(ledger.values()) == 0
    assert by_service(books) == ledger
    assert by_files(books) == ledger
    # And each balance of the ledger is what the statements end with.
    balances = books.sql(
        "SELECT kind, merchant_id::text, CASE kind WHEN 'merchant_owed' THEN -balance ELSE balance END FROM accounts"
        " WHERE merchant_id = ANY(%s::uuid[]) AND balance <> 0",
        books.merchants,
    )
    assert {(kind, merchant): amount for kind, merchant, amount in balances} == {
        key: amount for key, amount in ledger.items() if key[1]
    }


def test_one_altered_cent_is_noticed_by_statements_and_by_verify(books: Books) -> None:
    ledger = books.ledger()
    with altered(books):
        with pytest.raises(AssertionError):
            assert by_files(books) == ledger
        with pytest.raises(AssertionError):
            by_service(books)
        report = books.desk.withdrawals.CheckLedger(pb.CheckLedgerRequest())
        assert any(books.merchants[1] in each for each in report.problems), report.problems
    assert by_files(books) == ledger


def test_the_changes_of_all_months_add_up_to_the_balance(books: Books, house: House, open_page: Open) -> None:
    for merchant, reader in books.readers.items():
        balance = books.desk.withdrawals.GetBalance(pb.GetBalanceRequest(merchant_id=merchant))
        held = Decimal(balance.available) + Decimal(balance.reserved) - Decimal(balance.owed)
        for by in ("month", "day"):
            rows = reader.rows("/balance/changes.csv", by=by)
            assert sum(Decimal(row["change"]) for row in rows) == held
    (row,) = rows
    assert (row["reversed"], row["by_hand"]) == ("-1.500000", "-99960.000000")
    assert house.person("developer", merchant=merchant).get("/balance/changes").status_code == 403
    browser = with_cookies(open_page(), reader)
    browser.goto(f"{house.dashboard}/balance")
    browser.get_by_role("link", name="Changes by month").click()
    looks_right(browser, "dashboard-balance-changes")


def test_a_statement_on_paper_adds_up_and_leads_to_each_invoice(
    books: Books, house: House, open_page: Open, staff: Staff
) -> None:
    merchant, reader = books.merchants[0], books.readers[books.merchants[0]]
    since, until = months()[0]
    page = unescape(reader.get("/balance/print", params={"month": f"{since:%Y-%m}"}).text)
    assert f"Statement, {since:%B %Y}" in page
    assert "Lamps & Sons" in page and merchant in page
    assert f"{since:%Y-%m-%d} to {until - timedelta(days=1):%Y-%m-%d}" in page
    assert f"by <bdi>Ada Lovelace</bdi>, <bdi>{reader.email}</bdi>" in page
    lines = reader.rows("/balance.csv", month=f"{since:%Y-%m}")
    assert len(lines) == 2
    file = reader.get("/balance.csv", params={"month": f"{since:%Y-%m}"})
    assert file.headers["Content-Disposition"] == f'attachment; filename="statement-{since:%Y-%m}.csv"'
    assert re.findall(r'href="/invoices/([0-9a-f-]{36})"', page) == [each["invoice_id"] for each in lines]
    for each in lines:
        assert reader.get(f"/invoices/{each['invoice_id']}").status_code == 200

    listed = unescape(reader.get("/balance", params={"month": f"{since:%Y-%m}"}).text)
    for shown in (re.sub("<[^>]+>", "", each).replace("\xa0", " ") for each in (page, listed)):
        assert f"901.37 {books.shops[0].currency}" in shown
        assert "part payment accepted: 922.88 were asked for, 800.00 came, 780.48" in shown

    adjusted = [each for each in lines if each["order_amount"] != each["order_paid"]]
    assert [
        [each[name] for name in ("order_amount", "amount_asked", "amount_received", "order_paid")]
        for each in adjusted
    ] == [["900.37", "922.88", "800.00", "780.48"]]
    credited = sum(Decimal(each["available_change"]) for each in lines)
    assert opening_of(page, "Available") + credited == closing_of(page, "Available")
    present = reader.get("/balance/print").text
    assert "the month goes on" in present
    named = ("Held for a withdrawal", "Withdrawal failed or canceled", "Withdrawal sent", "Network fee")
    assert all(each in present for each in named)
    assert reader.get("/balance/print?month=2026-13").status_code == 400
    for account in ("Available", "Reserved"):
        for address in ("/balance", "/balance/print"):
            page = reader.get(address).text
            assert sum(changes(page, account)) == closing_of(page, account) - opening_of(page, account)
            assert {each < 0 for each in changes(page, account)} == {True, False}, f"{address} {account}"
    coming = f"{months()[-1][1]:%Y-%m}"
    for address, status in (("/balance", 422), ("/balance/print", 400), ("/balance.csv", 400)):
        refused = reader.get(address, params={"month": coming})
        assert refused.status_code == status, address
    assert f"The month {coming} has not begun." in reader.get("/balance", params={"month": coming}).text
    developer = house.person("developer", merchant=merchant)
    assert developer.get("/balance/print").status_code == 403
    browser = with_cookies(open_page(), reader)
    browser.goto(f"{house.dashboard}/balance?month={since:%Y-%m}")
    browser.get_by_role("link", name="Print").click()
    looks_right(browser, "dashboard-statement-print")
    browser.emulate_media(media="print")
    assert not browser.locator("nav.side").is_visible()
    assert browser.get_by_role("heading", name="Statement").is_visible()
    # Operators print the same for any merchant, and one of no merchant is empty.
    treasury = staff("treasury")
    theirs = unescape(treasury.get(f"/merchants/{merchant}/statement/print?month={since:%Y-%m}").text)
    assert all(each["invoice_id"] in theirs for each in lines)
    nothing = treasury.get(f"/merchants/{new_id()}/statement/print")
    assert "The ledger has no transfer in this month." in nothing.text


def test_a_statement_has_corrections_with_their_reasons_and_a_debt(books: Books, open_page: Open) -> None:
    reader, merchant = books.readers[books.merchants[1]], books.merchants[1]
    balance = books.desk.withdrawals.GetBalance(pb.GetBalanceRequest(merchant_id=merchant))
    assert (balance.available, Decimal(balance.owed) > 0) == ("0.000000", True)
    for address in ("/balance", "/balance/print"):
        page = reader.get(address)
        assert closing_of(page.text, "Owed") == Decimal(balance.owed)
        for account in ("Available", "Reserved", "Owed"):
            assert sum(changes(page.text, account)) == closing_of(page.text, account) - opening_of(
                page.text, account
            )
        named = ("Taken back by the operator", "Became a debt", "Credited by the operator", "Paid the debt")
        why = ("The bank took a part back", "Paid twice in May", "For the outage")
        assert not [each for each in (*named, *why) if each not in text_of(page)], address
        assert "BR-7" not in page.text, "the evidence is for operators"
        assert "Owed" not in reader.get(address, params={"month": f"{months()[0][0]:%Y-%m}"}).text
    assert "Owed" not in books.readers[books.merchants[0]].get("/balance").text
    lines = reader.rows("/balance.csv", month=f"{months()[-1][0]:%Y-%m}")
    (back,) = [each for each in lines if each["reason"] == "The bank took a part back"]
    assert (back["kind"], back["available_change"]) == ("correction_debit", "-1.500000")
    assert f'href="/invoices/{back["invoice_id"]}"' in page.text
    home = text_of(reader.get("/"))
    assert f"You owe {amount_text(balance.owed)}" in home and "it is paid first from what comes in" in home
    browser = with_cookies(open_page(), reader)
    browser.goto(f"{reader.url}/balance")
    looks_right(browser, "dashboard-statement-with-debt")

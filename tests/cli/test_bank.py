"""`fiatgate bank` on a real stack, and what `fiatgate verify` says when bank and invoices do not agree."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1.lines_pb2 import LinePart
from kit.base.money import amount_text, money_text
from tests.bank.shapes import camt, entry
from tests.cli.command_line import Fiatgate, run
from tests.cli.test_verify import behind_its_back, problems, verify
from tests.gateway.desk import Desk, Shop
from tests.support.stack import Stack

SECONDS = 30


@dataclass(frozen=True)
class Account:
    """A shop whose customers pay to one account with references."""

    desk: Desk
    shop: Shop
    method: str
    deals: list[pb.Deal]
    fiatgate: Fiatgate

    def file(self, folder: Path, *amounts: str) -> Path:
        """A statement with one line for each deal."""
        account = self.desk.deals.GetDeal(pb.GetDealRequest(deal_id=self.deals[0].deal_id)).requisite.account
        entries = (
            entry(
                amount,
                f"<RmtInf><Ustrd>{deal.reference} {uuid4().hex}</Ustrd></RmtInf>",
                currency=deal.currency_code,
            )
            for deal, amount in zip(self.deals, amounts, strict=True)
        )
        content = camt(*entries, account=f"<Othr><Id>{re.sub(r'[^0-9A-Za-z]', '', account)}</Id></Othr>")
        path = folder / "statement.xml"
        path.write_text(content.replace("<Ccy>EUR</Ccy>", f"<Ccy>{self.deals[0].currency_code}</Ccy>"))
        return path

    def line_of(self, deal: pb.Deal) -> dict[str, Any]:
        """The line with the deal's reference, once it has a proposal."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            found[:] = self.fiatgate("bank", "lines", "--deal", deal.deal_id)
            return bool(found)

        wait_until(is_there, "a proposal", timeout_seconds=SECONDS)
        return found[0]


@pytest.fixture(scope="module")
def account(stack: Stack) -> Iterator[Account]:
    with pytest.MonkeyPatch.context() as patched, Desk(stack) as desk:
        patched.setenv("FIATGATE_HOME", str(stack.home.folder))
        currency = desk.currency()
        method = desk.method(currency, takes_reference=True)
        desk.requisite(method)
        shop = desk.open_shop(currency)
        deals = [desk.choose(shop.create()["invoice_id"], method) for _ in range(2)]
        yield Account(desk, shop, method, deals, Fiatgate(stack))


def test_a_statement_confirms_its_deals_and_verify_compares_both_sides(
    account: Account, tmp_path: Path
) -> None:
    first, second = account.deals
    file = str(account.file(tmp_path, first.amount_fiat, second.amount_fiat))
    taken = account.fiatgate("bank", "import", file)
    assert (taken["state"], taken["lines"], taken["new_lines"]) == ("taken", 2, 2)
    assert account.fiatgate("bank", "import", file) == taken
    lines = [account.line_of(deal) for deal in account.deals]
    assert [line["tier"] for line in lines] == ["certain", "certain"]
    account.fiatgate("bank", "ignore", lines[0]["line_id"][:20], "--reason", "ours")
    assert run("bank", "confirm", lines[0]["line_id"], "--json").exit_code == 1
    account.fiatgate("bank", "restore", lines[0]["line_id"][:20])
    wait_until(lambda: account.line_of(first)["state"] == "proposed", "its proposal", timeout_seconds=SECONDS)
    account.fiatgate("bank", "confirm", *(line["line_id"][:20] for line in lines))
    assert account.fiatgate.refused("bank", "confirm", "ffffffff") == "BANK_LINE_NOT_FOUND"
    assert {account.line_of(deal)["state"] for deal in account.deals} == {"matched"}
    assert run("bank", "confirm", lines[0]["line_id"], "--json").exit_code == 1
    assert verify().exit_code == 0
    days = account.fiatgate("bank", "day", "2026-01-02", "--account", lines[0]["account"])
    ours = [each for each in days if each["currency_code"] == account.deals[0].currency_code]
    assert [(each["matched"], each["open_lines"]) for each in ours] == [
        (f"{sum(Decimal(each.amount_fiat) for each in account.deals):.2f}", 0)
    ]
    shown = account.fiatgate.shown("bank", "day", "2026-01-02", "--account", lines[0]["account"])
    assert "currency" in shown and account.deals[0].currency_code in shown
    line = lines[0]["line_id"]
    with behind_its_back(account.desk.stack, "bank") as cursor:
        cursor.execute("DELETE FROM line_matches WHERE line_id = %s", (line,))
        cursor.execute(
            "INSERT INTO line_matches SELECT number + 1, line_id, gen_random_uuid(), invoice_id, 1, paid_at"
            " FROM line_matches WHERE line_id = %s",
            (lines[1]["line_id"],),
        )
        cursor.execute("UPDATE lines SET state = 'unmatched' WHERE id = %s", (lines[1]["line_id"],))
    found = problems(verify())
    assert any("for bank, not for invoices" in each for each in found), "of a line in any state"
    assert any("bank does not know it" in each for each in found)
    account.fiatgate("bank", "repair")
    assert verify().exit_code == 0
    with behind_its_back(account.desk.stack, "invoices") as cursor:
        cursor.execute("UPDATE line_payments SET amount = amount - 1 WHERE line_id = %s", (line,))
    assert any("for bank, not for invoices" in each for each in problems(verify()))
    with behind_its_back(account.desk.stack, "invoices") as cursor:
        cursor.execute("UPDATE line_payments SET amount = amount + 1 WHERE line_id = %s", (line,))
    assert verify().exit_code == 0


def test_a_proposal_that_sql_wrote_confirms_no_deal(account: Account, tmp_path: Path) -> None:
    desk = account.desk
    named, forged = (desk.choose(account.shop.create()["invoice_id"], account.method) for _ in range(2))
    file = replace(account, deals=[named]).file(tmp_path, forged.amount_fiat)
    account.fiatgate("bank", "import", str(file))
    line = account.line_of(named)["line_id"]
    with behind_its_back(desk.stack, "bank") as cursor:
        change = "state = 'proposed', tier = 'certain', deal_id = %s, invoice_id = %s, deal_amount = amount"
        cursor.execute(f"UPDATE lines SET {change} WHERE id = %s", (forged.deal_id, forged.invoice_id, line))
    run("bank", "confirm", line, "--json")
    found = desk.deals.GetDeal(pb.GetDealRequest(deal_id=forged.deal_id)).deal
    assert found.status == pb.DEAL_STATUS_PENDING


def test_the_list_shows_what_is_left_of_a_line_beside_its_amount(account: Account, tmp_path: Path) -> None:
    deal = account.desk.choose(account.shop.create()["invoice_id"], account.method)
    above = f"{Decimal(deal.amount_fiat) + 5:.2f}"
    account.fiatgate("bank", "import", str(replace(account, deals=[deal]).file(tmp_path, above)))
    part = LinePart(line_id=account.line_of(deal)["line_id"], amount=deal.amount_fiat, line_amount=above)
    account.desk.deals.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal.deal_id, lines=[part]))
    wait_until(lambda: account.line_of(deal)["left"] == "5.00", "its rest", timeout_seconds=SECONDS)
    shown = account.fiatgate.shown("bank", "lines", "--deal", deal.deal_id)
    assert f"{money_text('5.00', deal.currency_code)} of {amount_text(above, deal.currency_code)}" in shown


def test_a_csv_file_is_imported_by_a_saved_profile(account: Account, tmp_path: Path) -> None:
    form, file, name = tmp_path / "form.json", tmp_path / "lines.csv", f"csv-{uuid4().hex[:8]}"
    form.write_text('{"columns": {"day": "Day", "amount": "Sum"}, "currency": "EUR", "account": "CSV1"}')
    file.write_text(f"Day;Sum;{name}\n28.11.2026;1.234,56;\n")
    fiatgate = account.fiatgate
    assert fiatgate("bank", "profiles", "save", name, str(form))["name"] == name
    assert name in [each["name"] for each in fiatgate("bank", "profiles", "list")]
    unknown = run("bank", "import", str(file), "--profile", "no-such", "--json")
    assert "No profile of CSV files has this name" in unknown.out + unknown.err
    lacking = run("bank", "import", str(file), "--json")
    assert "give the profile of its bank" in lacking.out + lacking.err
    taken = fiatgate("bank", "import", str(file), "--profile", name)
    assert (taken["state"], taken["format"], taken["new_lines"]) == ("taken", "csv", 1)
    assert fiatgate("bank", "import", str(file), "--profile", str(form)) == taken
    fiatgate("bank", "profiles", "delete", name)
    assert name not in [each["name"] for each in fiatgate("bank", "profiles", "list")]

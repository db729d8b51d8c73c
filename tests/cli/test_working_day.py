"""An operator's day with the command: lists, search, several things at a time, ids by their beginning, questions."""

from __future__ import annotations

import csv
import json
from typing import Any
from uuid import UUID

import pytest
from rich.cells import cell_len

from cli import ids, output
from cli.commands import find
from tests.cli.command_line import Fiatgate, run
from tests.cli.terminal import shown
from tests.cli.test_approvals import wait_until_well
from tests.cli.test_operating import UNKNOWN, create_invoice, shop  # noqa: F401  a fixture

LONG_ORDER = "2026/11/22/the-shop-of-long-numbers/a-very-long-order-"
SENDER = "أميرة السيد"


@pytest.fixture
def invoices(fiatgate: Fiatgate, shop: dict[str, str]) -> list[dict[str, Any]]:  # noqa: F811  the fixture
    """Three invoices of the shop, each with its newest deal: not marked paid, marked paid, and marked paid."""
    made = []
    for number in range(3):
        order = f"{LONG_ORDER}{shop['key_id']}-{number}"[-128:]
        invoice = create_invoice(
            fiatgate, shop, external_id=order, customer_id=f"c-{shop['key_id']}-{number}"
        )
        chosen = fiatgate("checkout", "select", invoice["invoice_id"], "eur-card")
        if number:
            fiatgate("checkout", "mark-paid", invoice["invoice_id"], "--sender", SENDER)
        made.append({name: chosen[name] for name in chosen if name != "requisite"})
    return made


def deal_ids(invoices: list[dict[str, Any]]) -> list[str]:
    return [invoice["deal"]["deal_id"] for invoice in invoices]


def statuses(fiatgate: Fiatgate, invoices: list[dict[str, Any]]) -> list[str]:
    return [fiatgate("deals", "show", id)["status"] for id in deal_ids(invoices)]


# -- lists


def test_the_list_of_deals_fits_80_columns_and_cuts_nothing(
    fiatgate: Fiatgate,
    shop: dict[str, str],  # noqa: F811  the fixture
    invoices: list[dict[str, Any]],
) -> None:
    name = "Société Générale des Lampes et Luminaires du Sud-Ouest"
    fiatgate("merchants", "set", shop["merchant_id"], "--name", name)
    screen = shown(fiatgate.stack.home.folder, "deals", "list", "--merchant", shop["merchant_id"])
    assert screen.exit_code == 0, screen.text
    assert max(map(cell_len, screen.lines)) <= 80
    assert screen.lines[0].startswith("3 deals; 2 wait for your decision, the longest for ")
    assert screen.lines[1].startswith("Next: fiatgate deals show ")
    together = "".join(screen.text.split())
    whole = fiatgate("deals", "show", invoices[1]["deal"]["deal_id"])
    for text in (whole["requisite"]["account"], SENDER, whole["amount_fiat"], whole["deal_id"][:13]):
        assert "".join(text.split()) in together
    assert together.count("Société") == 3
    assert together.count("Luminaires") == 3


@pytest.mark.parametrize(
    "words",
    [
        *(("invoices", "list"), ("withdrawals", "list"), ("cases", "list"), ("merchants", "list")),
        *(("webhooks", "list"), ("requisites", "list"), ("methods", "list"), ("currencies", "list")),
        *(("rates", "list"), ("find", SENDER), ("withdrawals", "methods")),
    ],
    ids=" ".join,
)
def test_every_list_fits_80_columns(
    fiatgate: Fiatgate, invoices: list[dict[str, Any]], words: tuple[str, ...]
) -> None:
    screen = shown(fiatgate.stack.home.folder, *words)
    assert screen.exit_code == 0, screen.text
    assert max(map(cell_len, screen.lines)) <= 80


def test_invoices_are_listed_by_time_amount_status_and_merchant_page_by_page(
    fiatgate: Fiatgate,
    shop: dict[str, str],  # noqa: F811  the fixture
    invoices: list[dict[str, Any]],
) -> None:
    of_shop = ("invoices", "list", "--merchant", shop["merchant_id"][:20])
    newest_first = [invoice["invoice_id"] for invoice in reversed(invoices)]

    def listed(*options: str) -> list[str]:
        return [each["invoice_id"] for each in fiatgate(*of_shop, *options)]

    assert listed() == newest_first
    assert listed("--since", "1h", "--status", "pending") == newest_first
    assert listed("--since", invoices[1]["created_at"]) == newest_first[:2]
    assert listed("--until", invoices[1]["created_at"]) == newest_first[2:]
    assert listed("--until", "2026-01-01") == []
    assert listed("--status", "success") == []
    assert listed("--amount", invoices[0]["amount"]) == [invoices[0]["invoice_id"]]
    assert listed("--order", invoices[1]["external_id"]) == listed("--customer", invoices[1]["customer_id"])
    assert listed("--order", invoices[1]["external_id"]) == [invoices[1]["invoice_id"]]
    method, most = invoices[0]["deal"]["payment_method_code"], invoices[0]["amount"]
    assert listed(
        "--method", method, "--currency", "eur", "--amount-from", most, "--amount-to", most
    ) == listed("--amount", most)
    assert listed("--method", "none") == []
    first = run(*of_shop, "--limit", "2")
    more = first.err.partition("More: fiatgate ")[2].split()
    assert more == [*of_shop, "--limit", "2", "--after", newest_first[1][:13]]
    assert [each["invoice_id"] for each in fiatgate(*more)] == newest_first[2:]
    assert "More:" not in run(*more).err
    assert fiatgate.refused("invoices", "list", "--after", UNKNOWN) == "INVOICE_NOT_FOUND"
    assert run("invoices", "list", "--since", "yesterday").exit_code == 2


def test_csv_has_all_invoices_and_no_cell_that_a_spreadsheet_computes(
    fiatgate: Fiatgate,
    shop: dict[str, str],  # noqa: F811  the fixture
    invoices: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    formula = f"=HYPERLINK({shop['key_id']})"
    create_invoice(fiatgate, shop, external_id=formula)
    monkeypatch.setattr("cli.listing.LIST_MOST_ROWS", 2)  # several pages
    ended = run("invoices", "list", "--merchant", shop["merchant_id"], "--csv")
    assert (ended.exit_code, ended.err) == (0, "")
    rows = list(csv.DictReader(ended.out.splitlines(keepends=True)))
    assert [row["external_id"] for row in rows] == [
        f"'{formula}",
        *(invoice["external_id"] for invoice in reversed(invoices)),
    ]
    newest = rows[1]
    assert newest["invoice_id"] == invoices[2]["invoice_id"]
    assert (newest["status"], newest["deal_sub_status"]) == ("pending", "awaiting_confirmation")
    assert (newest["sender_name"], newest["merchant"]) == (SENDER, "Corner shop")


# -- ids


def test_the_first_characters_of_an_id_are_enough(
    fiatgate: Fiatgate,
    shop: dict[str, str],  # noqa: F811  the fixture
    invoices: list[dict[str, Any]],
) -> None:
    deal, invoice = invoices[1]["deal"], invoices[1]
    assert fiatgate("deals", "show", deal["deal_id"][:20])["deal_id"] == deal["deal_id"]
    assert (
        fiatgate("deals", "show", deal["deal_id"][:20].replace("-", "").upper())["deal_id"] == deal["deal_id"]
    )
    assert fiatgate("invoices", "show", invoice["invoice_id"][:20])["invoice_id"] == invoice["invoice_id"]
    shown = fiatgate("invoices", "show", invoice["external_id"])
    assert shown["invoice_id"] == invoice["invoice_id"]
    assert [(moment["title"], moment["by"]) for moment in shown["timeline"]] == [
        ("Invoice created", f"API key {invoice['key_id']}"),
        ("Payment method chosen", "customer"),
        ("Marked paid", "customer"),
    ]
    assert fiatgate("balance", shop["merchant_id"][:20])["available"] == "0.000000"
    assert fiatgate("keys", "list", shop["merchant_id"][:20])[0]["key_id"] == shop["key_id"]
    assert fiatgate("deals", "confirm", deal["deal_id"][:20])["status"] == "completed"


def test_a_beginning_that_two_ids_share_does_nothing_and_names_them(
    fiatgate: Fiatgate, invoices: list[dict[str, Any]]
) -> None:
    shared = deal_ids(invoices)[1][:4]
    ended = run("deals", "reject", shared, "--json")
    error = json.loads(ended.err)["error"]
    assert (ended.exit_code, error["code"]) == (1, "ID_AMBIGUOUS")
    named = error["details"]["ids"].split(", ")
    assert 2 <= len(named) <= ids.SHOWN_MOST
    assert all(id.startswith(shared) for id in named)
    assert statuses(fiatgate, invoices) == ["pending"] * 3
    assert fiatgate.refused("deals", "confirm", "ffffffff") == "DEAL_NOT_FOUND"
    assert fiatgate.refused("withdrawals", "process", "ffff-ffff") == "WITHDRAWAL_NOT_FOUND"
    assert fiatgate.refused("merchants", "show", "ffffffff") == "MERCHANT_NOT_FOUND"


def test_lists_shorten_ids_on_a_screen_so_that_commands_take_them(
    fiatgate: Fiatgate,
    shop: dict[str, str],  # noqa: F811  the fixture
    invoices: list[dict[str, Any]],
) -> None:
    screen = shown(fiatgate.stack.home.folder, "deals", "list", "--merchant", shop["merchant_id"])
    for id in deal_ids(invoices):
        (line,) = [line for line in screen.lines if line.startswith(id[: output.SHORT_ID])]
        assert fiatgate("deals", "show", line.split()[0])["deal_id"] == id


# -- several at a time


def test_several_deals_are_confirmed_and_each_result_is_a_line(
    fiatgate: Fiatgate, invoices: list[dict[str, Any]]
) -> None:
    marked = deal_ids(invoices)[1:]
    ended = run("deals", "confirm", *marked, UNKNOWN, "--yes")
    assert ended.exit_code == 1
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines] == ["done", "done", "DEAL_NOT_FOUND", "2"]
    assert [line.split()[1] for line in lines[:3]] == [*marked, UNKNOWN]
    assert lines[3] == "2 of 3 done."
    again = json.loads(run("deals", "confirm", *marked, "--json").out)
    assert [each["outcome"] for each in again] == ["DEAL_STATE_CONFLICT"] * 2
    assert statuses(fiatgate, invoices) == ["pending", "completed", "completed"]
    done = fiatgate("invoices", "cancel", invoices[0]["invoice_id"])
    assert done["status"] == "canceled"


def test_after_a_service_fails_the_others_are_not_tried(
    fiatgate: Fiatgate, invoices: list[dict[str, Any]]
) -> None:
    marked = deal_ids(invoices)[1:]
    with fiatgate.stack.without("invoices"):
        ended = run("deals", "confirm", *marked, "--yes", "--json")
    assert ended.exit_code == 1
    assert [each["outcome"] for each in json.loads(ended.out)] == ["SERVICE_DOWN", "not tried"]
    wait_until_well(fiatgate, "invoices")
    assert statuses(fiatgate, invoices)[1:] == ["pending"] * 2


def test_requisites_are_disabled_and_enabled_together(fiatgate: Fiatgate) -> None:
    some = [each["requisite_id"] for each in fiatgate("requisites", "list", "--method", "eur-card")][:2]
    try:
        assert [each["outcome"] for each in fiatgate("requisites", "disable", *some)] == ["done"] * 2
    finally:
        assert [each["outcome"] for each in fiatgate("requisites", "enable", *some)] == ["done"] * 2


# -- a deal that is not marked paid


def test_a_deal_that_is_not_marked_paid_is_confirmed_only_after_a_yes(
    fiatgate: Fiatgate, invoices: list[dict[str, Any]]
) -> None:
    unmarked = deal_ids(invoices)[0]
    home = fiatgate.stack.home.folder
    assert fiatgate.refused("deals", "confirm", unmarked) == "NOT_MARKED_PAID"
    several = run("deals", "confirm", *deal_ids(invoices))
    assert "1 of 3 deals are not marked paid by the customer. Nothing was confirmed." in several.err
    no = shown(home, "deals", "confirm", unmarked, answer="n")
    assert no.exit_code == 1
    assert "The deal is not marked paid by the customer. Confirm it all the same?" in " ".join(
        no.text.split()
    )
    assert statuses(fiatgate, invoices) == ["pending"] * 3
    yes = shown(home, "deals", "confirm", unmarked, answer="y")
    assert yes.exit_code == 0
    assert "Confirmed: " in yes.text
    assert fiatgate("deals", "show", unmarked)["status"] == "completed"


# -- search


def test_anything_is_found_by_what_an_operator_has(
    fiatgate: Fiatgate,
    shop: dict[str, str],  # noqa: F811  the fixture
    invoices: list[dict[str, Any]],
) -> None:
    # A word of letters: PostgreSQL splits an id into words and numbers at places that depend on its digits.
    word = UUID(shop["key_id"]).hex.translate(str.maketrans("0123456789", "ghijklmnop"))
    name = f"Lampen-Müller {word}"
    fiatgate("merchants", "set", shop["merchant_id"], "--name", name)
    deal = fiatgate("deals", "show", invoices[1]["deal"]["deal_id"])
    requisite = deal["requisite"]
    spaced = " ".join(requisite["account"].lower())
    for text, kind, id, field in (
        (deal["deal_id"][:20], "deal", deal["deal_id"], "id"),
        (invoices[1]["invoice_id"], "invoice", invoices[1]["invoice_id"], "id"),
        (invoices[1]["external_id"], "invoice", invoices[1]["invoice_id"], "order"),
        (invoices[1]["customer_id"], "invoice", invoices[1]["invoice_id"], "customer"),
        (invoices[1]["amount"], "invoice", invoices[1]["invoice_id"], "amount"),
        (deal["amount_fiat"], "deal", deal["deal_id"], "amount"),
        (deal["reference"].lower(), "deal", deal["deal_id"], "reference"),
        (spaced, "requisite", requisite["requisite_id"], "account"),
        (f"müller {word[:20]}", "merchant", shop["merchant_id"], "name"),
        (shop["key_id"], "key", shop["key_id"], "id"),
    ):
        found = {
            (each["kind"], each["id"]): each["field"] for each in fiatgate("find", text, "--limit", "100")
        }
        assert found.get((kind, id)) == field, f"{text}: {found}"
    by_sender = fiatgate("find", SENDER.split(maxsplit=1)[0], "--limit", "100")
    assert {each["value"] for each in by_sender if each["field"] == "sender"} == {SENDER}


def test_a_search_names_the_next_command_and_what_there_is_more_of(
    fiatgate: Fiatgate, invoices: list[dict[str, Any]]
) -> None:
    deal_id = deal_ids(invoices)[1]
    told = run("find", deal_id)
    assert told.out.splitlines()[:2] == [
        f"Found 1 deal with {deal_id}.",
        f"Next: fiatgate deals show {deal_id}",
    ]
    nothing = run("find", "no such thing")
    assert (nothing.exit_code, nothing.out) == (1, "Nothing has no such thing.\n")
    cut = run("find", SENDER, "--limit", "1")
    assert "There are more than 1 by deal sender: --limit 100" in cut.err
    with fiatgate.stack.without("webhooks"):
        some = run("find", deal_id)
    assert (some.exit_code, deal_id in some.out) == (1, True)
    assert "webhooks did not answer" in some.err
    wait_until_well(fiatgate, "webhooks")


def test_what_a_search_shows_next_is_a_command_there_is() -> None:
    facts = {"id": UNKNOWN, "method_code": "sepa", "merchant_id": UNKNOWN}
    for command in find._NEXT.values():
        words = command.format(**facts).split()[1:]
        assert run(*words, "--help").exit_code == 0

"""What people see at the width of their window, and what scripts read."""

import csv
import json
from collections.abc import Iterator

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from rich.cells import cell_len
from rich.console import Console

from cli import listing, output
from cli.commands import invoices
from cli.deal_list import for_people, state_sentence
from cli.listing import Table
from console.words.states import words_of
from fiatgate.invoices.v1 import invoices_pb2 as pb

ID = "01a1f88a-96bc-730b-a73c-b28eb5729d2c"
DEAL = pb.Deal(
    deal_id=ID,
    invoice_id=ID,
    status=pb.DEAL_STATUS_PENDING,
    sub_status="awaiting_payment",
    amount_fiat="102.92",
    expires_at=Timestamp(seconds=1_700_000_000, nanos=5000),
)
DEALS = Table(
    columns="deal_id | invoice_id | status | sub_status | amount_fiat | expires_at", empty="No deals"
)


@pytest.fixture(autouse=True)
def mode() -> Iterator[None]:
    yield
    output.mode.set()


def window(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "console", Console(highlight=False, width=width))


def show_deals(*, as_json: bool = False) -> None:
    output.mode.set(json=as_json)
    DEALS.show_all([DEAL, DEAL])


def test_a_wide_window_shows_a_line_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    window(160, monkeypatch)
    show_deals()
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if ID in line]
    assert lines == [[ID, ID, "pending", "awaiting_payment", "102.92", "2023-11-14", "22:13:20Z"]] * 2


@pytest.mark.parametrize("width", [80, 60])
def test_a_narrow_window_shows_a_card_each_and_breaks_nothing(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    window(width, monkeypatch)
    show_deals()
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert [line.split() for line in lines].count(["deal", "id", ID]) == 2
    assert [line.split() for line in lines].count(["sub", "status", "awaiting_payment"]) == 2


def test_a_column_may_have_a_heading_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for width, shown in ((100, ["order", "state"]), (60, ["order", ID])):
        window(width, monkeypatch)
        values = [{"external_id": ID, "deal": {"status": ID}}]
        Table(columns="external_id: order | deal.status: state", empty="").show(values)
        assert capsys.readouterr().out.split()[:2] == shown


@pytest.mark.parametrize("width", [80, 200])
def test_groups_have_headings_and_no_facts_without_a_value(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    window(width, monkeypatch)
    output.groups(
        {
            "Deal": {"deal_id": ID, "adjusted_amount": None},
            "Requisite": {},
            "History": [{"status": "pending", "note": ""}],
        }
    )
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "─" not in line]
    assert lines == [["Deal"], ["deal", "id", ID], [], ["History"], ["status"], ["pending"]]


def test_json_has_the_fields_of_the_proto_the_words_of_the_api_and_nulls(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_deals(as_json=True)
    first, second = json.loads(capsys.readouterr().out)
    assert first == second
    assert list(first) == [field.name for field in pb.Deal.DESCRIPTOR.fields]
    assert (first["status"], first["merchant_usdt"]) == ("pending", None)
    assert first["expires_at"] == "2023-11-14T22:13:20.000005+00:00"


def test_nothing_is_said_in_words_and_as_an_empty_list(capsys: pytest.CaptureFixture[str]) -> None:
    DEALS.show([])
    assert capsys.readouterr().out == "No deals\n"
    output.mode.set(json=True)
    DEALS.show([])
    assert json.loads(capsys.readouterr().out) == []


def test_what_others_wrote_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    note = "[red]not markup[/red] [/bold] $(rm -rf /)"
    output.record({"note": note})
    assert note in capsys.readouterr().out


def test_lists_within_a_thing_are_tables_of_what_is_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    window(100, monkeypatch)
    history = [{"status": "pending", "note": ""}, {"status": "completed", "note": ""}]
    output.record({"deal_id": ID, "history": history})
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["deal", "id", ID] in shown
    assert ["history"] in shown
    assert ["status"] in shown
    assert ["completed"] in shown


def test_a_command_leads_with_a_sentence_and_the_next_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    window(80, monkeypatch)
    output.outcome(DEAL, "Confirmed.", "fiatgate deals show 1")
    assert capsys.readouterr().out.splitlines() == ["Confirmed.", "Next: fiatgate deals show 1"]
    output.mode.set(everything=True)
    output.outcome(DEAL, "Confirmed.")
    first, *others = capsys.readouterr().out.splitlines()
    assert (first, ["deal", "id", ID] in [line.split() for line in others]) == ("Confirmed.", True)
    output.mode.set(json=True)
    output.outcome(DEAL, "Confirmed.", "fiatgate")
    assert json.loads(capsys.readouterr().out)["deal_id"] == ID


def test_a_screen_shows_the_first_characters_of_ids_and_more_where_two_are_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other, near = "11a1f88a-96bc-730b-a73c-b28eb5729d2c", ID[:-1] + "d"
    window(80, monkeypatch)
    assert output.shortened([ID, other]) == {ID: ID[:13], other: other[:13]}
    assert output.shortened([ID, near]) == {ID: ID, near: near}
    assert output.shortened(["17", ID])["17"] == "17"
    window(output.PIPED_WIDTH, monkeypatch)
    assert output.shortened([ID, other]) == {ID: ID, other: other}


def test_a_narrow_screen_stacks_the_fields_of_a_row_and_cuts_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    window(40, monkeypatch)
    row = {"id": "1", "account": "DE02120300000000202051 of nobody in particular", "sender": "أميرة السيد"}
    Table(columns="id: deal | account | sender", stacks="id | account sender", empty="").show([row])
    shown = capsys.readouterr().out
    assert max(cell_len(line) for line in shown.splitlines()) <= 40
    assert row["sender"] in shown
    assert "".join(row["account"].split()) in "".join(shown.split())


def test_the_text_of_a_customer_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.record({"note": "\x1b[2Jclean\u202egnp"})
    output.refusal("CODE", "\x1b[2J", {"field": "\x07"})
    output.lead("\x1b[2J")
    printed = "".join(capsys.readouterr())
    assert not set(printed) & {"\x1b", "\x07", "\u202e"}
    assert "\\x1b[2Jclean\\u202egnp" in printed


def test_a_line_break_in_the_text_of_a_customer_makes_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    forged = "order-1\n0197  success  99999.00 EUR"
    Table(columns="order", empty="").show([{"order": forged}])
    output.record({"external_id": forged})
    output.refusal("CODE", forged, {"field": forged})
    output.lead(forged)
    printed = "".join(capsys.readouterr())
    assert not [line for line in printed.splitlines() if line.strip().startswith("0197")]
    assert printed.count("order-1\\n0197  success") == 5


def test_people_read_amounts_with_their_thousands_apart_and_per_cent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [{"currency_code": "JPY", "amount": "12240.00", "turnover_usdt": "1000.500000", "markup": "0.02"}]
    rows[0]["change"] = "-2000.000000"
    table = Table(columns="amount | turnover_usdt | markup | change", empty="")
    table.show(rows)
    output.record({"deal": rows[0] | {"conversion_rate": "1234.5", "external_id": "2026.11"}})
    printed = capsys.readouterr().out.split()
    assert [printed.count(each) for each in ("12,240", "1,000.500000", "1,234.5", "2026.11")] == [2, 2, 1, 1]
    assert " ".join(printed).count("2 %") == 2 and printed.count("-2,000") == 2
    deal = output.plain(pb.Deal(amount_to_send="5100.00", currency_code="JPY"))
    assert for_people(deal)["amount"] == "5,100 JPY"
    listing.write_csv(rows, "amount | markup")
    assert capsys.readouterr().out.split() == ["amount,markup", "12240.00,0.02"]


def test_a_card_shows_the_lines_of_a_note_beside_its_label(capsys: pytest.CaptureFixture[str]) -> None:
    output.record({"case": {"note": "I paid.\n\x1b[2JTwice."}})
    first, second = capsys.readouterr().out.strip().splitlines()
    assert first.split() == ["case", "note", "I", "paid."]
    assert second.strip() == "\\x1b[2JTwice."


def test_csv_has_no_cell_that_a_spreadsheet_computes(capfd: pytest.CaptureFixture[str]) -> None:
    evil = [f"{first}HYPERLINK(1)" for first in "=+-@\t\r"] + [" =1", '"=1', "a,b"]
    listing.write_csv(({"order": text, "paid": None, "on": True} for text in evil), "order | on | paid")
    (heading, *lines) = csv.reader(capfd.readouterr().out.splitlines(keepends=True))
    assert heading == ["order", "on", "paid"]
    assert [line[0] for line in lines] == [*(f"'{text}" for text in evil[:7]), *evil[7:]]
    assert lines[0][1:] == ["true", ""]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\uff1d"])
def test_no_part_of_a_cell_is_computed_where_a_spreadsheet_splits_it(
    capfd: pytest.CaptureFixture[str], first: str, delimiter: str
) -> None:
    """Spreadsheets of many languages split at semicolons, and a quote counts only where such a cell begins."""
    formula = f"{first}cmd|' /C calc'!A0"
    evil = [
        f"x{before}{quotes}{formula};y" for before in (";", "; ", "\t", "\n") for quotes in ("", '"', '""')
    ]
    listing.write_csv(({"a": "a, b", "order": text} for text in evil), "a | order")
    printed = capfd.readouterr().out
    cells = [
        cell for line in csv.reader(printed.splitlines(keepends=True), delimiter=delimiter) for cell in line
    ]
    assert len(cells) > len(evil)
    assert not [cell for cell in cells if cell.strip(' "').startswith(first)]


def test_a_part_payment_is_told_with_what_was_asked_for_and_what_came() -> None:
    deal = pb.Deal(
        currency_code="EUR",
        invoice_amount="75.00",
        amount_to_send="75.94",
        amount_fiat="70.00",
        adjusted_amount="69.13",
        payment_method_name="SEPA",
    )
    invoice = pb.Invoice(
        amount="75.00", currency_code="EUR", deal=deal, final_amount="69.13", is_adjusted=True
    )
    assert "75.94 EUR were to be sent, 70.00 came, 69.13 of the order's 75.00" in state_sentence(deal)
    assert "by SEPA: 70.00 of 75.94 EUR came, 69.13 of the order count as paid" in invoices._state(invoice)


@pytest.mark.parametrize(
    ("of", "state", "words"),
    [
        ("invoice", "success", "paid"),
        ("deal", "completed", "paid"),
        ("deal", "successfully_paid", "paid"),
        ("deal", "completed_with_adjustment", "paid in part"),
        ("withdrawal", "success", "sent"),
        ("webhook", "success", "delivered"),
        ("withdrawal", "cancelled_by_user", "canceled by the merchant"),
    ],
)
def test_a_state_has_one_name_for_people(of: str, state: str, words: str) -> None:
    assert words_of(state, of) == words

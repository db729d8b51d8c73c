"""What people see at the width of their window, and what scripts read."""

from __future__ import annotations

import json

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console

from cli import output
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
COLUMNS = ("deal_id", "invoice_id", "status", "sub_status", "amount_fiat", "expires_at")


def window(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "console", Console(highlight=False, width=width))


def show_deals(*, as_json: bool = False) -> None:
    output.records([DEAL, DEAL], COLUMNS, as_json=as_json, empty="No deals")


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
        headings = {"external_id": "order", "deal.status": "state"}
        output.rows(values, headings, as_json=False, empty="")
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
    output.records([], COLUMNS, as_json=False, empty="No deals")
    assert capsys.readouterr().out == "No deals\n"
    output.records([], COLUMNS, as_json=True, empty="No deals")
    assert json.loads(capsys.readouterr().out) == []


def test_what_others_wrote_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    note = "[red]not markup[/red] [/bold] $(rm -rf /)"
    output.record({"note": note}, as_json=False)
    assert note in capsys.readouterr().out


def test_lists_within_a_thing_are_tables_of_what_is_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    window(100, monkeypatch)
    history = [{"status": "pending", "note": ""}, {"status": "completed", "note": ""}]
    output.record({"deal_id": ID, "history": history}, as_json=False)
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["deal", "id", ID] in shown
    assert ["history"] in shown
    assert ["status"] in shown
    assert ["completed"] in shown

"""Pasted tables: from a spreadsheet, a CSV file, or typed."""

import pytest

from kit.base.cells import harmless
from kit.base.pasted import pasted_rows

COLUMNS = ("account", "holder", "bank")


def rows(text: str) -> list[tuple[object, ...]]:
    return [(row.line, *(row.cells[name] for name in COLUMNS)) for row in pasted_rows(text, COLUMNS)]


@pytest.mark.parametrize(
    "text",
    ["1\tAnn\tFirst", "1;Ann;First", "1,Ann,First", "\ufeff1 , Ann , First\r\n\r\n", '"1";"Ann";"First"\r'],
)
def test_cells_are_separated_by_tabs_semicolons_or_commas(text: str) -> None:
    assert rows(text) == [(1, "1", "Ann", "First")]


def test_the_first_line_may_name_the_columns_in_any_order() -> None:
    text = "Holder,note,Account\nAnn,x,1\n\nBen,y,2,more\n"
    assert rows(text) == [(2, "1", "Ann", ""), (4, "2", "Ben", "")]


def test_missing_cells_are_empty_and_empty_lines_are_none() -> None:
    assert rows("1\n;;\n\n2;Ben") == [(1, "1", "", ""), (4, "2", "Ben", "")]
    assert rows("") == []


def test_a_cell_of_our_own_file_comes_back_as_it_was() -> None:
    assert rows(f"{harmless('+49 30 1234567')};O'Hara;'quoted'") == [
        (1, "+49 30 1234567", "O'Hara", "'quoted'")
    ]


def test_a_quotation_may_hold_separators_and_must_end() -> None:
    assert rows('"1;2";"Ann\nAnna"') == [(2, "1;2", "Ann\nAnna", "")]
    with pytest.raises(ValueError, match="line 2 can't be read"):
        rows('1;Ann\n"2;Ben')


@pytest.mark.parametrize("separator", [";", "\t", "\n", "\r", "\v", "\x85", "\u2028", "\u2029"])
def test_a_formula_after_any_kind_of_line_break_is_text(separator: str) -> None:
    assert harmless(f"lamp{separator}=1+1") == f"lamp{separator}'=1+1"
    assert harmless(f"{separator}=1") in (f"'{separator}'=1", f"{separator}'=1")

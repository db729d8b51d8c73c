"""The figures of docs/scaling.md follow from each other: whoever measures one anew is told what else changes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

TEXT: Final = (Path(__file__).resolve().parents[1] / "docs" / "scaling.md").read_text()
DAY_SECONDS: Final = 86_400
PEAK: Final = 10  # "the busiest second has ten times the average"


def table(head: str) -> Iterator[list[str]]:
    (body,) = re.findall(rf"^\| {re.escape(head)}.*\n\|[-|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    for row in body.splitlines():
        yield [cell.strip().replace("`", "") for cell in row.strip("|").split("|")]


def number(text: str) -> float:
    """ "1,157", "41 MB" (in bytes)."""
    digits, _, unit = text.partition(" ")
    return float(digits.replace(",", "")) * {"": 1, "MB": 1e6, "GB": 1e9, "TB": 1e12}[unit]


def about(figure: float) -> object:
    """As rounded as the document has it."""
    return pytest.approx(figure, rel=0.1)


BYTES: Final = sum(
    number(size) * int(count[0])
    for _, size, count in table("row | bytes, indexes included | per paid purchase")
)
(PEAK_MS, POSTGRESQL_MS) = (
    float(each)
    for each in re.findall(
        r"a\s+purchase\s+takes\s+(\d+)\s+ms\s+of .*?;\s+PostgreSQL\s+takes\s+(\d+)", TEXT, re.DOTALL
    )[0]
)


def test_a_purchase_takes_as_many_bytes_as_its_rows() -> None:
    (said,) = re.findall(r"That is \*\*([\d.]+) MB per 1,000", TEXT)
    assert float(said) == about(BYTES / 1000)


def test_a_purchase_takes_as_much_time_as_its_processes() -> None:
    rows = {name: (busy, alone) for name, busy, alone in table("process | ms at 50/s | ms alone")}
    busy_ms, alone_ms = rows.pop("all")
    assert number(busy_ms) == about(sum(number(busy) for busy, _ in rows.values()))
    assert number(alone_ms) == about(sum(number(alone) for _, alone in rows.values() if alone))
    (said,) = re.findall(r"\*\*(\d+) CPU seconds per 1,000 invoices", TEXT)
    assert said == busy_ms
    assert number(busy_ms) < PEAK_MS
    assert number(rows["PostgreSQL"][0]) < POSTGRESQL_MS


@pytest.mark.parametrize(
    "row", [*table("load | purchases a day | in the busiest second")], ids=lambda row: row[0]
)
def test_the_loads_are_calculated_from_what_a_purchase_takes(row: list[str]) -> None:
    load, a_day, busiest, cores, of_postgresql, data_a_day, data_a_year = map(number, row)
    assert a_day == load * 10_000
    assert busiest == about(PEAK * a_day / DAY_SECONDS)
    assert cores == about(busiest * PEAK_MS / 1000)
    assert of_postgresql == pytest.approx(busiest * POSTGRESQL_MS / 1000, rel=0.2)
    assert data_a_day == about(a_day * BYTES)
    assert data_a_year == about(365 * data_a_day)

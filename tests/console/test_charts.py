"""Charts show the numbers of their table: heights in proportion, round steps, nothing outside the picture."""

from decimal import Decimal

import pytest

from console.ui.charts import BARS_MAX, BOTTOM, HEIGHT, LABELS_MOST, LEFT, WIDTH, bars, lines, scale_of


def test_bars_stand_in_proportion_to_their_values() -> None:
    chart = bars("Turnover", ["Mon", "Tue", "Wed"], [Decimal(50), Decimal(100), Decimal(0)], unit="EUR")
    first, second, third = chart.bars
    assert abs(2 * first.height - second.height) <= 1
    assert third.height == 0
    assert second.title == "Tue: 100 EUR"
    assert all(each.y + each.height == HEIGHT - BOTTOM for each in chart.bars)


@pytest.mark.parametrize(
    ("most", "top"), [("0", "4"), ("1", "1"), ("7", "8"), ("99", "100"), ("101", "200"), ("0.03", "0.04")]
)
def test_the_scale_ends_at_a_round_number_above_all_values(most: str, top: str) -> None:
    assert scale_of(Decimal(most)) == Decimal(top)


@pytest.mark.parametrize(
    ("most", "top"), [(0, 4), (1, 4), (2, 4), (7, 8), (9, 20), (10, 20), (99, 100), (950, 1000)]
)
def test_an_axis_of_counts_has_whole_numbers_only(most: int, top: int) -> None:
    chart = lines("Invoices", ["1", "2"], [("created", [0, most])], counts=True)
    assert [each.text for each in chart.ticks] == [f"{top // 4 * each:,}" for each in range(5)]


def test_a_line_leaves_out_days_without_a_value() -> None:
    chart = lines("Minutes", ["1", "2", "3"], [("median", [Decimal(3), None, Decimal(6)])])
    ((name, points),) = chart.series
    assert name == "median"
    assert len(points.split()) == 2


def test_a_rate_that_does_not_move_is_a_line_above_its_axis() -> None:
    chart = lines("EUR per USDT", ["1", "2"], [("last", [Decimal("0.92")] * 2)], from_zero=False)
    ((_, points),) = chart.series
    assert all(int(each.split(",")[1]) < chart.base for each in points.split())
    ((_, first),) = lines("EUR per USDT", ["1"], [("last", [Decimal("0.92")])], from_zero=False).series
    assert first == points, "the first hour has a line too"


def test_a_long_chart_keeps_its_last_values_and_few_labels_inside_the_picture() -> None:
    names = [str(each) for each in range(BARS_MAX + 10)]
    chart = bars("Invoices", names, list(range(BARS_MAX + 10)))
    assert len(chart.bars) == BARS_MAX
    assert chart.bars[-1].title.startswith(names[-1])
    assert len(chart.labels) <= LABELS_MOST
    assert all(each.x >= LEFT and each.x + each.width <= WIDTH for each in chart.bars)


def test_without_values_there_is_a_grid_and_nothing_else() -> None:
    chart = bars("Invoices", [], [])
    assert not chart.bars
    assert not chart.series
    assert chart.ticks

"""Times that an operator types."""

from datetime import UTC, datetime, timedelta

import pytest
import typer

from cli.moments import EARLIEST, moment, month
from cli.restoring import before_ids_since
from kit.base.clock import SystemClock
from kit.base.ids import secret_id


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-22", datetime(2026, 11, 22, tzinfo=UTC)),
        ("2026-11-22T14:30", datetime(2026, 11, 22, 14, 30, tzinfo=UTC)),
        ("2026-11-22T14:30+02:00", datetime(2026, 11, 22, 12, 30, tzinfo=UTC)),
        ("1970-01-01", EARLIEST),
    ],
)
def test_a_date_is_in_utc_unless_it_has_a_zone(text: str, at: datetime) -> None:
    assert moment(text) == at
    assert moment(text).tzinfo is UTC


def test_an_age_is_before_now() -> None:
    now = SystemClock().now()
    assert now <= moment("24h") + timedelta(hours=24) <= SystemClock().now()


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01",
        "1969-12-31T23:59:59",
        "30000d",
        "999999d",
        "0001-01-01T00:00+14:00",
        "9999-12-31T23:59-14:00",
        "yesterday",
        "",
    ],
)
def test_a_time_that_nothing_can_have_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        moment(text)


@pytest.mark.parametrize("text", ["9999-12", "0000-01", "2026-13", "2026"])
def test_a_month_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        month(text)


def test_a_verification_since_the_earliest_time_passes_over_no_invoice() -> None:
    assert before_ids_since(EARLIEST) < str(secret_id(EARLIEST, cell=0))

"""The value that is due after acts, when clocks differ and when somebody changed it past the service."""

from datetime import UTC, datetime, timedelta

import pytest

from kit.audit.decisions import Change, due

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def acts(*changes: tuple[str, str], apart: float = 60) -> list[Change]:
    return [
        (before, after, NOON + timedelta(seconds=apart * place))
        for place, (before, after) in enumerate(changes)
    ]


@pytest.mark.parametrize(
    "changes",
    [
        [("", "desk"), ("desk", "")],
        # SQL takes the role, an operator gives it again and takes it away: it does not come back.
        [("", "desk"), ("", "desk"), ("desk", "")],
        [("", "desk"), ("desk", ""), ("desk", "")],
    ],
)
@pytest.mark.parametrize("apart", [1, 60])
def test_a_value_that_the_last_act_took_away_is_not_due(changes: list[tuple[str, str]], apart: float) -> None:
    assert due(acts(*changes, apart=apart)) == ("",)


def test_after_two_acts_of_clocks_that_differ_by_seconds_both_values_are_due() -> None:
    swapped = [("", "a"), ("b", "c"), ("a", "b")]
    assert due(acts(*swapped, apart=1)) == ("b", "c")
    assert due(acts(*swapped, apart=60)) == ("b",)


def test_a_later_act_mends_a_value_that_was_changed_past_the_service() -> None:
    assert due(acts(("", "a"), ("x", "b"), apart=1)) == ("b",)

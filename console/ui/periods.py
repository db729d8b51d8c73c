"""Periods of reports: the choices, and the days of each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final

from console.ui.filters import Choice

PERIOD: Final = Choice(
    "period",
    "Period",
    words={
        "7": "Last 7 days",
        "today": "Today",
        "30": "Last 30 days",
        "month": "This month",
        "last-month": "Last month",
        "year": "Last 12 months",
    },
)


def days_of(given: Mapping[str, str], today: date) -> tuple[str, str]:
    """Returns the first and the last day: those that were given, else those of the period."""
    if given["since"] or given["until"]:
        return given["since"] or given["until"], given["until"] or max(given["since"], today.isoformat())
    this_month = today.replace(day=1)
    last_month_end = this_month - timedelta(days=1)
    periods = {
        "today": (today, today),
        "7": (today - timedelta(days=6), today),
        "30": (today - timedelta(days=29), today),
        "month": (this_month, today),
        "last-month": (last_month_end.replace(day=1), last_month_end),
        "year": (_next_month(this_month.replace(year=this_month.year - 1)), today),
    }
    first, last = periods[given["period"]]
    return first.isoformat(), last.isoformat()


def _next_month(first_day: date) -> date:
    return (first_day + timedelta(days=31)).replace(day=1)

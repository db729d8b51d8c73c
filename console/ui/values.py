"""Values as pages and files write them: times, ages, ids, words of the API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from kit.base.clock import SystemClock
from kit.base.groups import account_in_groups
from kit.base.ids import parse_id
from kit.base.money import percent_of

_ID_MAX_DIGITS: Final = 18
SHORT_ID_CHARACTERS: Final = 13
"""As the command line shows ids: enough for a search, which names the things when two begin alike."""
_CLOCK: Final = SystemClock()


def iso(at: Timestamp | datetime) -> str:
    """Returns the time for machines, in UTC; empty for a time that was not set."""
    if isinstance(at, Timestamp) and not at.seconds:
        return ""
    return _moment(at).strftime("%Y-%m-%dT%H:%M:%SZ")


def iso_milliseconds(at: Timestamp | datetime) -> str:
    """Returns the time for scripts, which compare it with others."""
    return _moment(at).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def time_text(at: Timestamp | datetime) -> str:
    """Returns the time for people, in UTC: 22 Nov 2026, 13:05 UTC."""
    moment = _moment(at)
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"


def ago(at: Timestamp | datetime) -> str:
    """Returns the time that has passed since then, or will pass until then: 40 s, 12 min, 3 h 5 min, 9 d."""
    return age_text(_CLOCK.now() - _moment(at))


def age_text(passed: timedelta) -> str:
    """Returns a span in its two largest units, without its sign."""
    seconds = abs(int(passed.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    if seconds < 86_400:
        hours, minutes = seconds // 3600, seconds % 3600 // 60
        return f"{hours} h {minutes} min" if minutes and hours < 10 else f"{hours} h"
    return f"{seconds // 86_400} d"


def number_of(text: str) -> int:
    """Returns the number that a thing has as its id; 0 for a text that is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _ID_MAX_DIGITS else 0


def short(id: str) -> str:
    """Returns the first characters of an id; another text as it is."""
    return id[:SHORT_ID_CHARACTERS] if parse_id(id) else id


def word(message: Message, field: str) -> str:
    """Returns "pending" for INVOICE_STATUS_PENDING in a field of a message: the word of the API. Empty: not given."""
    number = getattr(message, field)
    kind = message.DESCRIPTOR.fields_by_name[field].enum_type
    if kind is None or not number:
        return "" if not number else str(number)
    known = kind.values_by_number.get(number)
    if known is None:
        return str(number)
    prefix = kind.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return str(known.name).removeprefix(prefix).lower()


def percent(fraction: str) -> str:
    """Returns "5 %" for the fraction "0.05"."""
    return f"{percent_of(fraction)}\N{NO-BREAK SPACE}%"


def account_text(account: str) -> str:
    """Returns an account as people read it: numbers and IBANs in groups of four."""
    return " ".join(account_in_groups(account))


def queried(path: str, given: Mapping[str, str]) -> str:
    """Returns the address with those of the fields that have a value, after the fields that it has."""
    query = urlencode({name: value for name, value in given.items() if value})
    return f"{path}{'&' if '?' in path else '?'}{query}" if query else path


def _moment(at: Timestamp | datetime) -> datetime:
    return at if isinstance(at, datetime) else at.ToDatetime(UTC)

"""Converters between Python values and the well-known protobuf types."""

from datetime import UTC, datetime, timedelta
from typing import Any, overload

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from fiatgate.bounds.v1 import bounds_pb2

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@overload
def timestamp_from(value: datetime) -> Timestamp: ...
@overload
def timestamp_from(value: datetime | None) -> Timestamp | None: ...
def timestamp_from(value: datetime | None) -> Timestamp | None:
    """Returns an aware datetime as a Timestamp, to the microsecond. None stays None, which a message's constructor
    skips.

    Raises ValueError for a naive datetime: its instant would be a guess.
    """
    if value is None:
        return None
    if value.tzinfo is None:
        raise ValueError("a datetime without time zone has no place on the wire")
    # FromDatetime of the library takes five times as long, and answers hold many times.
    since = value - _EPOCH
    return Timestamp(seconds=since.days * 86_400 + since.seconds, nanos=since.microseconds * 1000)


class NoTime(ValueError):
    """A Timestamp that is no time of Python's."""


def datetime_from(value: Timestamp) -> datetime:
    """Returns a Timestamp as an aware UTC datetime, to the microsecond. Raises NoTime."""
    try:
        return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    except OverflowError:
        raise NoTime(f"{value.seconds} seconds after 1970 are no time") from None


def optional_datetime(message: Message, field: str) -> datetime | None:
    """Returns the `optional Timestamp` field as an aware UTC datetime; None when it's not set."""
    return datetime_from(getattr(message, field)) if message.HasField(field) else None


def optional(message: Message, field: str) -> Any:
    """Returns the value of an `optional` field, None when it's not set.

    Raises ValueError when the field is neither declared `optional` nor a message, because it can't be absent then.
    """
    return getattr(message, field) if message.HasField(field) else None


def most_of(message: type[Message], field: str) -> int:
    """Returns the most characters, bytes or items of the field; ValueError when the proto declares no bound."""
    declared = message.DESCRIPTOR.fields_by_name[field]
    most: int = declared.GetOptions().Extensions[bounds_pb2.most]
    if not most:
        raise ValueError(f"{declared.full_name} declares no bound")
    return most

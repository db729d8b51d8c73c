"""Times and absent fields survive the trip through protobuf."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.status.v1 import status_pb2
from kit.base import proto


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=3))),
    ],
)
def test_a_time_comes_back_to_the_microsecond(value: datetime) -> None:
    assert proto.datetime_from(proto.timestamp_from(value)) == value
    assert proto.datetime_from(proto.timestamp_from(value)).tzinfo is UTC


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without time zone"):
        proto.timestamp_from(datetime(2026, 1, 1))  # noqa: DTZ001  that is the mistake


def test_seconds_that_are_no_time_are_refused() -> None:
    with pytest.raises(proto.NoTime):
        proto.datetime_from(Timestamp(seconds=2**62))


def test_what_is_not_set_is_none_and_stays_unset() -> None:
    message = status_pb2.WorkerStatus(name="relay", last_run_at=proto.timestamp_from(None))

    assert not message.HasField("last_run_at")
    assert proto.optional_datetime(message, "last_run_at") is None
    assert proto.optional(message, "last_run_at") is None


def test_what_is_set_is_read() -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    message = status_pb2.WorkerStatus(last_run_at=proto.timestamp_from(now))

    assert proto.optional_datetime(message, "last_run_at") == now


def test_a_bound_is_read_from_the_proto_and_a_field_without_one_is_an_error() -> None:
    assert proto.most_of(invoices_pb2.CreateInvoiceRequest, "external_id") == 128
    with pytest.raises(ValueError, match=r"CreateInvoiceRequest\.amount"):
        proto.most_of(invoices_pb2.CreateInvoiceRequest, "amount")

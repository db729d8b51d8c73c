"""The rows and columns of reports."""

from typing import Final

from fiatgate.invoices.v1 import invoices_pb2 as pb

BY: Final = {
    "day": pb.REPORT_BY_DAY,
    "merchant": pb.REPORT_BY_MERCHANT,
    "method": pb.REPORT_BY_METHOD,
    "currency": pb.REPORT_BY_CURRENCY,
}
COLUMNS: Final = {
    "key": "key",
    "currency_code": "currency",
    "created": "created",
    "chosen": "method chosen",
    "marked": "marked paid",
    "confirmed": "confirmed",
    "rejected": "rejected",
    "conversion": "conversion %",
    "turnover": "turnover",
    "commission": "commission",
    "turnover_usdt": "turnover USDT",
    "commission_usdt": "commission USDT",
    "credited_usdt": "credited USDT",
    "median_seconds": "median s",
    "p95_seconds": "p95 s",
}
"""The fields of a row, and their headings."""
NO_METHOD: Final = "none chosen"
"""The key of the row of invoices without a method."""

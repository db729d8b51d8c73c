"""The rows and columns of reports."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.withdrawals.v1 import withdrawals_pb2
from kit.base.money import usdt_text

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

BALANCE_COLUMNS: Final = {
    "key": "key",
    "credited": "payments",
    "received": "late and surplus",
    "by_hand": "by hand",
    "reversed": "taken back",
    "refunded": "refunded",
    "withdrawn": "withdrawn",
    "change": "change",
}
"""USDT, signed. `change` is the sum of those before it."""
_PARTS: Final = [each for each in BALANCE_COLUMNS if each not in ("key", "change")]


def balances(
    by: str, credits: Iterable[pb.ReportRow], moved: Iterable[withdrawals_pb2.Movements]
) -> Sequence[Mapping[str, str]]:
    """Returns a row for each key under which something changed, from both services' parts.

    credits  by day for months too
    """
    sums: dict[str, dict[str, Decimal]] = defaultdict(lambda: dict.fromkeys(_PARTS, Decimal(0)))
    for credit in credits:
        key = credit.key[: len("2026-11")] if by == "month" else credit.key
        sums[key]["credited"] += Decimal(credit.credited_usdt)
    for row in moved:
        sums[row.key]["credited"] += Decimal(row.shifted)
        for part in _PARTS[1:]:
            sums[row.key][part] += Decimal(getattr(row, part))
    return [_balance(key, parts) for key, parts in sorted(sums.items()) if any(parts.values())]


def balance_total(rows: Iterable[Mapping[str, str]]) -> Mapping[str, str]:
    """Returns the sums of all rows."""
    total = dict.fromkeys(_PARTS, Decimal(0))
    for row in rows:
        for part in _PARTS:
            total[part] += Decimal(row[part])
    return _balance("all", total)


def _balance(key: str, parts: Mapping[str, Decimal]) -> Mapping[str, str]:
    change = sum(parts.values(), Decimal(0))
    return {
        "key": key,
        **{part: usdt_text(amount) for part, amount in parts.items()},
        "change": usdt_text(change),
    }


def named(key: str, by: str, names: Mapping[str, str]) -> str:
    """Returns the key as people read it."""
    if by == "merchant":
        return names.get(key) or key[:13]
    return key or NO_METHOD

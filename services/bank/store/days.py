"""The day's end of accounts: booked lines, beside the balances that statements give."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from services.bank.models import LINE_DAY

_OF_ACCOUNT: Final = "account = named.account AND currency_code = named.currency_code"
_COUNTS: Final = "(status = 'booked' OR status = 'reversed' AND connector_id IS NULL)"
"""A file has a booking of its own that takes an earlier one back; a connector's line then counts no more."""
_SIGNED: Final = "CASE direction WHEN 'credit' THEN amount ELSE -amount END"
_DAYS: Final = text(f"""
WITH named AS (
  SELECT DISTINCT {LINE_DAY} AS day, account, currency_code FROM lines
  WHERE {_COUNTS} AND {LINE_DAY} BETWEEN :first_day AND :last_day
  UNION
  SELECT closed_on, account, currency_code FROM statements
  WHERE closing IS NOT NULL AND closed_on BETWEEN :first_day AND :last_day
), page AS (
  SELECT * FROM named
  WHERE (:account = '' OR account = :account)
    AND (CAST(:after_day AS date) IS NULL OR day < :after_day
         OR day = :after_day AND (account, currency_code) > (:after_account, :after_currency))
  ORDER BY day DESC, account COLLATE "C", currency_code COLLATE "C" LIMIT :most
)
SELECT named.*, before.balance + coalesce(between_them.amount, 0) AS opening, closing.balance AS closing, of_day.*
FROM page AS named
LEFT JOIN LATERAL (
  SELECT closing AS balance FROM statements
  WHERE {_OF_ACCOUNT} AND closed_on = named.day AND closing IS NOT NULL ORDER BY id DESC LIMIT 1
) AS closing ON true
LEFT JOIN LATERAL (
  (SELECT closed_on AS day, closing AS balance, 1 AS rank FROM statements
   WHERE {_OF_ACCOUNT} AND closed_on < named.day AND closing IS NOT NULL ORDER BY closed_on DESC, id DESC LIMIT 1)
  UNION ALL
  (SELECT opened_on - 1, opening, 2 FROM statements
   WHERE {_OF_ACCOUNT} AND opened_on <= named.day AND opening IS NOT NULL ORDER BY opened_on, id LIMIT 1)
  ORDER BY rank LIMIT 1
) AS before ON true
LEFT JOIN LATERAL (
  SELECT sum({_SIGNED}) AS amount FROM lines
  WHERE {_OF_ACCOUNT} AND {_COUNTS} AND {LINE_DAY} > before.day AND {LINE_DAY} < named.day
) AS between_them ON true
CROSS JOIN LATERAL (
  SELECT count(*) AS lines,
         coalesce(sum(paid) FILTER (WHERE is_credit), 0) AS matched,
         coalesce(sum(amount - paid) FILTER (WHERE is_credit AND state = 'ignored'), 0) AS ignored,
         coalesce(sum(amount - paid) FILTER (WHERE is_credit AND state = 'proposed'), 0) AS proposed,
         coalesce(sum(amount - paid) FILTER (WHERE is_credit AND state NOT IN ('ignored', 'proposed')), 0) AS unmatched,
         count(*) FILTER (WHERE is_credit AND state <> 'ignored' AND paid < amount) AS open_lines,
         coalesce(sum(amount) FILTER (WHERE is_debit AND refund_id IS NOT NULL), 0) AS refunds,
         coalesce(sum(amount) FILTER (WHERE is_debit AND refund_id IS NULL), 0) AS debits,
         coalesce(sum({_SIGNED}) FILTER (WHERE status = 'reversed'), 0) AS reversed
  FROM (
    SELECT amount, direction, status, state, refund_id, status = 'booked' AND direction = 'credit' AS is_credit,
           status = 'booked' AND direction = 'debit' AS is_debit,
           (SELECT coalesce(sum(line_matches.amount), 0) FROM line_matches WHERE line_id = lines.id) AS paid
    FROM lines WHERE {_OF_ACCOUNT} AND {_COUNTS} AND {LINE_DAY} = named.day
  ) AS counted
) AS of_day
ORDER BY day DESC, account COLLATE "C", currency_code COLLATE "C"
""")  # noqa: S608  made of constants


_ACCOUNTS: Final = text(f"""
WITH RECURSIVE named AS (
  (SELECT account FROM lines ORDER BY account LIMIT 1)
  UNION ALL
  SELECT (SELECT account FROM lines WHERE account > named.account ORDER BY account LIMIT 1)
  FROM named WHERE named.account IS NOT NULL
)
SELECT named.account, oldest.day AS first_day
FROM named CROSS JOIN LATERAL (
  SELECT least({LINE_DAY}, (SELECT min(opened_on) FROM statements WHERE account = named.account)) AS day
  FROM lines WHERE account = named.account ORDER BY id LIMIT 1
) AS oldest
LIMIT :most
""")  # noqa: S608  made of constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account that has lines. `first_day` is that of its oldest statement or line."""

    account: str
    first_day: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One account on one day (fiatgate.bank.v1.Day). The balances are None where no statement gives them."""

    day: date
    account: str
    currency_code: str
    opening: Decimal | None
    matched: Decimal
    proposed: Decimal
    unmatched: Decimal
    ignored: Decimal
    refunds: Decimal
    debits: Decimal
    reversed: Decimal
    closing: Decimal | None
    lines: int
    open_lines: int

    @property
    def key(self) -> str:
        return f"{self.day}/{self.account}/{self.currency_code}"

    @property
    def difference(self) -> Decimal | None:
        """The closing balance less the opening one and the lines."""
        if self.opening is None or self.closing is None:
            return None
        came = self.matched + self.proposed + self.unmatched + self.ignored + self.reversed
        return self.closing - self.opening - came + self.refunds + self.debits


def days(
    tx: Session | Connection,
    most: int,
    *,
    first_day: date,
    last_day: date,
    account: str,
    after: tuple[date, str, str] | None,
) -> list[Day]:
    """Returns the accounts' days, newest first; those behind this day, account and currency."""
    after_day, after_account, after_currency = after or (None, "", "")
    given = {"after_day": after_day, "after_account": after_account, "after_currency": after_currency}
    span = {"first_day": first_day, "last_day": last_day}
    return [
        Day(**row) for row in tx.execute(_DAYS, span | given | {"account": account, "most": most}).mappings()
    ]


def accounts(tx: Session | Connection, most: int) -> list[Account]:
    return [Account(**row) for row in tx.execute(_ACCOUNTS, {"most": most}).mappings()]

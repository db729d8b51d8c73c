"""The rules by which bank lines confirm deals without a person, and what they have confirmed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    """The rule of a method. `day_sum` is what it has confirmed since the time that the query was given."""

    method_code: str
    currency_code: str
    enabled: bool
    deal_most: Decimal
    day_most: Decimal
    changed_at: datetime
    actor: str
    day_sum: Decimal = Decimal(0)


_RULES: Final = """
SELECT method_code, currency_code, enabled, deal_most, day_most, changed_at, actor,
       (SELECT coalesce(sum(amount), 0) FROM line_payments
        WHERE rule = method_code AND paid_at >= :since) AS day_sum
FROM line_rules
"""
_ALL: Final = text(f"{_RULES} ORDER BY method_code")
_ONE: Final = text(f"{_RULES} WHERE method_code = :code")
_PUT: Final = text("""
INSERT INTO line_rules (method_code, currency_code, enabled, deal_most, day_most, changed_at, actor)
VALUES (:method_code, :currency_code, :enabled, :deal_most, :day_most, :changed_at, :actor)
ON CONFLICT (method_code) DO UPDATE SET currency_code = excluded.currency_code, enabled = excluded.enabled,
  deal_most = excluded.deal_most, day_most = excluded.day_most, changed_at = excluded.changed_at, actor = excluded.actor
""")


def rules(tx: Session | Connection, *, since: datetime) -> Sequence[RuleView]:
    return [RuleView(**row) for row in tx.execute(_ALL, {"since": since}).mappings()]


def rule_of(tx: Session, method_code: str, *, since: datetime) -> RuleView | None:
    row = tx.execute(_ONE, {"code": method_code, "since": since}).mappings().one_or_none()
    return None if row is None else RuleView(**row)


def put(tx: Session, values: dict[str, Any]) -> None:
    tx.execute(_PUT, values)

"""The results of queries."""

import hashlib
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from services.bank.domain.lines import Direction, Status
from services.bank.domain.proposals import OPEN_STATES, ImportState, LineState, Tier

TRY_LASTS = timedelta(seconds=30)
"""Longer than a call of invoices lasts."""


@dataclass(frozen=True, slots=True)
class StatementView:
    """The days and balances are as the bank gives them. Lists fill in `has_gap`, and leave the seal out."""

    id: UUID
    import_id: UUID
    account: str
    currency_code: str
    number: str
    opening: Decimal | None
    closing: Decimal | None
    opened_on: date | None
    closed_on: date | None
    seal: bytes = b""
    has_gap: bool = False


@dataclass(frozen=True, slots=True)
class ImportView:
    id: UUID
    file_name: str
    profile: str
    state: ImportState
    format: str | None
    problem: str | None
    lines: int
    new_lines: int
    imported_at: datetime


@dataclass(frozen=True, slots=True)
class ProfileView:
    """A profile of CSV files by name, as JSON, and its last author. None: it is deleted."""

    name: str
    profile: str | None
    actor: str
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class ConnectorView:
    """`accounts` are as ACCOUNT:CURRENCY."""

    id: UUID
    name: str
    hint: str
    key_hash: bytes
    accounts: list[str]
    silence_seconds: int | None
    created_at: datetime
    heard_at: datetime | None
    revoked_at: datetime | None

    @property
    def key_sha256(self) -> str:
        """The hash of the stored hash, for acts: their readers need not have that."""
        return hashlib.sha256(self.key_hash).hexdigest()

    def is_silent(self, now: datetime) -> bool:
        limit = timedelta(seconds=self.silence_seconds or 0)
        return bool(limit and not self.revoked_at and (self.heard_at or self.created_at) + limit < now)


@dataclass(frozen=True, slots=True)
class MatchView:
    """A part of a line that has paid a deal, as invoices recorded it."""

    number: int
    line_id: UUID
    deal_id: UUID
    invoice_id: UUID
    amount: Decimal
    paid_at: datetime


@dataclass(frozen=True, slots=True)
class LineView:
    """`matches` are filled in by lists; the deal of the proposal may be missing."""

    id: UUID
    import_id: UUID | None
    statement_id: UUID | None
    connector_id: UUID | None
    account: str
    identity: str
    direction: Direction
    amount: Decimal
    currency_code: str
    status: Status
    booked_on: date | None
    valued_on: date | None
    counterparty_name: str
    counterparty_account: str
    text: str
    reference_texts: str
    created_at: datetime
    state: LineState
    tier: Tier | None
    deal_id: UUID | None
    invoice_id: UUID | None
    deal_amount: Decimal | None
    reason: str | None
    seal: bytes
    tried_at: datetime | None = None
    held: str | None = None
    refund_id: UUID | None = None
    used_for: str | None = None
    matches: tuple[MatchView, ...] = field(default=())

    @property
    def left(self) -> Decimal:
        return self.amount - sum((match.amount for match in self.matches), Decimal(0))

    @property
    def is_payable(self) -> bool:
        """Whether it may pay deals, or be credited or returned otherwise."""
        is_booked_credit = self.direction is Direction.CREDIT and self.status is Status.BOOKED
        return is_booked_credit and self.state in OPEN_STATES and self.left > 0 and self.used_for is None

    def is_being_confirmed(self, now: datetime) -> bool:
        """Returns whether someone may just be using its money."""
        return self.tried_at is not None and now < self.tried_at + TRY_LASTS

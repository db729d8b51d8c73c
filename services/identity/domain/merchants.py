"""The rules, without a database: merchants and their admission, the bounds of values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Final
from uuid import UUID

KEY_NAME_CHARACTERS: Final = 64
CATEGORY_CODE: Final = "[a-z0-9_-]{1,64}"
ALLOWED_CODES: Final = 200
FRAME_ORIGINS: Final = 20
# Every customer of the shop loads it, on any network, and the whole page stays under 60 KB. It is shown in at most
# 160 x 48 pixels.
LOGO_MAX_BYTES: Final = 6 * 1024
LOGO_MAX_PIXELS: Final = 512 * 512

NO_SHARE: Final = Decimal(0)  # the merchant pays the whole commission


@dataclass(frozen=True, slots=True)
class Owner:
    email: str
    blocked_at: datetime | None


@dataclass(frozen=True, slots=True)
class OwnerFacts:
    """An owner for operators; `merchants` is the number of its merchants, counted to a bound."""

    id: UUID
    email: str
    created_at: datetime
    blocked_at: datetime | None
    merchants: int


@dataclass(frozen=True, slots=True)
class Category:
    """A line of business with its commission, a fraction, and whether a refund returns the merchant's part of it."""

    code: str
    commission: Decimal
    refunds_return_commission: bool = False


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key without the key itself; active while `deactivated_at` is None.

    last_used_at  up to some minutes too old; None: no use was noted
    replaced_by   the key that its owner made to replace it
    scopes        of SCOPES; empty: all
    """

    id: UUID
    merchant_id: UUID
    name: str
    hint: str
    created_at: datetime
    deactivated_at: datetime | None
    last_used_at: datetime | None = None
    replaced_by: UUID | None = None
    scopes: Sequence[str] = ()


SCOPES: Final = ("read", "invoices:write", "refunds:write", "webhooks:write")
"""The rights of the programs that have an API key, by their names in the API."""


@dataclass(frozen=True, slots=True)
class Logo:
    content_type: str
    content: bytes


class MerchantStatus(Enum):
    INACTIVE = "inactive"
    ACTIVE = "active"
    BANNED = "banned"


class LateMoney(StrEnum):
    """The use of money that comes after its invoice has ended. ASK_…: the merchant is asked, and without an answer in
    time the second word holds.
    """

    CREDIT = "credit"
    RETURN = "return"
    ASK_CREDIT = "ask_credit"
    ASK_RETURN = "ask_return"


@dataclass(frozen=True, slots=True)
class Merchant:
    """A merchant with its owner and category, for other services."""

    merchant_id: UUID
    name: str
    owner_email: str
    owner_blocked: bool
    activated_at: datetime | None
    banned_at: datetime | None
    category_code: str | None
    category_commission: Decimal | None  # None as well while no category of that code exists
    client_share: Decimal
    callback_url: str | None
    success_url: str | None
    fail_url: str | None
    allowed_currencies: list[str]
    allowed_methods: list[str]
    created_at: datetime
    colour: str | None = None
    logo: str | None = None  # its digest
    frame_origins: list[str] = field(default_factory=list)
    refunds_return_commission: bool = False
    late_money: LateMoney = LateMoney.ASK_CREDIT

    @property
    def status(self) -> MerchantStatus:
        return status_of(self.activated_at, self.banned_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class MerchantFilter:
    """The merchants of a list. None and "" leave nothing out; `name` has words that begin like these."""

    status: MerchantStatus | None = None
    owner_blocked: bool = False
    owner_email: str = ""
    category_code: str = ""
    name: str = ""
    created_from: datetime | None = None
    created_before: datetime | None = None


def status_of(activated_at: datetime | None, banned_at: datetime | None) -> MerchantStatus:
    if banned_at is not None:
        return MerchantStatus.BANNED
    return MerchantStatus.INACTIVE if activated_at is None else MerchantStatus.ACTIVE


# The reasons to refuse a valid key, in the order in which they are reported (docs/api.md#authentication).
_OBSTACLES: Final[tuple[tuple[str, Callable[[Merchant], bool]], ...]] = (
    ("OWNER_BLOCKED", lambda merchant: merchant.owner_blocked),
    ("MERCHANT_BLOCKED", lambda merchant: merchant.status is MerchantStatus.BANNED),
    ("MERCHANT_NOT_ACTIVE", lambda merchant: merchant.status is MerchantStatus.INACTIVE),
)


def obstacle(merchant: Merchant) -> str | None:
    """Returns the first reason to refuse this merchant; None when there is none."""
    return next((reason for reason, holds in _OBSTACLES if holds(merchant)), None)


def ban_of(merchant: Merchant) -> str | None:
    """Returns OWNER_BLOCKED or MERCHANT_BLOCKED; None for a merchant that may make keys, as one not yet active."""
    reason = obstacle(merchant)
    return None if reason == "MERCHANT_NOT_ACTIVE" else reason


def fraction_text(value: Decimal) -> str:
    """Returns the shortest text: `"0.05"`, `"0"`, `"1"`."""
    return f"{value.normalize():f}"

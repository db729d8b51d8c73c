"""The rules, without a database: the admission of merchants, and the form of values.

Each `parse_…` returns the value to store, or raises ValueError with the end of an error message.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Final
from uuid import UUID

NAME_CHARACTERS: Final = 128
KEY_NAME_CHARACTERS: Final = 64
EMAIL_CHARACTERS: Final = 254
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
class Category:
    """A line of business and its commission, a fraction."""

    code: str
    commission: Decimal


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key without the key itself; active while `deactivated_at` is None."""

    id: UUID
    merchant_id: UUID
    name: str
    hint: str
    created_at: datetime
    deactivated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Logo:
    content_type: str
    content: bytes


class MerchantStatus(Enum):
    INACTIVE = "inactive"
    ACTIVE = "active"
    BANNED = "banned"


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

    @property
    def status(self) -> MerchantStatus:
        return status_of(self.activated_at, self.banned_at)


def status_of(activated_at: datetime | None, banned_at: datetime | None) -> MerchantStatus:
    if banned_at is not None:
        return MerchantStatus.BANNED
    return MerchantStatus.INACTIVE if activated_at is None else MerchantStatus.ACTIVE


# The reasons to refuse a valid key, in the order in which they are reported (docs/api.md#authentication).
_ADMISSION: Final[tuple[tuple[str, Callable[[Merchant], bool]], ...]] = (
    ("OWNER_BLOCKED", lambda merchant: merchant.owner_blocked),
    ("MERCHANT_BLOCKED", lambda merchant: merchant.status is MerchantStatus.BANNED),
    ("MERCHANT_NOT_ACTIVE", lambda merchant: merchant.status is MerchantStatus.INACTIVE),
)


def obstacle(merchant: Merchant) -> str | None:
    """Returns the first reason to refuse this merchant; None when there is none."""
    return next((reason for reason, holds in _ADMISSION if holds(merchant)), None)


# -- values


def parse_name(text: str) -> str:
    name = text.strip()
    if not 1 <= len(name) <= NAME_CHARACTERS:
        raise ValueError(f"expected 1 to {NAME_CHARACTERS} characters")
    return _printable(name)


def parse_key_name(text: str) -> str:
    """Returns a name for people; may be empty."""
    name = text.strip()
    if len(name) > KEY_NAME_CHARACTERS:
        raise ValueError(f"expected at most {KEY_NAME_CHARACTERS} characters")
    return _printable(name)


def parse_email(text: str) -> str:
    """Returns the address in lower case, because owners are distinguished by it. Whether it receives mail is not
    checked.
    """
    email = text.strip().lower()
    if len(email) > EMAIL_CHARACTERS or not re.fullmatch(r"[^@\s]{1,64}@[^@\s]+", email):
        raise ValueError("expected an e-mail address")
    return _printable(email)


def parse_category_code(text: str) -> str:
    if not re.fullmatch(CATEGORY_CODE, text):
        raise ValueError("expected 1 to 64 characters of a-z, 0-9, - and _")
    return text


def fraction_text(value: Decimal) -> str:
    """Returns the shortest text: `"0.05"`, `"0"`, `"1"`."""
    return f"{value.normalize():f}"


def parse_currency_codes(texts: Iterable[str]) -> list[str]:
    return _codes(texts, r"[A-Za-z]{3}", "three letters each", normal=str.upper)


def parse_method_codes(texts: Iterable[str]) -> list[str]:
    return _codes(texts, r"[A-Za-z0-9_-]{1,64}", "1 to 64 characters of A-Z, a-z, 0-9, - and _ each")


def parse_colour(text: str) -> str:
    if not re.fullmatch(r"#[0-9a-fA-F]{6}", text):
        raise ValueError("expected a colour such as #1d5bb8")
    return text.lower()


def parse_origins(texts: Iterable[str]) -> list[str]:
    """Origins as browsers define them: scheme, host, and a port unless it is the scheme's default. No wildcards."""
    given = list(texts)
    if not all(
        re.fullmatch(r"https?://[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?(:[1-9][0-9]{0,4})?", text)
        for text in given
    ):
        raise ValueError("expected origins such as https://shop.example, in lower case and without a path")
    origins = list(dict.fromkeys(given))
    if len(origins) > FRAME_ORIGINS:
        raise ValueError(f"expected at most {FRAME_ORIGINS} origins")
    return origins


def _codes(texts: Iterable[str], pattern: str, form: str, *, normal: Callable[[str], str] = str) -> list[str]:
    given = list(texts)
    if not all(re.fullmatch(pattern, text) for text in given):
        raise ValueError(f"expected {form}")
    codes = list(dict.fromkeys(map(normal, given)))
    if len(codes) > ALLOWED_CODES:
        raise ValueError(f"expected at most {ALLOWED_CODES} codes")
    return codes


def _printable(text: str) -> str:
    """Returns the text, unless it has control characters (NUL among them), line separators or halves of surrogate
    pairs.
    """
    if any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in text):
        raise ValueError("expected no control characters")
    return text

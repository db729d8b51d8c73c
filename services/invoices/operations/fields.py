"""Checks of request values. The gateway checks merchants' input before; these checks hold for every caller."""

from decimal import Context, Decimal
from uuid import UUID

from kit.base.ids import parse_id
from kit.base.money import parse_decimal
from services.invoices import errors

EXACT = Context(prec=60)


def text(value: str, field: str, *, most: int, least: int = 1) -> str:
    """Returns the value: `least` to `most` characters, none of them NUL, which PostgreSQL can't store."""
    if not least <= len(value) <= most:
        raise errors.field_invalid(field, f"{field} has {least} to {most} characters")
    if "\0" in value:
        raise errors.field_invalid(field, f"{field} must not hold NUL characters")
    return value


def note(value: str) -> str:
    return text(value, "note", least=0, most=2000)


def actor(value: str) -> str:
    """ "operator", or "operator:NAME" when a name is given."""
    name = text(value, "actor", least=0, most=64)
    return f"operator:{name}" if name and name != "operator" else "operator"


def amount(value: str, field: str) -> Decimal:
    """A fiat amount of any size; the currency decides its bounds and decimals."""
    try:
        return parse_decimal(value)
    except ValueError as error:
        raise errors.field_invalid(field, f"{field}: {error}") from None


def has_decimals(value: Decimal, *, at_most: int) -> bool:
    """Whether the number can be written with that many decimal places."""
    return value == value.quantize(Decimal(1).scaleb(-at_most), context=EXACT)


def required_id(value: str, field: str) -> UUID:
    """Raises VALIDATION_ERROR: for ids that come from other parts of the system, not from outside."""
    parsed = parse_id(value)
    if parsed is None:
        raise errors.field_invalid(field, f"{field} is not a UUID")
    return parsed


def invoice_id(value: str) -> UUID:
    """Raises INVOICE_NOT_FOUND: text that is no UUID names no invoice."""
    parsed = parse_id(value)
    if parsed is None:
        raise errors.invoice_not_found()
    return parsed


def deal_id(value: str) -> UUID:
    """Raises DEAL_NOT_FOUND."""
    parsed = parse_id(value)
    if parsed is None:
        raise errors.deal_not_found()
    return parsed


def requisite_id(value: str) -> UUID:
    """Raises REQUISITE_NOT_FOUND."""
    parsed = parse_id(value)
    if parsed is None:
        raise errors.requisite_not_found()
    return parsed


def limit(value: int, *, default: int = 100, most: int = 1000) -> int:
    """The number of rows to return: 0 means `default`."""
    if not 0 <= value <= most:
        raise errors.field_invalid("limit", f"limit is 1 to {most}")
    return value or default

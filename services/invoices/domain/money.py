"""Amounts (docs/api.md#commission): fiat; rates are fiat per USDT, percents 0..100."""

from decimal import ROUND_HALF_UP, Decimal, localcontext

from kit.base.money import PERCENT_PLACES, USDT_PLACES, round_down, round_up


def customer_amount(amount: Decimal, client_percent: Decimal, decimals: int) -> Decimal:
    """Returns the amount that the customer sends: the invoice's and the client's part of the commission, rounded up."""
    return round_up(amount * (100 + client_percent) / 100, decimals)


def client_percent(category: Decimal, method: Decimal, client_share: Decimal) -> Decimal | None:
    """Returns the client's part of both commissions, as the catalog will quote it; None when the catalog will refuse.

    Commissions and share are fractions 0..1. The quote decides; this function only predicts its amount.
    """
    if not all(value.is_finite() and 0 <= value <= 1 for value in (category, method, category + method)):
        return None
    total = ((category + method) * 100).quantize(Decimal(1).scaleb(-PERCENT_PLACES), ROUND_HALF_UP)
    return round_down(total * client_share, PERCENT_PLACES)


def merchant_usdt(amount: Decimal, rate: Decimal, merchant_percent: Decimal) -> Decimal:
    """Returns the merchant's credit, USDT with 6 decimals, rounded down: never more than was paid for."""
    with localcontext(prec=60):  # one division, exact far below the sixth decimal
        return round_down(amount * (100 - merchant_percent) / (rate * 100), USDT_PLACES)


def order_part(received: Decimal, client_percent: Decimal, decimals: int) -> Decimal:
    """Returns the part of the order that a received amount pays for: what is left without the client's part of the
    commission, rounded down. The reverse of `customer_amount`.
    """
    with localcontext(prec=60):
        return round_down(received * 100 / (100 + client_percent), decimals)


def adjustment_allowed(requested: Decimal, adjusted: Decimal) -> bool:
    """Returns whether the amount may be adjusted to `adjusted`: only down, and above zero."""
    return 0 < adjusted < requested

"""A rate in words."""

from decimal import ROUND_HALF_UP, Decimal

from fiatgate.catalog.v1 import catalog_pb2 as pb


def markup_in_effect(rate: pb.Rate) -> str:
    """Returns by how many percent the rate that deals lock is below the source's, 2 decimals: its rounding down adds to
    the markup.
    """
    below = (1 - Decimal(rate.rate) / Decimal(rate.source_rate)) * 100
    return f"{below.quantize(Decimal('0.01'), ROUND_HALF_UP):f}"

"""Sentences of requests for a second person."""

from collections.abc import Mapping


def named(summary: str, merchant_id: str, names: Mapping[str, str]) -> str:
    """Returns the stored sentence with the merchant's name in place of the id, for a page."""
    name = names.get(merchant_id, "") if merchant_id else ""
    return summary.replace(f"merchant {merchant_id}", f"merchant {name}") if name else summary

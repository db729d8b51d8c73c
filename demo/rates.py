"""The invented rates, as a source of rates answers."""

from __future__ import annotations

import json
from typing import Any

from demo.world import CURRENCIES


def document() -> bytes:
    """Returns the answer of the source: JSON, fiat per USDT."""
    rates = {currency.code: currency.rate for currency in CURRENCIES}
    return json.dumps({"base": "USDT", "rates": rates}).encode()


def sources(url: str) -> list[dict[str, Any]]:
    """Returns the catalog's setting that makes it read the source at `url`."""
    paths = {currency.code: f"rates.{currency.code}" for currency in CURRENCIES}
    return [{"name": "demo", "url": url, "paths": paths}]

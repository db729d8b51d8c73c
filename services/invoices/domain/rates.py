"""Where a deal's rate came from, as catalog said when the deal was opened. It is stored with the deal, for ever."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class RateSource:
    """The answer of one source: a rate, fiat per USDT, or the reason why it had none."""

    source: str
    rate: str | None
    error: str


@dataclass(frozen=True, slots=True)
class RateBasis:
    """The origin of a rate.

    origin       operator, sources or accepted (held back by the jump guard, then accepted by an operator)
    source_rate  fiat per USDT before the markup
    markup       the currency's, a fraction 0..1
    """

    origin: str
    source_rate: str
    markup: str
    taken_at: datetime
    sources: Sequence[RateSource]


def rate_basis_to_json(basis: RateBasis) -> str:
    return json.dumps(
        {
            "origin": basis.origin,
            "source_rate": basis.source_rate,
            "markup": basis.markup,
            "taken_at": basis.taken_at.isoformat(),
            "sources": [
                {"source": each.source, "rate": each.rate, "error": each.error} for each in basis.sources
            ],
        }
    )


def rate_basis_from_json(text: str) -> RateBasis:
    """Returns the basis that `rate_basis_to_json` wrote."""
    stored = json.loads(text)
    return RateBasis(
        origin=stored["origin"],
        source_rate=stored["source_rate"],
        markup=stored["markup"],
        taken_at=datetime.fromisoformat(stored["taken_at"]),
        sources=[RateSource(each["source"], each["rate"], each["error"]) for each in stored["sources"]],
    )

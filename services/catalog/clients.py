"""The rate sources: HTTP addresses that answer JSON (config.RateSource). The catalog makes no other calls."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, NoReturn

from kit.base.money import parse_decimal
from kit.egress.client import Egress, EgressError
from services.catalog.config import RateSource
from services.catalog.domain import Quote, quoted_rate, value_at

ANSWER_MAX_BYTES: Final = 1024 * 1024
AT_ONCE: Final = 8
ERROR_MAX_CHARACTERS: Final = 200

Quotes = Mapping[str, Sequence[Quote]]
"""By currency code: the quote of each source that has the currency, in the order of the settings."""


class SourceFailed(Exception):
    """The source gave no number; the text gives the reason, for operators."""


class RateSources:
    """Calls all sources at the same time. A source that fails becomes a quote with an error, never an exception."""

    def __init__(self, sources: Sequence[RateSource], *, allow_private: bool) -> None:
        self._sources = sources
        self._allow_private = allow_private

    @property
    def currency_codes(self) -> list[str]:
        """The codes that at least one source has, sorted."""
        return sorted({code for source in self._sources for code in source.paths})

    def fetch(self, deadline_seconds: int) -> Quotes:
        """Returns the quotes of all sources, each within `deadline_seconds`, eight at a time.

        Blocks, so never inside a transaction.
        """
        return asyncio.run(self._fetch_all(deadline_seconds))

    async def _fetch_all(self, deadline_seconds: int) -> Quotes:
        room = asyncio.Semaphore(AT_ONCE)
        async with Egress(allow_private=self._allow_private) as egress:
            answers = [_fetch(egress, source, deadline_seconds, room) for source in self._sources]
            quotes: dict[str, list[Quote]] = {}
            for of_source in await asyncio.gather(*answers):
                for code, quote in of_source.items():
                    quotes.setdefault(code, []).append(quote)
        return quotes


async def _fetch(
    egress: Egress, source: RateSource, deadline_seconds: int, room: asyncio.Semaphore
) -> Mapping[str, Quote]:
    try:
        async with room:
            answer = await egress.call(
                "GET",
                source.url,
                deadline_seconds=deadline_seconds,
                headers={"Accept": "application/json"},
                body_max_bytes=ANSWER_MAX_BYTES,
            )
        if answer.status != 200:
            raise SourceFailed(f"answered {answer.status}")
        if not answer.complete:
            raise SourceFailed("the answer is too large or did not end in time")
        document = _parse(answer.body)
    except (EgressError, SourceFailed) as error:
        return {code: Quote(source.name, error=_text(error)) for code in source.paths}
    return {code: _quote(source, document, path) for code, path in source.paths.items()}


def _quote(source: RateSource, document: object, path: str) -> Quote:
    try:
        return Quote(source.name, rate=quoted_rate(_number(value_at(document, path)), invert=source.invert))
    except ArithmeticError:  # the number is so small that its inverse overflows
        return Quote(source.name, error="not a plausible rate")
    except (LookupError, ValueError) as error:
        return Quote(source.name, error=_text(error))


def _number(value: object) -> Decimal:
    """Accepts a JSON number, or one in a string, as many exchanges send them; ValueError for anything else."""
    if isinstance(value, str):
        return parse_decimal(value)
    if isinstance(value, Decimal):
        return value
    raise ValueError("not a number")


def _parse(body: bytes) -> object:
    """Parses the JSON. Numbers become Decimals made from their digits, never floats."""
    try:
        return json.loads(body, parse_float=Decimal, parse_int=Decimal, parse_constant=_refuse_constant)
    except (ValueError, ArithmeticError, RecursionError):
        raise SourceFailed("the answer is not JSON") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _text(error: Exception) -> str:
    text = error.args[0] if error.args else ""
    return str(text)[:ERROR_MAX_CHARACTERS] or type(error).__name__

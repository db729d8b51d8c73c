"""The languages of the customer's page: the choice of one, its texts, numbers, dates and money.

The catalogs are `locales/<code>.po`, committed as translators write them and read at the first use in each process: no
build step, and no compiled file that could be out of date. The templates themselves have the English text.
"""

import gettext
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from typing import Final, Literal

from babel import Locale
from babel.dates import format_date, format_time, format_timedelta
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_currency
from markupsafe import Markup, escape

from kit.base.money import decimals_of, has_decimals

LOCALES: Final = Path(__file__).parent / "locales"

# Each in its own language, in the order of the switcher.
NAMES: Final[Mapping[str, str]] = {
    "en": "English",
    "es": "Español",
    "pt": "Português",
    "de": "Deutsch",
    "fr": "Français",
    "tr": "Türkçe",
    "ru": "Русский",
    "uk": "Українська",
    "kk": "Қазақша",
    "hi": "हिन्दी",
    "ar": "العربية",
    "zh": "中文",
}
DEFAULT: Final = "en"

ACCEPTED_MAX_CHARACTERS: Final = 1000
_QUALITY: Final = re.compile(r"\s*q=([01](?:\.[0-9]{0,3})?)\s*").fullmatch
_NUMBER: Final = re.compile(r"[0-9](?:.*[0-9])?")
_HOURS_NEVER: Final = 10**9  # the threshold above which Babel would say "2 hours" for 90 minutes


def N_(message: str) -> str:  # noqa: N802  gettext's own name for it
    """Marks a sentence for the catalogs; it is translated where it is shown."""
    return message


@dataclass(frozen=True)
class Language:
    """One of NAMES; `words` translates the texts of the templates."""

    code: str
    words: gettext.NullTranslations

    @property
    def name(self) -> str:
        return NAMES[self.code]

    @property
    def direction(self) -> str:
        """`ltr` or `rtl`, for the `dir` of the page."""
        return self.locale.text_direction

    @cached_property
    def locale(self) -> Locale:
        return Locale.parse(self.code)

    def text(self, message: str) -> str:
        """Returns the translation of a sentence from the code or templates."""
        return self.words.gettext(message) if message else ""

    def money(self, amount: str, currency: str) -> Markup:
        """Returns the amount with the currency's usual number of decimals, in the language's form.

        Everything but the number has `class="unit"`: when a customer copies the amount, only the number is copied,
        which a bank's form accepts.
        """
        value = Decimal(amount)
        in_its_digits = has_decimals(value, at_most=decimals_of(currency))
        text = format_currency(value, currency, locale=self.locale, currency_digits=in_its_digits)
        found = _NUMBER.search(text)
        if found is None:
            return Markup("<bdi>{}</bdi>").format(text)
        before, number, after = text[: found.start()], found[0], text[found.end() :]
        if before[-1:].isalpha():  # "KZT1,000.00" reads badly
            before += "\N{NO-BREAK SPACE}"
        group = self.locale.number_symbols["latn"]["group"]
        digits = _unit(group).join(escape(part) for part in number.split(group))
        return Markup(f'<bdi class="amount">{_unit(before)}{digits}{_unit(after)}</bdi>')  # noqa: S704  escaped

    @lru_cache(maxsize=4096)  # noqa: B019  the twelve languages live as long as the process
    def minutes(self, minutes: int, *, form: Literal["long", "short"] = "long") -> str:
        """Returns `15 minutes`, or `15 min`."""
        return format_timedelta(
            timedelta(minutes=minutes),
            granularity="minute",
            threshold=_HOURS_NEVER,
            format=form,
            locale=self.locale,
        )

    def moment(self, at: datetime, now: datetime | None = None) -> str:
        """Returns the time of day in UTC, with the date unless it is the same day as `now`."""
        time = f"{format_time(at, 'short', tzinfo=UTC, locale=self.locale)} UTC"
        if now is not None and at.astimezone(UTC).date() == now.astimezone(UTC).date():
            return time
        return f"{format_date(at.astimezone(UTC), 'medium', locale=self.locale)}, {time}"


def _unit(text: str) -> str:
    return f'<span class="unit">{escape(text)}</span>' if text else ""


@cache
def language(code: str) -> Language:
    """Returns the language with this code of NAMES, its catalog compiled."""
    if code == DEFAULT:
        return Language(code, gettext.NullTranslations())
    with (LOCALES / f"{code}.po").open("rb") as file:
        catalog = read_po(file, locale=code)
    compiled = BytesIO()
    write_mo(compiled, catalog)
    compiled.seek(0)
    return Language(code, gettext.GNUTranslations(compiled))


def chosen(*, requested: str, remembered: str, accepted: str) -> Language:
    """Returns the customer's language: the requested one, else the one chosen before, else the best of
    Accept-Language.
    """
    for code in (requested, remembered):
        if code in NAMES:
            return language(code)
    return language(best_of(accepted))


def best_of(accepted: str) -> str:
    """Returns the first language of the highest quality in an Accept-Language header (RFC 9110, 12.5.4); of `pt-BR`
    only the language counts.
    """
    best, best_quality = DEFAULT, Decimal(0)
    for each in accepted[:ACCEPTED_MAX_CHARACTERS].split(","):
        tag, _, parameter = each.partition(";")
        code = tag.strip().lower().partition("-")[0]
        quality = _quality(parameter)
        if code in NAMES and quality > best_quality:
            best, best_quality = code, quality
    return best


def _quality(parameter: str) -> Decimal:
    if not parameter.strip():
        return Decimal(1)
    found = _QUALITY(parameter)
    return Decimal(found[1]) if found else Decimal(0)

"""The page's languages: no sentence outside the catalogs, none missing, none that says something else."""

import gettext
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest
import requests

from fiatgate.invoices.v1 import invoices_pb2 as pb
from gateway.pay import languages
from gateway.pay.languages import DEFAULT, NAMES, Language, best_of, language
from gateway.pay.notices import NOTICES
from gateway.pay.refunds import Refund
from kit.base.money import own_text
from tests.gateway.desk import Shop
from tests.gateway.pay.states import ALL_STATES, shown
from tests.gateway.pay.test_view import a_checkout, a_deal
from tools import catalogs

OTHERS = [code for code in NAMES if code != DEFAULT]
NOW = datetime(2026, 1, 15, 23, 50, tzinfo=UTC)
MARKS = re.compile(r"%\(\w+\)s|</?\w+>")


@pytest.mark.parametrize("code", OTHERS)
def test_every_sentence_is_translated_with_all_that_is_in_it(code: str) -> None:
    """A placeholder that got lost would be an amount that the customer doesn't see."""
    catalog = catalogs.catalog(code)
    for message in dict(catalogs.sentences()):
        translated = catalog.get(message)
        assert translated, f"{code} lacks {message!r}: run tools/catalogs.py"
        assert isinstance(translated.string, str)
        assert translated.string.strip(), f"{code}: {message!r} is not translated"
        assert sorted(MARKS.findall(message)) == sorted(MARKS.findall(translated.string)), message


@pytest.mark.parametrize("code", OTHERS)
def test_a_button_that_a_sentence_names_is_called_so(code: str) -> None:
    words = language(code)
    for message in dict(catalogs.sentences()):
        if "“I have paid”" in message:
            assert words.text("I have paid") in words.text(message)


def test_the_catalogs_hold_what_the_page_says_and_nothing_else() -> None:
    stale = [
        code for code in OTHERS if (languages.LOCALES / f"{code}.po").read_bytes() != catalogs.updated(code)
    ]
    assert not stale, "run tools/catalogs.py"


# -- no sentence outside the catalogs


class Bracketed(gettext.NullTranslations):
    """Translates everything into itself, in brackets."""

    def gettext(self, message: str) -> str:
        return f"⟦{message}⟧"


class Words(HTMLParser):
    """What a reader sees or hears that is no number: text and attributes, outside of brackets."""

    SPOKEN = (
        "alt", "aria-label", "title", "placeholder", "data-left", "data-over", "data-copied", "data-hurry",
    )  # fmt: skip
    OURS_ONLY = re.compile(r"⟦[^⟦⟧]*⟧")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.unmarked: list[str] = []
        self._skipped = 0
        self._text = ""
        self.feed(html)
        self._check(self._text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._text += " "
        self._skipped += "lang" in values and tag == "a"  # the names of languages
        for name in self.SPOKEN:
            self._check(values.get(name) or "")

    def handle_endtag(self, tag: str) -> None:
        self._text += " "
        self._skipped -= tag == "a" and self._skipped > 0

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self._text += data

    def _check(self, text: str) -> None:
        self.unmarked += re.findall(r"[^\W\d_]{2,}", self.OURS_ONLY.sub("", text))


# Of the shop, the operator and Babel; times of day; the name of the language.
DATA = {
    "Shop", "Card", "EUR", "DE", "English", "UTC", "PM", "AM", "minutes", "minute", "min", "Jan", "an", "id",
}  # fmt: skip


def test_no_sentence_stands_outside_the_catalogs() -> None:
    for state, (checkout, template) in ALL_STATES.items():
        html = shown(checkout, template, Language(DEFAULT, Bracketed()))
        assert "⟦" in html, state
        assert not set(Words(html).unmarked) - DATA, state


def test_a_sentence_outside_the_catalogs_would_be_found() -> None:
    assert Words('<p>⟦ours⟧ <b>theirs</b></p><img alt="more">').unmarked == ["more", "theirs"]


@pytest.mark.parametrize("code", NAMES)
def test_every_state_can_be_shown(code: str) -> None:
    """The templates refuse a name they don't know, so showing each state once shows that none is missing."""
    notice = language(code).text(NOTICES["VALIDATION_ERROR"])
    for state, (checkout, template) in ALL_STATES.items():
        html = shown(checkout, template, language(code), notice=notice)
        assert f'<html lang="{code}" dir="{"rtl" if code == "ar" else "ltr"}">' in html
        assert html.count("<h1>") == 1, state
        assert "None" not in html, state
        assert "%(" not in html, state


# -- which one


@pytest.mark.parametrize(
    ("accepted", "code"),
    [
        ("", "en"),
        ("de", "de"),
        ("pt-BR,pt;q=0.9,en;q=0.8", "pt"),
        ("zh-Hant-TW", "zh"),
        ("nl,fr;q=0.5,es;q=0.7", "es"),
        ("nl-NL,sv", "en"),
        ("RU-ru", "ru"),
        ("ar;q=0,hi;q=0.1", "hi"),
        ("de;q=2,tr;q=0.1", "tr"),
        ("uk;q=abc", "en"),
        (";;;,,,=", "en"),
        ("x" * 100_000 + ",de", "en"),
    ],
)
def test_the_best_language_of_the_browser(accepted: str, code: str) -> None:
    assert best_of(accepted) == code


def test_a_language_once_chosen_stays(shop: Shop) -> None:
    customer = requests.Session()
    customer.headers["Accept-Language"] = "de"
    page = shop.create()["payment_link"]
    assert "Wie möchten Sie zahlen?" in customer.get(page, timeout=10).text
    chosen = customer.get(f"{page}?lang=uk", timeout=10)
    assert (chosen.headers["Content-Language"], 'lang="uk"' in chosen.text) == ("uk", True)
    cookie = chosen.headers["Set-Cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/pay"))
    assert "Скасувати платіж" in customer.get(page, timeout=10).text
    assert "Language" not in customer.get(f"{page}?lang=xx", timeout=10).headers.get("Set-Cookie", "")
    assert customer.get(f"{page}?lang=xx", timeout=10).headers["Content-Language"] == "uk"


def test_a_page_that_is_none_speaks_the_customers_language_too(shop: Shop) -> None:
    page = requests.get(f"{shop.url}/pay/nope", headers={"Accept-Language": "tr"}, timeout=10)
    assert page.status_code == 404
    assert "Ödeme bulunamadı" in page.text


# -- numbers, dates, money


def plain(text: str) -> str:
    return re.sub(r"<[^>]*>|[\u200e\u200f]", "", text).replace("\xa0", " ").replace("\u202f", " ")


@pytest.mark.parametrize(
    ("code", "amount", "currency", "text"),
    [
        ("en", "1250000.00", "EUR", "€1,250,000.00"),
        ("en", "0.10", "KZT", "KZT 0.10"),
        ("de", "1250000.00", "EUR", "1.250.000,00 €"),
        ("fr", "1250.5", "RUB", "1 250,50 RUB"),
        ("hi", "1250000.00", "INR", "₹12,50,000.00"),
        ("ar", "1250.00", "AED", "1,250.00 د.إ."),
        ("kk", "1250.00", "KZT", "1 250,00 ₸"),
        ("zh", "1000.00", "JPY", "JP¥1,000"),
        ("en", "12.50", "KRW", "₩12.50"),
        ("en", "12.50", "KWD", "KWD 12.500"),
        ("ru", "999.99", "XAB", "999,99 XAB"),
    ],
)
def test_money_is_written_as_the_language_does(code: str, amount: str, currency: str, text: str) -> None:
    assert plain(language(code).money(amount, currency)) == text


def test_an_amount_that_is_copied_by_hand_is_a_number() -> None:
    """Signs and gaps are marked as not selectable: a bank's form takes no other."""
    marked = language("fr").money("1250000.00", "EUR")
    assert plain(re.sub(r'<span class="unit">[^<]*</span>', "", marked)) == "1250000,00"


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        ("15300.00", "JPY", "15300"),
        ("15300.50", "JPY", "15300.50"),
        ("1537.50", "EUR", "1537.50"),
        ("2.50", "KWD", "2.500"),
        ("10.00", "XAB", "10.00"),
    ],
)
def test_an_amount_is_copied_as_a_bank_takes_it(amount: str, currency: str, text: str) -> None:
    assert own_text(amount, currency) == text


def test_times_have_a_date_when_it_is_not_today() -> None:
    assert language("de").moment(NOW + timedelta(minutes=5), NOW) == "23:55 UTC"
    assert language("de").moment(NOW + timedelta(minutes=15), NOW) == "16.01.2026, 00:05 UTC"
    assert language("de").moment(NOW) == "15.01.2026, 23:50 UTC"


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ("en", ["1 minute", "90 minutes"]),
        ("ru", ["1 минута", "90 минут"]),
        ("ar", ["دقيقة", "90 دقيقة"]),
        ("zh", ["1分钟", "90分钟"]),
    ],
)
def test_minutes_are_counted_as_the_language_does(code: str, texts: list[str]) -> None:
    assert [language(code).minutes(minutes) for minutes in (1, 90)] == texts


@pytest.mark.parametrize(("code", "text"), [("en", "15 min"), ("de", "15 Min."), ("ru", "15 мин")])
def test_a_list_says_minutes_shortly(code: str, text: str) -> None:
    assert plain(language(code).minutes(15, form="short")) == text


def test_who_may_have_paid_to_a_lost_account_is_told_not_to_pay_again() -> None:
    told = "do not pay again"
    assert told in shown(*ALL_STATES["choose again, the account is not the decided one"], language(DEFAULT))
    assert told not in shown(*ALL_STATES["choose again"], language(DEFAULT))


def test_a_case_whose_money_goes_back_is_not_looked_for_any_more() -> None:
    checkout = a_checkout(status=pb.INVOICE_STATUS_FAIL, deal=a_deal(), case=pb.Case(number=1001))
    for status in ("waiting", "requested", "sent", "done", "failed"):
        html = shown(checkout, "outcome", language(DEFAULT), refunds=[Refund("0", "1", status, "7", "9")])
        assert ("could not find" in html, "is looking for" in html) == (status == "failed",) * 2, status


def test_more_than_a_day_is_no_countdown() -> None:
    checkout = pb.GetCheckoutResponse()
    checkout.CopyFrom(ALL_STATES["choose"][0])
    assert "data-clock" in shown(checkout, "choose", language(DEFAULT))
    checkout.invoice.expires_at.FromDatetime(NOW + timedelta(days=7))
    html = shown(checkout, "choose", language(DEFAULT))
    assert "data-clock" not in html and "Please choose before" in html

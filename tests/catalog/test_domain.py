"""Commissions, rates and the jump guard, as docs/api.md describes them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.catalog.domain import (
    Accept,
    AcceptedRates,
    Hold,
    Merchant,
    Origin,
    Quote,
    Rate,
    RateFault,
    TooFewSources,
    is_plausible_rate,
    judge,
    jumps,
    median,
    price,
    quoted_rate,
    split_commission,
    value_at,
    with_markup,
)

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
MAX_AGE = timedelta(seconds=600)

fractions = st.decimals(0, 1, places=6)
rates = st.decimals(Decimal("0.00000001"), Decimal("999999999999.99999999"), places=8)


def D(text: str) -> Decimal:
    return Decimal(text)


def polled(rate: str, *, age_seconds: float = 0) -> Rate:
    return Rate(D(rate), Origin.SOURCES, NOW - timedelta(seconds=age_seconds), (Quote("a", D(rate)),))


def set_by_operator(rate: str, *, age_seconds: float = 0) -> Rate:
    return Rate(D(rate), Origin.OPERATOR, NOW - timedelta(seconds=age_seconds))


# -- commissions


@given(category=fractions, method=fractions, client_share=fractions)
def test_client_and_merchant_parts_add_up_to_the_total(
    category: Decimal, method: Decimal, client_share: Decimal
) -> None:
    split = split_commission(category, method, client_share)
    if category + method > 1:
        assert split is None
        return
    assert split is not None
    assert split.client_percent + split.merchant_percent == split.total_percent
    assert 0 <= split.client_percent <= split.total_percent <= 100
    assert split.merchant_percent >= 0
    for percent in (split.total_percent, split.client_percent, split.merchant_percent):
        assert percent == percent.quantize(D("0.01"))
    assert split.client_percent <= split.total_percent * client_share
    assert abs(split.total_percent - (category + method) * 100) <= D("0.005")


@pytest.mark.parametrize(
    ("category", "method", "share", "total", "client", "merchant"),
    [
        ("0.05", "0.02", "0", "7.00", "0.00", "7.00"),
        ("0.05", "0.02", "1", "7.00", "7.00", "0.00"),
        ("0.05", "0.02", "0.333333", "7.00", "2.33", "4.67"),
        ("0.00005", "0", "0.5", "0.01", "0.00", "0.01"),
        ("0.050049", "0", "0.5", "5.00", "2.50", "2.50"),
        ("0.05005", "0", "0.5", "5.01", "2.50", "2.51"),
        ("1", "0", "1", "100.00", "100.00", "0.00"),
        ("0", "0", "1", "0.00", "0.00", "0.00"),
    ],
)
def test_the_total_rounds_half_up_and_the_client_part_down(
    category: str, method: str, share: str, total: str, client: str, merchant: str
) -> None:
    split = split_commission(D(category), D(method), D(share))
    assert split is not None
    assert (split.total_percent, split.client_percent, split.merchant_percent) == (
        D(total),
        D(client),
        D(merchant),
    )


@pytest.mark.parametrize(
    ("category", "method"),
    [
        ("-0.01", "0"),
        ("1.01", "0"),
        ("0", "-0.01"),
        ("0", "1.01"),
        ("0.5", "0.500001"),
        ("NaN", "0"),
        ("0", "Infinity"),
    ],
)
def test_a_commission_outside_0_to_1_is_never_split(category: str, method: str) -> None:
    assert split_commission(D(category), D(method), D("0.5")) is None


def test_an_empty_list_allows_all_and_a_list_only_what_is_on_it() -> None:
    everything = Merchant(None, None, D("0"), frozenset(), frozenset())
    assert everything.may_use("EUR") and everything.may_use("EUR", "bank")
    some = Merchant(None, None, D("0"), frozenset({"EUR"}), frozenset({"bank"}))
    assert some.may_use("EUR") and some.may_use("EUR", "bank")
    assert not some.may_use("USD") and not some.may_use("USD", "bank") and not some.may_use("EUR", "card")


# -- which rate holds, and what it gives


@pytest.mark.parametrize(
    ("newest", "decided", "in_force"),
    [
        (None, None, None),
        (polled("90"), None, "90"),
        (polled("90"), set_by_operator("95", age_seconds=599), "95"),
        (polled("90"), set_by_operator("95", age_seconds=600), "95"),
        (polled("90"), set_by_operator("95", age_seconds=601), "90"),
        (polled("90"), Rate(D("95"), Origin.ACCEPTED, NOW, (Quote("a", D("95")),)), "90"),
        (set_by_operator("95", age_seconds=9999), set_by_operator("95", age_seconds=9999), "95"),
    ],
)
def test_a_set_rate_outranks_polled_ones_while_it_is_fresh(
    newest: Rate | None, decided: Rate | None, in_force: str | None
) -> None:
    rate = AcceptedRates(newest, decided).in_force(NOW, MAX_AGE)
    assert (None if rate is None else rate.source_rate) == (None if in_force is None else D(in_force))


@pytest.mark.parametrize(
    ("rate", "markup", "outcome"),
    [
        (None, "0", RateFault.NEVER_ACCEPTED),
        (polled("92.509"), "0", D("92.50")),
        (polled("100"), "0.0123", D("98.77")),
        (polled("90", age_seconds=600), "0", D("90.00")),
        (polled("90", age_seconds=601), "0", RateFault.STALE),
        (polled("90", age_seconds=-60), "0", D("90.00")),
        (polled("90", age_seconds=-61), "0", RateFault.SNAPSHOT_MALFORMED),
        (Rate(D("90"), Origin.SOURCES, NOW, None), "0", RateFault.SNAPSHOT_MALFORMED),
        (Rate(D("90"), Origin.SOURCES, NOW, ()), "0", RateFault.SNAPSHOT_MALFORMED),
        (Rate(D("90"), Origin.ACCEPTED, NOW, (Quote("a", error="503"),)), "0", RateFault.SNAPSHOT_MALFORMED),
        (set_by_operator("0.009"), "0", RateFault.NOT_POSITIVE),
        (set_by_operator("90"), "1", RateFault.NOT_POSITIVE),
        (set_by_operator("0"), "0", RateFault.NOT_POSITIVE),
        (set_by_operator("-90"), "0", RateFault.NOT_POSITIVE),
        (set_by_operator("NaN"), "0", RateFault.NOT_POSITIVE),
        (set_by_operator("Infinity"), "0", RateFault.NOT_POSITIVE),
        (set_by_operator("NaN", age_seconds=601), "0", RateFault.STALE),
    ],
)
def test_a_rate_is_a_positive_number_or_a_fault_and_never_a_guess(
    rate: Rate | None, markup: str, outcome: Decimal | RateFault
) -> None:
    assert price(D(markup), rate, NOW, MAX_AGE) == outcome


@given(source_rate=rates, markup=fractions)
def test_a_markup_never_raises_a_rate(source_rate: Decimal, markup: Decimal) -> None:
    exact = source_rate * (1 - markup)
    assert 0 <= exact - with_markup(source_rate, markup) < D("0.01")


# -- polls


@pytest.mark.parametrize(
    ("last", "new", "jumped"),
    [
        ("100", "110", False),
        ("100", "110.00000001", True),
        ("100", "90", False),
        ("100", "89.99999999", True),
        ("100", "100", False),
        ("0.00000001", "0.00000002", True),
        ("NaN", "100", True),
        ("0", "100", True),
    ],
)
def test_a_rate_jumps_when_it_moves_more_than_the_share(last: str, new: str, jumped: bool) -> None:
    assert jumps(D(last), D(new), D("0.10")) is jumped


@pytest.mark.parametrize(
    ("answers", "middle"),
    [
        (["90"], "90"),
        (["90", None], "90"),
        (["90", "92"], "91"),
        (["1", "90", "999999"], "90"),
        (["90", None, "92", "91"], "91"),
        (["0.00000001", "0.00000002"], "0.00000001"),
    ],
)
def test_the_rate_is_the_median_of_the_sources_that_answered(answers: list[str | None], middle: str) -> None:
    quotes = [Quote("s", error="away") if answer is None else Quote("s", D(answer)) for answer in answers]
    assert median(quotes) == D(middle)


@given(st.lists(rates, min_size=1, max_size=7))
def test_a_median_lies_between_the_extremes_and_can_be_stored(answers: list[Decimal]) -> None:
    middle = median([Quote("s", answer) for answer in answers])
    assert min(answers) <= middle <= max(answers)
    assert is_plausible_rate(middle) and middle == middle.quantize(D("0.00000001"))


@pytest.mark.parametrize(
    ("answers", "last", "min_sources", "outcome"),
    [
        (["90"], None, 1, Accept),
        (["90"], polled("89", age_seconds=99_999), 1, Accept),
        (["90"], polled("50", age_seconds=99_999), 1, Hold),
        (["90"], set_by_operator("50"), 1, Hold),
        (["90", None], None, 2, TooFewSources),
        (["90", "91", None], None, 2, Accept),
        ([None], polled("90"), 1, TooFewSources),
    ],
)
def test_a_poll_is_accepted_held_or_says_too_little(
    answers: list[str | None],
    last: Rate | None,
    min_sources: int,
    outcome: type[Accept | Hold | TooFewSources],
) -> None:
    quotes = [Quote("s", error="away") if answer is None else Quote("s", D(answer)) for answer in answers]
    known = [] if last is None else [last]
    judged = judge(quotes, known, taken_at=NOW, max_jump=D("0.10"), min_sources=min_sources)
    assert type(judged) is outcome
    if not isinstance(judged, TooFewSources):
        assert judged.rate.quotes == tuple(quotes)
        assert judged.rate.taken_at == NOW


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("data.rates.EUR", 1),
        ("/data/rates/EUR", 1),
        ("list.1.price", 2),
        ("/list/1/price", 2),
        ("/a.b/c~1d/e~0f", 3),
        ("data.rates", {"EUR": 1}),
    ],
)
def test_a_path_is_dotted_or_a_json_pointer(path: str, value: object) -> None:
    document = {
        "data": {"rates": {"EUR": 1}},
        "list": [{"price": 0}, {"price": 2}],
        "a.b": {"c/d": {"e~f": 3}},
    }
    assert value_at(document, path) == value


@pytest.mark.parametrize(
    "path", ["data.none", "list.2", "list.-1", "list.x", "data.rates.EUR.deeper", "/", "list.²"]
)
def test_a_path_that_leads_nowhere_is_an_error(path: str) -> None:
    with pytest.raises(LookupError, match="nothing at"):
        value_at({"data": {"rates": {"EUR": 1}}, "list": [0, 1]}, path)


def test_a_source_that_quotes_usdt_per_fiat_is_inverted() -> None:
    assert quoted_rate(D("0.0108"), invert=True) == D("92.59259259")


@given(number=st.decimals(allow_nan=True, allow_infinity=True), invert=st.booleans())
def test_whatever_a_source_answers_gives_a_plausible_rate_or_an_error(number: Decimal, invert: bool) -> None:
    try:
        rate = quoted_rate(number, invert=invert)
    except ValueError:
        return
    assert is_plausible_rate(rate) and rate == rate.quantize(D("0.00000001"))


@pytest.mark.parametrize(("rate", "error"), [(None, ""), (D("1"), "away"), (D("0"), ""), (D("NaN"), "")])
def test_a_quote_has_a_plausible_rate_or_an_error(rate: Decimal | None, error: str) -> None:
    with pytest.raises(ValueError):
        Quote("a", rate, error)

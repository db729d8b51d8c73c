"""What merchants are offered, and what operators may set: every reason of endpoints 6 and 7, over gRPC."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from fiatgate.catalog.v1 import catalog_pb2 as pb
from fiatgate.merchants.v1 import merchants_pb2
from kit.base.proto import datetime_from
from kit.rpc.errors import Refused
from services.catalog.domain import LOGO_MAX_BYTES
from services.catalog.store import rates
from tests.catalog.running import Catalog, merchant
from tests.support.acting import refusal
from tests.support.pictures import PLACE, PNG, noise, photo, png

# -- endpoint 6: currencies with rates


def test_a_currency_is_offered_with_its_rate_after_the_markup(catalog: Catalog) -> None:
    code = catalog.currency(markup="0.015", name="Krona", symbol="kr", decimals=2)
    catalog.set_rate(code, "92.519")
    answer = catalog.stub.ListMerchantCurrencies(pb.ListMerchantCurrenciesRequest(merchant=merchant(code)))
    (offer,) = answer.currencies
    assert offer.rate == "91.13"
    assert (offer.currency.code, offer.currency.name, offer.currency.symbol) == (code, "Krona", "kr")
    assert offer.currency.decimals == 2


def test_currencies_come_by_code_and_only_those_the_merchant_may_use(catalog: Catalog) -> None:
    codes = [catalog.currency() for _ in range(3)]
    for code in codes:
        catalog.set_rate(code, "2")
    assert list(catalog.currencies(merchant(codes[2], codes[0]))) == [codes[0], codes[2]]
    assert set(codes) <= set(catalog.currencies(merchant()))


def test_a_disabled_currency_is_not_offered(catalog: Catalog) -> None:
    on, off = catalog.currency(), catalog.currency()
    for code in (on, off):
        catalog.set_rate(code, "2")
    catalog.currency(off, enabled=False)
    assert catalog.currencies(merchant(on, off)) == {on: "2.00"}


def test_no_currency_that_ever_had_a_rate_is_rate_not_found(catalog: Catalog) -> None:
    code = catalog.currency()
    assert refusal(catalog.currencies, merchant(code)).reason == "RATE_NOT_FOUND"


def test_a_merchant_without_any_usable_currency_gets_rate_not_found(catalog: Catalog) -> None:
    assert refusal(catalog.currencies, merchant("ZZZ")).reason == "RATE_NOT_FOUND"


def test_only_stale_rates_are_rates_unavailable_from_the_second_they_are_too_old(catalog: Catalog) -> None:
    stale, never = catalog.currency(), catalog.currency()
    catalog.set_rate(stale, "2")
    catalog.clock.advance(seconds=600)
    assert catalog.currencies(merchant(stale, never)) == {stale: "2.00"}
    catalog.clock.advance(seconds=1)
    assert refusal(catalog.currencies, merchant(stale, never)).reason == "RATES_UNAVAILABLE"


def test_the_greatest_age_of_a_rate_is_a_setting(make_catalog: Callable[..., Catalog]) -> None:
    catalog = make_catalog(rates_max_age_seconds=5)
    code = catalog.currency()
    catalog.set_rate(code, "2")
    catalog.clock.advance(seconds=6)
    assert refusal(catalog.currencies, merchant(code)).reason == "RATES_UNAVAILABLE"


def test_a_currency_without_fresh_rate_is_left_out_among_fresh_ones(catalog: Catalog) -> None:
    stale, fresh, never = catalog.currency(), catalog.currency(), catalog.currency()
    catalog.set_rate(stale, "2")
    catalog.clock.advance(seconds=601)
    catalog.set_rate(fresh, "3")
    assert catalog.currencies(merchant(stale, fresh, never)) == {fresh: "3.00"}


@pytest.mark.parametrize(("rate", "markup"), [("0.00999999", "0"), ("90", "1"), ("0.011", "0.5")])
def test_a_rate_that_comes_down_to_zero_is_rate_invalid(catalog: Catalog, rate: str, markup: str) -> None:
    good, bad = catalog.currency(), catalog.currency(markup=markup)
    catalog.set_rate(good, "2")
    catalog.set_rate(bad, rate)
    refused = refusal(catalog.currencies, merchant(good, bad))
    assert refused.reason == "RATE_INVALID"
    assert refused.metadata == {"currency": bad}


def test_not_a_number_in_the_column_is_rate_invalid_and_can_be_looked_at(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.execute("ALTER TABLE rates DROP CONSTRAINT ck_rates_source_rate, DROP CONSTRAINT ck_rates_bounds")
    catalog.insert_rate(code, "NaN")
    assert refusal(catalog.currencies, merchant(code)).reason == "RATE_INVALID"
    assert catalog.state(code).in_force.source_rate == "NaN"
    set_anyway = catalog.set_rate(code, "2", anyway=True)
    assert [each.error for each in set_anyway.sources] == ["NaN is no plausible rate"]
    assert catalog.currencies(merchant(code)) == {code: "2.00"}


@pytest.mark.parametrize(
    "document",
    [
        [],
        "text",
        {"quotes": "text"},
        {"sources": []},
        {"quotes": [{"source": "a"}]},
        {"quotes": [{"source": "", "rate": "1"}]},
        {"quotes": [{"source": "a", "rate": "NaN"}]},
        {"quotes": [{"source": "a", "rate": "-1"}]},
        {"quotes": [{"source": "a", "rate": "1", "error": "too"}]},
    ],
)
def test_a_stored_document_that_does_not_parse_is_rates_invalid(catalog: Catalog, document: Any) -> None:
    good, bad = catalog.currency(), catalog.currency()
    catalog.set_rate(good, "2")
    catalog.insert_rate(bad, "2", document=document)
    assert refusal(catalog.currencies, merchant(good, bad)).reason == "RATES_INVALID"
    assert "malformed" in catalog.state(bad).in_force.sources[0].error
    catalog.set_rate(bad, "2.1")
    assert catalog.currencies(merchant(good, bad)) == {good: "2.00", bad: "2.10"}


def test_a_rate_from_the_future_is_rates_invalid(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.insert_rate(code, "2", age_seconds=-61)
    assert refusal(catalog.currencies, merchant(code)).reason == "RATES_INVALID"
    catalog.clock.advance(seconds=1)
    assert catalog.currencies(merchant(code)) == {code: "2.00"}


# -- endpoint 7: payment methods with commissions


def test_a_method_is_offered_with_its_commission_split(catalog: Catalog) -> None:
    code = catalog.currency(symbol="€")
    method = catalog.method(code, commission="0.02", logo_url="https://cdn.example/bank.svg")
    (offer,) = catalog.offers(merchant(code, client_share="0.333333"), code)
    assert (offer.total_percent, offer.client_percent, offer.merchant_percent) == ("7.00", "2.33", "4.67")
    assert offer.currency.symbol == "€"
    assert offer.method == pb.PaymentMethod(
        method_code=method,
        currency_code=code,
        name="Bank",
        min_sum="10.00",
        max_sum="500.00",
        payment_minutes=15,
        commission="0.02",
        logo_url="https://cdn.example/bank.svg",
        active=True,
        takes_reference=False,
        account_kind=pb.ACCOUNT_KIND_FREE,
    )


def test_methods_come_by_currency_and_name_and_only_active_ones_of_enabled_currencies(
    catalog: Catalog,
) -> None:
    first, second, off = catalog.currency(), catalog.currency(), catalog.currency(enabled=False)
    zeta = catalog.method(first, name="Zeta")
    alpha = catalog.method(first, name="Alpha")
    other = catalog.method(second, name="Aleph")
    catalog.method(first, name="Beta", active=False)
    catalog.method(off)
    everything = merchant(first, second, off)
    assert [offer.method.method_code for offer in catalog.offers(everything)] == [alpha, zeta, other]
    assert [offer.method.method_code for offer in catalog.offers(everything, second)] == [other]


def test_only_the_methods_and_currencies_the_merchant_may_use_are_offered(catalog: Catalog) -> None:
    mine, others = catalog.currency(), catalog.currency()
    allowed, _, elsewhere = catalog.method(mine), catalog.method(mine), catalog.method(others)
    some = merchant(mine, allowed_methods=[allowed, elsewhere])
    assert [offer.method.method_code for offer in catalog.offers(some)] == [allowed]


def test_a_currency_is_found_in_any_case(catalog: Catalog) -> None:
    code = catalog.currency()
    method = catalog.method(code)
    offers = catalog.offers(merchant(code), code.lower())
    assert [offer.method.method_code for offer in offers] == [method]


def test_a_known_currency_without_active_methods_gives_an_empty_list(catalog: Catalog) -> None:
    code = catalog.currency()
    assert catalog.offers(merchant(code), code) == []
    catalog.method(code, active=False)
    assert catalog.offers(merchant(code), code) == []


@pytest.mark.parametrize("asked", ["zzz", "ZZZ", "", "E", "EURO", "E\0R", "е€р", "ı" * 3, "X" * 5000])
def test_an_unknown_currency_is_currency_not_found_with_the_code_in_upper_case(
    catalog: Catalog, asked: str
) -> None:
    refused = refusal(catalog.offers, merchant(), asked)
    assert refused.reason == "CURRENCY_NOT_FOUND"
    assert refused.metadata["currency"] == asked.upper()[:2048]


def test_a_disabled_or_not_allowed_currency_is_not_found(catalog: Catalog) -> None:
    disabled, foreign = catalog.currency(enabled=False), catalog.currency()
    catalog.method(disabled)
    catalog.method(foreign)
    for code, asking in ((disabled, merchant()), (foreign, merchant("EUR"))):
        refused = refusal(catalog.offers, asking, code.lower())
        assert refused.reason == "CURRENCY_NOT_FOUND"
        assert refused.metadata == {"currency": code}


CATEGORY_FAULTS = [
    ({"category_code": None, "category_commission": None}, "0.02", "MERCHANT_CATEGORY_MISSING"),
    ({"category_code": "shops", "category_commission": None}, "0.02", "MERCHANT_CATEGORY_NOT_FOUND"),
    ({"category_commission": "1.01"}, "0", "MERCHANT_CATEGORY_RATE_INVALID"),
    ({"category_commission": "-0.01"}, "0.02", "MERCHANT_CATEGORY_RATE_INVALID"),
    ({"category_commission": "NaN"}, "0", "MERCHANT_CATEGORY_RATE_INVALID"),
    ({"category_commission": "five"}, "0", "MERCHANT_CATEGORY_RATE_INVALID"),
    ({"category_commission": "0.6"}, "0.400001", "MERCHANT_CATEGORY_RATE_INVALID"),
]


@pytest.mark.parametrize(("options", "commission", "fault"), CATEGORY_FAULTS)
def test_a_category_that_gives_no_commission_is_told_for_offers_and_quotes(
    catalog: Catalog, options: dict[str, Any], commission: str, fault: str
) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "2")
    method = catalog.method(code, commission=commission)
    assert refusal(catalog.offers, merchant(code, **options), code).reason == fault
    assert refusal(catalog.quote, merchant(code, **options), method).reason == fault


def test_a_missing_category_is_told_even_when_there_is_nothing_to_offer(catalog: Catalog) -> None:
    code = catalog.currency()
    assert (
        refusal(
            catalog.offers, merchants_pb2.Merchant(client_share="0", allowed_currencies=[code]), code
        ).reason
        == "MERCHANT_CATEGORY_MISSING"
    )


def test_an_unknown_currency_is_told_before_a_missing_category(catalog: Catalog) -> None:
    assert (
        refusal(catalog.offers, merchants_pb2.Merchant(client_share="0"), "ZZZ").reason
        == "CURRENCY_NOT_FOUND"
    )


# -- quotes


def test_a_quote_is_the_offer_with_the_rate_of_now(catalog: Catalog) -> None:
    code = catalog.currency(markup="0.01")
    method = catalog.method(code)
    catalog.set_rate(code, "100")
    asking = merchant(code, client_share="0.5")
    quote = catalog.quote(asking, method)
    assert quote.rate == "99.00"
    assert [quote.offer] == catalog.offers(asking, code)
    catalog.set_rate(code, "110")
    assert catalog.quote(asking, method).rate == "108.90"


def test_a_method_that_can_not_be_used_is_payment_method_not_found(catalog: Catalog) -> None:
    code, off = catalog.currency(), catalog.currency(enabled=False)
    catalog.set_rate(code, "2")
    good = catalog.method(code)
    cases = [
        (merchant(), "nowhere"),
        (merchant(), ""),
        (merchant(), "a\0b"),
        (merchant(), "x" * 5000),
        (merchant(), catalog.method(code, active=False)),
        (merchant(), catalog.method(off)),
        (merchant("ZZZ"), good),
        (merchant(allowed_methods=["another"]), good),
    ]
    for asking, method in cases:
        refused = refusal(catalog.quote, asking, method)
        assert refused.reason == "PAYMENT_METHOD_NOT_FOUND"
        assert refused.metadata["method_code"] == method[:2048]


def test_a_quote_fails_closed_with_the_rate_reasons_of_its_own_currency(catalog: Catalog) -> None:
    """And what customers are shown fails with it; a merchant's list doesn't say whether it can be paid just now."""
    other, code = catalog.currency(), catalog.currency()
    method = catalog.method(code)
    catalog.set_rate(other, "2")

    def fault() -> str:
        refused = refusal(catalog.quote, merchant(), method)
        assert refusal(offered, payable_now=True).reason == refused.reason
        assert offered(payable_now=False) == [method]
        return refused.reason

    def offered(*, payable_now: bool) -> list[str]:
        request = pb.ListMethodOffersRequest(merchant=merchant(), currency_code=code, payable_now=payable_now)
        return [offer.method.method_code for offer in catalog.stub.ListMethodOffers(request).offers]

    assert fault() == "RATE_NOT_FOUND"
    catalog.set_rate(code, "0.001")
    assert fault() == "RATE_INVALID"
    catalog.set_rate(code, "2", anyway=True)
    assert offered(payable_now=True) == [method]
    catalog.clock.advance(seconds=601)
    assert fault() == "RATES_UNAVAILABLE"
    catalog.insert_rate(code, "2", document={"quotes": 1})
    catalog.clock.advance(seconds=-601)
    catalog.insert_rate(code, "2", document={"quotes": 1})
    assert fault() == "RATES_INVALID"


# -- what operators set


def test_the_catalog_lists_everything_enabled_or_not(catalog: Catalog) -> None:
    on, off = catalog.currency(), catalog.currency(enabled=False, decimals=0, min_amount="5", max_amount="5")
    active, inactive = catalog.method(on), catalog.method(off, active=False)
    content = catalog.stub.GetCatalog(pb.GetCatalogRequest())
    currencies = {currency.code: currency for currency in content.currencies}
    methods = {method.method_code: method for method in content.methods}
    assert currencies[on].enabled and not currencies[off].enabled
    assert methods[active].active and not methods[inactive].active
    assert (currencies[off].decimals, currencies[off].min_amount, currencies[off].max_amount) == (
        0,
        "5.00",
        "5.00",
    )
    assert list(currencies) == sorted(currencies)


def test_setting_again_replaces_all_options(catalog: Catalog) -> None:
    code = catalog.currency()
    method = catalog.method(code, logo_url="https://cdn.example/a.png")
    catalog.currency(code, name="Other", markup="0.5", enabled=False)
    catalog.method(code, method, name="Card", commission="1")
    content = catalog.stub.GetCatalog(pb.GetCatalogRequest())
    currency = next(each for each in content.currencies if each.code == code)
    replaced = next(each for each in content.methods if each.method_code == method)
    assert (currency.name, currency.markup, currency.enabled) == ("Other", "0.5", False)
    assert (replaced.name, replaced.commission, replaced.HasField("logo_url")) == ("Card", "1", False)


def test_the_bounds_of_a_currency_have_no_more_decimals_than_it_has(catalog: Catalog) -> None:
    with pytest.raises(Refused, match="at most 0 decimals"):
        catalog.currency(decimals=0, min_amount="1.50")
    catalog.currency(decimals=0, min_amount="1.00")


def test_a_method_of_an_unknown_currency_is_refused(catalog: Catalog) -> None:
    refused = refusal(catalog.method, "ZZZ")
    assert refused.reason == "CURRENCY_NOT_FOUND"
    assert refused.metadata == {"currency": "ZZZ"}


# -- rates that operators set


def test_a_set_rate_holds_at_once_and_every_one_is_kept(catalog: Catalog) -> None:
    code = catalog.currency(markup="0.1")
    for rate in ("1", "500", "0.02", "999999999999.99999999"):
        answer = catalog.set_rate(code, rate, anyway=True)
        assert answer == catalog.state(code).in_force
    assert answer.source_rate == "999999999999.99999999"
    assert answer.rate == "899999999999.99"
    assert answer.origin == pb.RATE_ORIGIN_OPERATOR
    assert answer.taken_at.ToDatetime() == catalog.clock.now().replace(tzinfo=None)
    assert answer.fresh
    kept = catalog.execute("SELECT count(*) FROM rates WHERE currency_code = %s", code)
    assert kept == [(4,)]


@pytest.mark.parametrize(
    ("rate", "refused"), [("110", False), ("110.00000001", True), ("90", False), ("89.9", True)]
)
def test_a_rate_set_by_hand_is_held_to_the_jump_guard(catalog: Catalog, rate: str, *, refused: bool) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "100")
    if not refused:
        assert not catalog.set_rate(code, rate).sources
        return
    jumped = refusal(catalog.set_rate, code, rate)
    assert jumped.reason == "RATE_JUMPS"
    assert jumped.metadata == {"currency": code, "rate_before": "100.00", "most": "0.10"}
    assert jumped.message == f"The rate is more than 10% away from the last rate of {code}, 100.00"
    assert catalog.state(code).in_force.source_rate == "100"


def test_a_rate_set_anyway_is_in_force_and_keeps_the_one_before_it(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "0.92")
    made = catalog.set_rate(code, "9.2", anyway=True)
    assert catalog.currencies(merchant(code)) == {code: "9.20"}
    assert [(each.source, each.rate) for each in made.sources] == [("rate before", "0.92")]
    assert catalog.state(code).in_force == made
    assert not catalog.set_rate(code, "9.3", anyway=True).sources  # this one is near


def test_a_rate_set_anyway_by_mistake_is_taken_back_as_any_other_is_set(catalog: Catalog) -> None:
    code = catalog.currency()
    catalog.set_rate(code, "0.92")
    for slip in ("2.92", "29.2"):
        made = catalog.set_rate(code, slip, anyway=True)
        assert [(each.source, each.rate) for each in made.sources] == [("rate before", "0.92")]
    assert not catalog.set_rate(code, "0.91").sources
    assert catalog.currencies(merchant(code)) == {code: "0.91"}
    assert refusal(catalog.set_rate, code, "29.2").reason == "RATE_JUMPS"


def test_the_answer_says_until_when_a_set_rate_counts(catalog: Catalog) -> None:
    code = catalog.currency()
    until = datetime_from(catalog.set_rate(code, "2").fresh_until)
    assert until == catalog.clock.now() + catalog.deps.settings.rates_max_age
    catalog.clock.advance(seconds=(until - catalog.clock.now()).total_seconds())
    assert catalog.currencies(merchant(code)) == {code: "2.00"}
    catalog.clock.advance(seconds=1)
    assert refusal(catalog.currencies, merchant(code)).reason == "RATES_UNAVAILABLE"


def test_rates_of_unknown_currencies_are_refused(catalog: Catalog) -> None:
    calls: list[Callable[[], object]] = [
        lambda: catalog.set_rate("ZZZ", "1"),
        lambda: catalog.accept_rate("ZZZ"),
    ]
    for call in calls:
        refused = refusal(call)
        assert refused.reason == "CURRENCY_NOT_FOUND"
        assert refused.metadata == {"currency": "ZZZ"}


def test_there_is_nothing_to_accept_when_nothing_is_held(catalog: Catalog) -> None:
    code = catalog.currency()
    refused = refusal(catalog.accept_rate, code)
    assert refused.reason == "RATE_NOT_HELD"
    assert refused.metadata == {"currency": code}


def test_many_operators_at_once_leave_one_rate_in_force_and_all_of_them_kept(catalog: Catalog) -> None:
    code = catalog.currency()
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda number: catalog.set_rate(code, str(number)), range(1001, 1033)))
    (newest,) = catalog.execute(
        "SELECT source_rate FROM rates WHERE currency_code = %s ORDER BY id DESC LIMIT 1", code
    )
    assert catalog.currencies(merchant(code)) == {code: f"{newest[0]:.2f}"}
    assert catalog.execute("SELECT count(*) FROM rates WHERE currency_code = %s", code) == [(32,)]


def test_the_rate_in_force_is_found_by_index_among_many(catalog: Catalog) -> None:
    code = catalog.currency()
    method = catalog.method(code)
    catalog.execute(
        "INSERT INTO rates (currency_code, source_rate, origin, taken_at, document, seal)"
        ' SELECT %s, 1, \'sources\', %s, \'{"quotes": [{"source": "a", "rate": "1", "error": ""}]}\','
        " sha256(CAST(gen_random_uuid() AS text)::bytea) FROM generate_series(1, 5000)",
        code,
        catalog.clock.now(),
    )
    catalog.set_rate(code, "1")
    catalog.execute("ANALYZE rates")
    assert catalog.quote(merchant(), method).rate == "1.00"
    with catalog.deps.db.transaction() as tx:
        before = _rows_read(tx)
        currencies = rates.enabled_currencies_with_rates(tx.connection())
        rates.active_method_with_rates(tx.connection(), method)
        read = _rows_read(tx) - before
    assert read <= 2 * (len(currencies) + 1), "a scan of all rates ever: reads would get slower every minute"


def _rows_read(tx: Session) -> int:
    """Rows of `rates` this transaction has read so far, however it found them."""
    query = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'rates'"
    return int(tx.execute(text(query)).scalar_one())


def test_a_methods_logo_stays_until_another_is_given(catalog: Catalog) -> None:
    code = catalog.currency()
    method = catalog.method(code)

    def set_logo(logo: bytes | None) -> str:
        options = next(
            each
            for each in catalog.stub.GetCatalog(pb.GetCatalogRequest()).methods
            if each.method_code == method
        )
        answer = catalog.stub.SetPaymentMethod(pb.SetPaymentMethodRequest(method=options, logo=logo))
        return answer.method.logo

    first, second = set_logo(PNG), set_logo(photo())
    assert set_logo(None) == second != first
    kept = [catalog.stub.GetLogo(pb.GetLogoRequest(logo=logo)) for logo in (first, second)]
    assert [each.content_type for each in kept] == ["image/png", "image/jpeg"]
    assert kept[0].content == PNG
    assert PLACE not in kept[1].content
    assert set_logo(b"") == ""


@pytest.mark.parametrize("logo", [b"<svg/>", PNG[:-1], png(513, 512), noise(LOGO_MAX_BYTES + 1)])
def test_what_is_no_logo_is_refused(catalog: Catalog, logo: bytes) -> None:
    method = pb.PaymentMethod(
        method_code="unmade",
        currency_code=catalog.currency(),
        name="Bank",
        min_sum="10",
        max_sum="500",
        payment_minutes=15,
        commission="0",
    )
    refused = refusal(catalog.stub.SetPaymentMethod, pb.SetPaymentMethodRequest(method=method, logo=logo))
    assert (refused.reason, refused.metadata["field"]) == ("VALIDATION_ERROR", "logo")
    assert "a WebP of 96 x 96 pixels will do" in refused.message
    methods = catalog.stub.GetCatalog(pb.GetCatalogRequest()).methods
    assert "unmade" not in [each.method_code for each in methods]

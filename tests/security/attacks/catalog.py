"""Attacks by someone who has the address of catalog's database."""

from typing import Final

from tests.security.attacks.attack import found, found_of_owner, not_promised, refused

_RATE = (
    "INSERT INTO rates (currency_code, source_rate, origin, taken_at, document, seal)"
    " VALUES ('{currency}', {rate}, '{origin}', now(), '{document}', sha256('{currency}'))"
)
_NO_QUOTES, _WRONG_QUOTES = '{"quotes": []}', '{"quotes": 5}'

ATTACKS: Final = (
    found(
        "catalog",
        "a rate in an operator's name",
        _RATE.format(currency="JPY", rate="1", origin="operator", document=_NO_QUOTES),
        "JPY rate",
        "one that catalog put in force",
    ),
    found(
        "catalog",
        "a rate with invented sources",
        _RATE.format(
            currency="TRY",
            rate="7",
            origin="sources",
            document='{"quotes": [{"source": "bank", "rate": "7", "error": ""}]}',
        ),
        "TRY rate",
        "one that catalog put in force",
    ),
    found(
        "catalog",
        "a markup",
        "UPDATE currencies SET markup = 0.5 WHERE code = 'INR'",
        "currency INR",
        "markup is 0.5",
    ),
    found(
        "catalog",
        "a largest amount",
        "UPDATE currencies SET max_amount = 99999999 WHERE code = 'KZT'",
        "currency KZT",
        "max_amount is 99999999",
    ),
    found(
        "catalog",
        "a commission",
        "UPDATE payment_methods SET commission = 0 WHERE code = 'upi'",
        "payment method upi",
        "commission is 0",
    ),
    found(
        "catalog",
        "a currency",
        "INSERT INTO currencies VALUES ('XXX', 'X', 'X', 2, 1, 2, 0, true)",
        "currency XXX",
        "act is none",
    ),
    found(
        "catalog",
        "the logo's address that merchants get",
        "UPDATE payment_methods SET logo_url = 'https://evil.example/x.png' WHERE code = 'sepa'",
        "payment method sepa",
        "logo_url is https://evil.example/x.png",
    ),
    found_of_owner(
        "catalog",
        "how long a rate of an operator counts",
        "UPDATE rates SET validity = 'until_replaced' WHERE currency_code = 'EUR' AND origin = 'operator'",
        "currency EUR: rate of ",
        "valid for another time",
    ),
    found_of_owner(
        "catalog",
        "the newest rate of an operator deleted",
        "DELETE FROM rates WHERE currency_code = 'EUR' AND origin = 'operator'",
        "currency EUR: rate of ",
        "deleted",
    ),
    refused(
        "catalog",
        "a replaced rate as the newest again",
        "INSERT INTO rates (currency_code, source_rate, origin, taken_at, document, seal)"
        " SELECT currency_code, source_rate, origin, taken_at, document, seal FROM rates WHERE currency_code = 'EUR'",
        "uq_rates_seal",
    ),
    refused(
        "catalog",
        "a rate without sources",
        _RATE.format(currency="EUR", rate="1", origin="sources", document=_WRONG_QUOTES),
        "ck_rates_document",
    ),
    refused(
        "catalog",
        "a rate that is no number",
        _RATE.format(currency="EUR", rate="'NaN'", origin="sources", document=_NO_QUOTES),
        "ck_rates_bounds",
    ),
    refused(
        "catalog", "a rate changed", "UPDATE rates SET source_rate = 1", "permission denied for table rates"
    ),
    refused("catalog", "rates deleted", "DELETE FROM rates", "permission denied for table rates"),
    refused(
        "catalog",
        "20,000 decimals",
        "UPDATE currencies SET decimals = 20000 WHERE code = 'EUR'",
        "ck_currencies_decimals",
    ),
    refused(
        "catalog",
        "an amount that is no number",
        "UPDATE currencies SET max_amount = 'NaN' WHERE code = 'EUR'",
        "ck_currencies_bounds",
    ),
    refused(
        "catalog",
        "a currency deleted",
        "DELETE FROM currencies WHERE code = 'EUR'",
        "permission denied for table currencies",
    ),
    not_promised("catalog", "the turn of the poller", "UPDATE poll_turns SET started_at = now()"),
)

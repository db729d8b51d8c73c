"""The currencies, payment methods and receiving accounts of a first start. All invented."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DemoCurrency:
    """A currency. The bounds hold for one invoice; `rate` is the price of one USDT."""

    code: str
    name: str
    symbol: str
    decimals: int
    min_amount: str
    max_amount: str
    rate: str


@dataclass(frozen=True)
class DemoMethod:
    """A payment method. Each of its `accounts` becomes a requisite. Two open deals of one amount need two requisites,
    and one merchant must leave one of several to the others: of four it may have three.
    """

    code: str
    currency: str
    name: str
    commission: str
    minutes: int
    accounts: tuple[str, ...]
    bank: str | None = None

    @property
    def logo(self) -> str:
        """A file of `logos/`: a card, a telephone or a bank, drawn for this project; none is a trademark."""
        return f"{_LOGOS.get(self.code, 'bank')}.webp"


CURRENCIES = (
    DemoCurrency("EUR", "Euro", "€", 2, "1", "10000", rate="0.92"),
    DemoCurrency("USD", "US dollar", "$", 2, "1", "10000", rate="1.00"),
    DemoCurrency("RUB", "Russian ruble", "₽", 2, "100", "1000000", rate="96.50"),
    DemoCurrency("KZT", "Kazakhstani tenge", "₸", 2, "500", "5000000", rate="521.40"),
    DemoCurrency("TRY", "Turkish lira", "₺", 2, "50", "500000", rate="38.75"),
    DemoCurrency("INR", "Indian rupee", "₹", 2, "100", "500000", rate="86.20"),
    DemoCurrency("JPY", "Japanese yen", "¥", 0, "100", "1000000", rate="152.30"),
)

_LOGOS = dict.fromkeys(("eur-card", "usd-card", "rub-card", "halyk"), "card") | dict.fromkeys(
    ("zelle", "sbp", "kaspi", "papara", "upi", "paypay"), "phone"
)
_SEPA = (
    "DE89 3704 0044 0532 0130 00",
    "FR14 2004 1010 0505 0001 3M02 606",
    "NL91 ABNA 0417 1643 00",
    "ES91 2100 0418 4502 0005 1332",
)
_EUR_CARDS = ("4000 0025 0000 3155", "4000 0038 0000 0446", "4000 0027 6000 3184", "4000 0082 6000 0000")

METHODS = (
    DemoMethod("sepa", "EUR", "SEPA Instant", "0.01", 30, _SEPA, "Demo Bank"),
    DemoMethod("eur-card", "EUR", "Card to card", "0.02", 15, _EUR_CARDS),
    DemoMethod("zelle", "USD", "Zelle", "0.01", 20, ("pay-one@shop.example", "pay-two@shop.example")),
    DemoMethod("usd-card", "USD", "Card to card", "0.02", 15, ("4242 4242 4242 4242", "4000 0566 5566 5556")),
    DemoMethod("sbp", "RUB", "SBP", "0.01", 15, ("+7 900 000-00-01", "+7 900 000-00-02"), "Demo Bank"),
    DemoMethod("rub-card", "RUB", "Card to card", "0.02", 20, ("2200 0000 0000 0004", "2200 0000 0000 0012")),
    DemoMethod(
        "rub-account", "RUB", "Account transfer", "0.005", 60, ("4081 7810 0000 0000 0001",), "Demo Bank"
    ),
    DemoMethod("kaspi", "KZT", "Kaspi", "0.01", 15, ("+7 700 000-00-01", "+7 700 000-00-02"), "Kaspi"),
    DemoMethod("halyk", "KZT", "Halyk", "0.01", 20, ("4405 6300 0000 0001",), "Halyk"),
    DemoMethod("papara", "TRY", "Papara", "0.015", 15, ("1000000001", "1000000002")),
    DemoMethod(
        "havale", "TRY", "Havale / FAST", "0.01", 30, ("TR33 0006 1005 1978 6457 8413 26",), "Demo Bank"
    ),
    DemoMethod("upi", "INR", "UPI", "0.01", 10, ("shop-one@upi", "shop-two@upi")),
    DemoMethod("imps", "INR", "IMPS", "0.01", 30, ("000000000001",), "Demo Bank"),
    DemoMethod("furikomi", "JPY", "Bank transfer", "0.01", 60, ("001-0000001", "001-0000002"), "Demo Bank"),
    DemoMethod("paypay", "JPY", "PayPay", "0.015", 15, ("shop-one",)),
)

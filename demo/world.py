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
    """A payment method. Each of its `accounts`, in the normal form of their `kind`, becomes a requisite.

    Unless transfers carry a reference, two open deals of one amount need two requisites, and one merchant must leave
    one of several to the others: of four it may have three.
    """

    code: str
    currency: str
    name: str
    commission: str
    minutes: int
    accounts: tuple[str, ...]
    bank: str | None = None
    kind: str = "free"
    takes_reference: bool = False

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
    "DE89370400440532013000",
    "FR1420041010050500013M02606",
    "NL91ABNA0417164300",
    "ES9121000418450200051332",
)
_EUR_CARDS = ("4000002500003155", "4000003800000446", "4000002760003184", "4000008260000000")
_USD_CARDS = ("4242424242424242", "4000056655665556")
_RUB_CARDS = ("2200000000000004", "2200000000000012")
_TRY_BANK = ("TR330006100519786457841326",)
_SBP = ("+79000000001", "+79000000002")
_KASPI = ("+77000000001", "+77000000002")

METHODS = (
    DemoMethod(
        "sepa", "EUR", "SEPA Instant", "0.01", 30, _SEPA, "Demo Bank", kind="iban", takes_reference=True
    ),
    DemoMethod("eur-card", "EUR", "Card to card", "0.02", 15, _EUR_CARDS, kind="card"),
    DemoMethod("zelle", "USD", "Zelle", "0.01", 20, ("pay-one@shop.example", "pay-two@shop.example")),
    DemoMethod("usd-card", "USD", "Card to card", "0.02", 15, _USD_CARDS, kind="card"),
    DemoMethod("sbp", "RUB", "SBP", "0.01", 15, _SBP, "Demo Bank", kind="phone"),
    DemoMethod("rub-card", "RUB", "Card to card", "0.02", 20, _RUB_CARDS, kind="card"),
    DemoMethod(
        "rub-account", "RUB", "Account transfer", "0.005", 60, ("4081 7810 0000 0000 0001",), "Demo Bank"
    ),
    DemoMethod("kaspi", "KZT", "Kaspi", "0.01", 15, _KASPI, "Kaspi", kind="phone"),
    DemoMethod("halyk", "KZT", "Halyk", "0.01", 20, ("4405630000000007",), "Halyk", kind="card"),
    DemoMethod("papara", "TRY", "Papara", "0.015", 15, ("1000000001", "1000000002")),
    DemoMethod(
        "havale",
        "TRY",
        "Havale / FAST",
        "0.01",
        30,
        _TRY_BANK,
        "Demo Bank",
        kind="iban",
        takes_reference=True,
    ),
    DemoMethod(
        "upi", "INR", "UPI", "0.01", 10, ("shop-one@upi", "shop-two@upi"), kind="upi", takes_reference=True
    ),
    DemoMethod("imps", "INR", "IMPS", "0.01", 30, ("000000000001",), "Demo Bank"),
    DemoMethod("furikomi", "JPY", "Bank transfer", "0.01", 60, ("001-0000001", "001-0000002"), "Demo Bank"),
    DemoMethod("paypay", "JPY", "PayPay", "0.015", 15, ("shop-one",)),
)

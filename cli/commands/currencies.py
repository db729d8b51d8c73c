"""`fiatgate currencies …`"""

from typing import Final

from cli import connection, output
from cli.command import argument, command, group, option, percent
from cli.listing import Table
from console.words.rates import markup_in_effect
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.base.money import amount_text

app = group("currencies", "Currencies: bounds, markup, enabled or not.")
TABLE: Final = Table(
    columns="code | name | symbol | decimals | min_amount | max_amount | markup | enabled",
    stacks="code | name symbol | min_amount max_amount | decimals markup | enabled",
    empty="No currencies yet: fiatgate currencies set",
)


@command(
    *(app, "set", "EUR --name Euro --symbol € --decimals 2 --min 10 --max 10000", pb.Currency),
    argument("code", "CODE", "ISO 4217."),
    option("name", "N", required=True),
    option("symbol", "S", required=True),
    option("decimals", None, "Decimal places.", required=True, max=2),
    option("min_amount", "A", "Least invoice amount.", "--min", required=True),
    option("max_amount", "A", "Largest invoice amount.", "--max", required=True),
    percent("markup", "What is taken off the source's rate: 1.5 is 1.5 %.", default="0"),
    option("enabled", None, "Whether merchants may use it.", "--enabled/--disabled", default=True),
    modes="all",
)
def set_one(request: pb.Currency) -> None:
    """Create a currency or replace its options."""
    made = connection.catalog().SetCurrency(pb.SetCurrencyRequest(currency=request)).currency
    state = "enabled" if made.enabled else "disabled"
    low, high = (amount_text(each, made.code) for each in (made.min_amount, made.max_amount))
    sentence = f"{made.code} is {state}: invoices of {low} to {high}."
    for each in connection.catalog().ListRates(pb.ListRatesRequest()).rates:
        if each.currency_code == made.code and each.HasField("in_force"):
            rate = each.in_force
            sentence += f" Of {rate.source_rate} deals lock {rate.rate}, {markup_in_effect(rate)} % less."
    output.outcome(made, sentence, f"fiatgate rates set {made.code} RATE")


@command(app, "list", "", pb.GetCatalogRequest)
def list_all(request: pb.GetCatalogRequest) -> None:
    """List all currencies, also disabled ones."""
    TABLE.show_all(connection.catalog().GetCatalog(request).currencies)

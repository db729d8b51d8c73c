"""`fiatgate currencies …`"""

from typing import Annotated

import typer

from cli import connection, output
from cli.output import Everything, Json
from fiatgate.catalog.v1 import catalog_pb2 as pb

app = typer.Typer(help="Currencies: bounds, markup, enabled or not.", no_args_is_help=True)


@app.command(
    "set",
    epilog="Example: fiatgate currencies set EUR --name Euro --symbol € --decimals 2 --min 10 --max 10000",
)
def set_one(
    code: Annotated[str, typer.Argument(metavar="CODE", help="ISO 4217.")],
    *,
    name: Annotated[str, typer.Option(metavar="N")],
    symbol: Annotated[str, typer.Option(metavar="S")],
    decimals: Annotated[int, typer.Option(min=0, max=2, help="Decimal places.")],
    minimum: Annotated[str, typer.Option("--min", metavar="A", help="Least invoice amount.")],
    maximum: Annotated[str, typer.Option("--max", metavar="A", help="Largest invoice amount.")],
    markup: Annotated[
        str, typer.Option(metavar="0..1", help="Fraction that is taken off the source's rate.")
    ] = "0",
    enabled: Annotated[
        bool, typer.Option("--enabled/--disabled", help="Whether merchants may use it.")
    ] = True,
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Create a currency or replace its options."""
    currency = pb.Currency(
        code=code,
        name=name,
        symbol=symbol,
        decimals=decimals,
        min_amount=minimum,
        max_amount=maximum,
        markup=markup,
        enabled=enabled,
    )
    answer = connection.catalog().SetCurrency(pb.SetCurrencyRequest(currency=currency))
    made = answer.currency
    state = "enabled" if made.enabled else "disabled"
    sentence = f"{made.code} is {state}: invoices of {made.min_amount} to {made.max_amount}."
    output.outcome(
        made, sentence, f"fiatgate rates set {made.code} RATE", everything=everything, as_json=as_json
    )


@app.command("list", epilog="Example: fiatgate currencies list")
def list_all(*, as_json: Json = False) -> None:
    """List all currencies, also disabled ones."""
    answer = connection.catalog().GetCatalog(pb.GetCatalogRequest())
    columns = ("code", "name", "symbol", "decimals", "min_amount", "max_amount", "markup", "enabled")
    rows = [output.plain(each) for each in answer.currencies]
    stacks = (
        ("code",),
        ("name", "symbol"),
        ("min_amount", "max_amount"),
        ("decimals", "markup"),
        ("enabled",),
    )
    empty = "No currencies yet: fiatgate currencies set"
    output.rows(rows, columns, as_json=as_json, empty=empty, stacks=stacks)

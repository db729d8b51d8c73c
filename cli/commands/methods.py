"""`fiatgate methods …`"""

from typing import Annotated

import typer

from cli import connection, logos, output
from cli.output import INT32_MOST, Everything, Json
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.rpc.errors import not_found

app = typer.Typer(help="Payment methods: bounds, time, commission.", no_args_is_help=True)


@app.command(
    "set",
    epilog="Example: fiatgate methods set sepa --currency EUR --name SEPA --min 10 --max 5000 --minutes 30",
)
def set_one(
    code: Annotated[str, typer.Argument(metavar="CODE")],
    *,
    currency: Annotated[str, typer.Option(metavar="C", help="Currency code.")],
    name: Annotated[str, typer.Option(metavar="N", help="Shown to customers.")],
    minimum: Annotated[str, typer.Option("--min", metavar="A", help="Least invoice amount.")],
    maximum: Annotated[str, typer.Option("--max", metavar="A", help="Largest invoice amount.")],
    minutes: Annotated[
        int, typer.Option(metavar="M", min=1, max=INT32_MOST, help="Time a customer has to pay.")
    ],
    commission: Annotated[
        str, typer.Option(metavar="0..1", help="Fraction that is added to the category's commission.")
    ] = "0",
    logo: logos.MethodLogo = None,
    logo_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The address that merchants get, in place of the logo's own."),
    ] = None,
    active: Annotated[
        bool, typer.Option("--active/--inactive", help="Whether customers may choose it.")
    ] = True,
    takes_reference: Annotated[
        bool | None,
        typer.Option(
            "--takes-reference/--no-takes-reference",
            help="Whether customers write the payment reference into the transfer.",
            show_default=False,
        ),
    ] = None,
    account_kind: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="What new accounts must be: iban, card, phone, upi; free: any text.",
            show_default=False,
        ),
    ] = None,
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Create a payment method or replace its options; logo, reference and kind stay unless others are given."""
    method = pb.PaymentMethod(
        method_code=code,
        currency_code=currency,
        name=name,
        min_sum=minimum,
        max_sum=maximum,
        payment_minutes=minutes,
        commission=commission,
        logo_url=logo_url,
        active=active,
        takes_reference=takes_reference,
        account_kind=output.enum_number(pb.AccountKind.DESCRIPTOR, account_kind),  # type: ignore[arg-type]  # a number
    )
    picture = None if logo is None else logos.content_of(logo)
    request = pb.SetPaymentMethodRequest(method=method, logo=picture)
    answer = connection.catalog().SetPaymentMethod(request)
    made = answer.method
    state = "active" if made.active else "inactive"
    sentence = (
        f"{made.name} ({made.method_code}) is {state}: {made.min_sum} to {made.max_sum} {made.currency_code}."
    )
    next_command = f"fiatgate requisites add {made.method_code} --holder H --account A"
    output.outcome(made, sentence, next_command, everything=everything, as_json=as_json)


def require_known(code: str) -> None:
    """Raises Refused PAYMENT_METHOD_NOT_FOUND for an unknown code; an empty one stands for any method."""
    if code and code not in {
        each.method_code for each in connection.catalog().GetCatalog(pb.GetCatalogRequest()).methods
    }:
        raise not_found("PAYMENT_METHOD_NOT_FOUND", f"There is no payment method {code!r}", method_code=code)


@app.command("list", epilog="Example: fiatgate methods list")
def list_all(*, as_json: Json = False) -> None:
    """List all payment methods, also inactive ones."""
    answer = connection.catalog().GetCatalog(pb.GetCatalogRequest())
    columns = (
        "method_code",
        "currency_code",
        "name",
        "min_sum",
        "max_sum",
        "payment_minutes",
        "commission",
        "account_kind",
        "takes_reference",
        "active",
    )
    rows = [output.plain(each) for each in answer.methods]
    stacks = (
        ("method_code", "currency_code"),
        ("name", "account_kind"),
        ("min_sum", "max_sum"),
        ("payment_minutes", "commission"),
        ("active", "takes_reference"),
    )
    empty = "No methods yet: fiatgate methods set"
    output.rows(rows, columns, as_json=as_json, empty=empty, stacks=stacks)

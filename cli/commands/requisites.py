"""`fiatgate requisites …`"""

from typing import Annotated

import typer

from cli import connection, output
from cli.commands import methods
from cli.output import Json
from fiatgate.invoices.v1 import invoices_pb2 as pb

NAME = "requisites"
app = typer.Typer(help="Accounts that customers pay to.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(metavar="ID", help="The requisite's UUID.")]


@app.command(
    "add",
    epilog='Example: fiatgate requisites add sepa --holder "A. Holder" --account DE02120300000000202051',
)
def add(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="Method code.")],
    *,
    holder: Annotated[str, typer.Option(metavar="H")],
    account: Annotated[str, typer.Option(metavar="A", help="Account or card number.")],
    bank: Annotated[str | None, typer.Option(metavar="B")] = None,
    max_deals: Annotated[
        int, typer.Option(metavar="N", min=1, max=10_000, help="Largest number of open deals on it.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """Add an account to a payment method."""
    request = pb.AddRequisiteRequest(
        method_code=method, holder=holder, account=account, bank=bank, max_deals=max_deals
    )
    output.record(connection.desk().AddRequisite(request).requisite, as_json=as_json)


@app.command("list", epilog="Example: fiatgate requisites list --method sepa")
def list_all(
    *,
    method: Annotated[
        str, typer.Option(metavar="METHOD", help="Only requisites of this payment method.")
    ] = "",
    as_json: Json = False,
) -> None:
    """List all accounts with their open deals."""
    methods.require_known(method)
    answer = connection.desk().ListRequisites(pb.ListRequisitesRequest(method_code=method))
    columns = (
        "requisite_id",
        "method_code",
        "holder",
        "account",
        "bank",
        "open_deals",
        "max_deals",
        "enabled",
    )
    output.records(
        answer.requisites, columns, as_json=as_json, empty="No requisites yet: fiatgate requisites add"
    )


@app.command("disable", epilog="Example: fiatgate requisites disable 0197…")
def disable(requisite_id: Id, *, as_json: Json = False) -> None:
    """Open no new deals on an account; open ones continue."""
    request = pb.DisableRequisiteRequest(requisite_id=requisite_id)
    output.record(connection.desk().DisableRequisite(request).requisite, as_json=as_json)


@app.command("enable", epilog="Example: fiatgate requisites enable 0197…")
def enable(requisite_id: Id, *, as_json: Json = False) -> None:
    """Open new deals on an account again."""
    request = pb.EnableRequisiteRequest(requisite_id=requisite_id)
    output.record(connection.desk().EnableRequisite(request).requisite, as_json=as_json)

"""`fiatgate requisites …`"""

from typing import Annotated

import typer

from cli import connection, ids, output, several
from cli.commands import methods
from cli.output import Everything, Json
from fiatgate.invoices.v1 import invoices_pb2 as pb

NAME = "requisites"
app = typer.Typer(help="Accounts that customers pay to.", no_args_is_help=True)
COLUMNS = {
    "requisite_id": "requisite",
    "method_code": "method",
    "account": "account",
    "holder": "holder",
    "bank": "bank",
    "load": "open deals",
    "enabled": "enabled",
}
STACKS = (("requisite_id", "method_code"), ("account", "holder"), ("bank",), ("load", "enabled"))


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
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Add an account to a payment method."""
    request = pb.AddRequisiteRequest(
        method_code=method, holder=holder, account=account, bank=bank, max_deals=max_deals
    )
    added = connection.desk().AddRequisite(request).requisite
    sentence = f"Added: customers may pay to {added.account} of {added.holder} by {added.method_code}."
    output.outcome(added, sentence, everything=everything, as_json=as_json)


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
    rows = [output.plain(each) for each in answer.requisites]
    if not as_json:
        short_ids = output.shortened(row["requisite_id"] for row in rows)
        rows = [
            row
            | {
                "requisite_id": short_ids[row["requisite_id"]],
                "load": f"{row['open_deals']} of {row['max_deals']}",
            }
            for row in rows
        ]
        output.overview(output.counted("requisite", rows))
    empty = "No requisites yet: fiatgate requisites add"
    output.rows(rows, COLUMNS, as_json=as_json, empty=empty, stacks=STACKS)


@app.command("disable", epilog="Example: fiatgate requisites disable 0197… 0198…")
def disable(
    requisite_ids: ids.RequisiteIds, *, everything: Everything = False, as_json: Json = False
) -> None:
    """Open no new deals on accounts; open ones continue. Exit code 1 when one was not disabled."""
    several.each(
        requisite_ids,
        lambda id: connection.desk().DisableRequisite(pb.DisableRequisiteRequest(requisite_id=id)).requisite,
        lambda each: f"Disabled: {each.account} gets no new deals; {each.open_deals} are open.",
        everything=everything,
        as_json=as_json,
    )


@app.command("enable", epilog="Example: fiatgate requisites enable 0197… 0198…")
def enable(requisite_ids: ids.RequisiteIds, *, everything: Everything = False, as_json: Json = False) -> None:
    """Open new deals on accounts again. Exit code 1 when one was not enabled."""
    several.each(
        requisite_ids,
        lambda id: connection.desk().EnableRequisite(pb.EnableRequisiteRequest(requisite_id=id)).requisite,
        lambda each: f"Enabled: {each.account} gets new deals.",
        everything=everything,
        as_json=as_json,
    )

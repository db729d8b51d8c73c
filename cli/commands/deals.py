"""`fiatgate deals …`: the operator's desk."""

from pathlib import Path
from typing import Annotated

import typer

from cli import connection, output
from cli.commands import cases
from cli.output import Json
from fiatgate.invoices.v1 import invoices_pb2 as pb

NAME = "deals"
app = typer.Typer(help="The deal desk: confirm, reject, appeals, the switch.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(metavar="ID", help="The deal's UUID.")]
Actor = Annotated[str, typer.Option("--as", metavar="NAME", help="Who you are, for the history.")]
Note = Annotated[str, typer.Option(help="Why, for the history.")]
STATUSES = pb.DealStatus.DESCRIPTOR


@app.command("list", epilog="Example: fiatgate deals list --status pending")
def list_all(
    *,
    status: Annotated[str | None, typer.Option(metavar="S", help="pending, appeal, completed, …")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 100,
    as_json: Json = False,
) -> None:
    """Deals, newest first."""
    request = pb.ListDealsRequest(limit=limit)
    request.status = output.enum_number(STATUSES, status)  # type: ignore[assignment]  # a number of this very enum
    answer = connection.desk().ListDeals(request)
    columns = (
        "deal_id",
        "status",
        "sub_status",
        "amount_fiat",
        "currency_code",
        "payment_method_code",
        "mark_paid_at",
    )
    output.records(answer.deals, columns, as_json=as_json, empty="No such deals")


@app.command("show", epilog="Example: fiatgate deals show 0197… --save-proof receipt.jpg")
def show(
    deal_id: Id,
    *,
    save_proof: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the picture of the customer's appeal here.")
    ] = None,
    as_json: Json = False,
) -> None:
    """A deal with its requisite, all that happened to it, and what the customer sent as proof."""
    answer = connection.desk().GetDeal(pb.GetDealRequest(deal_id=deal_id))
    whole = output.plain(answer)
    if save_proof is not None:
        cases.save(save_proof, deal_id, pb.PROOF_KIND_APPEAL)
    output.record(
        whole["deal"] | {name: whole[name] for name in ("requisite", "history", "proofs")}, as_json=as_json
    )


@app.command("confirm", epilog="Example: fiatgate deals confirm 0197… --as eve")
def confirm(deal_id: Id, *, actor: Actor = "", as_json: Json = False) -> None:
    """The money came: the invoice succeeds, the merchant is credited."""
    request = pb.ConfirmDealRequest(deal_id=deal_id, actor=actor)
    output.record(connection.desk().ConfirmDeal(request).deal, as_json=as_json)


@app.command("reject", epilog='Example: fiatgate deals reject 0197… --note "nothing came"')
def reject(deal_id: Id, *, actor: Actor = "", note: Note = "", as_json: Json = False) -> None:
    """The money did not come: the invoice fails."""
    request = pb.RejectDealRequest(deal_id=deal_id, actor=actor, note=note)
    output.record(connection.desk().RejectDeal(request).deal, as_json=as_json)


@app.command("appeal", epilog='Example: fiatgate deals appeal 0197… --note "another amount came"')
def appeal(deal_id: Id, *, actor: Actor = "", note: Note = "", as_json: Json = False) -> None:
    """Keep the deal open while somebody looks closer."""
    request = pb.OpenAppealRequest(deal_id=deal_id, actor=actor, note=note)
    output.record(connection.desk().OpenAppeal(request).deal, as_json=as_json)


@app.command("resolve", epilog="Example: fiatgate deals resolve 0197… --amount 90.00")
def resolve(
    deal_id: Id,
    *,
    paid: Annotated[bool, typer.Option("--paid", help="Paid as asked.")] = False,
    amount: Annotated[str | None, typer.Option(metavar="A", help="Paid less: the final amount.")] = None,
    rejected: Annotated[bool, typer.Option("--reject", help="Not paid.")] = False,
    actor: Actor = "",
    note: Note = "",
    as_json: Json = False,
) -> None:
    """End an appeal, one way of three."""
    if sum((paid, amount is not None, rejected)) != 1:
        raise typer.BadParameter("say exactly one of --paid, --amount A, --reject")
    request = pb.ResolveAppealRequest(deal_id=deal_id, actor=actor, note=note)
    if amount is not None:
        request.adjusted_amount = amount
    elif paid:
        request.paid = True
    else:
        request.rejected = True
    output.record(connection.desk().ResolveAppeal(request).deal, as_json=as_json)


@app.command("system", epilog="Example: fiatgate deals system off")
def system(
    word: Annotated[str, typer.Argument(metavar="on|off|show")], *, actor: Actor = "", as_json: Json = False
) -> None:
    """The switch behind DEALS_SYSTEM_DISABLED: off stops new invoices and deals, open ones go on."""
    if word not in {"on", "off", "show"}:
        raise typer.BadParameter("say on, off or show")
    desk = connection.desk()
    if word == "show":
        output.record(desk.GetDealsSystem(pb.GetDealsSystemRequest()), as_json=as_json)
    else:
        request = pb.SetDealsSystemRequest(enabled=word == "on", actor=actor)
        output.record(desk.SetDealsSystem(request), as_json=as_json)

"""`fiatgate deals …`: the operator's desk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from cli import connection, grouping, output, rejecting
from cli.commands import cases, methods
from cli.output import Json
from cli.rejecting import DealFilter
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.clock import SystemClock
from kit.rpc.values import LIST_MOST_ROWS, LIST_ROWS

NAME = "deals"
app = typer.Typer(help="The deal desk: confirm, reject, appeals, the switch.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(metavar="ID", help="The deal's UUID.")]
Note = Annotated[str, typer.Option(help="The reason, for the history.")]
Status = Annotated[str | None, typer.Option("--status", metavar="S", help="pending, appeal, completed, …")]
SubStatus = Annotated[
    str, typer.Option("--sub-status", metavar="S", help="awaiting_payment, awaiting_confirmation, …")
]
Overdue = Annotated[
    bool, typer.Option("--overdue", help="Only deals in appeal because no operator confirmed in time.")
]
Merchant = Annotated[str, typer.Option("--merchant", metavar="ID", help="Only deals of this merchant.")]
Method = Annotated[str, typer.Option("--method", metavar="CODE", help="Only deals of this payment method.")]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="TIME", help="Only deals opened longer ago: 90s, 30m, 24h, 7d."),
]


@app.command("list", epilog="Example: fiatgate deals list --status pending")
def list_all(
    *,
    status: Status = None,
    sub_status: SubStatus = "",
    overdue: Overdue = False,
    merchant: Merchant = "",
    method: Method = "",
    older_than: OlderThan = None,
    limit: Annotated[int, typer.Option(min=1, max=LIST_MOST_ROWS)] = LIST_ROWS,
    as_json: Json = False,
) -> None:
    """List deals with their account, customer and order, newest first."""
    wanted = _wanted(
        status, sub_status, overdue=overdue, merchant=merchant, method=method, older_than=older_than
    )
    rejecting.print_rows(rejecting.found(wanted, limit), as_json=as_json)


def _wanted(
    status: str | None,
    sub_status: str,
    *,
    overdue: bool,
    merchant: str,
    method: str,
    older_than: str | None,
) -> DealFilter:
    if overdue and sub_status not in ("", rejecting.OVERDUE):
        raise typer.BadParameter("give either --overdue or --sub-status", param_hint="--sub-status")
    methods.require_known(method)
    try:
        opened_before = None if older_than is None else SystemClock().now() - rejecting.age(older_than)
    except (ValueError, OverflowError) as fault:
        raise typer.BadParameter(str(fault), param_hint="--older-than") from None
    return DealFilter(
        status=output.enum_number(pb.DealStatus.DESCRIPTOR, status),
        sub_status=rejecting.OVERDUE if overdue else sub_status,
        merchant_id=merchant,
        method_code=method,
        created_before=opened_before,
    )


@app.command(
    "show",
    epilog="Example: fiatgate deals show 0197… --save-picture receipt.jpg",
    context_settings=cases.EARLIER_NAMES,
)
def show(
    deal_id: Id,
    *,
    save_picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the picture of the customer's appeal here.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a deal with its requisite, its history, and the customer's pictures."""
    answer = connection.desk().GetDeal(pb.GetDealRequest(deal_id=deal_id))
    whole = output.plain(answer)
    if save_picture is not None:
        cases.save(save_picture, deal_id, pb.PROOF_KIND_APPEAL)
    if as_json:
        output.print_json(whole["deal"] | {name: whole[name] for name in ("requisite", "history", "proofs")})
    else:
        grouping.print_deal(whole, output.plain(rejecting.invoice_of(answer.deal)))


@app.command("confirm", epilog="Example: fiatgate deals confirm 0197…")
def confirm(deal_id: Id, *, as_json: Json = False) -> None:
    """Confirm that the money came: the invoice succeeds, the merchant is credited."""
    request = pb.ConfirmDealRequest(deal_id=deal_id)
    output.record(connection.desk().ConfirmDeal(request).deal, as_json=as_json)


@app.command("reject", epilog="Example: fiatgate deals reject --overdue --method upi --older-than 24h")
def reject(
    deal_ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="UUIDs of deals.", show_default=False)
    ] = None,
    *,
    status: Annotated[str | None, typer.Option("--status", metavar="S", help="pending or appeal.")] = None,
    sub_status: SubStatus = "",
    overdue: Overdue = False,
    merchant: Merchant = "",
    method: Method = "",
    older_than: OlderThan = None,
    limit: Annotated[
        int, typer.Option(min=1, max=rejecting.MOST, help="Largest number of deals to reject.")
    ] = 100,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Reject without a question.")] = False,
    note: Note = "",
    as_json: Json = False,
) -> None:
    """Reject: the money did not come, the invoice fails. One deal, several, or all open ones of a kind.

    Several deals, and one in appeal, are shown first and rejected when you agree. A deal that has changed since then
    stays as it is. Exit code 1 when one of them was not rejected.
    """
    wanted = _wanted(
        status, sub_status, overdue=overdue, merchant=merchant, method=method, older_than=older_than
    )
    if deal_ids and wanted.is_narrow:
        raise typer.BadParameter("both IDs and options that choose deals were given: give one of the two")
    if not deal_ids and not wanted.is_narrow:
        raise typer.BadParameter("give IDs, or options that choose deals")
    if wanted.status not in (pb.DEAL_STATUS_UNSPECIFIED, *rejecting.OPEN):
        raise typer.BadParameter("only open deals can be rejected: pending or appeal", param_hint="--status")
    if deal_ids and len(deal_ids) == 1:
        (deal,) = rejecting.named(deal_ids)
        if deal.status == pb.DEAL_STATUS_APPEAL:
            _confirm([deal], limit, yes=yes, as_json=as_json)
        output.record(rejecting.reject(deal, note=note), as_json=as_json)
        return
    if deal_ids and len(deal_ids) > limit:
        raise typer.BadParameter(f"at most {limit} deals at once, or --limit", param_hint="ID")
    _require_yes(yes=yes, as_json=as_json)
    deals = list(rejecting.named(deal_ids)) if deal_ids else rejecting.found_open(wanted, limit)
    _confirm(deals, limit, yes=yes, as_json=as_json)
    _report(_reject_each(deals, note=note, quiet=as_json), as_json=as_json)


def _confirm(deals: Sequence[pb.Deal], limit: int, *, yes: bool, as_json: bool) -> None:
    """Shows the deals, and ends the command unless the operator agrees."""
    _require_yes(yes=yes, as_json=as_json)
    if as_json:
        return
    rejecting.print_rows(deals, as_json=False)
    if len(deals) == limit > 1:
        output.note(f"[dim]The oldest {limit}; there may be more[/dim]")
    if deals and not yes:
        typer.confirm(_question(deals), abort=True, err=True)


def _question(deals: Sequence[pb.Deal]) -> str:
    these = "this deal" if len(deals) == 1 else f"these {len(deals)} deals"
    early = rejecting.have_time_to_pay(deals, SystemClock().now())
    if not early:
        return f"Reject {these}?"
    have = "has" if early == 1 else "have"
    return f"{early} of {len(deals)} customers still {have} time to pay. Reject {these}?"


def _require_yes(*, yes: bool, as_json: bool) -> None:
    if as_json and not yes:
        raise typer.BadParameter("with --json there is no question: add --yes", param_hint="--yes")


def _reject_each(deals: Sequence[pb.Deal], *, note: str, quiet: bool) -> list[dict[str, str]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    silent = quiet or not output.console.is_terminal
    with Progress(*columns, console=output.console, transient=True, disable=silent) as progress:
        task = progress.add_task("rejecting", total=len(deals))
        return rejecting.reject_each(deals, note=note, advance=lambda: progress.advance(task))


def _report(rows: Sequence[dict[str, str]], *, as_json: bool) -> None:
    rejected = sum(row["outcome"] == "rejected" for row in rows)
    if as_json:
        output.print_json(rows)
    elif rows:
        if left := [row for row in rows if row["outcome"] != "rejected"]:
            output.rows(left, ("deal_id", "outcome", "status", "sub_status"), as_json=False, empty="")
        output.console.print(f"{rejected} of {len(rows)} rejected")
    if rejected < len(rows):
        raise typer.Exit(1)


@app.command("appeal", epilog='Example: fiatgate deals appeal 0197… --note "another amount came"')
def appeal(deal_id: Id, *, note: Note = "", as_json: Json = False) -> None:
    """Keep the deal open until an operator resolves it."""
    request = pb.OpenAppealRequest(deal_id=deal_id, note=note)
    output.record(connection.desk().OpenAppeal(request).deal, as_json=as_json)


@app.command("resolve", epilog="Example: fiatgate deals resolve 0197… --amount 90.00")
def resolve(
    deal_id: Id,
    *,
    paid: Annotated[bool, typer.Option("--paid", help="The customer paid the requested amount.")] = False,
    amount: Annotated[
        str | None, typer.Option(metavar="A", help="The customer paid less: the final amount.")
    ] = None,
    rejected: Annotated[bool, typer.Option("--reject", help="The money did not come.")] = False,
    note: Note = "",
    as_json: Json = False,
) -> None:
    """End an appeal in one of three ways."""
    if sum((paid, amount is not None, rejected)) != 1:
        raise typer.BadParameter("give exactly one of --paid, --amount A, --reject")
    request = pb.ResolveAppealRequest(deal_id=deal_id, note=note)
    if amount is not None:
        request.adjusted_amount = amount
    elif paid:
        request.paid = True
    else:
        request.rejected = True
    output.record(connection.desk().ResolveAppeal(request).deal, as_json=as_json)


@app.command("system", epilog="Example: fiatgate deals system off")
def system(word: Annotated[str, typer.Argument(metavar="on|off|show")], *, as_json: Json = False) -> None:
    """Switch new invoices and deals on or off (DEALS_SYSTEM_DISABLED); open ones continue."""
    if word not in {"on", "off", "show"}:
        raise typer.BadParameter("expected on, off or show")
    desk = connection.desk()
    if word == "show":
        output.record(desk.GetDealsSystem(pb.GetDealsSystemRequest()), as_json=as_json)
    else:
        request = pb.SetDealsSystemRequest(enabled=word == "on")
        output.record(desk.SetDealsSystem(request), as_json=as_json)

"""`fiatgate deals …`: the operator's desk."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from cli import connection, deal_list, grouping, ids, listing, output, pending, rejecting, several
from cli.command import command, group, option, period
from cli.commands import cases, methods
from cli.listing import Row, Table
from cli.moments import age
from console.words.deals import AWAITING_CONFIRMATION, AWAITING_PAYMENT, OVERDUE
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.money import money_text
from kit.base.proto import datetime_from, timestamp_from

app = group("deals", "The deal desk: confirm, reject, appeals, the switch.")
Note = Annotated[str, typer.Option(help="The reason, for the history.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without a question.")]
Overdue = Annotated[
    bool, typer.Option("--overdue", help="Only deals in appeal because no operator confirmed in time.")
]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="TIME", help="Only deals opened longer ago: 90s, 30m, 24h, 7d."),
]
SUB_STATUS: Final = option("sub_status", "S", "awaiting_payment, awaiting_confirmation, …")
METHOD: Final = option("payment_method_code", "CODE", "Only deals of this payment method.", "--method")
RESOLVE: Final = "fiatgate deals resolve {id} --paid (or --received A, or --reject)"
LEFT: Final = Table(columns="deal_id | outcome | status | sub_status", empty="")


@command(
    *(app, "list", "--status pending", pb.ListDealsRequest),
    option("status", "S", "pending, appeal, completed, …"),
    SUB_STATUS,
    "overdue",
    ids.of_merchant(),
    METHOD,
    option("reference", "REF", "Only the deal with this payment reference."),
    option("sender_name", "NAME", "Only deals whose sender's name has these words.", "--sender"),
    option("account", "A", "Only deals on this account, however it is spaced."),
    option("amount_from", "N", "Only deals of this amount.", "--amount"),
    option("external_id", "ID", "Only the deals of this order of a merchant.", "--order"),
    option("customer_id", "ID", "Only deals of this customer.", "--customer"),
    option(
        "marked_paid",
        *(None, "Deals marked paid that wait for you, the most urgent first.", "--queue"),
        default=False,
    ),
    *period(),
    "older_than",
    ids.after("deal"),
)
def list_all(
    request: pb.ListDealsRequest,
    *,
    overdue: Overdue = False,
    older_than: OlderThan = None,
    limit: listing.Limit = listing.ROWS,
) -> None:
    """List deals with their account, reference, sender and order, newest first."""
    if request.marked_paid and (request.status or request.sub_status or overdue):
        raise typer.BadParameter("give either --queue or a state", param_hint="--queue")
    _narrow(request, overdue=overdue, older_than=older_than)
    request.amount_to = request.amount_from
    listing.show_page(
        *(deal_list.TABLE, request, connection.desk().ListDeals, deal_list.rows_of, "deal_id"),
        limit=limit,
        for_people=deal_list.for_people,
        lead=lambda page, more: (
            deal_list.summary(page, more=more and not request.marked_paid),
            *_next_of_list(page),
        ),
        narrower="--since and --until",
    )


def _next_of_list(rows: Sequence[Row]) -> list[str]:
    statuses = {row["status"] for row in rows}
    commands = ["fiatgate deals show ID"]
    if "pending" in statuses:
        commands.append("fiatgate deals confirm ID …")
    if "appeal" in statuses:
        commands.append(RESOLVE.format(id="ID"))
    return commands


def _narrow(request: pb.ListDealsRequest, *, overdue: bool, older_than: str | None) -> None:
    """Completes the filter with what has no field of its own, and checks it."""
    if overdue and request.sub_status not in ("", OVERDUE):
        raise typer.BadParameter("give either --overdue or --sub-status", param_hint="--sub-status")
    if older_than is not None and request.HasField("created_before"):
        raise typer.BadParameter("give either --until or --older-than", param_hint="--older-than")
    methods.require_known(request.payment_method_code)
    if overdue:
        request.sub_status = OVERDUE
    if older_than is not None:
        try:
            request.created_before.CopyFrom(timestamp_from(SystemClock().now() - age(older_than)))
        except (ValueError, OverflowError) as fault:
            raise typer.BadParameter(str(fault), param_hint="--older-than") from None


@command(app, "show", "0197… --save-picture receipt.jpg", pb.GetDealRequest, ids.one("deal"))
def show(
    request: pb.GetDealRequest,
    *,
    save_picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the picture of the customer's appeal here.")
    ] = None,
) -> None:
    """Show a deal with its requisite, its history, and the customer's pictures."""
    answer = connection.desk().GetDeal(request)
    whole = output.plain(answer)
    if save_picture is not None:
        cases.save(save_picture, request.deal_id, pb.PROOF_KIND_APPEAL)
    if output.mode.json:
        output.print_json(whole["deal"] | {name: whole[name] for name in ("requisite", "history", "proofs")})
        return
    output.overview(deal_list.state_sentence(answer.deal), *_next_steps(answer.deal))
    wanted = pb.GetInvoiceRequest(merchant_id=answer.deal.merchant_id, invoice_ref=answer.deal.invoice_id)
    grouping.print_deal(whole, output.plain(connection.invoices().GetInvoice(wanted).invoice))


def _next_steps(deal: pb.Deal) -> list[str]:
    id = output.short(deal.deal_id)
    if deal.status == pb.DEAL_STATUS_APPEAL:
        return [RESOLVE.format(id=id)]
    if deal.sub_status == AWAITING_CONFIRMATION:
        return [f"fiatgate deals confirm {id}, or fiatgate deals reject {id}"]
    return []


@command(app, "confirm", "0197… 0198…", modes="all")
def confirm(deal_ids: ids.DealIds, *, yes: Yes = False) -> None:
    """Confirm that the money came: the invoice succeeds, the merchant is credited.

    A deal that the customer has not marked paid is shown first, and confirmed when you agree. Exit code 1 when one of
    them was not confirmed.
    """
    if not yes:
        _require_marked(deal_list.named(deal_ids))
    several.each(
        deal_ids,
        lambda id: connection.desk().ConfirmDeal(pb.ConfirmDealRequest(deal_id=id)).deal,
        lambda deal: (
            f"Confirmed: {money_text(deal.amount_fiat, deal.currency_code)} came, "
            f"{money_text(deal.merchant_usdt, 'USDT')} are credited."
        ),
    )


def _require_marked(deals: Sequence[pb.GetDealResponse]) -> None:
    """Ends the command unless the customers have marked all deals paid, or the operator agrees."""
    unmarked = [each for each in deals if each.deal.sub_status == AWAITING_PAYMENT]
    if not unmarked:
        return
    the_deal = "The deal is" if len(deals) == 1 else f"{len(unmarked)} of {len(deals)} deals are"
    if output.mode.json or not sys.stdin.isatty():
        message = (
            f"{the_deal} not marked paid by the customer. Nothing was confirmed. If the money came: --yes"
        )
        unmarked_ids = ", ".join(each.deal.deal_id for each in unmarked)
        output.refusal("NOT_MARKED_PAID", message, {"deal_ids": unmarked_ids})
        raise typer.Exit(1)
    deal_list.print_deals(unmarked)
    these = "it" if len(deals) == 1 else f"all {len(deals)}"
    typer.confirm(
        f"{the_deal} not marked paid by the customer. Confirm {these} all the same?", abort=True, err=True
    )


@command(
    *(app, "reject", "--overdue --method upi --older-than 24h", pb.ListDealsRequest),
    "deal_ids",
    option("status", "S", "pending or appeal."),
    SUB_STATUS,
    "overdue",
    ids.of_merchant(),
    METHOD,
    "older_than",
    option("limit", None, "Largest number of deals to reject.", default=100, min=1, max=rejecting.MOST),
    modes="all",
)
def reject(
    request: pb.ListDealsRequest,
    deal_ids: ids.SomeDealIds = None,
    *,
    overdue: Overdue = False,
    older_than: OlderThan = None,
    yes: Yes = False,
    note: Note = "",
) -> None:
    """Reject: the money did not come, the invoice fails. One deal, several, or all open ones of a kind.

    Several deals, and one in appeal, are shown first and rejected when you agree. A deal that has changed since then
    stays as it is. Exit code 1 when one of them was not rejected.
    """
    _narrow(request, overdue=overdue, older_than=older_than)
    limit, is_narrow = request.limit, request != pb.ListDealsRequest(limit=request.limit)
    if deal_ids and is_narrow:
        raise typer.BadParameter("both IDs and options that choose deals were given: give one of the two")
    if not deal_ids and not is_narrow:
        raise typer.BadParameter("give IDs, or options that choose deals")
    if request.status not in (pb.DEAL_STATUS_UNSPECIFIED, *deal_list.OPEN):
        raise typer.BadParameter("only open deals can be rejected: pending or appeal", param_hint="--status")
    if deal_ids and len(deal_ids) == 1:
        _reject_one(deal_ids[0], note=note, yes=yes)
        return
    if deal_ids and len(deal_ids) > limit:
        raise typer.BadParameter(f"at most {limit} deals at once, or --limit", param_hint="ID")
    output.require_yes(yes=yes)
    deals = deal_list.named(deal_ids) if deal_ids else deal_list.found_open(request)
    _confirm(deals, limit, yes=yes)
    _report(_reject_each([each.deal for each in deals], note=note))


def _reject_one(deal_id: str, *, note: str, yes: bool) -> None:
    (found,) = deal_list.named([deal_id])
    if found.deal.status == pb.DEAL_STATUS_APPEAL:
        output.require_yes(yes=yes)
        _confirm([found], 1, yes=yes)
    rejected = pending.reporting_rejected(
        *("invoices", f"deal:{found.deal.deal_id}"), lambda: rejecting.reject(found.deal, note=note)
    )
    output.outcome(rejected, "Rejected: the invoice has failed.")


def _confirm(deals: Sequence[pb.GetDealResponse], limit: int, *, yes: bool) -> None:
    """Shows the deals, and ends the command unless the operator agrees."""
    if output.mode.json:
        return
    deal_list.print_deals(deals)
    if len(deals) == limit > 1:
        output.note(f"[dim]The oldest {limit}; there may be more[/dim]")
    if deals and not yes:
        typer.confirm(_question([each.deal for each in deals]), abort=True, err=True)


def _question(deals: Sequence[pb.Deal]) -> str:
    these = "this deal" if len(deals) == 1 else f"these {len(deals)} deals"
    now = SystemClock().now()
    early = sum(
        deal.sub_status == AWAITING_PAYMENT and datetime_from(deal.expires_at) > now for deal in deals
    )
    if not early:
        return f"Reject {these}?"
    have = "has" if early == 1 else "have"
    return f"{early} of {len(deals)} customers still {have} time to pay. Reject {these}?"


def _reject_each(deals: Sequence[pb.Deal], *, note: str) -> list[Row]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    silent = output.mode.json or not output.console.is_terminal
    with Progress(*columns, console=output.console, transient=True, disable=silent) as progress:
        task = progress.add_task("rejecting", total=len(deals))
        return rejecting.reject_each(deals, note=note, advance=lambda: progress.advance(task))


def _report(rows: Sequence[Row]) -> None:
    rejected = sum(row["outcome"] == "rejected" for row in rows)
    if output.mode.json:
        output.print_json(rows)
    elif rows:
        if left := [row for row in rows if row["outcome"] != "rejected"]:
            LEFT.show(left)
        output.console.print(f"{rejected} of {len(rows)} rejected")
    if rejected < len(rows):
        raise typer.Exit(1)


@command(app, "appeal", '0197… --note "another amount came"', modes="all")
def appeal(deal_ids: ids.DealIds, *, note: Note = "") -> None:
    """Keep the deals open until an operator resolves them. Exit code 1 when one of them was not moved."""
    several.each(
        deal_ids,
        lambda id: connection.desk().OpenAppeal(pb.OpenAppealRequest(deal_id=id, note=note)).deal,
        lambda deal: (
            f"In appeal: {money_text(deal.amount_fiat, deal.currency_code)} wait for a decision "
            "without a limit of time."
        ),
        RESOLVE,
    )


@command(app, "resolve", "0197… --received 90.00", pb.ResolveAppealRequest, ids.one("deal"), modes="all")
def resolve(
    request: pb.ResolveAppealRequest,
    *,
    paid: Annotated[bool, typer.Option("--paid", help="The customer paid the requested amount.")] = False,
    received: Annotated[
        str | None,
        typer.Option(
            metavar="A", help="The customer paid less: the amount that came, by the bank statement."
        ),
    ] = None,
    amount: Annotated[
        str | None,
        typer.Option(metavar="A", help="The customer paid less: the part of the order that counts as paid."),
    ] = None,
    rejected: Annotated[bool, typer.Option("--reject", help="The money did not come.")] = False,
    note: Note = "",
) -> None:
    """End an appeal: paid, paid less, or not paid.

    An amount that came counts as the part of the order that it pays for: without the customer's part of the commission,
    rounded down. Another person approves it, and its request has both figures.
    """
    if sum((paid, received is not None, amount is not None, rejected)) != 1:
        raise typer.BadParameter("give exactly one of --paid, --received A, --amount A, --reject")
    request.note = note
    if received is not None:
        request.received_amount = received
    elif amount is not None:
        request.adjusted_amount = amount
    elif paid:
        request.paid = True
    else:
        request.rejected = True
    deal = pending.reporting_rejected(
        *("invoices", f"deal:{request.deal_id}"), lambda: connection.desk().ResolveAppeal(request).deal
    )
    output.outcome(deal, deal_list.state_sentence(deal))


@command(app, "system", "off")
def system(word: Annotated[str, typer.Argument(metavar="on|off|show")]) -> None:
    """Switch new invoices and deals on or off (DEALS_SYSTEM_DISABLED); open ones continue."""
    if word not in {"on", "off", "show"}:
        raise typer.BadParameter("expected on, off or show")
    desk = connection.desk()
    state: pb.GetDealsSystemResponse | pb.SetDealsSystemResponse
    if word == "show":
        state = desk.GetDealsSystem(pb.GetDealsSystemRequest())
    else:
        state = desk.SetDealsSystem(pb.SetDealsSystemRequest(enabled=word == "on"))
    sentence = (
        "New invoices and deals are accepted." if state.enabled else "New invoices and deals are refused."
    )
    output.outcome(state, sentence)

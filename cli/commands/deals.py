"""`fiatgate deals …`: the operator's desk."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from cli import connection, deal_list, grouping, ids, output, paging, pending, rejecting, several
from cli.commands import cases, methods
from cli.deal_list import DealFilter, Listed
from cli.moments import Since, Until, age
from cli.output import Everything, Json
from console.words.deals import AWAITING_CONFIRMATION, AWAITING_PAYMENT, OVERDUE
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.clock import SystemClock

app = typer.Typer(help="The deal desk: confirm, reject, appeals, the switch.", no_args_is_help=True)
Note = Annotated[str, typer.Option(help="The reason, for the history.")]
Status = Annotated[str | None, typer.Option("--status", metavar="S", help="pending, appeal, completed, …")]
SubStatus = Annotated[
    str, typer.Option("--sub-status", metavar="S", help="awaiting_payment, awaiting_confirmation, …")
]
Overdue = Annotated[
    bool, typer.Option("--overdue", help="Only deals in appeal because no operator confirmed in time.")
]
Method = Annotated[str, typer.Option("--method", metavar="CODE", help="Only deals of this payment method.")]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="TIME", help="Only deals opened longer ago: 90s, 30m, 24h, 7d."),
]
RESOLVE: Final = "fiatgate deals resolve {id} --paid (or --received A, or --reject)"
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without a question.")]


@app.command("list", epilog="Example: fiatgate deals list --status pending")
def list_all(
    *,
    status: Status = None,
    sub_status: SubStatus = "",
    overdue: Overdue = False,
    merchant: ids.OfMerchant = "",
    method: Method = "",
    reference: Annotated[
        str, typer.Option(metavar="REF", help="Only the deal with this payment reference.")
    ] = "",
    sender: Annotated[
        str, typer.Option(metavar="NAME", help="Only deals whose sender's name has these words.")
    ] = "",
    account: Annotated[
        str, typer.Option(metavar="A", help="Only deals on this account, however it is spaced.")
    ] = "",
    amount: Annotated[str, typer.Option(metavar="N", help="Only deals of this amount.")] = "",
    order: Annotated[
        str, typer.Option(metavar="ID", help="Only the deals of this order of a merchant.")
    ] = "",
    customer: Annotated[str, typer.Option(metavar="ID", help="Only deals of this customer.")] = "",
    queue: Annotated[
        bool, typer.Option("--queue", help="Deals marked paid that wait for you, the most urgent first.")
    ] = False,
    since: Since = None,
    until: Until = None,
    older_than: OlderThan = None,
    after: Annotated[str, ids.after("deal")] = "",
    limit: paging.Limit = paging.ROWS,
    as_json: Json = False,
) -> None:
    """List deals with their account, reference, sender and order, newest first."""
    if queue and (status or sub_status or overdue):
        raise typer.BadParameter("give either --queue or a state", param_hint="--queue")
    wanted = _wanted(
        status,
        sub_status,
        overdue=overdue,
        merchant=merchant,
        method=method,
        older_than=older_than,
        since=since,
        until=until,
        reference=reference,
        sender=sender,
    )
    wanted = replace(wanted, account=account, amount_from=amount, amount_to=amount, marked_paid=queue)
    wanted = replace(wanted, external_id=order, customer_id=customer)
    found = deal_list.found(wanted, paging.asked(limit), after_deal_id=after)
    page = paging.page(found.deals, limit)
    if not as_json:
        more = paging.is_cut(found.deals, limit)
        deals = [listed.deal for listed in page]
        output.overview(deal_list.summary(deals, more=more and not queue), *_next_of_list(deals))
    deal_list.print_rows(page, as_json=as_json)
    if paging.is_cut(found.deals, limit):
        paging.print_more(page[-1].deal.deal_id)
    elif found.reached_deal_id:
        output.note(
            f"Searched back to {found.reached_at:%Y-%m-%d %H:%M} UTC. Give --since and --until for less."
        )
        paging.print_more(found.reached_deal_id)


def _next_of_list(deals: Sequence[pb.Deal]) -> list[str]:
    statuses = {deal.status for deal in deals}
    commands = ["fiatgate deals show ID"]
    if pb.DEAL_STATUS_PENDING in statuses:
        commands.append("fiatgate deals confirm ID …")
    if pb.DEAL_STATUS_APPEAL in statuses:
        commands.append(RESOLVE.format(id="ID"))
    return commands


def _wanted(
    status: str | None,
    sub_status: str,
    *,
    overdue: bool,
    merchant: str,
    method: str,
    older_than: str | None,
    since: datetime | None = None,
    until: datetime | None = None,
    reference: str = "",
    sender: str = "",
) -> DealFilter:
    if overdue and sub_status not in ("", OVERDUE):
        raise typer.BadParameter("give either --overdue or --sub-status", param_hint="--sub-status")
    if older_than is not None and until is not None:
        raise typer.BadParameter("give either --until or --older-than", param_hint="--older-than")
    methods.require_known(method)
    try:
        opened_before = until if older_than is None else SystemClock().now() - age(older_than)
    except (ValueError, OverflowError) as fault:
        raise typer.BadParameter(str(fault), param_hint="--older-than") from None
    return DealFilter(
        status=output.enum_number(pb.DealStatus.DESCRIPTOR, status),
        sub_status=OVERDUE if overdue else sub_status,
        merchant_id=merchant,
        method_code=method,
        reference=reference,
        sender_name=sender,
        created_from=since,
        created_before=opened_before,
    )


@app.command(
    "show",
    epilog="Example: fiatgate deals show 0197… --save-picture receipt.jpg",
    context_settings=cases.EARLIER_NAMES,
)
def show(
    deal_id: ids.DealId,
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
        return
    output.overview(deal_list.state_sentence(answer.deal), *_next_steps(answer.deal))
    request = pb.GetInvoiceRequest(merchant_id=answer.deal.merchant_id, invoice_ref=answer.deal.invoice_id)
    grouping.print_deal(whole, output.plain(connection.invoices().GetInvoice(request).invoice))


def _next_steps(deal: pb.Deal) -> list[str]:
    id = output.short(deal.deal_id)
    if deal.status == pb.DEAL_STATUS_APPEAL:
        return [RESOLVE.format(id=id)]
    if deal.sub_status == AWAITING_CONFIRMATION:
        return [f"fiatgate deals confirm {id}, or fiatgate deals reject {id}"]
    return []


@app.command("confirm", epilog="Example: fiatgate deals confirm 0197… 0198…")
def confirm(
    deal_ids: ids.DealIds, *, yes: Yes = False, everything: Everything = False, as_json: Json = False
) -> None:
    """Confirm that the money came: the invoice succeeds, the merchant is credited.

    A deal that the customer has not marked paid is shown first, and confirmed when you agree. Exit code 1 when one of
    them was not confirmed.
    """
    if not yes:
        _require_marked(deal_list.named(deal_ids), as_json=as_json)
    several.each(
        deal_ids,
        lambda id: connection.desk().ConfirmDeal(pb.ConfirmDealRequest(deal_id=id)).deal,
        lambda deal: (
            f"Confirmed: {deal.amount_fiat} {deal.currency_code} came, {deal.merchant_usdt} USDT are credited."
        ),
        everything=everything,
        as_json=as_json,
    )


def _require_marked(deals: Sequence[Listed], *, as_json: bool) -> None:
    """Ends the command unless the customers have marked all deals paid, or the operator agrees."""
    unmarked = [listed for listed in deals if listed.deal.sub_status == AWAITING_PAYMENT]
    if not unmarked:
        return
    the_deal = "The deal is" if len(deals) == 1 else f"{len(unmarked)} of {len(deals)} deals are"
    if as_json or not sys.stdin.isatty():
        message = (
            f"{the_deal} not marked paid by the customer. Nothing was confirmed. If the money came: --yes"
        )
        unmarked_ids = ", ".join(listed.deal.deal_id for listed in unmarked)
        output.refusal("NOT_MARKED_PAID", message, {"deal_ids": unmarked_ids})
        raise typer.Exit(1)
    deal_list.print_rows(unmarked, as_json=False)
    these = "it" if len(deals) == 1 else f"all {len(deals)}"
    typer.confirm(
        f"{the_deal} not marked paid by the customer. Confirm {these} all the same?", abort=True, err=True
    )


@app.command("reject", epilog="Example: fiatgate deals reject --overdue --method upi --older-than 24h")
def reject(
    deal_ids: ids.SomeDealIds = None,
    *,
    status: Annotated[str | None, typer.Option("--status", metavar="S", help="pending or appeal.")] = None,
    sub_status: SubStatus = "",
    overdue: Overdue = False,
    merchant: ids.OfMerchant = "",
    method: Method = "",
    older_than: OlderThan = None,
    limit: Annotated[
        int, typer.Option(min=1, max=rejecting.MOST, help="Largest number of deals to reject.")
    ] = 100,
    yes: Yes = False,
    note: Note = "",
    everything: Everything = False,
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
    if wanted.status not in (pb.DEAL_STATUS_UNSPECIFIED, *deal_list.OPEN):
        raise typer.BadParameter("only open deals can be rejected: pending or appeal", param_hint="--status")
    if deal_ids and len(deal_ids) == 1:
        (listed,) = deal_list.named(deal_ids)
        if listed.deal.status == pb.DEAL_STATUS_APPEAL:
            _confirm([listed], limit, yes=yes, as_json=as_json)
        with pending.reporting_rejected("invoices", f"deal:{listed.deal.deal_id}"):
            rejected = rejecting.reject(listed.deal, note=note)
        output.outcome(rejected, "Rejected: the invoice has failed.", everything=everything, as_json=as_json)
        return
    if deal_ids and len(deal_ids) > limit:
        raise typer.BadParameter(f"at most {limit} deals at once, or --limit", param_hint="ID")
    _require_yes(yes=yes, as_json=as_json)
    deals = deal_list.named(deal_ids) if deal_ids else deal_list.found_open(wanted, limit)
    _confirm(deals, limit, yes=yes, as_json=as_json)
    _report(_reject_each([listed.deal for listed in deals], note=note, quiet=as_json), as_json=as_json)


def _confirm(deals: Sequence[Listed], limit: int, *, yes: bool, as_json: bool) -> None:
    """Shows the deals, and ends the command unless the operator agrees."""
    _require_yes(yes=yes, as_json=as_json)
    if as_json:
        return
    deal_list.print_rows(deals, as_json=False)
    if len(deals) == limit > 1:
        output.note(f"[dim]The oldest {limit}; there may be more[/dim]")
    if deals and not yes:
        typer.confirm(_question([listed.deal for listed in deals]), abort=True, err=True)


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
def appeal(
    deal_ids: ids.DealIds, *, note: Note = "", everything: Everything = False, as_json: Json = False
) -> None:
    """Keep the deals open until an operator resolves them. Exit code 1 when one of them was not moved."""
    several.each(
        deal_ids,
        lambda id: connection.desk().OpenAppeal(pb.OpenAppealRequest(deal_id=id, note=note)).deal,
        lambda deal: (
            f"In appeal: {deal.amount_fiat} {deal.currency_code} wait for a decision without a limit of time."
        ),
        RESOLVE,
        everything=everything,
        as_json=as_json,
    )


@app.command("resolve", epilog="Example: fiatgate deals resolve 0197… --received 90.00")
def resolve(
    deal_id: ids.DealId,
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
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """End an appeal: paid, paid less, or not paid.

    An amount that came counts as the part of the order that it pays for: without the customer's part of the commission,
    rounded down. Another person approves it, and its request has both figures.
    """
    if sum((paid, received is not None, amount is not None, rejected)) != 1:
        raise typer.BadParameter("give exactly one of --paid, --received A, --amount A, --reject")
    request = pb.ResolveAppealRequest(deal_id=deal_id, note=note)
    if received is not None:
        request.received_amount = received
    elif amount is not None:
        request.adjusted_amount = amount
    elif paid:
        request.paid = True
    else:
        request.rejected = True
    with pending.reporting_rejected("invoices", f"deal:{deal_id}"):
        deal = connection.desk().ResolveAppeal(request).deal
    output.outcome(deal, deal_list.state_sentence(deal), everything=everything, as_json=as_json)


@app.command("system", epilog="Example: fiatgate deals system off")
def system(word: Annotated[str, typer.Argument(metavar="on|off|show")], *, as_json: Json = False) -> None:
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
    output.outcome(state, sentence, everything=False, as_json=as_json)

"""`fiatgate invoices …`"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from cli import connection, csv_file, ids, names, output, paging, several, stories
from cli.csv_file import Csv
from cli.moments import Since, Until
from cli.output import Everything, Json
from fiatgate.find.v1 import find_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.proto import datetime_from, timestamp_from
from kit.rpc.errors import not_found
from kit.rpc.values import LIST_MOST_ROWS

app = typer.Typer(help="Invoices: list, show, cancel.", no_args_is_help=True)
COLUMNS = {
    "invoice_id": "invoice",
    "status": "status",
    "age": "age",
    "asked": "amount",
    "merchant": "merchant",
    "external_id": "order",
    "customer_id": "customer",
}
STACKS = (("invoice_id", "status"), ("age",), ("asked",), ("merchant",), ("external_id", "customer_id"))
CSV_COLUMNS = (
    *(
        "invoice_id",
        "created_at",
        "finished_at",
        "status",
        "amount",
        "currency_code",
        "merchant_id",
        "merchant",
    ),
    *(
        "external_id",
        "customer_id",
        "purpose",
        "deal_id",
        "deal_status",
        "deal_sub_status",
        "payment_method_code",
    ),
    *("amount_fiat", "conversion_rate", "merchant_usdt", "reference", "sender_name"),
)


@app.command("list", epilog="Example: fiatgate invoices list --since 24h --status success --csv")
def list_all(
    *,
    since: Since = None,
    until: Until = None,
    amount: Annotated[str, typer.Option(metavar="A", help="Only invoices of this requested amount.")] = "",
    amount_from: Annotated[
        str, typer.Option(metavar="A", help="Only of this requested amount or more.")
    ] = "",
    amount_to: Annotated[str, typer.Option(metavar="A", help="Only of this requested amount or less.")] = "",
    currency: Annotated[str, typer.Option(metavar="CODE", help="Only invoices in this currency.")] = "",
    method: Annotated[
        str, typer.Option(metavar="CODE", help="Only invoices whose newest deal has this method.")
    ] = "",
    order: Annotated[str, typer.Option(metavar="TEXT", help="Only invoices of this order.")] = "",
    customer: Annotated[str, typer.Option(metavar="TEXT", help="Only invoices of this customer.")] = "",
    status: Annotated[
        str | None, typer.Option(metavar="S", help="pending, success, fail, expired, canceled.")
    ] = None,
    merchant: ids.OfMerchant = "",
    after: Annotated[str, ids.after("invoice")] = "",
    limit: paging.Limit = paging.ROWS,
    as_csv: Csv = False,
    as_json: Json = False,
) -> None:
    """List the invoices of all merchants, newest first. CSV has all of them, whatever the limit."""
    request = pb.ListAllInvoicesRequest(
        merchant_id=merchant,
        external_id=order,
        customer_id=customer,
        amount=amount,
        amount_from=amount_from,
        amount_to=amount_to,
        currency_code=currency,
        payment_method_code=method,
        created_from=timestamp_from(since),
        created_before=timestamp_from(until),
        after_invoice_id=after,
    )
    request.status = output.enum_number(pb.InvoiceStatus.DESCRIPTOR, status)  # type: ignore[assignment]  # see deals
    if as_csv:
        csv_file.write(_csv_rows(request), CSV_COLUMNS)
        return
    request.limit = paging.asked(limit)
    answer = connection.desk().ListAllInvoices(request)
    paging.print_page(
        answer.invoices, limit, table=_print_page, last_id=lambda last: last.invoice_id, as_json=as_json
    )
    if answer.reached_invoice_id:
        reached = datetime_from(answer.reached_at)
        output.note(
            f"Searched back to {reached:%Y-%m-%d %H:%M} UTC. Give --merchant, --order, --customer or --since for less."
        )
        paging.print_more(answer.reached_invoice_id)


def _csv_rows(request: pb.ListAllInvoicesRequest) -> Iterator[dict[str, Any]]:
    """Yields a row for each invoice, page by page: the first lines are written before the last are read."""
    request.limit = LIST_MOST_ROWS
    while True:
        answer = connection.desk().ListAllInvoices(request)
        page = answer.invoices
        merchants = names.of_merchants(invoice.merchant_id for invoice in page)
        for invoice in page:
            row = output.plain(invoice)
            deal = row["deal"] or {}
            of_deal = {"deal_status": deal.get("status"), "deal_sub_status": deal.get("sub_status")}
            yield deal | row | of_deal | {"merchant": merchants[invoice.merchant_id]}
        if len(page) < LIST_MOST_ROWS and not answer.reached_invoice_id:
            return
        request.after_invoice_id = answer.reached_invoice_id or page[-1].invoice_id


def _print_page(page: Sequence[pb.Invoice], *, more: bool) -> None:
    merchants = names.of_merchants(invoice.merchant_id for invoice in page)
    short_ids = output.shortened(invoice.invoice_id for invoice in page)
    rows = []
    for invoice in page:
        row = output.plain(invoice)
        rows.append(
            row
            | {
                "invoice_id": short_ids[invoice.invoice_id],
                "age": output.age(row["created_at"]),
                "asked": _amount(invoice),
                "merchant": merchants[invoice.merchant_id],
            }
        )
    output.overview(output.counted("invoice", page, more=more), "fiatgate invoices show ID")
    output.rows(rows, COLUMNS, as_json=False, empty="No such invoices", stacks=STACKS)


def _amount(invoice: pb.Invoice) -> str:
    """Returns the requested amount, and the part of it that was paid if it was adjusted."""
    paid = f"{invoice.deal.adjusted_amount} of " if invoice.deal.HasField("adjusted_amount") else ""
    return f"{paid}{invoice.amount} {invoice.currency_code}"


@app.command("show", epilog="Example: fiatgate invoices show order-17 --merchant 0197…")
def show(
    ref: Annotated[
        str,
        typer.Argument(metavar="REF", help="The invoice's id, its first characters, or the order's number."),
    ],
    *,
    merchant: Annotated[
        str, typer.Option(metavar="ID", parser=ids.parser_of("merchant"), help="The merchant of the order.")
    ] = "",
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Show an invoice with its deal, and its timeline: everything that the services know of it, oldest first.

    Exit code 1 when a service did not answer.
    """
    if merchant:
        request = pb.GetInvoiceRequest(merchant_id=merchant, invoice_ref=ref)
        invoice_id = connection.invoices().GetInvoice(request).invoice.invoice_id
    else:
        invoice_id = _id_of(ref)
    found = stories.of_invoice(invoice_id)
    invoice = found.invoice
    next_commands = []
    if invoice.HasField("deal"):
        next_commands.append(f"fiatgate deals show {output.short(invoice.deal.deal_id)}")
    if invoice.finished_at.ToSeconds():
        next_commands.append(f"fiatgate webhooks list {output.short(invoice.invoice_id)}")
    if as_json:
        output.print_json(output.plain(invoice) | {"timeline": stories.as_json(found.moments)})
    else:
        output.outcome(invoice, _state(invoice), *next_commands, everything=everything, as_json=False)
        output.console.print()
        if not everything:
            output.facts(
                invoice,
                ("invoice_id", "merchant_id", "external_id", "customer_id", "purpose", "created_at"),
            )
        stories.print_timeline(found.moments)
    for service in found.away:
        output.refusal("NOT_ANSWERED", f"{service} did not answer, so its part is missing here", {})
    if found.away:
        raise typer.Exit(1)


def _id_of(ref: str) -> str:
    """Returns the id of the only invoice with this id, beginning of an id, or order."""
    answer = connection.find("invoices").Find(find_pb2.FindRequest(text=ref, limit=ids.SHOWN_MOST))
    fitting = {
        each.id: None for each in answer.found if each.kind == "invoice" and each.field in ("id", "order")
    }
    if len(fitting) > 1:
        raise ids.Ambiguous("invoice", ref, list(fitting), more=bool(answer.cut))
    for id in fitting:
        return id
    raise not_found("INVOICE_NOT_FOUND", f"No invoice has the id or the order {ref}")


def _state(invoice: pb.Invoice) -> str:
    """Returns the sentence above an invoice."""
    status = output.enum_word(pb.InvoiceStatus.DESCRIPTOR, invoice.status)
    sentence = f"{invoice.amount} {invoice.currency_code}, {status}"
    if not invoice.HasField("deal"):
        return f"{sentence}; no payment method was chosen."
    deal = invoice.deal
    state = deal.sub_status.replace("_", " ")
    return (
        f"{sentence}; deal: {deal.amount_fiat} {deal.currency_code} by {deal.payment_method_name}, {state}."
    )


@app.command("cancel", epilog="Example: fiatgate invoices cancel 0197…")
def cancel(invoice_ids: ids.InvoiceIds, *, everything: Everything = False, as_json: Json = False) -> None:
    """Cancel invoices that are not marked paid. Exit code 1 when one of them was not canceled."""
    several.each(
        invoice_ids,
        lambda id: connection.invoices().CancelInvoice(pb.CancelInvoiceRequest(invoice_id=id)).invoice,
        lambda invoice: f"Canceled: {invoice.amount} {invoice.currency_code}, order {invoice.external_id}.",
        everything=everything,
        as_json=as_json,
    )

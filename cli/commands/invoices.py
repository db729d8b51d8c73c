"""`fiatgate invoices …`"""

from typing import Annotated, Final

import typer

from cli import connection, ids, listing, output, several, stories
from cli.command import command, group, option, period
from cli.listing import Row, Table
from console.words.states import words_of
from fiatgate.find.v1 import find_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.money import amount_text, money_text
from kit.rpc.errors import not_found

app = group("invoices", "Invoices: list, show, cancel.")
FACTS: Final = ("invoice_id", "merchant_id", "external_id", "customer_id", "purpose", "created_at")
TABLE: Final = Table(
    columns="invoice_id: invoice | status | age | asked: amount | merchant | external_id: order"
    " | customer_id: customer",
    stacks="invoice_id status | age | asked | merchant | external_id customer_id",
    empty="No such invoices",
    noun="invoice",
    ids=("invoice_id",),
    csv="invoice_id | created_at | finished_at | status | amount | currency_code | merchant_id | merchant"
    " | external_id | customer_id | purpose | deal.deal_id: deal_id | deal.status: deal_status"
    " | deal.sub_status: deal_sub_status | deal.payment_method_code: payment_method_code"
    " | deal.amount_fiat: amount_fiat | deal.conversion_rate: conversion_rate"
    " | deal.merchant_usdt: merchant_usdt | deal.reference: reference | deal.sender_name: sender_name",
)


@command(
    *(app, "list", "--since 24h --status success --csv", pb.ListAllInvoicesRequest),
    *period(),
    option("amount", "A", "Only invoices of this requested amount."),
    option("amount_from", "A", "Only of this requested amount or more."),
    option("amount_to", "A", "Only of this requested amount or less."),
    option("currency_code", "CODE", "Only invoices in this currency.", "--currency"),
    option("payment_method_code", "CODE", "Only invoices whose newest deal has this method.", "--method"),
    option("external_id", "TEXT", "Only invoices of this order.", "--order"),
    option("customer_id", "TEXT", "Only invoices of this customer.", "--customer"),
    option("status", "S", "pending, success (paid), fail, expired, canceled."),
    ids.of_merchant(),
    ids.after("invoice"),
    modes="csv",
)
def list_all(request: pb.ListAllInvoicesRequest, *, limit: listing.Limit = listing.ROWS) -> None:
    """List the invoices of all merchants, newest first. CSV has all of them, whatever the limit."""
    call = connection.desk().ListAllInvoices
    listing.show_page(
        *(TABLE, request, call, "invoices", "invoice_id", "fiatgate invoices show ID"),
        limit=limit,
        for_people=lambda row: {"asked": _amount(row), "status": words_of(row["status"])},
        narrower="--merchant, --order, --customer or --since",
    )


def _amount(row: Row) -> str:
    """Returns the requested amount, and the part of it that was paid if it was adjusted."""
    currency = row["currency_code"]
    paid = f"{amount_text(row['final_amount'], currency)} of " if row["is_adjusted"] else ""
    return paid + money_text(row["amount"], currency)


@command(app, "show", "order-17 --merchant 0197…", modes="all")
def show(
    ref: Annotated[
        str,
        typer.Argument(metavar="REF", help="The invoice's id, its first characters, or the order's number."),
    ],
    *,
    merchant: Annotated[
        str, typer.Option(metavar="ID", parser=ids.parser_of("merchant"), help="The merchant of the order.")
    ] = "",
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
    if output.mode.json:
        output.print_json(output.plain(invoice) | {"timeline": stories.as_json(found.moments)})
    else:
        output.outcome(invoice, _state(invoice), *_next_commands(invoice))
        output.console.print()
        if not output.mode.everything:
            output.facts(invoice, FACTS)
        stories.print_timeline(found.moments)
    output.end_without(found.away, "NOT_ANSWERED", "its part is")


def _next_commands(invoice: pb.Invoice) -> list[str]:
    deal = f"fiatgate deals show {output.short(invoice.deal.deal_id)}"
    webhooks = f"fiatgate webhooks list {output.short(invoice.invoice_id)}"
    return [deal] * invoice.HasField("deal") + [webhooks] * bool(invoice.finished_at.ToSeconds())


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
    sentence = f"{money_text(invoice.amount, invoice.currency_code)}, {words_of(status)}"
    if not invoice.HasField("deal"):
        return f"{sentence}; no payment method was chosen."
    deal = invoice.deal
    state = words_of(deal.sub_status)
    if invoice.is_adjusted:
        return (
            f"{sentence}; part payment by {deal.payment_method_name}: "
            f"{amount_text(deal.amount_fiat, deal.currency_code)} of "
            f"{money_text(deal.amount_to_send, deal.currency_code)} came, "
            f"{amount_text(invoice.final_amount, invoice.currency_code)} of the order count as paid."
        )
    amount = money_text(deal.amount_fiat, deal.currency_code)
    return f"{sentence}; deal: {amount} by {deal.payment_method_name}, {state}."


@command(app, "cancel", "0197…", modes="all")
def cancel(invoice_ids: ids.InvoiceIds) -> None:
    """Cancel invoices that are not marked paid. Exit code 1 when one of them was not canceled."""
    several.each(
        invoice_ids,
        lambda id: connection.invoices().CancelInvoice(pb.CancelInvoiceRequest(invoice_id=id)).invoice,
        lambda invoice: (
            f"Canceled: {money_text(invoice.amount, invoice.currency_code)}, order {invoice.external_id}."
        ),
    )

"""`fiatgate checkout …`: the customer's steps on the page, for scripts."""

from typing import Annotated

import typer

from cli import connection, ids, output
from cli.output import Everything, Json
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.codes import in_groups

app = typer.Typer(help="The customer's steps on the page, for scripts.", no_args_is_help=True)


@app.command("select", epilog="Example: fiatgate checkout select 0197… sepa")
def select(
    invoice_id: ids.InvoiceId,
    method: Annotated[str, typer.Argument(metavar="METHOD")],
    *,
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Choose a payment method, which opens a deal."""
    request = pb.SelectPaymentMethodRequest(invoice_id=invoice_id, method_code=method)
    answer = connection.checkout().SelectPaymentMethod(request)
    chosen = output.plain(answer.invoice) | {"requisite": output.plain(answer.requisite)}
    deal = answer.invoice.deal
    reference = f", reference {in_groups(deal.reference)}" if deal.takes_reference else ""
    output.outcome(
        chosen,
        f"The customer is to send {deal.amount_fiat} {deal.currency_code} to {answer.requisite.account}{reference}.",
        f"fiatgate checkout mark-paid {output.short(invoice_id)}",
        everything=everything,
        as_json=as_json,
    )


@app.command("mark-paid", epilog="Example: fiatgate checkout mark-paid 0197…")
def mark_paid(
    invoice_id: ids.InvoiceId,
    *,
    sender: Annotated[
        str, typer.Option(metavar="NAME", help="The name on the account that was paid from.")
    ] = "",
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Mark the deal as paid."""
    request = pb.MarkPaidRequest(invoice_id=invoice_id, sender_name=sender)
    invoice = connection.checkout().MarkPaid(request).invoice
    output.outcome(
        invoice,
        f"Marked paid: {invoice.deal.amount_fiat} {invoice.currency_code}. An operator confirms it.",
        f"fiatgate deals confirm {output.short(invoice.deal.deal_id)}",
        everything=everything,
        as_json=as_json,
    )


@app.command("cancel", epilog="Example: fiatgate checkout cancel 0197…")
def cancel(invoice_id: ids.InvoiceId, *, everything: Everything = False, as_json: Json = False) -> None:
    """Cancel an invoice that is not marked paid."""
    answer = connection.checkout().CancelCheckout(pb.CancelCheckoutRequest(invoice_id=invoice_id))
    output.outcome(answer.invoice, "Canceled by the customer.", everything=everything, as_json=as_json)


@app.command("appeal", epilog='Example: fiatgate checkout appeal 0197… --note "sent at noon"')
def appeal(
    invoice_id: ids.InvoiceId,
    *,
    note: Annotated[str, typer.Option(help="The customer's message.")] = "",
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Ask the operator to check a deal that is marked paid."""
    request = pb.OpenCustomerAppealRequest(invoice_id=invoice_id, note=note)
    invoice = connection.checkout().OpenCustomerAppeal(request).invoice
    output.outcome(
        invoice,
        "In appeal: an operator decides.",
        f"fiatgate deals show {output.short(invoice.deal.deal_id)}",
        everything=everything,
        as_json=as_json,
    )

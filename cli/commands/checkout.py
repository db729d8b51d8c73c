"""`fiatgate checkout …`: the customer's steps on the page, for scripts."""

from typing import Annotated

import typer

from cli import connection, output
from cli.output import Json
from fiatgate.invoices.v1 import invoices_pb2 as pb

NAME = "checkout"
app = typer.Typer(help="The customer's steps on the page, for scripts.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(metavar="INVOICE_ID")]


@app.command("select", epilog="Example: fiatgate checkout select 0197… sepa")
def select(
    invoice_id: Id, method: Annotated[str, typer.Argument(metavar="METHOD")], *, as_json: Json = False
) -> None:
    """Choose a payment method, which opens a deal."""
    request = pb.SelectPaymentMethodRequest(invoice_id=invoice_id, method_code=method)
    answer = connection.checkout().SelectPaymentMethod(request)
    chosen = output.plain(answer.invoice) | {"requisite": output.plain(answer.requisite)}
    output.record(chosen, as_json=as_json)


@app.command("mark-paid", epilog="Example: fiatgate checkout mark-paid 0197…")
def mark_paid(invoice_id: Id, *, as_json: Json = False) -> None:
    """Mark the deal as paid."""
    answer = connection.checkout().MarkPaid(pb.MarkPaidRequest(invoice_id=invoice_id))
    output.record(answer.invoice, as_json=as_json)


@app.command("cancel", epilog="Example: fiatgate checkout cancel 0197…")
def cancel(invoice_id: Id, *, as_json: Json = False) -> None:
    """Cancel an invoice that is not marked paid."""
    answer = connection.checkout().CancelCheckout(pb.CancelCheckoutRequest(invoice_id=invoice_id))
    output.record(answer.invoice, as_json=as_json)


@app.command("appeal", epilog='Example: fiatgate checkout appeal 0197… --note "sent at noon"')
def appeal(
    invoice_id: Id,
    *,
    note: Annotated[str, typer.Option(help="The customer's message.")] = "",
    as_json: Json = False,
) -> None:
    """Ask the operator to check a deal that is marked paid."""
    request = pb.OpenCustomerAppealRequest(invoice_id=invoice_id, note=note)
    output.record(connection.checkout().OpenCustomerAppeal(request).invoice, as_json=as_json)

"""`fiatgate invoices …`"""

from typing import Annotated

import typer

from cli import connection, output
from cli.output import Json
from fiatgate.invoices.v1 import invoices_pb2 as pb

NAME = "invoices"
app = typer.Typer(help="Invoices: show, cancel.", no_args_is_help=True)


@app.command("show", epilog="Example: fiatgate invoices show order-17 --merchant 0197…")
def show(
    ref: Annotated[str, typer.Argument(metavar="REF", help="The invoice's UUID or external id.")],
    *,
    merchant: Annotated[str, typer.Option(metavar="ID", help="The merchant's UUID.")],
    as_json: Json = False,
) -> None:
    """Show an invoice with its deal."""
    request = pb.GetInvoiceRequest(merchant_id=merchant, invoice_ref=ref)
    output.record(connection.invoices().GetInvoice(request).invoice, as_json=as_json)


@app.command("cancel", epilog="Example: fiatgate invoices cancel 0197…")
def cancel(
    invoice_id: Annotated[str, typer.Argument(metavar="ID", help="The invoice's UUID.")],
    *,
    as_json: Json = False,
) -> None:
    """Cancel an invoice that is not marked paid."""
    request = pb.CancelInvoiceRequest(invoice_id=invoice_id)
    output.record(connection.invoices().CancelInvoice(request).invoice, as_json=as_json)

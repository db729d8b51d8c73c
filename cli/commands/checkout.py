"""`fiatgate checkout …`: the customer's steps on the page, for scripts."""

from cli import connection, ids, output
from cli.command import argument, command, group, option
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.codes import in_groups
from kit.base.money import money_text

app = group("checkout", "The customer's steps on the page, for scripts.")
INVOICE = ids.one("invoice", "INVOICE_ID")


@command(
    *(app, "select", "0197… sepa", pb.SelectPaymentMethodRequest),
    INVOICE,
    argument("method_code", "METHOD"),
    modes="all",
)
def select(request: pb.SelectPaymentMethodRequest) -> None:
    """Choose a payment method, which opens a deal."""
    answer = connection.checkout().SelectPaymentMethod(request)
    deal = answer.invoice.deal
    reference = f", reference {in_groups(deal.reference)}" if deal.takes_reference else ""
    output.outcome(
        output.plain(answer.invoice) | {"requisite": output.plain(answer.requisite)},
        f"The customer is to send {money_text(deal.amount_fiat, deal.currency_code)} to "
        f"{answer.requisite.account}{reference}.",
        f"fiatgate checkout mark-paid {output.short(request.invoice_id)}",
    )


@command(
    *(app, "mark-paid", "0197…", pb.MarkPaidRequest),
    INVOICE,
    option("sender_name", "NAME", "The name on the account that was paid from.", "--sender"),
    modes="all",
)
def mark_paid(request: pb.MarkPaidRequest) -> None:
    """Mark the deal as paid."""
    invoice = connection.checkout().MarkPaid(request).invoice
    output.outcome(
        invoice,
        f"Marked paid: {money_text(invoice.deal.amount_fiat, invoice.currency_code)}. An operator confirms it.",
        f"fiatgate deals confirm {output.short(invoice.deal.deal_id)}",
    )


@command(app, "cancel", "0197…", pb.CancelCheckoutRequest, INVOICE, modes="all")
def cancel(request: pb.CancelCheckoutRequest) -> None:
    """Cancel an invoice that is not marked paid."""
    output.outcome(connection.checkout().CancelCheckout(request).invoice, "Canceled by the customer.")


@command(
    *(app, "appeal", '0197… --note "sent at noon"', pb.OpenCustomerAppealRequest),
    INVOICE,
    option("note", None, "The customer's message."),
    modes="all",
)
def appeal(request: pb.OpenCustomerAppealRequest) -> None:
    """Ask the operator to check a deal that is marked paid."""
    invoice = connection.checkout().OpenCustomerAppeal(request).invoice
    show = f"fiatgate deals show {output.short(invoice.deal.deal_id)}"
    output.outcome(invoice, "In appeal: an operator decides.", show)

"""`fiatgate refunds …`"""

from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from cli import connection, ids, listing, output, several
from cli.command import command, group, option
from cli.listing import Table
from fiatgate.withdrawals.v1 import refunds_pb2 as pb
from kit.base.ids import new_id
from kit.base.money import amount_text, money_text

app = group("refunds", "Refunds to customers: request, account, send, complete, fail, cancel.")
TABLE: Final = Table(
    columns="refund_id: refund | status | created_at: time | refund_amount: amount | currency_code: currency"
    " | amount: USDT | merchant | invoice_id: invoice | external_id | account.account: account | bank_reference",
    stacks="refund_id status | created_at | refund_amount currency_code | amount | merchant | account.account"
    " | bank_reference",
    empty="No such refunds",
    noun="refund",
    ids=("refund_id", "invoice_id"),
    csv="refund_id | status | origin | created_at | merchant_id | merchant | invoice_id | external_id | refund_amount"
    " | currency_code | amount | conversion_rate | account.kind | account.account | account.holder | account.bank"
    " | bank_reference | failure | reason | case_number | finished_at",
)
ONE: Final = ids.one("refund")
RefundIds = Annotated[list[str], ids.many("refund")]
ACCOUNT: Final = (
    option("kind", "KIND", "iban, card, phone, upi or free.", "--kind", default="free"),
    option("account", "A", "The customer's account.", "--account", default=""),
    option("holder", "NAME", "Its holder.", "--holder", default=""),
    option("bank", "NAME", "Its bank, where it needs one.", "--bank", default=""),
)


@command(
    *(app, "request", "--invoice 0197… --amount 12.00 --merchant 0197…", pb.RequestRefundRequest),
    option(
        "invoice_id", "ID", "The paid invoice.", "--invoice", required=True, parser=ids.parser_of("invoice")
    ),
    ids.of_merchant("Whose money it is; needed for money that was credited."),
    option("origin", "ORIGIN", "credited, late or surplus.", default="credited"),
    option("refund_amount", "A", "Fiat; without it all that may be refunded.", "--amount", default=""),
    option("external_id", "ID", "A repeated request with the same one makes nothing twice."),
    option("reason", "TEXT", "For people of both sides.", default=""),
    option("case_number", "N", "The case of late money.", "--case", default=0),
    modes="all",
)
def request_refund(request: pb.RequestRefundRequest) -> None:
    """Reserve the merchant's money for a refund. The customer gives the account on the payment page, or `account`."""
    request.external_id = request.external_id or f"cli-{new_id()}"
    made = connection.refunds().RequestRefund(request).refund
    id = output.short(made.refund_id)
    output.outcome(
        made, f"Requested: {_what(made)}.", f"fiatgate refunds account {id} --account … --holder …"
    )


@command(app, "account", "0197… --kind iban --account DE89… --holder Ann", pb.RefundAccount, *ACCOUNT)
def account(refund_id: Annotated[str, ids.many("refund", "ID")], request: pb.RefundAccount) -> None:
    """Give the account that the refund goes to."""
    call = pb.SetRefundAccountRequest(refund_id=refund_id, account=request)
    made = connection.refunds().SetRefundAccount(call).refund
    output.outcome(made, f"Ready: {_what(made)}.", f"fiatgate refunds send {output.short(made.refund_id)}")


@command(
    *(app, "list", "--status ready --oldest-first", pb.ListRefundsRequest),
    ids.of_merchant(),
    option(
        *("invoice_id", "ID", "Only those of this invoice.", "--invoice"),
        default="",
        parser=ids.parser_of("invoice"),
    ),
    option("external_id", "ID", "Only with this id of the merchant.", default=""),
    option("oldest_first", None, "In the order of time.", default=False),
    ids.after("refund"),
    modes="csv",
)
def list_all(
    request: pb.ListRefundsRequest,
    *,
    status: Annotated[
        str, typer.Option(metavar="S", help="waiting_for_account, ready, sent, succeeded, failed, canceled.")
    ] = "",
    limit: listing.Limit = listing.ROWS,
) -> None:
    """List refunds, newest first."""
    if status:
        statuses: Any = request.statuses
        statuses.append(output.enum_number(pb.RefundStatus.DESCRIPTOR, status))
    call = connection.refunds().ListRefunds
    listing.show_page(TABLE, request, call, "refunds", "refund_id", "fiatgate refunds show ID", limit=limit)


@command(app, "show", "0197…", pb.GetRefundRequest, ONE)
def show(request: pb.GetRefundRequest) -> None:
    """Show a refund with its whole account."""
    story = connection.refunds().GetRefund(request)
    output.record(output.plain(story.refund) | {"pending_approval_id": story.pending_approval_id or None})


@command(
    *(app, "send", "0197…", pb.SendRefundRequest),
    ONE,
    option("bank_reference", "TEXT", "The bank's reference, if it is known.", default=""),
    modes="all",
)
def send(request: pb.SendRefundRequest) -> None:
    """Mark it as being paid at the bank: from now on the merchant can't cancel it."""
    sent = connection.refunds().SendRefund(request).refund
    to = f"{sent.account.account}, {sent.account.holder}"
    output.outcome(
        sent,
        f"Being sent: pay {money_text(sent.refund_amount, sent.currency_code)} to {to}.",
        f"fiatgate refunds complete {output.short(sent.refund_id)} --bank-reference …",
    )


@command(
    *(app, "complete", "0197… --bank-reference BR-9", pb.CompleteRefundRequest),
    ONE,
    option("bank_reference", "TEXT", "The bank's reference, unless `send` had it.", default=""),
    modes="all",
)
def complete(request: pb.CompleteRefundRequest) -> None:
    """Mark it as paid."""
    done = connection.refunds().CompleteRefund(request).refund
    output.outcome(done, f"Refunded: {_what(done)}.")


@command(
    *(app, "fail", '0197… --failure "The bank refused the account"', pb.FailRefundRequest),
    ONE,
    option("failure", "TEXT", "Why, for the merchant and the customer.", required=True),
    modes="all",
)
def fail(request: pb.FailRefundRequest) -> None:
    """Mark it as failed: it holds nothing of the balance any more."""
    _released(connection.refunds().FailRefund(request).refund, "Failed")


@command(app, "cancel", "0197… 0198…", modes="all")
def cancel(refund_ids: RefundIds) -> None:
    """Cancel refunds that were not sent: the amounts are available again. Exit code 1 when one was not canceled."""
    call: Callable[[Any], Any] = connection.refunds().CancelRefund
    several.each(
        refund_ids,
        lambda id: call(pb.CancelRefundRequest(refund_id=id)).refund,
        lambda each: f"Canceled: {_what(each)}; it holds nothing of the balance any more.",
    )


def _released(refund: pb.Refund, word: str) -> None:
    output.outcome(refund, f"{word}: {_what(refund)}; it holds nothing of the balance any more.")


def _what(refund: pb.Refund) -> str:
    taken = f", which takes {amount_text(refund.amount)} USDT" if refund.amount != "0.000000" else ""
    return f"{money_text(refund.refund_amount, refund.currency_code)}{taken}"

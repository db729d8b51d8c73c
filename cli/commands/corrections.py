"""`fiatgate corrections …`"""

from decimal import Decimal
from typing import Final

from cli import connection, ids, listing, output
from cli.command import command, group, option, period
from cli.listing import Table
from console.words.corrections import beyond
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import corrections_pb2 as pb
from kit.base.ids import new_id
from kit.base.money import amount_text, money_text
from kit.rpc.errors import Refused

app = group(
    "corrections", "Corrections of merchants' money, and what merchants owe: make, check, list, debts."
)
KINDS: Final = "reversal, late_credit, surplus, manual_credit or manual_debit."
TABLE: Final = Table(
    columns="correction_id: correction | kind | created_at: time | amount: USDT | owed | received_amount: received"
    " | currency_code: currency | merchant | invoice_id: invoice | reason",
    stacks="correction_id kind | created_at | amount owed | received_amount | merchant | reason",
    empty="No such corrections",
    noun="correction",
    ids=("correction_id", "invoice_id"),
    csv="correction_id | kind | created_at | merchant_id | merchant | invoice_id | case_number | amount | owed"
    " | received_amount | currency_code | conversion_rate | reason | evidence",
)
DEBTS: Final = Table(columns="merchant_id | merchant | owed: USDT | since", empty="No merchant owes anything")
WHAT: Final = (
    option("kind", "KIND", KINDS, required=True),
    option(
        *("merchant_id", "MERCHANT", "Of a manual one.", "--merchant"),
        default="",
        parser=ids.parser_of("merchant"),
    ),
    option("invoice_id", "ID", "Of the others.", "--invoice", default="", parser=ids.parser_of("invoice")),
    option(
        "amount",
        "A",
        "USDT, of a manual one and a reversal; without it a reversal takes all back.",
        default="",
    ),
    option(
        "received_amount",
        "A",
        "Fiat that came in all, late or more than was asked.",
        "--received",
        default="",
    ),
    option("conversion_rate", "R", "Fiat per USDT, in place of the deal's.", "--rate", default=""),
    option("case_number", "N", "The case of late money.", "--case", default=0),
)


@command(
    *(app, "make", '--kind reversal --invoice 0197… --amount 50 --reason "Not paid" --evidence BR-77'),
    pb.MakeCorrectionRequest,
    *WHAT,
    option("reason", "TEXT", "Why, for both sides.", required=True),
    option("evidence", "TEXT", "What proves it, as the bank's reference.", default=""),
    option("request_key", "UUID", "A repeated call with the same key makes nothing twice."),
    modes="all",
)
def make(request: pb.MakeCorrectionRequest) -> None:
    """Take money of a merchant back, or credit it. A second person approves a debit, a correction by hand, one at
    another rate, and a large one.
    """
    request.request_key = request.request_key or str(new_id())
    _less_what_was_asked(request)
    try:
        made = connection.corrections().MakeCorrection(request).correction
    except Refused as refused:
        if refused.reason in {"DB_UNAVAILABLE", "INTERNAL_ERROR"}:  # it may have been made before the error
            output.note(
                f"It may have been made. To repeat it, not make two: --request-key {request.request_key}"
            )
        raise
    output.outcome(made, f"Made: {money_text(made.amount, 'USDT')}{_of(made)}.")


@command(app, "check", "--kind reversal --invoice 0197… --amount 50", pb.MakeCorrectionRequest, *WHAT)
def check(request: pb.MakeCorrectionRequest) -> None:
    """Show what a correction would do now."""
    _less_what_was_asked(request)
    output.record(connection.corrections().CheckCorrection(pb.CheckCorrectionRequest(correction=request)))


@command(
    *(app, "list", "--merchant 0197…", pb.ListCorrectionsRequest),
    ids.of_merchant(),
    option(
        *("invoice_id", "ID", "Only those of this invoice.", "--invoice"),
        default="",
        parser=ids.parser_of("invoice"),
    ),
    option("kind", "KIND", KINDS),
    *period(),
    ids.after("correction"),
    modes="csv",
)
def list_all(request: pb.ListCorrectionsRequest, *, limit: listing.Limit = listing.ROWS) -> None:
    """List corrections, newest first."""
    call = connection.corrections().ListCorrections
    listing.show_page(TABLE, request, call, "corrections", "correction_id", limit=limit)


@command(app, "debts", "", pb.ListDebtsRequest)
def debts(request: pb.ListDebtsRequest) -> None:
    """List the merchants that owe money, the largest debt first."""
    found = connection.corrections().ListDebts(request).debts
    DEBTS.show_all(found)


def _less_what_was_asked(request: pb.MakeCorrectionRequest) -> None:
    """Leaves of all that came the surplus. An invoice without a deal is for the service to refuse."""
    if request.kind != pb.CORRECTION_KIND_SURPLUS or not request.received_amount:
        return
    asked = invoices_pb2.ListAllInvoicesRequest(invoice_ids=[request.invoice_id], limit=1)
    for invoice in connection.desk().ListAllInvoices(asked).invoices:
        if invoice.HasField("deal"):
            request.received_amount = beyond(request.received_amount, invoice.deal)


def _of(made: pb.Correction) -> str:
    if made.received_amount:
        over = " that came beyond what was asked" if made.kind == pb.CORRECTION_KIND_SURPLUS else " that came"
        return f" for {money_text(made.received_amount, made.currency_code)}{over}"
    return (
        f", of which {amount_text(made.owed)} were not available and are owed" if Decimal(made.owed) else ""
    )

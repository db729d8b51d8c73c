"""`fiatgate corrections …`"""

from typing import Final

from cli import connection, ids, listing, output
from cli.command import command, group, option, period
from cli.listing import Table
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
    option("received_amount", "A", "Fiat that came late, or beyond the amount.", "--received", default=""),
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
    """Take money of a merchant back, or credit it. A second person approves it."""
    request.request_key = request.request_key or str(new_id())
    try:
        made = connection.corrections().MakeCorrection(request).correction
    except Refused as refused:
        if refused.reason in {"DB_UNAVAILABLE", "INTERNAL_ERROR"}:  # it may have been made before the error
            output.note(
                f"It may have been made. To repeat it, not make two: --request-key {request.request_key}"
            )
        raise
    output.outcome(made, f"Made: {money_text(made.amount, 'USDT')}{_owed(made.owed)}.")


@command(app, "check", "--kind reversal --invoice 0197… --amount 50", pb.MakeCorrectionRequest, *WHAT)
def check(request: pb.MakeCorrectionRequest) -> None:
    """Show what a correction would do now."""
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


def _owed(owed: str) -> str:
    return (
        f", of which {amount_text(owed)} were not available and are owed"
        if amount_text(owed) != "0.00"
        else ""
    )

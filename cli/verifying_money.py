"""The verification of corrections: compares those that withdrawals made with the deals of invoices."""

from decimal import ROUND_DOWN, Decimal, localcontext
from typing import Final

from cli import connection
from cli.verifying import CALL_SECONDS, Findings
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import corrections_pb2 as pb
from kit.base.money import USDT_PLACES
from kit.rpc.errors import Refused
from kit.rpc.values import LIST_MOST_ROWS

_OF_RECEIVED: Final = {
    pb.CORRECTION_KIND_LATE_CREDIT: frozenset(
        {
            invoices_pb2.INVOICE_STATUS_FAIL,
            invoices_pb2.INVOICE_STATUS_EXPIRED,
            invoices_pb2.INVOICE_STATUS_CANCELED,
        }
    ),
    pb.CORRECTION_KIND_SURPLUS: frozenset({invoices_pb2.INVOICE_STATUS_SUCCESS}),
}
"""The statuses that an invoice of such a correction may have."""


def check_corrections(findings: Findings) -> None:
    """Checks that each correction of an invoice is of its merchant, and that money which came late or beyond the amount
    is credited as the deal's terms say.
    """
    request = pb.ListCorrectionsRequest(limit=LIST_MOST_ROWS)
    while True:
        page = connection.corrections().ListCorrections(request, timeout=CALL_SECONDS).corrections
        for each in page:
            findings.advance(1)
            findings.count("corrections")
            if each.invoice_id:
                _check(findings, each)
        if len(page) < LIST_MOST_ROWS:
            return
        request.after_correction_id = page[-1].correction_id


def _check(findings: Findings, correction: pb.Correction) -> None:
    subject = f"correction {correction.correction_id}"
    asked = invoices_pb2.GetDealMoneyRequest(invoice_id=correction.invoice_id)
    try:
        money = connection.invoices().GetDealMoney(asked, timeout=CALL_SECONDS)
    except Refused as refused:
        if connection.is_away(refused):
            raise
        text = f"{subject}: invoice {correction.invoice_id} has no deal that proves it, {refused.reason}"
        findings.wrong("corrections", text)
        return
    if correction.merchant_id != money.merchant_id:
        text = f"{subject} is of merchant {correction.merchant_id}, its invoice of {money.merchant_id}"
        findings.wrong("corrections", text)
    statuses = _OF_RECEIVED.get(correction.kind)
    if statuses is None:
        return
    if money.invoice_status not in statuses:
        findings.wrong("corrections", f"{subject}: the status of its invoice allows no such correction")
    due = credit(
        Decimal(correction.received_amount),
        rate=Decimal(correction.conversion_rate),
        client_percent=Decimal(money.client_percent),
        merchant_percent=Decimal(money.merchant_percent),
        decimals=money.currency_decimals,
    )
    if Decimal(correction.amount) != due:
        text = f"{subject} credits {correction.amount} USDT, due are {due} for {correction.received_amount}"
        findings.wrong("corrections", f"{text} {correction.currency_code}")


def credit(
    received: Decimal, *, rate: Decimal, client_percent: Decimal, merchant_percent: Decimal, decimals: int
) -> Decimal:
    """Returns the credit in USDT for fiat that came, written apart from the code of invoices that computes it."""
    with localcontext(prec=60):
        order = (received / (1 + client_percent / 100)).quantize(Decimal(1).scaleb(-decimals), ROUND_DOWN)
        return (order * (1 - merchant_percent / 100) / rate).quantize(
            Decimal(1).scaleb(-USDT_PLACES), ROUND_DOWN
        )

"""The verification of corrections and refunds: compares those of withdrawals with the deals of invoices."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import ROUND_DOWN, ROUND_UP, Decimal, localcontext
from typing import Final

from cli import connection
from cli.verifying import CALL_SECONDS, Findings, every
from console.words.corrections import late_credit
from console.words.refunds import LIVE
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import corrections_pb2 as pb
from fiatgate.withdrawals.v1 import refunds_pb2
from kit.base.money import USDT_PLACES
from kit.rpc.errors import Refused

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
    for each in every(
        pb.ListCorrectionsRequest(), connection.corrections().ListCorrections, "corrections", "correction_id"
    ):
        findings.advance(1)
        if each.invoice_id:
            _check(findings, each)


def _check(findings: Findings, correction: pb.Correction) -> None:
    subject = f"correction {correction.correction_id}"
    money = _money_of(findings, "corrections", subject, correction)
    if money is None:
        return
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


def _money_of(
    findings: Findings, check: str, subject: str, of: pb.Correction | refunds_pb2.Refund
) -> invoices_pb2.GetDealMoneyResponse | None:
    """Returns the money of the invoice's deal; reports a thing without one, or of another merchant."""
    asked = invoices_pb2.GetDealMoneyRequest(invoice_id=of.invoice_id)
    try:
        money = connection.invoices().GetDealMoney(asked, timeout=CALL_SECONDS)
    except Refused as refused:
        if connection.is_away(refused):
            raise
        text = f"{subject}: invoice {of.invoice_id} has no deal that proves it, {refused.reason}"
        findings.wrong(check, text)
        return None
    if of.merchant_id != money.merchant_id:
        findings.wrong(
            check, f"{subject} is of merchant {of.merchant_id}, its invoice of {money.merchant_id}"
        )
    return money


def check_refunds(findings: Findings) -> None:
    """Checks that each refund is of its invoice's merchant, takes what its fiat is worth at the deal's locked rate, and
    that no invoice is refunded more than was paid and credited for it.
    """
    refunded: dict[str, Decimal] = defaultdict(Decimal)
    paid: dict[str, Decimal] = {}
    for each in every(
        refunds_pb2.ListRefundsRequest(), connection.refunds().ListRefunds, "refunds", "refund_id"
    ):
        findings.advance(1)
        subject = f"refund {each.refund_id}"
        money = _money_of(findings, "refunds", subject, each)
        if money is None or each.origin != refunds_pb2.REFUND_ORIGIN_CREDITED:
            continue
        request = pb.ListCorrectionsRequest(invoice_id=each.invoice_id)
        corrected = list(
            every(request, connection.corrections().ListCorrections, "corrections", "correction_id")
        )
        before = [one for one in corrected if one.received_amount and one.correction_id < each.refund_id]
        if Decimal(each.amount) not in _takes(Decimal(each.refund_amount), money, before):
            text = f"{subject} takes {each.amount} USDT for {each.refund_amount} {each.currency_code}"
            findings.wrong("refunds", f"{text}, which are worth another amount at the deal's rate")
        if each.status not in (refunds_pb2.REFUND_STATUS_FAILED, refunds_pb2.REFUND_STATUS_CANCELED):
            refunded[each.invoice_id] += Decimal(each.refund_amount)
            paid[each.invoice_id] = Decimal(money.paid_amount or 0) + sum(
                Decimal(one.received_amount or 0) for one in corrected
            )
    for invoice_id, amount in refunded.items():
        if amount > paid[invoice_id]:
            findings.wrong("refunds", f"invoice {invoice_id}: {amount} are refunded of {paid[invoice_id]}")


def _takes(
    fiat: Decimal, money: invoices_pb2.GetDealMoneyResponse, corrected: Sequence[pb.Correction]
) -> set[Decimal]:
    """Returns the USDT that a refund of this much fiat may take: with the commission of the operator, and without."""
    is_paid = money.HasField("paid_amount")
    rates = [money.conversion_rate] if is_paid or not corrected else []
    rate = min(map(Decimal, [*rates, *(each.conversion_rate for each in corrected)]))
    paid = Decimal(money.paid_amount or 0) + sum(Decimal(each.received_amount) for each in corrected)
    credited = Decimal(money.merchant_usdt or 0) + sum(Decimal(each.amount) for each in corrected)
    unit = Decimal(1).scaleb(-USDT_PLACES)
    with localcontext(prec=60):
        takes = {(fiat / rate).quantize(unit, ROUND_UP)}
        if paid:
            takes.add(min((fiat / paid * credited).quantize(unit, ROUND_UP), credited))
    return takes


def check_cases(findings: Findings) -> None:
    """Checks that a correction or a refund backs the end of each case of late money."""
    request = invoices_pb2.ListCasesRequest()
    for case in every(request, connection.desk().ListCases, "cases", "number"):
        findings.advance(1)
        if missing := unbacked(case, case.ended_as):
            findings.wrong("cases", f"case {case.number} ended as {case.ended_as}, and {missing}")


def unbacked(case: invoices_pb2.Case, ended_as: str) -> str:
    """Returns what is missing behind this end of the case; empty when nothing is."""
    invoice_id = case.invoice_id
    if ended_as == "credit":
        request = pb.ListCorrectionsRequest(invoice_id=invoice_id)
        made = every(request, connection.corrections().ListCorrections, "corrections", "correction_id")
        if late_credit(case, made) is None:
            return f"no late money of invoice {invoice_id} was credited"
    if ended_as == "return":
        live = refunds_pb2.ListRefundsRequest(invoice_id=invoice_id, statuses=LIVE)
        found = connection.refunds().ListRefunds(live, timeout=CALL_SECONDS).refunds
        if all(each.origin != refunds_pb2.REFUND_ORIGIN_LATE for each in found):
            return f"no late money of invoice {invoice_id} goes back"
    return ""


def credit(
    received: Decimal, *, rate: Decimal, client_percent: Decimal, merchant_percent: Decimal, decimals: int
) -> Decimal:
    """Returns the credit in USDT for fiat that came, written apart from the code of invoices that computes it."""
    with localcontext(prec=60):
        order = (received / (1 + client_percent / 100)).quantize(Decimal(1).scaleb(-decimals), ROUND_DOWN)
        return (order * (1 - merchant_percent / 100) / rate).quantize(
            Decimal(1).scaleb(-USDT_PLACES), ROUND_DOWN
        )

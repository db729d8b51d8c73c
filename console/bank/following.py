"""Forms of other pages that a line fills in: an appeal that ends with less, late money, a surplus, a reversal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from console.calls import or_none
from console.page import Page
from console.ui.values import queried
from console.words.corrections import possible
from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.bank.v1 import bank_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2, lines_pb2
from fiatgate.withdrawals.v1 import corrections_pb2, refunds_pb2
from kit.base.money import fiat_text, money_text

ALIKE_MOST: Final = 5
LISTED_MOST: Final = 200


@dataclass(frozen=True)
class Step:
    """A step on another page. `role` may take it. With a note it is a form with this text, which can be changed."""

    words: str
    path: str
    role: str
    note: str = ""


@dataclass(frozen=True)
class Left:
    """An invoice with the corrections and returns that it still allows, and the request for one that waits."""

    story: invoices_pb2.GetInvoiceStoryResponse
    kinds: frozenset[str]
    asked: Sequence[Step]


def evidence_of(line: pb.Line) -> str:
    parts = (money_text(line.amount, line.currency_code), line.booked_on, line.counterparty_name)
    return f"Bank line {line.line_id}: {', '.join(filter(None, parts))}"


async def steps_of(page: Page, line: pb.Line) -> Sequence[Step]:
    """Returns the steps for a line that comes to no amount of an open deal, and for one that the bank took back."""
    if line.state == pb.LINE_STATE_REVERSED:
        return await _reversals(page, line)
    if not line.payable or line.tier not in (pb.TIER_AMOUNT_DIFFERS, pb.TIER_ENDED):
        return ()
    if line.tier == pb.TIER_AMOUNT_DIFFERS:
        return _lower(line) if Decimal(line.left) < Decimal(line.deal_amount) else ()
    left = await or_none(_left(page, line.invoice_id))
    return () if left is None else _ended(line, left)


async def unlinked_of(page: Page, line: pb.Line) -> str:
    """Returns how much of the line its paid deal would take that no line is linked to yet; empty when there is none."""
    if not line.payable or line.tier != pb.TIER_ENDED:
        return ""
    payments, found = await asyncio.gather(
        or_none(
            page.deps.line_payments.ListLinePayments(
                lines_pb2.ListLinePaymentsRequest(deal_id=line.deal_id, limit=1)
            )
        ),
        or_none(page.deps.deals.GetDeal(invoices_pb2.GetDealRequest(deal_id=line.deal_id))),
    )
    is_paid = found is not None and found.deal.status == invoices_pb2.DEAL_STATUS_COMPLETED
    if found is None or not is_paid or payments is None or payments.payments:
        return ""
    return fiat_text(min(Decimal(found.deal.amount_fiat), Decimal(line.left)))


def _lower(line: pb.Line) -> Sequence[Step]:
    query = {"received": line.left, "note": evidence_of(line)}
    return [Step("Paid less …", queried(f"/deals/{line.deal_id}", query), "desk")]


def _ended(line: pb.Line, left: Left) -> Sequence[Step]:
    steps = [*left.asked]
    case = str(left.story.case.number) if left.story.HasField("case") else ""
    given = {"case": case} | _rest(line)
    if "surplus" in left.kinds:
        paid = Decimal(left.story.invoice.deal.amount_fiat)
        more = {"came": fiat_text(paid + Decimal(line.left))} | _rest(line)
        steps.append(_correction("More came …", "surplus", line, line.invoice_id, **more))
        query = {"invoice": line.invoice_id} | _rest(line)
        steps.append(Step("Return a surplus …", queried("/refunds/new", query), "desk"))
    if "late_credit" in left.kinds:
        late = {"received": line.left} | given
        steps.append(_correction("Credit it …", "late_credit", line, line.invoice_id, **late))
        if case:
            query = {"invoice": line.invoice_id} | given
            steps.append(Step("Return it …", queried("/refunds/new", query), "desk"))
        else:
            came = f"{money_text(line.left, line.currency_code)} came on {line.booked_on}."
            steps.append(Step("Open a case", f"/bank/{line.line_id}/case", "desk", note=came))
    if case:
        steps.append(Step(f"Late money {case}", f"/cases/{case}", "desk"))
    return steps


async def use_of(page: Page, line: pb.Line) -> corrections_pb2.FindMadeResponse | None:
    """Returns the correction or refund that the line is used for, or the request for it; None for none."""
    key = line.used_for.partition(":")[2]
    made = await page.deps.corrections.FindMade(corrections_pb2.FindMadeRequest(request_key=key))
    return made if made != corrections_pb2.FindMadeResponse() else None


async def _left(page: Page, invoice_id: str) -> Left:
    waits = approvals_pb2.APPROVAL_STATE_PENDING
    about = approvals_pb2.ListApprovalsRequest(object=f"invoice:{invoice_id}", state=waits, limit=1)
    story, corrections, refunds, asked = await asyncio.gather(
        page.deps.deals.GetInvoiceStory(invoices_pb2.GetInvoiceStoryRequest(invoice_id=invoice_id)),
        page.deps.corrections.ListCorrections(corrections_pb2.ListCorrectionsRequest(invoice_id=invoice_id)),
        page.deps.refunds.ListRefunds(refunds_pb2.ListRefundsRequest(invoice_id=invoice_id)),
        page.deps.approvals["withdrawals"].ListApprovals(about),
    )
    kinds = possible(story.invoice.deal, corrections.corrections, refunds.refunds)
    steps = [
        Step("A correction waits for approval", f"/approvals/withdrawals/{each.approval_id}", "treasury")
        for each in asked.approvals
    ]
    return Left(story, frozenset() if steps else kinds, steps)


def _rest(line: pb.Line) -> dict[str, str]:
    """Returns what the form needs to use the rest of the line (`console.ui.desk.used`)."""
    return {"line": line.line_id, "left": line.left}


async def _reversals(page: Page, line: pb.Line) -> Sequence[Step]:
    """Returns a step for each deal that the line paid, and for what it is used for; for a booking that takes an earlier
    one back, for those of lines of the same amount on its account.
    """
    lines = [line] if line.matches or line.used_for else await _alike(page, line)
    steps: list[Step] = []
    for each in lines:
        credits = [
            (match.invoice_id, match.amount, f"{match.paid_at.ToDatetime():%-d %b}") for match in each.matches
        ]
        if each.used_for and (made := await or_none(use_of(page, each))):
            if made.refund_id:
                steps.append(Step("Stop its return", f"/refunds/{made.refund_id}", "desk"))
            if made.correction_id:
                credits.append((made.invoice_id, each.left, each.booked_on))
        for invoice_id, amount, day in credits:
            if (left := await or_none(_left(page, invoice_id))) is None:
                continue
            if "reversal" in left.kinds:
                words = f"Take back {money_text(amount, line.currency_code)} of {day} …"
                steps.append(_correction(words, "reversal", line, invoice_id))
            steps += left.asked
    return steps


async def _alike(page: Page, line: pb.Line) -> Sequence[pb.Line]:
    found: list[pb.Line] = []
    for state in (pb.LINE_STATE_MATCHED, pb.LINE_STATE_IGNORED):
        request = pb.ListLinesRequest(
            account=line.account, state=state, amount=line.amount, limit=LISTED_MOST
        )
        found += (await page.deps.bank.ListLines(request)).lines
    fits = [each for each in found if each.matches or each.used_for]
    return [each for each in fits if each.currency_code == line.currency_code][:ALIKE_MOST]


async def refunds_of(page: Page, line: pb.Line) -> Sequence[refunds_pb2.Refund]:
    """Returns the newest refunds that a line that went out may be: those of its amount that were sent."""
    if line.state != pb.LINE_STATE_OUTGOING or line.refund_id:
        return ()
    sent = (refunds_pb2.REFUND_STATUS_SENT, refunds_pb2.REFUND_STATUS_SUCCEEDED)
    request = refunds_pb2.ListRefundsRequest(statuses=sent, limit=LISTED_MOST)
    found = await or_none(page.deps.refunds.ListRefunds(request))
    wanted = (Decimal(line.amount), line.currency_code)
    same = [
        each
        for each in (found.refunds if found else ())
        if (Decimal(each.refund_amount), each.currency_code) == wanted
    ]
    return same[:ALIKE_MOST]


def _correction(words: str, kind: str, line: pb.Line, invoice_id: str, /, **given: str) -> Step:
    query = {"kind": kind, "invoice": invoice_id, "evidence": evidence_of(line)} | given
    return Step(words, queried("/corrections/new", query), "treasury")

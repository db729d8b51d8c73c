"""The evidence of one deal: everything that an operator compares with the bank statement."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from console.calls import invoices_of, or_none
from console.deals.words import tone, waits
from console.exchange import Request
from console.page import Page, follows_own_page
from console.ui.desk import lines_that_paid, lines_that_wait
from console.words.approvals import named
from console.words.bank import PaidBy
from console.words.deals import author_words, step_words
from console.words.states import words_of
from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.bank.v1 import bank_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.withdrawals.v1 import corrections_pb2, refunds_pb2
from kit.base.codes import in_groups
from kit.base.ids import parse_id
from kit.base.money import amount_text, money_text
from kit.web.templates import theirs

PICTURES: Final[Mapping[int, str]] = {pb.PROOF_KIND_APPEAL: "appeal", pb.PROOF_KIND_CASE: "case"}
"""The last part of a picture's address."""


@dataclass(frozen=True)
class Step:
    """An entry of the timeline."""

    at: object
    title: str
    by: str
    text: str
    tone: str
    link: str = ""


@dataclass(frozen=True)
class Evidence:
    """A deal with what stands beside its decision.

    asked     requests for a second person that wait
    came      bank lines that wait for a person and are proposed for it, while it is open
    steps     with the bank lines that paid it at the end
    last      the step of the deal that led to its state
    near      open deals on the same account, nearest amounts first
    corrections, refunds  of its invoice, newest first; none while withdrawals is away
    account_undecided  no act decided the account as it is now
    """

    deal: pb.Deal
    context: pb.DealContext
    requisite: pb.Requisite
    came: Sequence[bank_pb2.Line]
    steps: Sequence[Step]
    last: Step | None
    pictures: Sequence[str]
    near: Sequence[pb.Deal]
    asked: Sequence[approvals_pb2.Approval]
    corrections: Sequence[corrections_pb2.Correction]
    refunds: Sequence[refunds_pb2.Refund]
    merchant: str
    account_undecided: bool

    @property
    def requests(self) -> Sequence[tuple[str, str, str]]:
        """Requester, sentence and address of each request."""
        names = {self.deal.merchant_id: self.merchant}
        return [
            (
                each.requested_by,
                named(each.summary, each.merchant_id, names),
                f"/approvals/{each.service or 'invoices'}/{each.approval_id}",
            )
            for each in self.asked
        ]

    @property
    def waits(self) -> bool:
        return waits(self.deal)

    @property
    def in_appeal(self) -> bool:
        return self.deal.status == pb.DEAL_STATUS_APPEAL

    @property
    def state(self) -> str:
        return words_of(self.deal.sub_status)

    @property
    def tone(self) -> str:
        return tone(self.deal.status)

    @property
    def to_send(self) -> str:
        return self.deal.amount_to_send

    @property
    def reference(self) -> str:
        return in_groups(self.deal.reference)


async def evidence_of(page: Page, deal_id: str) -> Evidence:
    """Returns the deal with its evidence. Raises DEAL_NOT_FOUND."""
    answer = await page.deps.deals.GetDeal(pb.GetDealRequest(deal_id=deal_id))
    asked, corrections, refunds, names, paid_by, came = await asyncio.gather(
        _asked(page, answer.deal),
        _corrections(page, answer.deal),
        _refunds(page, answer.deal),
        page.names(answer.deal.merchant_id),
        lines_that_paid(page.deps.line_payments.ListLinePayments, page.deps.bank.ListLines, [answer.deal]),
        _came(page, answer.deal),
    )
    return Evidence(
        deal=answer.deal,
        context=answer.context,
        requisite=answer.requisite,
        came=came,
        steps=[*map(_step, answer.history), *map(_paid, paid_by or ())],
        last=_step(answer.history[-1]) if answer.history else None,
        pictures=[PICTURES[each.kind] for each in answer.proofs if each.kind in PICTURES],
        near=answer.near,
        asked=asked,
        corrections=corrections,
        refunds=refunds,
        merchant=names.get(answer.deal.merchant_id, ""),
        account_undecided=answer.account_undecided,
    )


async def evidence_of_invoice(page: Page, invoice_id: str) -> Evidence | None:
    """Returns the invoice's newest deal with its evidence; None when it has none."""
    found = await invoices_of(page.deps.deals, [invoice_id], merchant_id="") or {}
    deal_id = found[invoice_id].deal.deal_id if invoice_id in found else ""
    return await evidence_of(page, deal_id) if deal_id else None


async def notice_of(page: Page, req: Request) -> dict[str, Any]:
    """Returns the notice about the decision that led here, with what was decided; nothing after another step."""
    notice, deal_id = req.get_param("notice") or "", req.get_param("decided") or ""
    if notice not in _DECIDED or not parse_id(deal_id) or not follows_own_page(req):
        return {}
    answer = await or_none(page.deps.deals.GetDeal(pb.GetDealRequest(deal_id=deal_id)))
    if answer is None or answer.deal.status not in _DECIDED[notice]:
        return {}
    deal, context = answer.deal, answer.context
    names = await page.names(deal.merchant_id)
    merchant = names.get(deal.merchant_id, deal.merchant_id)
    word, rest = _DECIDED[notice][deal.status]
    came = deal.amount_to_send if not deal.HasField("adjusted_amount") else deal.amount_fiat
    return {
        "notice": Markup("{}: {}, order {}, {}. {}").format(
            word,
            money_text(came, deal.currency_code),
            theirs(context.external_id),
            theirs(merchant),
            rest.format(usdt=amount_text(deal.merchant_usdt)),
        )
    }


_DECIDED: Final[Mapping[str, Mapping[int, tuple[str, str]]]] = {
    "deal-confirmed": {pb.DEAL_STATUS_COMPLETED: ("Confirmed", "The merchant is credited {usdt} USDT.")},
    "deal-rejected": {pb.DEAL_STATUS_FAILED: ("Rejected", "The order has failed.")},
    "deal-appealed": {pb.DEAL_STATUS_APPEAL: ("In appeal", "The deal waits without a limit of time.")},
}
"""First word and last sentence of the notice, by the notice and the status of the deal."""


async def _asked(page: Page, deal: pb.Deal) -> Sequence[approvals_pb2.Approval]:
    """Returns the requests that wait for a second person; only a deal in appeal can have one."""
    if deal.status != pb.DEAL_STATUS_APPEAL:
        return ()
    request = approvals_pb2.ListApprovalsRequest(
        object=f"deal:{deal.deal_id}", state=approvals_pb2.APPROVAL_STATE_PENDING, limit=1
    )
    return (await page.deps.approvals["invoices"].ListApprovals(request)).approvals


async def _came(page: Page, deal: pb.Deal) -> Sequence[bank_pb2.Line]:
    return await lines_that_wait(page.deps.bank, deal.deal_id) if waits(deal) else ()


async def _corrections(page: Page, deal: pb.Deal) -> Sequence[corrections_pb2.Correction]:
    """Returns the corrections of the deal's invoice; only one that has ended can have some."""
    if waits(deal):
        return ()
    request = corrections_pb2.ListCorrectionsRequest(invoice_id=deal.invoice_id)
    found = await or_none(page.deps.corrections.ListCorrections(request))
    return found.corrections if found else ()


async def _refunds(page: Page, deal: pb.Deal) -> Sequence[refunds_pb2.Refund]:
    if waits(deal):
        return ()
    request = refunds_pb2.ListRefundsRequest(invoice_id=deal.invoice_id)
    found = await or_none(page.deps.refunds.ListRefunds(request))
    return found.refunds if found else ()


def _step(step: pb.DealTransition) -> Step:
    return Step(step.at, step_words(step.sub_status), author_words(step.actor), step.note, tone(step.status))


def _paid(by: PaidBy) -> Step:
    details = "; ".join(f"{name} {value}" for name, value in by.details)
    return Step(by.payment.paid_at, by.title, "", details, "good", by.link)

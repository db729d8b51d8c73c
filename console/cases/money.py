"""The money of a case, as withdrawals has it: what backs its end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from console.page import Page
from console.ui.values import word
from console.words.corrections import late_credit
from console.words.refunds import LIVE
from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import corrections_pb2, refunds_pb2
from kit.base.money import money_text
from kit.rpc.values import invalid

_RETURNED: Final = {
    "waiting_for_account": "{} goes back to you, to the account that you give on this page.",
    "ready": "{} will be sent back to you.",
    "sent": "{} is being sent back to you.",
    "succeeded": "{} was sent back to you.",
}


@dataclass(frozen=True)
class CaseMoney:
    """Null where there is none.

    credit  the late credit of the invoice
    back    the refund of money that came late, neither failed nor canceled
    asked   the request for a correction of the invoice that waits for a second person
    """

    credit: corrections_pb2.Correction | None
    back: refunds_pb2.Refund | None
    asked: approvals_pb2.Approval | None

    @property
    def end(self) -> str:
        return "credit" if self.credit else "return" if self.back else ""

    @property
    def answer(self) -> str:
        """Words for the customer; empty before the money has moved."""
        if self.credit:
            came = money_text(self.credit.received_amount, self.credit.currency_code)
            return f"{came} arrived and was credited to the shop."
        if self.back:
            amount = money_text(self.back.refund_amount, self.back.currency_code)
            return _RETURNED[word(self.back, "status")].format(amount)
        return ""

    def backs(self, end: str) -> bool:
        return end not in ("credit", "return") or end == self.end

    def require(self, end: str) -> None:
        """Raises VALIDATION_ERROR for an end that nothing backs."""
        if self.backs(end):
            return
        if end == "return":
            raise invalid("ended_as", "nothing goes back to the customer: press “Return it” first")
        if self.asked:
            raise invalid("ended_as", "nothing is credited before a second person has approved it")
        raise invalid("ended_as", "nothing is credited to the merchant: press “Credit it” first")


async def money_of(page: Page, case: invoices_pb2.Case) -> CaseMoney:
    """Returns what was done with the money of the case."""
    invoice = case.invoice_id
    credits, refunds, asked = await asyncio.gather(
        page.deps.corrections.ListCorrections(corrections_pb2.ListCorrectionsRequest(invoice_id=invoice)),
        page.deps.refunds.ListRefunds(refunds_pb2.ListRefundsRequest(invoice_id=invoice, statuses=LIVE)),
        page.deps.approvals["withdrawals"].ListApprovals(
            approvals_pb2.ListApprovalsRequest(
                object=f"invoice:{invoice}", state=approvals_pb2.APPROVAL_STATE_PENDING, limit=1
            )
        ),
    )
    return CaseMoney(
        late_credit(case, credits.corrections),
        next((each for each in refunds.refunds if each.origin == refunds_pb2.REFUND_ORIGIN_LATE), None),
        next(iter(asked.approvals), None),
    )

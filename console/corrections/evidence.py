"""A correction as a second person sees it: the merchant's money, what holds some of it, and earlier corrections."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from console.page import Page
from console.ui.values import word
from console.words.states import words_of
from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.withdrawals.v1 import corrections_pb2 as pb
from fiatgate.withdrawals.v1 import refunds_pb2, withdrawals_pb2
from kit.rpc.errors import Refused

EARLIER_MOST: Final = 10
OPEN_MOST: Final = 50
OPEN_REFUNDS: Final = (
    refunds_pb2.REFUND_STATUS_WAITING_FOR_ACCOUNT,
    refunds_pb2.REFUND_STATUS_READY,
    refunds_pb2.REFUND_STATUS_SENT,
)


@dataclass(frozen=True)
class Held:
    """A `withdrawal` or `refund` that is not over, and the USDT that it holds."""

    kind: str
    id: str
    amount: str
    state: str
    created_at: Timestamp


@dataclass(frozen=True)
class Purse:
    """A merchant's money beside the approval of a correction.

    balance  of the merchant, with its debt
    held     withdrawals and refunds that hold money
    earlier  corrections of the merchant, newest first, at most EARLIER_MOST
    check    what approval would do now; None when the request is decided
    """

    merchant_id: str
    balance: withdrawals_pb2.GetBalanceResponse
    held: Sequence[Held]
    earlier: Sequence[pb.Correction]
    check: pb.CheckCorrectionResponse | None


async def purse_of(page: Page, approval: approvals_pb2.Approval) -> Purse:
    """Returns what stands beside the approval of a correction."""
    request = pb.ListCorrectionsRequest(merchant_id=approval.merchant_id, limit=EARLIER_MOST)
    balance, held, earlier, check = await asyncio.gather(
        page.deps.withdrawals.GetBalance(withdrawals_pb2.GetBalanceRequest(merchant_id=approval.merchant_id)),
        held_of(page, approval.merchant_id),
        page.deps.corrections.ListCorrections(request),
        _check(page, approval),
    )
    return Purse(approval.merchant_id, balance, held, earlier.corrections, check)


async def _check(page: Page, approval: approvals_pb2.Approval) -> pb.CheckCorrectionResponse | None:
    kind, _, id = approval.object.partition(":")
    about = pb.MakeCorrectionRequest()
    setattr(about, f"{kind}_id", id)
    try:
        return await page.deps.corrections.CheckCorrection(
            pb.CheckCorrectionRequest(correction=about, pending=True)
        )
    except Refused as refused:
        if refused.reason != "CORRECTION_NOT_FOUND":
            raise
        return None


async def held_of(page: Page, merchant_id: str) -> Sequence[Held]:
    """Returns the merchant's withdrawals and refunds that hold money, each oldest first, at most OPEN_MOST."""
    withdrawing = withdrawals_pb2.ListAllWithdrawalsRequest(
        merchant_id=merchant_id,
        status=withdrawals_pb2.WITHDRAWAL_STATUS_PENDING,
        oldest_first=True,
        limit=OPEN_MOST,
    )
    refunding = refunds_pb2.ListRefundsRequest(
        merchant_id=merchant_id, statuses=OPEN_REFUNDS, oldest_first=True, limit=OPEN_MOST
    )
    withdrawals, refunds = await asyncio.gather(
        page.deps.withdrawals.ListAllWithdrawals(withdrawing), page.deps.refunds.ListRefunds(refunding)
    )
    return [
        *(
            Held(
                "withdrawal", each.withdraw_uuid, each.amount, each.substatus or "requested", each.created_at
            )
            for each in withdrawals.withdrawals
        ),
        *(
            Held("refund", each.refund_id, each.amount, words_of(word(each, "status")), each.created_at)
            for each in refunds.refunds
            if Decimal(each.amount)
        ),
    ]

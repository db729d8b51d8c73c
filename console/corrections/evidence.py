"""A correction as a second person sees it: the merchant's money, what is still to be sent, and earlier corrections."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from console.page import Page
from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.withdrawals.v1 import corrections_pb2 as pb
from fiatgate.withdrawals.v1 import withdrawals_pb2

EARLIER_MOST: Final = 10
OPEN_MOST: Final = 50


@dataclass(frozen=True)
class Purse:
    """A merchant's money beside the approval of a correction.

    balance  of the merchant, with its debt
    open     withdrawals that are still to be sent, oldest first, at most OPEN_MOST
    earlier  corrections of the merchant, newest first, at most EARLIER_MOST
    """

    merchant_id: str
    balance: withdrawals_pb2.GetBalanceResponse
    open: Sequence[withdrawals_pb2.Withdrawal]
    earlier: Sequence[pb.Correction]


async def purse_of(page: Page, approval: approvals_pb2.Approval) -> Purse:
    """Returns what stands beside the approval of a correction."""
    request = pb.ListCorrectionsRequest(merchant_id=approval.merchant_id, limit=EARLIER_MOST)
    balance, open_ones, earlier = await asyncio.gather(
        page.deps.withdrawals.GetBalance(withdrawals_pb2.GetBalanceRequest(merchant_id=approval.merchant_id)),
        open_withdrawals(page, approval.merchant_id),
        page.deps.corrections.ListCorrections(request),
    )
    return Purse(approval.merchant_id, balance, open_ones, earlier.corrections)


async def open_withdrawals(page: Page, merchant_id: str) -> Sequence[withdrawals_pb2.Withdrawal]:
    """Returns the merchant's withdrawals that are requested or being sent, oldest first, at most OPEN_MOST."""
    request = withdrawals_pb2.ListAllWithdrawalsRequest(
        merchant_id=merchant_id,
        status=withdrawals_pb2.WITHDRAWAL_STATUS_PENDING,
        oldest_first=True,
        limit=OPEN_MOST,
    )
    return (await page.deps.withdrawals.ListAllWithdrawals(request)).withdrawals

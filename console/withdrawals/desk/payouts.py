"""A withdrawal as a second person sees it: the balance beside it, and what was sent to its address before."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from console.page import Page
from console.withdrawals.desk.book import Entry, entry_of
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb

EARLIER_MOST: Final = 100


@dataclass(frozen=True)
class Payout:
    """earlier  withdrawals of any merchant that were sent to the same address, newest first, at most EARLIER_MOST
    ban      of the merchant, as `ban_in`
    entry    of the merchant's address book
    """

    withdrawal: pb.Withdrawal
    method: pb.WithdrawalMethod
    balance: pb.GetBalanceResponse
    earlier: list[pb.Withdrawal]
    ban: str
    entry: Entry

    @property
    def of_others(self) -> int:
        """The number of withdrawals in `earlier` that another merchant requested."""
        return sum(each.merchant_id != self.withdrawal.merchant_id for each in self.earlier)


async def payout_of(page: Page, withdraw_uuid: str) -> Payout:
    """Returns the withdrawal with what stands beside its approval. Raises WITHDRAWAL_NOT_FOUND."""
    calls = page.deps.withdrawals
    story = await calls.GetWithdrawalStory(pb.GetWithdrawalStoryRequest(withdraw_uuid=withdraw_uuid))
    of_address = pb.ListAllWithdrawalsRequest(
        address=story.withdrawal.address, status=pb.WITHDRAWAL_STATUS_SUCCESS, limit=EARLIER_MOST
    )
    balance, sent, ban, entry = await asyncio.gather(
        calls.GetBalance(pb.GetBalanceRequest(merchant_id=story.withdrawal.merchant_id)),
        calls.ListAllWithdrawals(of_address),
        page.ban_of(story.withdrawal.merchant_id),
        entry_of(page, story),
    )
    earlier = [each for each in sent.withdrawals if each.withdraw_uuid != withdraw_uuid]
    return Payout(story.withdrawal, story.method, balance, earlier, ban, entry)

"""The steps of one withdrawal."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import falcon.asgi

from console.exchange import Request
from console.withdrawals import words
from console.withdrawals.desk.book import entry_of
from console.withdrawals.one import WithdrawalPage
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb


class DeskWithdrawalPage(WithdrawalPage):
    """/withdrawals/{withdraw_uuid}: the request, its steps, the merchant's balance, the history."""

    template = "withdrawal"

    async def beside(self, story: pb.GetWithdrawalStoryResponse) -> Mapping[str, Any]:
        id = story.withdrawal.merchant_id
        names, balance, ban, entry = await asyncio.gather(
            self.names(id),
            self.deps.withdrawals.GetBalance(pb.GetBalanceRequest(merchant_id=id)),
            self.ban_of(id),
            entry_of(self, story),
        )
        return {"merchant": names.get(id, ""), "balance": balance, "ban": ban, "entry": entry}

    async def on_post_process(self, req: Request, resp: falcon.asgi.Response, withdraw_uuid: str) -> None:
        await self.form(req)
        request = pb.ProcessWithdrawalRequest(withdraw_uuid=withdraw_uuid, expected_stage="requested")
        call = self.deps.withdrawals.ProcessWithdrawal(request)
        await self.step(req, resp, withdraw_uuid, call, notice="withdrawal-processing")

    async def on_post_complete(self, req: Request, resp: falcon.asgi.Response, withdraw_uuid: str) -> None:
        """Records the transaction. A text that is no hash of the network is taken when the person agrees."""
        form = await self.form(req)
        transaction = form.line("transaction", most=200)
        if not form.text("is_mark"):
            story = await self.story(withdraw_uuid)
            is_pending = story.withdrawal.status == pb.WITHDRAWAL_STATUS_PENDING
            if is_pending and not re.fullmatch(story.method.transaction_pattern, transaction):
                await self.show_one(
                    req, resp, withdraw_uuid, transaction=transaction, is_doubtful=bool(transaction)
                )
                return
        request = pb.CompleteWithdrawalRequest(
            withdraw_uuid=withdraw_uuid, external_tx_id=transaction, expected_stage="processing"
        )
        call = self.deps.withdrawals.CompleteWithdrawal(request)
        await self.step(req, resp, withdraw_uuid, call, notice="withdrawal-sent", transaction=transaction)

    async def on_post_fail(self, req: Request, resp: falcon.asgi.Response, withdraw_uuid: str) -> None:
        form = await self.form(req)
        request = pb.FailWithdrawalRequest(
            withdraw_uuid=withdraw_uuid,
            substatus=form.text("substatus"),
            expected_stage=words.stage_seen(form),
        )
        call = self.deps.withdrawals.FailWithdrawal(request)
        await self.step(req, resp, withdraw_uuid, call, notice="withdrawal-failed")

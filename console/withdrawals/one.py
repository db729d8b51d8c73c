"""One withdrawal: its address and amounts, its history, its transfers, and its cancellation."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, ClassVar

import falcon.asgi

from console.exchange import Request
from console.page import Page, leave_for
from console.ui.acts import entry_of
from console.ui.values import ago
from console.withdrawals import words
from console.words.moments import Moment
from console.words.withdrawals import history
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.rpc.errors import Refused


class WithdrawalPage(Page):
    """/withdrawals/{withdraw_uuid} at the dashboard."""

    link = "/withdrawals"
    template: ClassVar[str] = "withdrawal-own"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, withdraw_uuid: str) -> None:
        await self.show_one(req, resp, withdraw_uuid)

    on_head = on_get

    async def on_post_cancel(self, req: Request, resp: falcon.asgi.Response, withdraw_uuid: str) -> None:
        form = await self.form(req)
        request = pb.CancelWithdrawalRequest(
            withdraw_uuid=withdraw_uuid,
            by_user=self.deps.surface.has_merchants or bool(form.text("by_user")),
            expected_stage=words.stage_seen(form),
        )
        call = self.deps.withdrawals.CancelWithdrawal(request)
        notice = "withdrawal-canceled-here" if self.deps.surface.has_merchants else "withdrawal-canceled"
        await self.step(req, resp, withdraw_uuid, call, notice=notice)

    async def step(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        withdraw_uuid: str,
        call: Awaitable[object],
        *,
        notice: str,
        transaction: str = "",
    ) -> None:
        """Makes one step and leaves for the page, or shows it with the refusal."""
        try:
            await call
        except Refused as refused:
            if refused.reason not in words.MENDABLE:
                raise
            await self.show_one(req, resp, withdraw_uuid, refused=refused, transaction=transaction)
        else:
            leave_for(resp, f"/withdrawals/{withdraw_uuid}", notice=notice)

    async def story(self, withdraw_uuid: str) -> pb.GetWithdrawalStoryResponse:
        request = pb.GetWithdrawalStoryRequest(withdraw_uuid=withdraw_uuid)
        return await self.deps.withdrawals.GetWithdrawalStory(request)

    async def beside(self, story: pb.GetWithdrawalStoryResponse) -> Mapping[str, Any]:
        """Returns what stands beside the withdrawal, of its merchant and address: at the dashboard nothing."""
        return {}

    async def show_one(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        withdraw_uuid: str,
        *,
        refused: Refused | None = None,
        transaction: str = "",
        is_doubtful: bool = False,
    ) -> None:
        story = await self.story(withdraw_uuid)
        withdrawal = story.withdrawal
        moments = history(story)
        values = dict(await self.beside(story))
        if refused is not None and refused.reason == "WITHDRAWAL_STATE_CONFLICT" and moments:
            values["problem"] = _decided_before(refused, moments[-1])
        self.show(
            req,
            resp,
            self.template,
            refused=refused,
            withdrawal=withdrawal,
            method=story.method,
            state=words.state_of(withdrawal),
            meaning=words.FAILURES.get(withdrawal.substatus, ""),
            is_pending=withdrawal.status == pb.WITHDRAWAL_STATUS_PENDING,
            entries=[
                entry_of(each, merchant_id=withdrawal.merchant_id, merchant=values.get("merchant", ""))
                for each in moments
            ],
            transfers=story.transfers,
            approval_id=story.pending_approval_id,
            failures=words.FAILURES,
            transaction=transaction,
            is_doubtful=is_doubtful,
            **values,
        )


def _decided_before(refused: Refused, last: Moment) -> str:
    """Returns the sentence of a step that came too late, with author and time of the last one."""
    message = refused.message.rstrip(".")
    return f"{message}. The last step: {last.title.lower()} by {last.by}, {ago(last.at)} ago. Nothing was changed."

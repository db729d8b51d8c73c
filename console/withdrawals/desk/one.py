"""The steps of one withdrawal, and the request of a new one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

import falcon.asgi

from console.calls import or_none
from console.exchange import Request
from console.page import Page, leave_for
from console.ui.pages import only_for
from console.withdrawals import words
from console.withdrawals.desk.book import entry_of
from console.withdrawals.one import WithdrawalPage
from console.words.withdrawals import errors_of, form_problem, notice_of
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id, parse_id
from kit.rpc.errors import Refused, invalid, is_away

PAYS: Final = frozenset({"treasury", "admin"})
TYPED: Final = ("merchant", "method", "address", "memo", "amount", "request_key")
"""The fields of the form of a new withdrawal."""


class DeskWithdrawalPage(WithdrawalPage):
    """/withdrawals/{withdraw_uuid}: the request, its steps, the merchant's balance, the history."""

    template = "withdrawal"

    async def beside(self, withdrawal: pb.Withdrawal) -> Mapping[str, Any]:
        id = withdrawal.merchant_id
        names, balance, ban, entry = await asyncio.gather(
            self.names(id),
            self.deps.withdrawals.GetBalance(pb.GetBalanceRequest(merchant_id=id)),
            self.ban_of(id),
            entry_of(self, withdrawal),
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


class NewWithdrawalPage(Page):
    """/withdrawals/new?merchant=…: the form has a key, so a form that is sent twice makes one withdrawal."""

    link = "/withdrawals"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, PAYS)
        given = {"merchant": req.get_param("merchant") or "", "request_key": str(new_id())}
        await self._show(req, resp, dict.fromkeys(TYPED, "") | given)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, PAYS)
        form = await self.form(req)
        typed = {name: form.line(name, most=200) for name in TYPED}
        try:
            made = await self._create(typed)
        except Refused as refused:
            if is_away(refused):  # without a call: the service has just failed, and may have used up the time
                self.show(req, resp, "withdrawal-again", refused=refused, status=503, typed=typed)
                return
            if refused.reason not in words.MENDABLE:
                raise
            await self._show(req, resp, typed, refused=refused)
            return
        notice = notice_of(made, fresh="withdrawal-created")
        leave_for(resp, f"/withdrawals/{made.withdraw_uuid}", notice=notice)

    async def _create(self, typed: Mapping[str, str]) -> pb.Withdrawal:
        if not typed["merchant"]:
            raise invalid("VALIDATION_ERROR", "name the merchant", field="merchant")
        method = typed["method"]
        request = pb.CreateWithdrawalRequest(
            merchant_id=await self.merchant_named(typed["merchant"]),
            withdrawal_method_id=int(method) if method.isdigit() and len(method) < 10 else 0,
            address=typed["address"],
            amount=typed["amount"],
            request_key=typed["request_key"],
        )
        if typed["memo"]:
            request.address_memo = typed["memo"]
        return (await self.deps.withdrawals.CreateWithdrawal(request)).withdrawal

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        typed: Mapping[str, str],
        *,
        refused: Refused | None = None,
        **values: Any,
    ) -> None:
        listed = await self.deps.withdrawals.ListWithdrawalMethods(pb.ListWithdrawalMethodsRequest())
        methods = [each for each in listed.methods if each.enabled]
        merchant_id = typed["merchant"] if parse_id(typed["merchant"]) else ""
        balance = None
        if merchant_id:
            request = pb.GetBalanceRequest(merchant_id=merchant_id)
            balance = await or_none(self.deps.withdrawals.GetBalance(request))
        if refused is not None:
            values["errors"] = errors_of(refused)
        if problem := form_problem(refused, typed["request_key"]):
            typed = {**typed, "request_key": str(new_id())}
            values |= {"problem": problem, "errors": {}}
        self.show(
            req,
            resp,
            "withdrawal-new",
            refused=refused,
            typed=typed,
            methods=methods,
            words={str(each.method_id): f"{each.name} ({each.code})" for each in methods},
            balance=balance,
            names=await self.names(merchant_id),
            **values,
        )

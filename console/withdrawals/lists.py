"""The list of withdrawals, and one act on several of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import falcon.asgi

from console.calls import Outcome, each_of
from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Line, Page, leave_for
from console.ui.filters import DAYS, SINCE, UNTIL, Amount, Choice, Merchant, Tabs, Text
from console.ui.values import iso, word
from console.ui.words import sentence_for
from console.withdrawals import words
from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.web.forms import Form

STAGES: Final = {
    "requested": pb.WITHDRAWAL_STAGE_REQUESTED,
    "processing": pb.WITHDRAWAL_STAGE_PROCESSING,
    "done": pb.WITHDRAWAL_STAGE_DONE,
    "all": pb.WITHDRAWAL_STAGE_UNSPECIFIED,
}
QUEUES: Final = ("requested", "processing")
"""The stages that wait for an operator: the oldest comes first."""
STATUSES: Final = {
    "": pb.WITHDRAWAL_STATUS_UNSPECIFIED,
    "pending": pb.WITHDRAWAL_STATUS_PENDING,
    "success": pb.WITHDRAWAL_STATUS_SUCCESS,
    "failed": pb.WITHDRAWAL_STATUS_FAILED,
    "cancelled": pb.WITHDRAWAL_STATUS_CANCELLED,
}
SEVERAL_MOST: Final = 200
BESIDE: Final = words.MENDABLE | {"WITHDRAWAL_NOT_FOUND"}
"""Refusals of one withdrawal, beside which the others go on."""


class WithdrawalsPage(ListPage):
    """/withdrawals and /withdrawals.csv: the queues with the oldest first, the others with the newest."""

    link = "/withdrawals"
    template = "withdrawals"
    csv_name = "withdrawals"
    columns = (
        "withdraw_uuid",
        "created_at",
        "merchant_id",
        "merchant",
        "status",
        "substatus",
        "amount",
        "network_fee",
        "amount_to_receive",
        "withdrawal_method_id",
        "address",
        "address_memo",
        "external_tx_id",
        "processed_at",
    )
    filters = (
        Tabs(
            "stage",
            "Parts",
            {"requested": "Requested", "processing": "Processing", "done": "Done", "all": "All"},
        ),
        Merchant(),
        Choice(
            "status",
            "Status",
            {
                "": "Any",
                "pending": "pending",
                "success": "success",
                "failed": "failed",
                "cancelled": "cancelled",
            },
        ),
        Choice("method", "Method", of="withdrawal_method_id"),
        Text("address", "Address"),
        Text("transaction", "Transaction", hint="hash, in any spelling", of="external_tx_id"),
        Amount("least", "Amount from", of="amount_from"),
        Amount("most", "Amount to", of="amount_to"),
        *DAYS,
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        stage = asked["stage"]
        request = pb.ListAllWithdrawalsRequest(
            stage=STAGES[stage],
            status=STATUSES[asked["status"]],
            merchant_id=asked["merchant"],
            withdrawal_method_id=_number(asked["method"]),
            address=asked["address"],
            external_tx_id=asked["transaction"],
            amount_from=asked["least"],
            amount_to=asked["most"],
            oldest_first=stage in QUEUES,
            after_withdraw_uuid=asked.after,
            limit=asked.limit,
        )
        if begin := SINCE.begin(asked["since"]):
            request.created_from.FromDatetime(begin)
        if end := UNTIL.end(asked["until"]):
            request.created_before.FromDatetime(end)
        found = (await self.deps.withdrawals.ListAllWithdrawals(request)).withdrawals
        names = await self.names(*(each.merchant_id for each in found))
        return asked.found(
            found,
            after=lambda row: row.withdraw_uuid,
            names=names,
            stage=stage,
            state_of=words.state_of,
        )

    def cells(self, row: pb.Withdrawal, found: Found) -> Sequence[str]:
        return (
            row.withdraw_uuid,
            iso(row.created_at),
            row.merchant_id,
            found.values["names"].get(row.merchant_id, ""),
            word(row, "status"),
            row.substatus,
            row.amount,
            row.network_fee,
            row.amount_to_receive,
            str(row.withdrawal_method_id),
            row.address,
            row.address_memo,
            row.external_tx_id,
            iso(row.processed_at),
        )

    async def choices(self, req: Request) -> Mapping[str, Mapping[str, str]]:
        listed = await self.deps.withdrawals.ListWithdrawalMethods(pb.ListWithdrawalMethodsRequest())
        return {"method": {str(each.method_id): each.code for each in listed.methods}}

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        """Returns the requests for a second pair of eyes, by the withdrawal that they are about."""
        values = {"asked": {}, "failures": words.FAILURES}
        if found.rows and found.values["stage"] == "requested":
            request = approvals_pb2.ListApprovalsRequest(
                state=approvals_pb2.APPROVAL_STATE_PENDING, limit=1000
            )
            waiting = (await self.deps.approvals["withdrawals"].ListApprovals(request)).approvals
            values["asked"] = {each.object.partition(":")[2]: each.approval_id for each in waiting}
        return values


def _number(text: str) -> int:
    """Returns the id of a method; that of none for another text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -bool(text)


class SeveralPage(Page):
    """/withdrawals/several: one act on those that are ticked, one after the other in the order of the list."""

    link = "/withdrawals"

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        ids = list(dict.fromkeys(form.all("id")))[:SEVERAL_MOST]
        act = self._act(form)
        back = "/withdrawals?stage=processing" if form.text("stage") == "processing" else "/withdrawals"
        if not ids or act is None:
            leave_for(resp, back, problem="nothing_ticked")
            return
        call, sentence = act
        outcomes = await each_of(ids, call, beside=BESIDE, at_once=1)
        lines = [line_of(each, sentence) for each in outcomes]
        self.leave_or_list(req, resp, "Withdrawal", lines, back=back, notice="several-done")

    def _act(
        self, form: Form
    ) -> tuple[Callable[[str], Awaitable[Any]], Callable[[pb.Withdrawal], str]] | None:
        match form.text("act"):
            case "process":
                return self._process, words.being_sent
            case "fail":
                return partial(self._fail, words.stage_seen(form), form.text("substatus")), words.failed
            case "cancel":
                by_user = bool(form.text("by_user"))
                return partial(self._cancel, words.stage_seen(form), by_user), words.canceled
        return None

    async def _process(self, id: str) -> Any:
        request = pb.ProcessWithdrawalRequest(withdraw_uuid=id, expected_stage="requested")
        return await self.deps.withdrawals.ProcessWithdrawal(request)

    async def _fail(self, stage: str, substatus: str, id: str) -> Any:
        request = pb.FailWithdrawalRequest(withdraw_uuid=id, substatus=substatus, expected_stage=stage)
        return await self.deps.withdrawals.FailWithdrawal(request)

    async def _cancel(self, stage: str, by_user: bool, id: str) -> Any:
        request = pb.CancelWithdrawalRequest(withdraw_uuid=id, by_user=by_user, expected_stage=stage)
        return await self.deps.withdrawals.CancelWithdrawal(request)


def line_of(outcome: Outcome, sentence: Callable[[pb.Withdrawal], str]) -> Line:
    """Returns the outcome for people."""
    path = f"/withdrawals/{outcome.id}"
    if outcome.is_done:
        return Line(outcome.id, path, sentence(outcome.answer.withdrawal), is_done=True)
    refused = outcome.refused
    if refused is not None and refused.reason == "APPROVAL_REQUIRED":
        asked = f"/approvals/withdrawals/{refused.metadata['approval_id']}"
        return Line(outcome.id, path, sentence_for(refused.reason) or "", asked=asked)
    return Line(outcome.id, path, outcome.sentence)

"""The list of withdrawals as the desk's queues, and one act on several of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

import falcon.asgi

from console.calls import Outcome, each_of
from console.exchange import Request
from console.list_page import Asked, Found
from console.page import Line, Page, leave_for
from console.ui.filters import ORDER, ORDER_OF_OPEN, Tabs
from console.ui.words import sentence_for
from console.withdrawals import words
from console.withdrawals.list import FILTERS, WithdrawalsPage
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
SEVERAL_MOST: Final = 200
BESIDE: Final = words.MENDABLE | {"WITHDRAWAL_NOT_FOUND"}
"""Refusals of one withdrawal, beside which the others go on."""


class DeskWithdrawalsPage(WithdrawalsPage):
    """/withdrawals of all merchants: the queues with the oldest first, the others with the newest."""

    filters = (
        Tabs(
            "stage",
            "Parts",
            {"requested": "Requested", "processing": "Processing", "done": "Done", "all": "All"},
        ),
        *(each for each in FILTERS if each is not ORDER),
        ORDER_OF_OPEN,
    )

    def narrow(self, request: pb.ListAllWithdrawalsRequest, asked: Asked) -> None:
        request.stage = STAGES[asked["stage"]]

    def usual(self, asked: Asked) -> str:
        return "oldest" if asked["stage"] in QUEUES else "newest"

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        """Returns the requests for a second person, by the withdrawal that they are about."""
        values = {"asked": {}, "failures": words.FAILURES}
        if any(words.state_of(each) == "requested" for each in found.rows):
            request = approvals_pb2.ListApprovalsRequest(
                state=approvals_pb2.APPROVAL_STATE_PENDING, limit=1000
            )
            waiting = (await self.deps.approvals["withdrawals"].ListApprovals(request)).approvals
            values["asked"] = {each.object.partition(":")[2]: each.approval_id for each in waiting}
        return values


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

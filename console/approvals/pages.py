"""The list of requests, and one with its decision."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import falcon.asgi

from console.calls import answers_of, or_none
from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Page, leave_for
from console.ui.filters import Choice, Tabs, Text
from console.ui.values import iso, word
from console.ui.words import sentence_for
from console.wiring import Deps
from console.words.approvals import named
from fiatgate.approvals.v1 import approvals_pb2 as pb
from kit.base.proto import most_of
from kit.rpc.errors import Refused, not_found

NOTE_MAX_CHARACTERS: Final = most_of(pb.ApproveRequest, "note")
WAITING: Final = "waiting"
EvidenceOf = Callable[[Page, pb.Approval], Awaitable[Mapping[str, Any]]]
"""Returns the values for the page of a request, `template` among them."""
PATHS: Final = {
    "withdrawal": "/withdrawals/{id}",
    "deal": "/deals/{id}",
    "invoice": "/invoices/{id}",
    "refund": "/refunds/{id}",
    "merchant": "/merchants/{id}",
    "person": "/people/{id}",
    "currency": "/rates/{id}",
}
"""The page of the thing that a request is about, by its kind."""
ENDS: Final = frozenset(
    {
        "STEP_UP_REQUIRED",
        "SESSION_INVALID",
        "NOT_PERMITTED",
        "ACTOR_INVALID",
        "DB_UNAVAILABLE",
        "INTERNAL_ERROR",
        "RATE_LIMITED",
        "APPROVAL_NOT_FOUND",
    }
)
"""The refusals of a decision that end in a page of their own. All others, of the requested change too, are shown on the
page of the request.
"""


class ApprovalsPage(ListPage):
    """/approvals and /approvals.csv: what waits, the oldest first; what is decided, the newest first."""

    link = "/approvals"
    template = "approvals"
    csv_name = "approvals"
    columns = (
        "approval_id",
        "service",
        "state",
        "requested_at",
        "requested_by",
        "act",
        "object",
        "merchant_id",
        "summary",
        "note",
        "decided_at",
        "decided_by",
        "decision_note",
    )
    filters = (
        Tabs("state", "Parts", {WAITING: "Waiting", "decided": "Decided"}),
        Choice(
            "service",
            "Service",
            {
                "": "Any",
                "withdrawals": "withdrawals",
                "invoices": "deals and late money",
                "catalog": "rates",
                "identity": "people",
            },
        ),
        Text("object", "About", hint="withdrawal:0197…"),
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        is_waiting = asked["state"] == WAITING
        request = pb.ListApprovalsRequest(
            object=asked["object"],
            after_approval_id=asked.after,
            limit=asked.limit,
            oldest_first=is_waiting,
            decided=not is_waiting,
        )
        if is_waiting:
            request.state = pb.APPROVAL_STATE_PENDING
        all_of = self.deps.approvals
        services = {asked["service"]: all_of[asked["service"]]} if asked["service"] else all_of
        answers, away = await answers_of({name: of.ListApprovals(request) for name, of in services.items()})
        approvals = [each for answer in answers for each in answer.approvals]
        # Their ids are UUIDv7, so their order is that of time.
        approvals.sort(key=lambda each: each.approval_id, reverse=not is_waiting)
        names = await self.names(*(each.merchant_id for each in approvals[: asked.limit]))
        return asked.found(
            approvals[: asked.limit],
            after=lambda row: row.approval_id,
            away=away,
            is_waiting=is_waiting,
            sentences={each.approval_id: named(each.summary, each.merchant_id, names) for each in approvals},
        )

    def cells(self, row: pb.Approval, found: Found) -> Sequence[str]:
        return (
            row.approval_id,
            row.service,
            word(row, "state"),
            iso(row.requested_at),
            row.requested_by,
            row.act,
            row.object,
            row.merchant_id,
            row.summary,
            row.note,
            iso(row.decided_at),
            row.decided_by,
            row.decision_note,
        )


class ApprovalPage(Page):
    """/approvals/{service}/{approval_id}: what approval does, its requester, the decision."""

    link = "/approvals"

    def __init__(self, deps: Deps, evidence: Mapping[str, EvidenceOf]) -> None:
        super().__init__(deps)
        self._evidence = evidence

    async def on_get(self, req: Request, resp: falcon.asgi.Response, service: str, approval_id: str) -> None:
        await self._show(req, resp, service, approval_id)

    on_head = on_get

    async def on_post_approve(
        self, req: Request, resp: falcon.asgi.Response, service: str, approval_id: str
    ) -> None:
        """Does what was requested. The link of an invitation is shown once."""
        form = await self.form(req)
        note = form.prose("note", most=NOTE_MAX_CHARACTERS)
        self._require_known(service)
        try:
            request = pb.ApproveRequest(approval_id=approval_id, note=note)
            approved = await self.deps.approvals[service].Approve(request)
        except Refused as refused:
            if refused.reason in ENDS:
                raise
            await self._show(req, resp, service, approval_id, refused=refused, note=note)
            return
        if approved.link:
            self.show(req, resp, "approval-link", link=approved.link, approval=approved.approval)
        else:
            leave_for(resp, _path(service, approval_id), notice="approved")

    async def on_post_reject(
        self, req: Request, resp: falcon.asgi.Response, service: str, approval_id: str
    ) -> None:
        """Rejects the request; that of one's own is withdrawn so."""
        form = await self.form(req)
        note = form.prose("reason", most=NOTE_MAX_CHARACTERS)
        self._require_known(service)
        try:
            request = pb.RejectRequest(approval_id=approval_id, note=note)
            rejected = (await self.deps.approvals[service].Reject(request)).approval
        except Refused as refused:
            if refused.reason in ENDS:
                raise
            await self._show(req, resp, service, approval_id, refused=refused, note=note)
            return
        notice = "request-rejected" if rejected.is_of_another else "request-withdrawn"
        leave_for(resp, _path(service, approval_id), notice=notice)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        service: str,
        approval_id: str,
        *,
        refused: Refused | None = None,
        note: str = "",
    ) -> None:
        self._require_known(service)
        request = pb.GetApprovalRequest(approval_id=approval_id)
        approval = (await self.deps.approvals[service].GetApproval(request)).approval
        kind, _, id = approval.object.partition(":")
        values: dict[str, Any] = {"problem": _sentence(refused)} if refused else {}
        names, seen = await asyncio.gather(self.names(approval.merchant_id), self._seen(approval))
        self.show(
            req,
            resp,
            "approval",
            refused=refused,
            approval=approval,
            path=_path(service, approval.approval_id),
            object_path=self._path_of(req, kind, id),
            names=names,
            summary=named(approval.summary, approval.merchant_id, names),
            may_decide=self.may(req, approval.role or "admin"),
            note=note,
            seen=seen,
            **values,
        )

    async def _seen(self, approval: pb.Approval) -> Mapping[str, Any] | None:
        """Returns the evidence that the second person compares; None for another act, or while a service is away."""
        evidence = self._evidence.get(approval.act)
        return await or_none(evidence(self, approval)) if evidence else None

    def _path_of(self, req: Request, kind: str, id: str) -> str:
        """Returns the address of the thing; empty when it has no page that the person may open."""
        path = PATHS.get(kind, "").format(id=id)
        return path if self.deps.pages.opens(req, f"/{path.split('/')[1]}" if path else "") else ""

    def _require_known(self, service: str) -> None:
        if service not in self.deps.approvals:
            raise not_found("APPROVAL_NOT_FOUND", "No service of this name has requests")


def _path(service: str, approval_id: str) -> str:
    return f"/approvals/{service}/{approval_id}"


def _sentence(refused: Refused) -> str:
    """Returns the sentence of a decision that was refused: that of the requested change may be its own."""
    says_more = refused.reason == "APPROVAL_STATE_CONFLICT" and "decided_by" not in refused.metadata
    sentence = None if says_more else sentence_for(refused.reason, refused)
    return sentence or f"{refused.message.rstrip('.')}. Nothing was changed."

"""The queue: deals that wait for a decision, the selected one with its evidence beside them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from console.calls import or_none
from console.deals.evidence import evidence_of, notice_of
from console.deals.words import tone
from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.ui.beside import following, selected_of
from console.ui.choices import catalog_choices
from console.ui.filters import (
    DAYS,
    ORDER,
    ORDER_OF_OPEN,
    SINCE,
    UNTIL,
    Amount,
    Choice,
    Merchant,
    Tabs,
    Text,
    set_order,
)
from console.ui.values import iso, queried
from console.words.deals import AWAITING_CONFIRMATION, AWAITING_PAYMENT, OVERDUE
from console.words.states import words_of
from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.codes import in_groups
from kit.rpc.errors import Refused

REQUESTS_MOST: Final = 1000
MARKED: Final = "marked"
ALL: Final = "all"
TABS: Final = {
    MARKED: "Marked paid",
    "appeals": "Appeals",
    "overdue": "Overdue",
    "unpaid": "Not paid yet",
    ALL: "All",
}
STATES: Final[Mapping[str, tuple[pb.DealStatus.ValueType, str]]] = {
    MARKED: (pb.DEAL_STATUS_PENDING, AWAITING_CONFIRMATION),
    "appeals": (pb.DEAL_STATUS_APPEAL, ""),
    "overdue": (pb.DEAL_STATUS_APPEAL, OVERDUE),
    "unpaid": (pb.DEAL_STATUS_PENDING, AWAITING_PAYMENT),
    ALL: (pb.DEAL_STATUS_UNSPECIFIED, ""),
}
"""The status and sub_status of the deals of each tab."""


@dataclass(frozen=True)
class Listed:
    deal: pb.Deal
    context: pb.DealContext

    @property
    def state(self) -> str:
        return words_of(self.deal.sub_status)

    @property
    def tone(self) -> str:
        return tone(self.deal.status)

    @property
    def to_send(self) -> str:
        return self.deal.amount_to_send

    @property
    def reference(self) -> str:
        return in_groups(self.deal.reference)


class DealsPage(ListPage):
    """/deals: has the money come? Oldest first; `selected` opens one deal beside the list."""

    link = "/deals"
    template = "deals"
    csv_name = "deals"
    columns = (
        "deal_id",
        "state",
        "opened_at",
        "marked_paid_at",
        "finished_at",
        "amount",
        "part_of_order_paid",
        "currency",
        "account",
        "holder",
        "reference",
        "sender",
        "merchant_id",
        "merchant",
        "order",
        "customer",
        "method",
        "invoice_id",
    )
    filters = (
        Tabs("state", "State", TABS, counts={MARKED: "deals_marked", "appeals": "appeals"}),
        Text("account", "Account"),
        Amount("amount_from", "Amount from"),
        Amount("amount_to", "Amount to"),
        Text("reference", "Reference"),
        Text("sender", "Sender", of="sender_name"),
        Merchant(),
        Text("order", "Order", of="external_id"),
        Text("customer", "Customer", of="customer_id"),
        Choice("method", "Method", of="payment_method_code"),
        Choice("currency", "Currency", of="currency_code"),
        *DAYS,
        ORDER_OF_OPEN,
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        status, sub_status = STATES[asked["state"]]
        request = pb.ListDealsRequest(
            status=status,
            sub_status=sub_status,
            marked_paid=asked["state"] == MARKED,
            account=asked["account"],
            amount_from=asked["amount_from"],
            amount_to=asked["amount_to"],
            reference=asked["reference"],
            sender_name=asked["sender"],
            merchant_id=asked["merchant"],
            external_id=asked["order"],
            customer_id=asked["customer"],
            payment_method_code=asked["method"],
            currency_code=asked["currency"],
            after_deal_id=asked.after,
            limit=asked.limit,
        )
        if begin := SINCE.begin(asked["since"]):
            request.created_from.FromDatetime(begin)
        if end := UNTIL.end(asked["until"]):
            request.created_before.FromDatetime(end)
        sort = set_order(request, asked[ORDER.name], usual="newest" if asked["state"] == ALL else "oldest")
        answer = await self.deps.deals.ListDeals(request)
        listed = [Listed(*each) for each in zip(answer.deals, answer.contexts, strict=True)]
        names = await self.names(*(each.deal.merchant_id for each in listed))
        values: dict[str, Any] = {"names": names, "sort": sort}
        if answer.reached_deal_id:
            values["reached_at"] = answer.reached_at
            return Found(listed, answer.reached_deal_id, values=values)
        return asked.found(listed, after=lambda row: row.deal.deal_id, **values)

    def cells(self, row: Listed, found: Found) -> Sequence[str]:
        deal, context = row.deal, row.context
        return (
            deal.deal_id,
            row.state,
            iso(deal.created_at),
            iso(deal.mark_paid_at),
            iso(deal.finished_at),
            deal.amount_to_send,
            deal.adjusted_amount,
            deal.currency_code,
            context.account,
            context.holder,
            row.reference,
            deal.sender_name,
            deal.merchant_id,
            found.values["names"].get(deal.merchant_id, ""),
            context.external_id,
            context.customer_id,
            deal.payment_method_code,
            deal.invoice_id,
        )

    async def choices(self, req: Request) -> Mapping[str, Mapping[str, str]]:
        return await catalog_choices(self.deps.catalog.GetCatalog(catalog_pb2.GetCatalogRequest()))

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        """Returns the selected deal with its evidence: the one that the address names, or the first one."""
        state, ids = self._given(req)["state"], [row.deal.deal_id for row in found.rows]
        selected = selected_of(req, ids, or_first=state != ALL)
        values: dict[str, Any] = {
            "state": state,
            "selected": selected,
            "is_chosen": bool(req.get_param("selected") or req.get_param("next")),
            "back": self._here(req),
            "next_id": following(ids, selected),
            "evidence": None,
            "counted": None,
            "awaiting_approval": await self._awaiting_approval(state) if ids else (),
            "received": "",
            "amount": "",
            "note": "",
        }
        values |= await notice_of(self, req)
        if selected:
            try:
                values["evidence"] = await evidence_of(self, selected)
            except Refused as refused:
                if refused.reason != "DEAL_NOT_FOUND":
                    raise
        return values

    async def _awaiting_approval(self, state: str) -> Collection[str]:
        """Returns the deals with a request for a second person: only appeals have one."""
        if state not in ("appeals", "overdue"):
            return ()
        request = approvals_pb2.ListApprovalsRequest(
            state=approvals_pb2.APPROVAL_STATE_PENDING, limit=REQUESTS_MOST
        )
        found = await or_none(self.deps.approvals["invoices"].ListApprovals(request))
        return {each.object.removeprefix("deal:") for each in found.approvals} if found else ()

    def _here(self, req: Request) -> str:
        """Returns the address of this page of the list, without the selected deal."""
        given = {each.name: req.get_param(each.name) or "" for each in self.filters}
        return queried("/deals", given | {"after": self._after(req)} | self._limit_given(req))

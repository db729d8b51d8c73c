"""One merchant: its state, its settings in groups, and what is left to do for a new one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final

import falcon.asgi

from console.calls import or_none
from console.exchange import Request
from console.file_page import FilePage
from console.options import (
    GROUPS,
    change_of,
    items_of,
    logo_of,
    typed_in,
    values_of,
    was_in,
)
from console.page import leave_for
from console.ui.values import percent
from console.ui.words import FIELDS
from console.words.late_money import POLICIES
from fiatgate.accounts.v1 import accounts_pb2
from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.rpc.errors import Refused, not_found

OPEN_DEALS_COUNTED: Final = 20
REQUESTS_READ: Final = 200
MENDABLE: Final = frozenset(
    {"VALIDATION_ERROR", "MERCHANT_CATEGORY_NOT_FOUND", "EDIT_CONFLICT", "MERCHANT_STATE_CONFLICT"}
)


class OneMerchant(FilePage):
    """The base of the pages of one merchant, which share their heading and their tabs."""

    link = "/merchants"

    async def merchant(self, merchant_id: str) -> pb.Merchant:
        """Returns the merchant. Raises MERCHANT_NOT_FOUND."""
        request = pb.GetMerchantRequest(merchant_id=merchant_id)
        return (await self.deps.merchants.GetMerchant(request)).merchant

    def show_merchant(
        self, req: Request, resp: falcon.asgi.Response, template: str, merchant: pb.Merchant, **values: Any
    ) -> None:
        self.show(req, resp, template, merchant=merchant, **values)


class MerchantPage(OneMerchant):
    """/merchants/{merchant_id}, and its settings and states."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response, merchant_id: str) -> None:
        await self._show(req, resp, merchant_id)

    on_head = on_get

    async def on_post_settings(self, req: Request, resp: falcon.asgi.Response, merchant_id: str) -> None:
        """Changes the settings of one group that differ from what the form was made from."""
        form = await self.form(req)
        group = GROUPS.get(form.text("group"))
        if group is None:
            raise not_found("NOT_FOUND", "There is no such group of settings")
        typed, was = typed_in(form, group.fields), was_in(form, group.fields)
        request = change_of(pb.ConfigureMerchantRequest, merchant_id, typed, was)
        path = f"/merchants/{merchant_id}"
        if request is None:
            leave_for(resp, path, notice="merchant-unchanged")
            return
        try:
            await self.deps.merchants.ConfigureMerchant(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, merchant_id, refused=refused, typed=typed, was=was)
        else:
            leave_for(resp, path, notice="merchant-changed")

    async def on_post_activate(self, req: Request, resp: falcon.asgi.Response, merchant_id: str) -> None:
        await self.form(req)
        request = pb.ActivateMerchantRequest(merchant_id=merchant_id)
        await self._leave(resp, merchant_id, self.deps.merchants.ActivateMerchant(request), "activated")

    async def on_post_ban(self, req: Request, resp: falcon.asgi.Response, merchant_id: str) -> None:
        await self.form(req)
        request = pb.BanMerchantRequest(merchant_id=merchant_id)
        await self._leave(resp, merchant_id, self.deps.merchants.BanMerchant(request), "banned")

    async def on_post_unban(self, req: Request, resp: falcon.asgi.Response, merchant_id: str) -> None:
        await self.form(req)
        request = pb.UnbanMerchantRequest(merchant_id=merchant_id)
        await self._leave(resp, merchant_id, self.deps.merchants.UnbanMerchant(request), "unbanned")

    async def _leave(
        self, resp: falcon.asgi.Response, merchant_id: str, change: Awaitable[object], word: str
    ) -> None:
        path = f"/merchants/{merchant_id}"
        await self.leave_after(resp, change, path, notice=f"merchant-{word}", mendable=MENDABLE)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        merchant_id: str,
        *,
        refused: Refused | None = None,
        typed: Mapping[str, str] | None = None,
        was: Mapping[str, str] | None = None,
    ) -> None:
        """Shows the merchant; a form that was refused with what was typed, and still made from what it was made from,
        but for the setting that another person changed: after its present value was read, it may be replaced.
        """
        merchant = await self.merchant(merchant_id)
        categories, catalog, owner, steps, open_deals, waiting = await asyncio.gather(
            self.deps.merchants.ListCategories(pb.ListCategoriesRequest()),
            or_none(self.deps.catalog.GetCatalog(catalog_pb2.GetCatalogRequest())),
            self.deps.merchants.GetOwner(pb.GetOwnerRequest(owner=merchant.owner_email)),
            self._next_steps(req, merchant),
            self._open_deals(req, merchant),
            self._waiting(req, merchant),
        )
        now = values_of(merchant)
        conflict = refused.metadata["field"] if refused and refused.reason == "EDIT_CONFLICT" else ""
        self.show_merchant(
            req,
            resp,
            "merchant-settings",
            merchant,
            refused=refused,
            groups=GROUPS.values(),
            labels=FIELDS,
            late_money=POLICIES,
            values=now | dict(typed or {}),
            was=now | {field: text for field, text in (was or {}).items() if field != conflict},
            categories=category_words(categories.categories, now["category_code"]),
            codes={
                "allowed_currencies": _boxes(catalog and _currency_words(catalog), now["allowed_currencies"]),
                "allowed_methods": _boxes(catalog and _method_words(catalog), now["allowed_methods"]),
            },
            owner=owner.owner,
            steps=steps,
            open_deals=open_deals,
            waiting=waiting,
            logo=logo_of(merchant),
        )

    async def _next_steps(self, req: Request, merchant: pb.Merchant) -> Sequence[tuple[bool, str, str]]:
        """Returns what a merchant needs before it can take money: whether it is done, what, and the page for it.
        Nothing for people who may not do it, and when all is done.
        """
        if not self.may(req):
            return ()
        request = pb.ListApiKeysRequest(merchant_id=merchant.merchant_id)
        members = accounts_pb2.ListPeopleRequest(merchant_id=merchant.merchant_id, limit=1)
        invited = accounts_pb2.ListInvitationsRequest(merchant_id=merchant.merchant_id)
        keys, people, invitations = await asyncio.gather(
            self.deps.merchants.ListApiKeys(request),
            self.deps.people.ListPeople(members),
            self.deps.people.ListInvitations(invited),
        )
        path = f"/merchants/{merchant.merchant_id}"
        steps = (
            (merchant.HasField("category_commission"), "Choose its category", f"{path}#terms"),
            (merchant.status != pb.MERCHANT_STATUS_INACTIVE, "Activate it", f"{path}#state"),
            (any(each.active for each in keys.keys), "Make an API key", f"{path}/keys"),
            (bool(people.people or invitations.invitations), "Invite its owner", f"{path}/people/invite"),
            (merchant.HasField("callback_url"), "Set the address for webhooks", f"{path}#addresses"),
        )
        return () if all(done for done, *_ in steps) else steps

    async def _waiting(self, req: Request, merchant: pb.Merchant) -> Sequence[approvals_pb2.Approval]:
        """Returns the requests about the merchant that wait for a second person, for people who see all requests."""
        if not self.may(req):
            return ()
        request = approvals_pb2.ListApprovalsRequest(
            state=approvals_pb2.APPROVAL_STATE_PENDING,
            merchant_id=merchant.merchant_id,
            limit=REQUESTS_READ,
        )
        answers = await asyncio.gather(
            or_none(self.deps.approvals["withdrawals"].ListApprovals(request)),
            or_none(self.deps.approvals["invoices"].ListApprovals(request)),
        )
        listed = [each for answer in answers if answer is not None for each in answer.approvals]
        return [each for each in listed if each.merchant_id == merchant.merchant_id]

    async def _open_deals(self, req: Request, merchant: pb.Merchant) -> str:
        """Returns the number of open deals, counted to a bound, for the question before a ban."""
        if not self.may(req) or merchant.status == pb.MERCHANT_STATUS_BANNED:
            return ""
        request = invoices_pb2.ListDealsRequest(
            merchant_id=merchant.merchant_id,
            status=invoices_pb2.DEAL_STATUS_PENDING,
            limit=OPEN_DEALS_COUNTED,
        )
        found = await or_none(self.deps.deals.ListDeals(request))
        if found is None:
            return "an unknown number of"
        return (
            f"{OPEN_DEALS_COUNTED} or more"
            if len(found.deals) == OPEN_DEALS_COUNTED
            else str(len(found.deals))
        )


def category_words(categories: Sequence[pb.Category], present: str) -> Mapping[str, str]:
    """Returns the categories for a choice, with the present one even if it does not exist."""
    words = {each.code: f"{each.code}: {percent(each.commission)}" for each in categories}
    missing = {present: f"{present}: no such category"} if present and present not in words else {}
    return {"": "None: no method is offered", **missing, **words}


def _boxes(known: Mapping[str, str] | None, allowed: str) -> Mapping[str, str]:
    """Returns the codes to tick, and what they are; allowed ones even if they do not exist, or catalog is away."""
    words = dict(known or {})
    unknown = "not known now" if known is None else "does not exist"
    return words | {each: unknown for each in items_of(allowed) if each not in words}


def _currency_words(catalog: catalog_pb2.GetCatalogResponse) -> Mapping[str, str]:
    return {each.code: f"{each.name}{'' if each.enabled else ', disabled'}" for each in catalog.currencies}


def _method_words(catalog: catalog_pb2.GetCatalogResponse) -> Mapping[str, str]:
    return {
        each.method_code: f"{each.name}, {each.currency_code}{'' if each.active else ', inactive'}"
        for each in catalog.methods
    }

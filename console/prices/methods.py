"""Payment methods: the list with their free places, one to edit, a new one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import falcon.asgi

from console.calls import or_none
from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Page, leave_for
from console.prices.edits import MENDABLE, as_sent, as_shown, faults_of, next_was, typed_in, was_in, whole
from console.ui.filters import Choice, Tabs
from console.ui.values import word
from fiatgate.catalog.v1 import catalog_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2
from kit.rpc.errors import Refused, not_found

FIELDS: Final = (
    "currency_code",
    "name",
    "min_sum",
    "max_sum",
    "payment_minutes",
    "commission",
    "logo_url",
    "account_kind",
    "takes_reference",
    "active",
)
NEW: Final = dict.fromkeys(("method_code", *FIELDS), "") | {
    "payment_minutes": "30",
    "commission": "0",
    "account_kind": "free",
    "active": "yes",
}
KINDS: Final = {
    "free": "Any text",
    "iban": "IBAN: check digits and length of its country",
    "card": "Card number: 12 to 19 digits with a check digit",
    "phone": "Telephone number with its country code",
    "upi": "UPI address: name@bank",
}


class MethodsPage(ListPage):
    """/methods: all of them, by currency and name, each with its accounts and places."""

    link = "/methods"
    template = "methods"
    csv_name = "methods"
    columns = ("method_code", *FIELDS, "enabled_accounts", "places", "taken")
    filters = (
        Tabs("state", "State", {"": "All", "active": "Active", "inactive": "Inactive", "full": "No place"}),
        Choice("currency", "Currency"),
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        catalog, (places, away) = await asyncio.gather(
            self.deps.catalog.GetCatalog(pb.GetCatalogRequest()), places_of(self)
        )
        currency, state = asked["currency"], asked["state"]
        kept = [
            each
            for each in catalog.methods
            if currency in ("", each.currency_code) and _fits(each, state, places.get(each.method_code))
        ]
        return Found(kept, away=away, values={"places": places})

    async def choices(self, req: Request) -> Mapping[str, Mapping[str, str]]:
        catalog = await self.deps.catalog.GetCatalog(pb.GetCatalogRequest())
        return {"currency": {each.code: f"{each.code} {each.name}" for each in catalog.currencies}}

    def cells(self, row: Any, found: Found) -> Sequence[str]:
        place = found.values["places"].get(row.method_code, invoices_pb2.MethodPlaces())
        numbers = (place.enabled_accounts, place.places, place.taken)
        return (row.method_code, *values_of(row).values(), *map(str, numbers))


def _fits(method: pb.PaymentMethod, state: str, place: invoices_pb2.MethodPlaces | None) -> bool:
    if state == "full":
        return method.active and is_full(place)
    return not state or method.active == (state == "active")


def is_full(place: invoices_pb2.MethodPlaces | None) -> bool:
    """Returns whether customers see the method as unavailable because no enabled account has a free place."""
    return place is None or place.taken >= place.places


async def places_of(page: Page) -> tuple[Mapping[str, invoices_pb2.MethodPlaces], Sequence[str]]:
    """Returns the places of each method, and the names of services that do not answer."""
    found = await or_none(page.deps.deals.ListMethodPlaces(invoices_pb2.ListMethodPlacesRequest()))
    if found is None:
        return {}, ["invoices"]
    return {each.method_code: each for each in found.methods}, []


class MethodPage(Page):
    """/methods/{method_code}, /new-method: one form."""

    link = "/methods"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, method_code: str) -> None:
        values = as_shown(values_of((await catalog_with(self, method_code))[1]))
        await self._show(req, resp, method_code, values, values)

    on_head = on_get

    async def on_get_new(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self._show(req, resp, "", NEW, {})

    on_head_new = on_get_new

    async def on_post(self, req: Request, resp: falcon.asgi.Response, method_code: str) -> None:
        form = await self.form(req)
        typed, was = typed_in(form, FIELDS), was_in(form, FIELDS)
        request = pb.SetPaymentMethodRequest(
            method=message_of(method_code, typed), was=message_of(method_code, was)
        )
        try:
            await self.deps.catalog.SetPaymentMethod(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, method_code, typed, next_was(was, refused), refused=refused)
        else:
            leave_for(resp, f"/methods/{method_code}", notice="method-set")

    async def on_post_new(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        typed = typed_in(form, ("method_code", *FIELDS))
        code = typed["method_code"]
        request = pb.SetPaymentMethodRequest(method=message_of(code, typed), create=True)
        try:
            await self.deps.catalog.SetPaymentMethod(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, "", typed, {}, refused=refused)
        else:
            leave_for(resp, f"/methods/{code}", notice="method-created")

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        code: str,
        values: Mapping[str, str],
        was: Mapping[str, str],
        *,
        refused: Refused | None = None,
    ) -> None:
        (catalog, method), (places, away) = await asyncio.gather(catalog_with(self, code), places_of(self))
        place = places.get(code)
        self.show(
            req,
            resp,
            "method",
            refused=refused,
            code=code,
            method=method,
            values=values,
            was=was,
            errors=faults_of(refused) if refused else {},
            currencies={each.code: f"{each.code} {each.name}" for each in catalog.currencies},
            kinds=KINDS,
            place=place,
            is_full=bool(code) and not away and is_full(place),
            away=away if code else (),
        )


async def catalog_with(page: Page, code: str) -> tuple[pb.GetCatalogResponse, pb.PaymentMethod]:
    """Returns the catalog and the method of it; an empty method for an empty code. Raises PAYMENT_METHOD_NOT_FOUND."""
    catalog = await page.deps.catalog.GetCatalog(pb.GetCatalogRequest())
    if not code:
        return catalog, pb.PaymentMethod()
    for each in catalog.methods:
        if each.method_code == code:
            return catalog, each
    raise not_found("PAYMENT_METHOD_NOT_FOUND", "There is no such payment method")


def values_of(method: pb.PaymentMethod) -> dict[str, str]:
    """Returns each option as the form has it."""
    return {
        "currency_code": method.currency_code,
        "name": method.name,
        "min_sum": method.min_sum,
        "max_sum": method.max_sum,
        "payment_minutes": str(method.payment_minutes),
        "commission": method.commission,
        "logo_url": method.logo_url,
        "account_kind": word(method, "account_kind"),
        "takes_reference": "yes" if method.takes_reference else "",
        "active": "yes" if method.active else "",
    }


def message_of(code: str, values: Mapping[str, str]) -> pb.PaymentMethod:
    """Returns the method that a form describes."""
    values, kind = as_sent(values), values["account_kind"]
    return pb.PaymentMethod(
        method_code=code,
        currency_code=values["currency_code"],
        name=values["name"],
        min_sum=values["min_sum"],
        max_sum=values["max_sum"],
        payment_minutes=whole(values["payment_minutes"]),
        commission=values["commission"],
        logo_url=values["logo_url"] or None,
        account_kind=pb.AccountKind.Value(f"ACCOUNT_KIND_{(kind if kind in KINDS else 'free').upper()}"),
        takes_reference=bool(values["takes_reference"]),
        active=bool(values["active"]),
    )

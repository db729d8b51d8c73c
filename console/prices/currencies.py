"""Currencies: the list, one to edit, a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import falcon.asgi

from console.calls import or_none
from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Page, leave_for
from console.prices.edits import MENDABLE, as_sent, as_shown, faults_of, next_was, typed_in, was_in, whole
from console.ui.filters import Tabs
from console.words.rates import markup_in_effect
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.rpc.errors import Refused, not_found

FIELDS: Final = ("name", "symbol", "decimals", "min_amount", "max_amount", "markup", "enabled")
NEW: Final = dict.fromkeys(("code", *FIELDS), "") | {"decimals": "2", "markup": "0", "enabled": "yes"}


class CurrenciesPage(ListPage):
    """/currencies: all of them, by code."""

    link = "/currencies"
    template = "currencies"
    csv_name = "currencies"
    columns = ("code", *FIELDS)
    filters = (Tabs("state", "State", {"": "All", "enabled": "Enabled", "disabled": "Disabled"}),)

    async def rows(self, req: Request, asked: Asked) -> Found:
        catalog = await self.deps.catalog.GetCatalog(pb.GetCatalogRequest())
        states = {"": (True, False), "enabled": (True,), "disabled": (False,)}[asked["state"]]
        methods: dict[str, int] = {}
        for each in catalog.methods:
            methods[each.currency_code] = methods.get(each.currency_code, 0) + each.active
        return Found(
            [each for each in catalog.currencies if each.enabled in states], values={"methods": methods}
        )

    def cells(self, row: Any, found: Found) -> Sequence[str]:
        return (row.code, *values_of(row).values())


class CurrencyPage(Page):
    """/currencies/{currency_code}, /new-currency: one form."""

    link = "/currencies"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, currency_code: str) -> None:
        values = as_shown(values_of(await self._found(currency_code)))
        await self._show(req, resp, currency_code, values, values)

    on_head = on_get

    async def on_get_new(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self._show(req, resp, "", NEW, {})

    on_head_new = on_get_new

    async def on_post(self, req: Request, resp: falcon.asgi.Response, currency_code: str) -> None:
        form = await self.form(req)
        typed, was = typed_in(form, FIELDS), was_in(form, FIELDS)
        request = pb.SetCurrencyRequest(
            currency=_message(currency_code, typed), was=_message(currency_code, was)
        )
        try:
            await self.deps.catalog.SetCurrency(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, currency_code, typed, next_was(was, refused), refused=refused)
        else:
            leave_for(resp, f"/currencies/{currency_code}", notice="currency-set")

    async def on_post_new(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        typed = typed_in(form, ("code", *FIELDS))
        code = typed["code"].upper()
        request = pb.SetCurrencyRequest(currency=_message(code, typed), create=True)
        try:
            await self.deps.catalog.SetCurrency(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, "", typed, {}, refused=refused)
        else:
            leave_for(resp, f"/currencies/{code}", notice="currency-created")

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
        errors = faults_of(refused) if refused else {}
        rates = await or_none(self.deps.catalog.ListRates(pb.ListRatesRequest())) if code else None
        states = (each for each in rates.rates if each.currency_code == code) if rates else ()
        rate = next((each.in_force for each in states if each.HasField("in_force")), None)
        effect = markup_in_effect(rate) if rate else ""
        page = {"code": code, "values": values, "was": was, "errors": errors, "rate": rate, "effect": effect}
        self.show(req, resp, "currency", refused=refused, **page)

    async def _found(self, code: str) -> pb.Currency:
        catalog = await self.deps.catalog.GetCatalog(pb.GetCatalogRequest())
        for each in catalog.currencies:
            if each.code == code:
                return each
        raise not_found("CURRENCY_NOT_FOUND", "There is no such currency")


def values_of(currency: pb.Currency) -> dict[str, str]:
    """Returns each option as the form has it."""
    return {
        "name": currency.name,
        "symbol": currency.symbol,
        "decimals": str(currency.decimals),
        "min_amount": currency.min_amount,
        "max_amount": currency.max_amount,
        "markup": currency.markup,
        "enabled": "yes" if currency.enabled else "",
    }


def _message(code: str, values: Mapping[str, str]) -> pb.Currency:
    values = as_sent(values)
    return pb.Currency(
        code=code,
        name=values["name"],
        symbol=values["symbol"],
        decimals=whole(values["decimals"]),
        min_amount=values["min_amount"],
        max_amount=values["max_amount"],
        markup=values["markup"],
        enabled=bool(values["enabled"]),
    )

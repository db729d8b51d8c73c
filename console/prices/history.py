"""One currency's rate: its course, the acts on it, each rate that was ever accepted; set by hand, accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

import falcon.asgi

from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import leave_for
from console.prices.rates import (
    MENDABLE,
    answers_of,
    card,
    guard_of,
    jump_of,
    moment,
    requests_waiting,
)
from console.ui import charts
from console.ui.acts import moments_of
from console.ui.filters import Choice, Tabs
from console.ui.values import iso, word
from console.ui.words import VALID
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.money import plainly
from kit.rpc.errors import Refused, invalid, not_found

SPANS: Final[Mapping[str, tuple[timedelta, timedelta]]] = {
    "": (timedelta(days=1), timedelta(hours=1)),
    "week": (timedelta(days=7), timedelta(hours=6)),
    "month": (timedelta(days=30), timedelta(days=1)),
}
"""The length of each span, and of its steps."""
RATE_MAX_CHARACTERS: Final = 32
_CLOCK: Final = SystemClock()


class RatePage(ListPage):
    """/rates/{currency_code}?span=week: the rate now, its course as a chart with its table, and the acts on it."""

    link = "/rates"
    template = "rate"
    csv_name = "rate"
    columns = ("since", "lowest", "highest", "last", "accepted", "by_operators")
    filters = (Tabs("span", "Span", {"": "24 hours", "week": "7 days", "month": "30 days"}),)

    async def rows(self, req: Request, asked: Asked) -> Found:
        span, step = SPANS[asked["span"]]
        request = pb.GetRateHistoryRequest(
            currency_code=asked.params["currency_code"], step_seconds=int(step.total_seconds())
        )
        # The steps begin at full hours and days: the last one ends with the present one.
        now = timedelta(seconds=int(_CLOCK.now().timestamp()))
        until = -(-now // step) * step
        request.until.FromSeconds(int(until.total_seconds()))
        request.since.FromSeconds(int((until - span).total_seconds()))
        history = await self.deps.catalog.GetRateHistory(request)
        return Found(list(reversed(history.steps)), values={"history": history})

    def cells(self, row: Any, found: Found) -> Sequence[str]:
        return (
            iso(row.at),
            row.lowest,
            row.highest,
            row.last,
            str(row.accepted),
            str(row.by_operators),
        )

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        code = req.path.split("/")[2]
        rates = await self.deps.catalog.ListRates(pb.ListRatesRequest())
        state = next((each for each in rates.rates if each.currency_code == code), None)
        if state is None:
            raise not_found("CURRENCY_NOT_FOUND", "There is no such currency")
        acts = found.values["history"].acts if "history" in found.values else ()
        return {
            "card": card(state, rates, await requests_waiting(self)),
            "guard": guard_of(rates),
            "chart": _chart(code, list(reversed(found.rows)), req.get_param("span") or ""),
            "moments": moments_of(acts),
            "typed": "",
            "valid": "",
            "valid_words": VALID,
            "jump": None,
        }

    async def on_post_set(self, req: Request, resp: falcon.asgi.Response, currency_code: str) -> None:
        """Sets the rate, at once inside the jump guard; outside it, the second form requests it."""
        form = await self.form(req)
        typed = plainly(form.line("rate", most=RATE_MAX_CHARACTERS), grouped=False)
        valid = form.text("valid") or "hour"
        if valid not in VALID:
            raise invalid("VALIDATION_ERROR", "Expected one of the choices", field="valid")
        request = pb.SetRateRequest(
            currency_code=currency_code,
            rate=typed,
            anyway=form.text("anyway") == "on",
            validity=pb.RateValidity.Value(f"RATE_VALIDITY_{valid.upper()}"),
        )
        try:
            await self.deps.catalog.SetRate(request)
        except Refused as refused:
            await self._mend(req, resp, currency_code, refused, typed=typed, valid=valid)
        else:
            leave_for(resp, f"/rates/{currency_code}", notice="rate-set")

    async def on_post_accept(self, req: Request, resp: falcon.asgi.Response, currency_code: str) -> None:
        form = await self.form(req)
        expected = form.line("expected", most=RATE_MAX_CHARACTERS)
        request = pb.AcceptRateRequest(currency_code=currency_code, expected_source_rate=expected)
        try:
            await self.deps.catalog.AcceptRate(request)
        except Refused as refused:
            if refused.reason == "EDIT_CONFLICT":
                leave_for(resp, f"/rates/{currency_code}", problem="other_rate_held")
                return
            await self._mend(req, resp, currency_code, refused)
        else:
            leave_for(resp, f"/rates/{currency_code}", notice="rate-accepted")

    async def _mend(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        code: str,
        refused: Refused,
        *,
        typed: str = "",
        valid: str = "",
    ) -> None:
        if refused.reason not in MENDABLE:
            raise refused
        values = {"typed": typed, "valid": valid, "jump": jump_of(typed, valid, refused)}
        await self.answer(req, resp, refused=refused, values=values, params={"currency_code": code})


def _chart(code: str, steps: Sequence[pb.RateStep], span: str) -> charts.Chart:
    labels = [f"{moment(each.at):{'%H:%M' if not span else '%-d %b'}}" for each in steps]
    series = [
        (name, [Decimal(getattr(each, name)) for each in steps]) for name in ("last", "lowest", "highest")
    ]
    return charts.lines(f"{code} per USDT, before the markup", labels, series, from_zero=False)


class AcceptedPage(ListPage):
    """/rates/{currency_code}/accepted: each rate in the order of acceptance, with the answers of its sources."""

    link = "/rates"
    template = "rates-accepted"
    csv_name = "rates"
    columns = ("number", "taken_at", "source_rate", "origin", "sources")
    filters = (Choice("by", "Put in force by", {"": "all", "operators": "operators"}),)

    async def rows(self, req: Request, asked: Asked) -> Found:
        after = asked.after if asked.after.isascii() and asked.after.isdigit() else "0"
        request = pb.ListAcceptedRatesRequest(
            currency_code=asked.params["currency_code"],
            by_operators=asked["by"] == "operators",
            after_number=int(after[:18]),
            limit=asked.limit,
        )
        found = (await self.deps.catalog.ListAcceptedRates(request)).rates
        return asked.found(
            found, after=lambda row: str(row.number), currency_code=asked.params["currency_code"]
        )

    def cells(self, row: Any, found: Found) -> Sequence[str]:
        return (str(row.number), iso(row.taken_at), row.source_rate, word(row, "origin"), answers_of(row))

"""The rates in force: their sources and age, the time until they lapse, and those that the jump guard holds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import falcon.asgi

from console.calls import or_none
from console.exchange import Request
from console.file_page import FilePage, Lines
from console.page import Page
from console.ui.values import iso, word
from console.words.rates import markup_in_effect
from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.money import parse_decimal
from kit.rpc.errors import Refused

MENDABLE: Final = frozenset(
    {"VALIDATION_ERROR", "RATE_JUMPS", "RATE_NOT_HELD", "APPROVAL_REQUIRED", "APPROVAL_STATE_CONFLICT"}
)
_CLOCK: Final = SystemClock()


@dataclass(frozen=True)
class RateCard:
    """A currency's rate as the pages show it.

    state     one word: held, fresh, lapsing (less than a fifth of its time is left), lapsed, none, disabled
    asked     the address of the request that waits for a second person; empty: none does
    seconds   the time until the rate lapses; None: it counts until it is replaced
    whole_seconds  the time for which the rate counts
    answered  the number of sources that answered when the rate was taken
    """

    rate: pb.RateState
    state: str
    asked: str
    seconds: int | None
    whole_seconds: int
    answered: int

    @property
    def markup_in_effect(self) -> str:
        return markup_in_effect(self.rate.in_force)

    @property
    def lapse(self) -> int:
        """The time that is left, in percent of the whole."""
        return (
            100 if self.seconds is None else max(0, min(100, round(100 * self.seconds / self.whole_seconds)))
        )


@dataclass(frozen=True)
class Jump:
    """A rate that a person typed and the jump guard refused."""

    rate: str
    valid: str
    before: str
    change_percent: str
    most_percent: str


class RatesPage(FilePage):
    """/rates: each currency's rate, the held ones first."""

    link = "/rates"
    csv_name = "rates-now"
    columns = (
        *("currency", "state", "rate", "source_rate", "markup", "origin", "taken_at", "lapses_at"),
        *("held_source_rate", "held_change_percent", "sources"),
    )

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        rates = await self.deps.catalog.ListRates(pb.ListRatesRequest())
        cards = _cards(rates, await requests_waiting(self))
        has_sources = any(each.rate.source_names for each in cards)
        csv = self.file(req)
        self.show(req, resp, "rates", cards=cards, guard=guard_of(rates), has_sources=has_sources, csv=csv)

    on_head = on_get

    async def lines(self, req: Request, **params: str) -> AsyncGenerator[Lines]:
        rates = await self.deps.catalog.ListRates(pb.ListRatesRequest())
        yield [_cells(each) for each in _cards(rates, {})]

    async def on_post_pull(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Polls the sources now. A rate that moved too far is held, and the page shows it."""
        await self.form(req)
        pulled = self.deps.catalog.PullRates(pb.PullRatesRequest())
        await self.leave_after(resp, pulled, "/rates", notice="rates-pulled", mendable=())


def _cards(rates: pb.ListRatesResponse, asked: Mapping[str, str]) -> list[RateCard]:
    """Returns the cards in the order of the page: first what an operator has to look after."""
    cards = [card(each, rates, asked) for each in rates.rates]
    return sorted(cards, key=lambda each: (_URGENCY.index(each.state), each.rate.currency_code))


def _cells(card: RateCard) -> Sequence[str]:
    rate, now = card.rate, card.rate.in_force
    return (
        *(rate.currency_code, card.state, now.rate, now.source_rate, rate.markup, word(now, "origin")),
        *(iso(now.taken_at), iso(now.fresh_until), rate.held.source_rate, rate.held_change_percent),
        answers_of(rate.held if rate.HasField("held") else now),
    )


def answers_of(rate: pb.Rate | pb.AcceptedRate) -> str:
    """Returns the answer of each source in one cell: "a: 0.9380; b: no answer"."""
    return "; ".join(f"{each.source}: {each.rate or each.error}" for each in rate.sources)


_URGENCY: Final = ("held", "lapsed", "lapsing", "none", "fresh", "disabled")


async def requests_waiting(page: Page) -> Mapping[str, str]:
    """Returns the address of the request that waits for a second person, by the currency's code."""
    request = approvals_pb2.ListApprovalsRequest(state=approvals_pb2.APPROVAL_STATE_PENDING)
    found = await or_none(page.deps.approvals["catalog"].ListApprovals(request))
    return {
        each.object.removeprefix("currency:"): f"/approvals/catalog/{each.approval_id}"
        for each in (found.approvals if found else ())
    }


def card(rate: pb.RateState, rates: pb.ListRatesResponse, asked: Mapping[str, str]) -> RateCard:
    in_force, seconds, most = rate.in_force, None, rates.max_age_seconds or 1
    if in_force.HasField("fresh_until"):
        until, taken_at = (at.ToDatetime(UTC) for at in (in_force.fresh_until, in_force.taken_at))
        seconds = max(0, int((until - _CLOCK.now()).total_seconds()))
        most = int((until - taken_at).total_seconds()) or 1
    return RateCard(
        rate,
        _state(rate, seconds, most),
        asked.get(rate.currency_code, ""),
        seconds,
        most,
        sum(each.HasField("rate") for each in rate.in_force.sources),
    )


def _state(rate: pb.RateState, seconds: int | None, most: int) -> str:
    if not rate.enabled:
        return "disabled"
    if rate.HasField("held"):
        return "held"
    if not rate.HasField("in_force"):
        return "none"
    if not rate.in_force.fresh:
        return "lapsed"
    return "lapsing" if seconds is not None and seconds * 5 < most else "fresh"


def guard_of(rates: pb.ListRatesResponse) -> str:
    """Returns the largest change that the jump guard lets pass, in percent: 10."""
    percent = Decimal(rates.max_jump or 0) * 100
    return f"{percent.normalize():f}"


def jump_of(typed: str, valid: str, refused: Refused) -> Jump | None:
    """Returns what the guard compared, for the question whether a second person shall decide."""
    if refused.reason != "RATE_JUMPS":
        return None
    before, new = Decimal(refused.metadata["rate_before"]), parse_decimal(typed)
    change = (new - before) / before * 100
    return Jump(
        typed,
        valid,
        refused.metadata["rate_before"],
        f"{change:+.2f}",
        f"{Decimal(refused.metadata['most']) * 100:.0f}",
    )


def moment(at: Any) -> datetime:
    """Returns a Timestamp as a time in UTC."""
    found: datetime = at.ToDatetime(UTC)
    return found

"""Post the lines of bank accounts, and read them back (docs/feed.md)."""

from typing import Annotated, Any, Final, Literal

import falcon.asgi
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from fiatgate.bank.v1 import feed_pb2 as pb
from gateway.exchange import Request
from gateway.json.body import NoNul, length, validated
from gateway.json.query import Query, no_query
from gateway.json.replies import time_text
from gateway.wiring import Deps
from kit.base.money import MAX_LENGTH
from kit.base.proto import most_of
from kit.rpc.values import LIST_MOST_ROWS, LIST_ROWS
from kit.web.replies import reply

LINES_MOST: Final = 500


DIRECTION_NAMES: Final = {
    number: name.removeprefix("LINE_DIRECTION_").lower() for name, number in pb.LineDirection.items()
}
STATUS_NAMES: Final = {
    number: name.removeprefix("LINE_STATUS_").lower() for name, number in pb.LineStatus.items()
}
OUTCOME_NAMES: Final = {number: name.removeprefix("OUTCOME_").lower() for name, number in pb.Outcome.items()}
DIRECTIONS: Final = {name: number for number, name in DIRECTION_NAMES.items()}
STATUSES: Final = {name: number for number, name in STATUS_NAMES.items()}
_Day = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


def _most(field: str) -> StringConstraints:
    return StringConstraints(max_length=most_of(pb.PostedLine, field))


class BankLine(BaseModel):
    """One line. Lengths are in characters, unknown fields are ignored, null means absent."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    source_id: Annotated[str, length("source_id", pb.PostedLine), NoNul]
    account: Annotated[str, length("account", pb.PostedLine), NoNul]
    direction: Literal["credit", "debit"]
    amount: Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?$", max_length=MAX_LENGTH)]
    currency_code: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
    status: Literal["pending", "booked", "reversed"]
    booked_on: _Day | None = None
    valued_on: _Day | None = None
    counterparty_name: Annotated[str, _most("counterparty_name"), NoNul] | None = None
    counterparty_account: Annotated[str, _most("counterparty_account"), NoNul] | None = None
    text: Annotated[str, _most("text"), NoNul] | None = None
    end_to_end_id: Annotated[str, _most("end_to_end_id"), NoNul] | None = None

    def message(self) -> pb.PostedLine:
        given = self.model_dump(exclude_none=True)
        given |= {"direction": DIRECTIONS[self.direction], "status": STATUSES[self.status]}
        return pb.PostedLine(**given)


class PostLines(BaseModel):
    """The body of a post."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    lines: Annotated[list[BankLine], Field(max_length=LINES_MOST)]


class LinesResource:
    """POST and GET /feed/v1/lines."""

    def __init__(self, deps: Deps) -> None:
        self._feed = deps.feed

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        no_query(req.query_string)
        await req.exchange.receive_body()
        wanted = validated(PostLines, req, has_objects=True)
        request = pb.PostLinesRequest(
            connector_id=req.exchange.connector_id, lines=[line.message() for line in wanted.lines]
        )
        answer = await self._feed.PostLines(request)
        reply(resp, {"successful": True, "data": [outcome_to_json(each) for each in answer.outcomes]})

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        query = Query(req.query_string)
        request = pb.ListPostedLinesRequest(
            connector_id=req.exchange.connector_id,
            source_id=query.text("source_id") or "",
            account=query.text("account") or "",
            limit=query.integer("limit", default=LIST_ROWS, least=1, most=LIST_MOST_ROWS),
            after_line_id=query.text("after_line_id") or "",
        )
        query.check()
        answer = await self._feed.ListPostedLines(request)
        reply(resp, {"successful": True, "data": [line_to_json(each) for each in answer.lines]})


def outcome_to_json(outcome: pb.PostedOutcome) -> dict[str, Any]:
    """Returns `PostedOutcome` of openapi.yaml."""
    return {
        "source_id": outcome.source_id,
        "outcome": OUTCOME_NAMES[outcome.outcome],
        "why": outcome.why or None,
        "line_id": outcome.line_id,
    }


def line_to_json(line: pb.PostedLine) -> dict[str, Any]:
    """Returns `BankLine` of openapi.yaml."""
    return {
        "line_id": line.line_id,
        "source_id": line.source_id,
        "account": line.account,
        "direction": DIRECTION_NAMES[line.direction],
        "amount": line.amount,
        "currency_code": line.currency_code,
        "status": STATUS_NAMES[line.status],
        "booked_on": line.booked_on or None,
        "valued_on": line.valued_on or None,
        "counterparty_name": line.counterparty_name or None,
        "counterparty_account": line.counterparty_account or None,
        "text": line.text or None,
        "end_to_end_id": line.end_to_end_id or None,
        "created_at": time_text(line.created_at),
    }

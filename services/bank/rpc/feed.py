"""FeedService: the methods, and their messages. A wrong value of a line is named before its account is compared."""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, Final

from fiatgate.bank.v1 import feed_pb2 as pb
from kit.base.money import fiat_text
from kit.base.proto import most_of, timestamp_from
from kit.rpc import values
from kit.rpc.methods import Converters, Methods, by_name
from services.bank.domain.lines import Direction, Line, Status
from services.bank.operations import connectors, feed
from services.bank.operations.connectors import Heard, NewConnector
from services.bank.operations.feed import Posted
from services.bank.store.views import LineView

_DIRECTIONS: Final = {pb.LineDirection.Value(f"LINE_DIRECTION_{each.name}"): each for each in Direction}
_STATUSES: Final = {pb.LineStatus.Value(f"LINE_STATUS_{each.name}"): each for each in Status}
_TEXTS: Final = {"source_id": 1, "account": 1} | dict.fromkeys(
    ("counterparty_name", "counterparty_account", "text", "end_to_end_id"), 0
)
"""The fields that are texts, with the fewest characters of each."""


def _new(made: NewConnector) -> dict[str, Any]:
    return {"connector_id": str(made.connector_id), "key": made.key}


def connector_to_message(heard: Heard) -> pb.Connector:
    connector = heard.connector
    pairs = (each.split(":") for each in connector.accounts)
    return pb.Connector(
        connector_id=str(connector.id),
        name=connector.name,
        hint=connector.hint,
        accounts=(pb.FeedAccount(account=account, currency_code=currency) for account, currency in pairs),
        silence_seconds=connector.silence_seconds or 0,
        active=connector.revoked_at is None,
        silent=heard.is_silent,
        heard_at=timestamp_from(connector.heard_at),
        created_at=timestamp_from(connector.created_at),
        revoked_at=timestamp_from(connector.revoked_at),
    )


def accounts_from_message(accounts: Iterable[pb.FeedAccount]) -> list[str]:
    return [connectors.account_of(each.account, each.currency_code) for each in accounts]


def lines_from_message(lines: Sequence[pb.PostedLine]) -> list[Line]:
    """Returns the lines. Raises VALIDATION_ERROR, which names the first wrong value as lines.3.amount."""
    values.at_most("lines", lines, feed.LINES_MOST)
    return [_line(f"lines.{number}", each) for number, each in enumerate(lines)]


def _line(at: str, line: pb.PostedLine) -> Line:
    if line.direction not in _DIRECTIONS:
        raise values.invalid(f"{at}.direction", "Expected credit or debit")
    if line.status not in _STATUSES:
        raise values.invalid(f"{at}.status", "Expected pending, booked or reversed")
    texts = {
        name: values.text(f"{at}.{name}", getattr(line, name), most=most_of(pb.PostedLine, name), least=least)
        for name, least in _TEXTS.items()
    }
    return Line(
        account=texts["account"],
        direction=_DIRECTIONS[line.direction],
        amount=values.decimal(f"{at}.amount", line.amount),
        currency=line.currency_code,
        status=_STATUSES[line.status],
        booked_on=_day(f"{at}.booked_on", line.booked_on),
        valued_on=_day(f"{at}.valued_on", line.valued_on),
        position=at,
        source_id=texts["source_id"],
        counterparty_name=texts["counterparty_name"],
        counterparty_account=texts["counterparty_account"],
        text=texts["text"],
        references=(texts["end_to_end_id"],) if line.end_to_end_id else (),
    )


def _day(field: str, text: str) -> date | None:
    return values.parsed(field, text, date.fromisoformat) if text else None


def _outcome_to_message(posted: Posted) -> pb.PostedOutcome:
    return pb.PostedOutcome(
        source_id=posted.source_id,
        outcome=pb.Outcome.Value(f"OUTCOME_{posted.outcome.name}"),
        why=posted.why,
        line_id=str(posted.line_id),
    )


def _line_to_message(line: LineView) -> pb.PostedLine:
    return pb.PostedLine(
        source_id=feed.source_id_of(line),
        account=line.account,
        direction=pb.LineDirection.Value(f"LINE_DIRECTION_{line.direction.name}"),
        amount=fiat_text(line.amount),
        currency_code=line.currency_code,
        status=pb.LineStatus.Value(f"LINE_STATUS_{line.status.name}"),
        booked_on=line.booked_on.isoformat() if line.booked_on else "",
        valued_on=line.valued_on.isoformat() if line.valued_on else "",
        counterparty_name=line.counterparty_name,
        counterparty_account=line.counterparty_account,
        text=line.text,
        end_to_end_id=line.reference_texts,
        line_id=str(line.id),
        created_at=timestamp_from(line.created_at),
    )


def _all(found: Iterable[Heard]) -> dict[str, Any]:
    return {"connectors": map(connector_to_message, found)}


METHODS: Final[Methods] = {
    "CreateConnector": by_name(connectors.create_connector, _new),
    "ListConnectors": by_name(connectors.list_connectors, _all),
    "RevokeConnector": by_name(
        connectors.revoke_connector, lambda heard: {"connector": connector_to_message(heard)}
    ),
    "FindConnector": by_name(feed.find_connector, lambda id: {"connector_id": str(id)}),
    "PostLines": by_name(feed.post_lines, lambda found: {"outcomes": map(_outcome_to_message, found)}),
    "ListPostedLines": by_name(feed.list_posted_lines, lambda found: {"lines": map(_line_to_message, found)}),
}
FROM_MESSAGE: Final[Converters] = {
    "fiatgate.bank.v1.FeedAccount": accounts_from_message,
    "fiatgate.bank.v1.PostedLine": lines_from_message,
}

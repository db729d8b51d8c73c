"""FeedService: the methods, and their messages."""

from collections.abc import Iterable
from typing import Any, Final

from fiatgate.bank.v1 import feed_pb2 as pb
from kit.base.proto import timestamp_from
from kit.rpc.methods import Converters, Methods, by_name
from services.bank.operations import connectors
from services.bank.operations.connectors import Heard, NewConnector


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


def _all(found: Iterable[Heard]) -> dict[str, Any]:
    return {"connectors": map(connector_to_message, found)}


METHODS: Final[Methods] = {
    "CreateConnector": by_name(connectors.create_connector, _new),
    "ListConnectors": by_name(connectors.list_connectors, _all),
    "RevokeConnector": by_name(
        connectors.revoke_connector, lambda heard: {"connector": connector_to_message(heard)}
    ),
}
FROM_MESSAGE: Final[Converters] = {"fiatgate.bank.v1.FeedAccount": accounts_from_message}

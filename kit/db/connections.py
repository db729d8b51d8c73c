"""The options that a connection carries to PostgreSQL, and the end of its use."""

import select
from functools import partial
from typing import Any

from sqlalchemy import Engine, event, exc
from sqlalchemy.pool import ConnectionPoolEntry

from kit.base.clock import monotonic_seconds
from kit.db.watchdog import WatchedConnection

CONNECT_TIMEOUT_SECONDS = 3
IDLE_IN_TRANSACTION_SECONDS = 15
SILENT_NETWORK_SECONDS = 10
ANSWER_MARGIN_SECONDS = 2
"""Time beyond its own limit of a statement in which the server has to answer."""
POOLED_IDLE_SECONDS = 60
"""A pooled connection that was idle for so long is not used again. The pool gives out the one that was used last, so a
process at rest keeps one or two of some 3 MiB each, and a busy one those that it needs.
"""
PREPARED_IDLE_SECONDS = 600
"""The same for a thread's connection for hot statements: that thread's next call connects anew, which takes some ms."""
_CLOSING_SECONDS = 5
"""The server closes a connection this much later, and so never one that is about to be used."""
# A role may set these for itself (ALTER ROLE), for all later connections. SQL under the service's role must not block
# the service from its tables that way, change what it reads and writes, or make it lose commits in a crash.
_AGAINST_THE_ROLE = {
    "search_path": "public",
    "default_transaction_read_only": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "synchronous_commit": "on",
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "bytea_output": "hex",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "local_preload_libraries": "",
    "quote_all_identifiers": "off",
    "row_security": "off",  # a policy that hides rows is an error
}
_IDLE_SINCE = "idle since"


def arguments(
    name: str,
    of: type[WatchedConnection],
    *,
    statement_timeout_seconds: float,
    lock_timeout_seconds: float,
    idle_seconds: float,
) -> dict[str, Any]:
    """Returns the driver's arguments for a connection of the process `name`; `of` is its class."""
    options = {
        "statement_timeout": int(statement_timeout_seconds * 1000),
        "lock_timeout": int(lock_timeout_seconds * 1000),
        "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_SECONDS * 1000,
        "idle_session_timeout": server_closes_after(idle_seconds),
        "timezone": "UTC",
        # By default PostgreSQL plans a prepared statement with an array anew at each call, because it expects an
        # unknown array to have ten elements: create-invoice took 1,050 us that way, and 400 us with this option.
        "plan_cache_mode": "force_generic_plan",
        **_AGAINST_THE_ROLE,
    }
    return {
        "application_name": name,
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "options": " ".join(f"-c {key}={_escaped(value)}" for key, value in options.items()),
        # A network that carries nothing any more: what was sent stays unacknowledged, or the probes do.
        "tcp_user_timeout": SILENT_NETWORK_SECONDS * 1000,
        "keepalives_idle": SILENT_NETWORK_SECONDS // 2,
        "keepalives_interval": 1,
        "keepalives_count": SILENT_NETWORK_SECONDS // 2,
        # A server that acknowledges and does not answer. It should have ended the statement by itself before.
        "connection_factory": partial(of, answer_seconds=statement_timeout_seconds + ANSWER_MARGIN_SECONDS),
    }


def server_closes_after(idle_seconds: float) -> str:
    """Returns the server's limit for a connection that is used for so long, with its unit."""
    return f"{idle_seconds + _CLOSING_SECONDS}s"


def replace_unusable(engine: Engine, idle_seconds: float) -> None:
    """Replaces pooled connections that were idle for long, and those whose server went away, without a ping.

    A healthy idle connection has nothing to read. One whose server shut down has a last message and an end of file to
    read. So one poll of the socket shows the difference, and a restart of PostgreSQL costs no request.
    """

    def note(_connection: object, record: ConnectionPoolEntry) -> None:
        record.info[_IDLE_SINCE] = monotonic_seconds()

    def check(connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
        now_seconds = monotonic_seconds()
        if now_seconds - record.info.get(_IDLE_SINCE, now_seconds) > idle_seconds:
            raise exc.DisconnectionError("this connection was idle for long")
        poller = select.poll()
        poller.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
        if poller.poll(0):
            raise exc.DisconnectionError("the server closed this connection")

    event.listen(engine, "checkin", note)
    event.listen(engine, "checkout", check)


def _escaped(value: object) -> str:
    """Returns a value for libpq's `options` with its spaces escaped: a space separates two options."""
    return str(value).replace(" ", "\\ ")

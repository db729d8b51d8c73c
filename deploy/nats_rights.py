"""The users of NATS and what each may publish and hear: the one table behind the server of `make run`, the
manifests and the tests.

A user is a process and has its name. It may do what its code does and nothing else: a process that was taken over
can't announce another's facts, and a stranger without a password can do nothing at all. Only `operator`, which is
for people, may purge or delete the stream or change another's consumer. Replies go to inboxes below `_INBOX.<user>`
(`kit.bus`), which no other process hears.

python -m deploy.nats_rights    prints the table as the local overlay includes it
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

STREAM: Final = "FIATGATE"


@dataclass(frozen=True, kw_only=True)
class Rights:
    """Subjects that a user may publish to and subscribe to, with NATS' wildcards; none: nothing."""

    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()

    def permissions(self) -> dict[str, Any]:
        """As the server's configuration has them. An empty list of allowed subjects would allow all."""
        return {"publish": _only(self.publish), "subscribe": _only(self.subscribe)}


def _only(subjects: tuple[str, ...]) -> dict[str, list[str]]:
    return {"allow": list(subjects)} if subjects else {"deny": [">"]}


def _consumes(user: str, durable: str) -> Rights:
    """Rights to make one durable consumer and to take and settle its messages."""
    return Rights(
        publish=(
            f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.{durable}",
            f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{durable}",
            f"$JS.ACK.{STREAM}.{durable}.>",
        ),
        subscribe=(f"_INBOX.{user}.>",),
    )


OPERATOR: Final = "operator"
RIGHTS: Final[Mapping[str, Rights]] = {
    "invoices": Rights(
        publish=(
            "fiatgate.invoices.>",
            "fiatgate-hint.invoice.*",
            *(f"$JS.API.STREAM.{call}.{STREAM}" for call in ("INFO", "CREATE", "UPDATE")),
        ),
        subscribe=("fiatgate-hint.catalog", "_INBOX.invoices.>"),
    ),
    "withdrawals": _consumes("withdrawals", "withdrawals-invoices-finished"),
    "webhooks": _consumes("webhooks", "webhooks-invoices-finished"),
    "catalog": Rights(publish=("fiatgate-hint.catalog",)),
    "gateway": Rights(
        publish=("fiatgate-hint.requests-counted",),
        subscribe=("fiatgate-hint.invoice.*", "fiatgate-hint.requests-counted"),
    ),
    OPERATOR: Rights(publish=(">",), subscribe=(">",)),
}
USERS: Final = tuple(RIGHTS)
PROCESSES: Final = tuple(user for user in USERS if user != OPERATOR)
"""Those that connect by themselves. merchants does not use NATS."""


def authorization(passwords: Mapping[str, str]) -> dict[str, Any]:
    """The block `authorization` of a server's configuration, with everybody's password."""
    users = [
        {"user": user, "password": passwords[user], "permissions": rights.permissions()}
        for user, rights in RIGHTS.items()
    ]
    return {"users": users}


def variable(user: str) -> str:
    """The environment variable of a server on Kubernetes that holds a user's password."""
    return f"{user.upper()}_PASSWORD"


def as_text() -> str:
    """The block `authorization` for a server that finds the passwords in its environment."""
    head = "# Made by `python -m deploy.nats_rights`: who may publish and hear what."
    lines = [head, "authorization {", "  users: ["]
    for user, rights in RIGHTS.items():
        permissions = json.dumps(rights.permissions())
        lines += [f"    {{user: {user}, password: ${variable(user)}", f"     permissions: {permissions}}}"]
    return "\n".join([*lines, "  ]", "}", ""])


if __name__ == "__main__":
    sys.stdout.write(as_text())

"""The users of NATS and the subjects that each may publish to and subscribe to: one table for the server of `make run`,
the manifests and the tests.

A user is a process and has its name. It may do only the things that its code does. A connection without a password may
do nothing. Two walls hold that:

- Permissions: the subjects that a user may publish to and subscribe to.
- Accounts: the stream is in the account `STREAM`, with its owner invoices and with `operator`, who is a person. Every
  other process has an account of its own, into which the server imports the few subjects of other accounts that the
  process needs. Permissions are not enough: the server checks the subject of a request, not the subject of its answer,
  and an answer sent to JetStream's API can purge or delete the stream. An answer never leaves the account that asked.

Replies go to inboxes below `_INBOX.<user>` (`kit.events.bus`), which no other process receives.

python -m deploy.nats_rights    prints the table as the local overlay includes it
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fiatgate.catalog.v1.catalog_pb2 import CatalogChanged
from fiatgate.invoices.v1.invoices_pb2 import InvoiceChanged, InvoiceFinished
from kit.events.subjects import STREAM, durable_of, subject_of

ANSWERS_SECONDS: Final = 2
"""How long an answer can reach another account: a second longer than a request for messages stays open. Short: until
then, and up to twice as long, the server remembers where each answer goes, and a user may ask without end.
"""

CONTROL_LINE_MOST_BYTES: Final = 1024
"""The server's `max_control_line`. Ours are below 500 bytes. It bounds a subject for answers, which the server
remembers. NATS' default is 4096.
"""


@dataclass(frozen=True, kw_only=True)
class Rights:
    """Subjects that a user may publish to and subscribe to, with NATS' wildcards; empty: none."""

    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()

    def permissions(self) -> dict[str, Any]:
        """Returns the permissions for the server's configuration. An empty list of allowed subjects would allow all."""
        return {"publish": _only(self.publish), "subscribe": _only(self.subscribe)}


def _only(subjects: tuple[str, ...]) -> dict[str, list[str]]:
    return {"allow": list(subjects)} if subjects else {"deny": [">"]}


def _consumes(user: str, durable: str) -> Rights:
    """Returns the rights to take and settle the messages of one durable consumer, which invoices makes."""
    return Rights(
        publish=(f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{durable}", f"$JS.ACK.{STREAM}.{durable}.>"),
        subscribe=(f"_INBOX.{user}.>",),
    )


OPERATOR: Final = "operator"
DURABLES: Final = {each: durable_of(InvoiceFinished, each) for each in ("withdrawals", "webhooks")}
_INVOICES: Final = f"{subject_of(InvoiceChanged)}.*"
_CATALOG: Final = subject_of(CatalogChanged)
RIGHTS: Final[Mapping[str, Rights]] = {
    "invoices": Rights(
        publish=(
            "fiatgate.invoices.>",
            _INVOICES,
            *(f"$JS.API.STREAM.{call}.{STREAM}" for call in ("INFO", "CREATE", "UPDATE", "MSG.GET")),
            *(
                f"$JS.API.CONSUMER.{call}.{STREAM}.{durable}"
                for durable in DURABLES.values()
                for call in ("INFO", "DURABLE.CREATE")
            ),
        ),
        subscribe=(_CATALOG, "_INBOX.invoices.>"),
    ),
    **{user: _consumes(user, durable) for user, durable in DURABLES.items()},
    "catalog": Rights(publish=(_CATALOG,)),
    "gateway": Rights(subscribe=(_INVOICES,)),
    OPERATOR: Rights(publish=(">",), subscribe=(">",)),
}
USERS: Final = tuple(RIGHTS)
PROCESSES: Final = tuple(user for user in USERS if user != OPERATOR)
"""The users that are processes. identity and the console do not use NATS."""

OWNERS: Final = ("invoices", OPERATOR)
"""The users in the account of the stream."""


def account_of(user: str) -> str:
    return STREAM if user in OWNERS else user


def accounts(passwords: Mapping[str, str]) -> dict[str, Any]:
    """Returns the block `accounts` of a server's configuration, with the password of each user."""
    made: dict[str, Any] = {STREAM: {"jetstream": "enabled"}}
    for user, rights in RIGHTS.items():
        account = made.setdefault(account_of(user), {})
        account.setdefault("users", []).append(
            {"user": user, "password": passwords[user], "permissions": rights.permissions()}
        )
    for subject, sender, receiver in _hints():
        _share(made, "stream", subject, of=sender, to=receiver)
    for subject, user in _requests():
        answers = {"response_type": "stream", "response_threshold": f"{ANSWERS_SECONDS}s"}
        _share(made, "service", subject, of=STREAM, to=user, **answers)
    return made


def _hints() -> Iterator[tuple[str, str, str]]:
    """Yields subjects that one account publishes and another receives: subject, sender, receiver."""
    for receiver in PROCESSES:
        for subject in RIGHTS[receiver].subscribe:
            for sender in PROCESSES:
                if subject in RIGHTS[sender].publish and account_of(sender) != account_of(receiver):
                    yield subject, account_of(sender), account_of(receiver)


def _requests() -> Iterator[tuple[str, str]]:
    """Yields the subjects of JetStream that an account without a stream uses: subject, user."""
    for user in PROCESSES:
        if user not in OWNERS:
            yield from ((subject, user) for subject in RIGHTS[user].publish if subject.startswith("$JS."))


def _share(made: dict[str, Any], kind: str, subject: str, *, of: str, to: str, **answers: str) -> None:
    """Lets the account `to`, and no other, use a subject of the account `of`."""
    made[of].setdefault("exports", []).append({kind: subject, "accounts": [to], **answers})
    made[to].setdefault("imports", []).append({kind: {"account": of, "subject": subject}})


def variable(user: str) -> str:
    """Returns the environment variable that holds a user's password on Kubernetes."""
    return f"{user.upper()}_PASSWORD"


def as_text() -> str:
    """Returns the block `accounts` for a server that reads the passwords from its environment."""
    head = (
        "# Made by `python -m deploy.nats_rights`: the subjects that each user may publish and subscribe to."
    )
    block = json.dumps(accounts({user: f"<< ${variable(user)} >>" for user in USERS}), indent=2)
    block = re.sub(r'"<< (\$\w+) >>"', r"\1", block)
    return f"{head}\naccounts: {block}\n"


if __name__ == "__main__":
    sys.stdout.write(as_text())

"""The queues as the desk shows them: their names for people, the page of each, and when one is overdue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from console.words.refunds import ACCOUNT_WAITS
from fiatgate.queues.v1 import queues_pb2 as pb


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A queue for people.

    name     as services name it
    title    what waits
    task     what an operator does about it
    path     the page that shows it
    roles    that can do it, besides `admin`
    several  whether more than one service has a part of it
    overdue  the age from which it is overdue: that of the alerts (deploy/observability/alerts.yaml)
    """

    name: str
    title: str
    task: str
    path: str
    roles: tuple[str, ...]
    overdue: timedelta
    several: bool = False


KINDS: Final = (
    Kind(
        name="deals_marked",
        title="Deals marked paid",
        task="Compare with the account: has the money come?",
        path="/deals",
        roles=("desk",),
        overdue=timedelta(minutes=30),
    ),
    Kind(
        name="appeals",
        title="Appeals",
        task="Decide by the customer's proof and the account.",
        path="/deals?state=appeals",
        roles=("desk",),
        overdue=timedelta(hours=4),
    ),
    Kind(
        name="cases",
        title="Late money",
        task="Money came after the end: answer the customer.",
        path="/cases",
        roles=("desk",),
        overdue=timedelta(hours=4),
    ),
    Kind(
        name="approvals",
        title="Requests for a second person",
        task="Approve or reject what a colleague has requested.",
        path="/approvals",
        roles=("desk", "treasury", "prices"),
        overdue=timedelta(hours=4),
        several=True,
    ),
    Kind(
        name="withdrawals_pending",
        title="Withdrawals requested",
        task="Begin to send it, or cancel it.",
        path="/withdrawals",
        roles=("treasury",),
        overdue=timedelta(hours=4),
    ),
    Kind(
        name="withdrawals_processing",
        title="Withdrawals being sent",
        task="Enter the transaction, or say that it failed.",
        path="/withdrawals?stage=processing",
        roles=("treasury",),
        overdue=timedelta(hours=4),
    ),
    Kind(
        name="refunds_ready",
        title="Refunds to send",
        task="Pay it at the bank, then say that it is done.",
        path="/refunds",
        roles=("desk",),
        overdue=timedelta(hours=4),
    ),
    Kind(
        name="refunds_sent",
        title="Refunds on their way",
        task="Compare with the bank: enter its reference, or say that it failed.",
        path="/refunds?status=sent",
        roles=("desk",),
        overdue=timedelta(days=3),
    ),
    Kind(
        name="refunds_waiting",
        title=f"Refunds without an account for {ACCOUNT_WAITS.days} days",
        task="They hold money: remind the merchant, or cancel them.",
        path="/refunds?status=waiting",
        roles=("desk",),
        overdue=timedelta(days=30),
    ),
    Kind(
        name="bank_lines_reversed",
        title="Bank lines taken back after they paid",
        task="Reverse the credit of the deal, then say so at the line.",
        path="/bank?state=reversed",
        roles=("desk", "treasury"),
        overdue=timedelta(minutes=10),
    ),
    Kind(
        name="bank_connectors_silent",
        title="Silent connectors of banks",
        task="No line comes from the bank: start the program again.",
        path="/bank/connectors",
        roles=("desk",),
        overdue=timedelta(minutes=10),
    ),
    Kind(
        name="returns_failed",
        title="Returns that failed",
        task="The customer still waits for the money: return it once more, or credit it.",
        path="/refunds?status=failed",
        roles=("desk",),
        overdue=timedelta(days=3),
    ),
    Kind(
        name="rates_held",
        title="Held rates",
        task="It moved too far: accept it, or set another one.",
        path="/rates",
        roles=("prices",),
        overdue=timedelta(minutes=10),
    ),
    Kind(
        name="webhooks_dead",
        title="Dead webhooks of the last week",
        task="Find out why the merchant's server refuses, then resend.",
        path="/webhooks?state=dead",
        roles=("desk",),
        overdue=timedelta(hours=4),
    ),
    Kind(
        name="parked",
        title="Failed events",
        task="Remove the cause, then retry.",
        path="/parked",
        roles=("desk", "treasury"),
        overdue=timedelta(minutes=10),
        several=True,
    ),
)


@dataclass(frozen=True)
class Row:
    """A queue on the page.

    mine   the person can do something about it
    known  each service that has a part of it answered
    """

    kind: Kind
    count: int
    oldest_at: datetime | None
    overdue: bool
    mine: bool
    known: bool


def rows_of(
    queues: Iterable[pb.Queue], *, now: datetime, may: Callable[..., bool], complete: bool = True
) -> list[Row]:
    """Returns the queues that the person can do something about first, of these those that are overdue, then the one
    that waits longest; the empty ones last.

    may       whether the person has one of the roles
    complete  whether all services answered
    """
    found = {each.name: each for each in queues}
    rows = []
    for kind in KINDS:
        queue = found.get(kind.name, pb.Queue())
        oldest = queue.oldest_at.ToDatetime(UTC) if queue.HasField("oldest_at") else None
        overdue = oldest is not None and now - oldest > kind.overdue
        known = kind.name in found and (complete or not kind.several)
        rows.append(Row(kind, queue.count, oldest, overdue, may(*kind.roles), known))
    return sorted(rows, key=lambda row: (row.count == 0, not row.mine, not row.overdue, row.oldest_at or now))

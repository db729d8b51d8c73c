"""The verification of requests for a second person (kit.db.books): requests and decisions follow their acts."""

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from kit.audit.approvals import (
    APPROVALS,
    ROW,
    Approval,
    State,
    decided_by_calls,
    decision_sha256,
    requested_by_calls,
)
from kit.db.books import Difference, Part

AT_ONCE: Final = 100
"""Requests whose values are decoded at the same time: each may fill 16 KiB with small ones."""


def _requests_follow_acts(tx: Session, first: str, last: str) -> Iterator[Difference]:
    within = (ROW.id > UUID(first), ROW.id <= UUID(last))
    for rows in tx.execute(select(*APPROVALS.columns).where(*within)).partitions(AT_ONCE):
        yield from _of_requests(tx, [APPROVALS.make(*row) for row in rows])


def _of_requests(tx: Session, asked: Sequence[Approval]) -> Iterator[Difference]:
    requested, decided = requested_by_calls(tx, asked), decided_by_calls(tx, asked)
    for each in asked:
        due, sha256 = decided.get(each.id, (State.PENDING, ""))
        if each.id not in requested:
            yield each.id, "act", "none", f"that of the call which asked for {each.act} of {each.object}"
        elif each.state is not due:
            yield each.id, "state", each.state, f"{due}, by its acts"
        elif due is not State.PENDING and sha256 != decision_sha256(each):
            yield each.id, "decision", f"that of {each.decided_as} at {each.decided_at}", "that of its act"


_ACTS_HAVE_THEIR_REQUEST: Final = """
SELECT DISTINCT named.id, 'row' AS field, 'deleted' AS found, 'there, because acts name it' AS due
FROM acts CROSS JOIN LATERAL (
  SELECT jsonb_path_query(changes, 'strict $[*] ? (@[0] == "approval")[2]', silent => true) #>> '{}' AS id
) AS named
WHERE act IN ('approval.request', 'approval.approve', 'approval.reject') AND refused = ''
  AND named.id COLLATE "C" > :first AND named.id COLLATE "C" <= :last
  AND NOT EXISTS (SELECT FROM approvals WHERE CAST(approvals.id AS text) = named.id)
"""

PART: Final = Part(
    name="approvals",
    one="request",
    table="approvals",
    follows=(_requests_follow_acts, _ACTS_HAVE_THEIR_REQUEST),
)

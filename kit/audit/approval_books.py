"""The verification of requests for a second pair of eyes (kit.db.books): each request and each decision has its act."""

from collections.abc import Iterator
from typing import Final
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from kit.audit.approvals import APPROVALS, ROW, State, decided_by_calls, requested_by_calls
from kit.db.books import Difference, Part


def _requests_follow_acts(tx: Session, first: str, last: str) -> Iterator[Difference]:
    within = (ROW.id > UUID(first), ROW.id <= UUID(last))
    asked = APPROVALS.all(tx.execute(select(*APPROVALS.columns).where(*within)))
    requested, decided = requested_by_calls(tx, asked), decided_by_calls(tx, asked)
    for each in asked:
        due = decided.get(each.id, State.PENDING)
        if each.id not in requested:
            yield each.id, "act", "none", f"that of the call which asked for {each.act} of {each.object}"
        elif each.state is not due:
            yield each.id, "state", each.state, f"{due}, by its acts"


PART: Final = Part(name="approvals", one="request", table="approvals", follows=(_requests_follow_acts,))

"""Counters of guesses, by person and by network, for each surface: each failure beyond the free ones doubles the delay.

Passwords and codes can be guessed, the answer of a passkey can't. A guess counts as a failure before it is checked, so
concurrent guesses can't pass a counter; a right one is taken back.
"""

import hashlib
import math
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from kit.db.database import retry_conflicts
from kit.observe import metrics
from services.identity import errors
from services.identity.domain.people import MOST_COUNTED, PATIENCE, Client, Failures, Surface, delay_after
from services.identity.store import guesses
from services.identity.wiring import Deps

Counters = Sequence[tuple[str, str]]
"""Kind and subject of each counter, in the order in which they are locked."""

DELAYED = metrics.counter(
    "sign_ins_delayed", "Tries to sign in or step up that were refused because of earlier wrong ones"
)


def of_sign_in(email: str, surface: Surface, client: Client, *, is_known: bool) -> Counters:
    """Returns the counters of a sign-in by password. An unknown person has one like a known one; only its hash is
    stored. In a network that is known for the person, guesses from other networks don't count.
    """
    person = hashlib.sha256(email.encode()).hexdigest()
    network = client.network or client.address
    guessed = f"{person} {network}" if is_known else person
    return [("network", f"{surface.value} {network}"), ("person", f"{surface.value} {guessed}")]


def of_step_up(person_id: UUID, surface: Surface) -> Counters:
    """Returns the counter of step-ups by code: guesses of strangers at the sign-in don't delay them."""
    return [("step_up", f"{surface.value} {person_id}")]


@retry_conflicts
def begin(deps: Deps, counters: Counters) -> None:
    """Counts a guess. Raises SIGN_IN_DELAYED while one of the counters makes guesses wait; then nothing is counted."""
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        rows = [guesses.counter_to_change(tx, kind, subject, now=now) for kind, subject in counters]
        waits = (
            row.delayed_until - now for row in rows if row.delayed_until - now <= PATIENCE[row.kind].longest
        )
        wait = max(waits, default=timedelta(0))  # without those that a clock that was ahead wrote
        if wait.total_seconds() > 0:
            DELAYED.inc()
            raise errors.sign_in_delayed(math.ceil(wait.total_seconds()))
        for row in rows:
            patience = PATIENCE[row.kind]
            left = Failures(row.failures, row.last_at).at(now, patience)
            row.failures, row.last_at = min(left.count, MOST_COUNTED) + 1, left.since
            row.delayed_until = now + delay_after(row.failures, patience)


@retry_conflicts
def take_back(deps: Deps, counters: Counters) -> None:
    """The guess was right: forgets the failures of the person. Of the network only this guess is taken back, because a
    stranger may have an account too.
    """
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        for kind, subject in counters:
            if kind != "network":
                guesses.forget(tx, kind, subject)
                continue
            row = guesses.counter_to_change(tx, kind, subject, now=now)
            row.failures = max(row.failures - 1, 0)
            if row.failures < PATIENCE[kind].free:
                row.delayed_until = now

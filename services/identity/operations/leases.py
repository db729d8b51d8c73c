"""Leases of keys: the time for which a gateway uses an answer of Authenticate, and the acts that wait for its end.

An act commits, then waits for one lease, then answers. A lease begins with the gateway's call, so every answer that was
read before the commit has expired by then. An act that changes nothing waits for the rest of the
lease that began when this process first knew the row as it is (docs/decisions/0003).
"""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

from kit.rpc import deadline
from kit.rpc.errors import too_late
from kit.rpc.limits import LEAST_USEFUL_SECONDS
from services.identity.store.versions import Versioned
from services.identity.wiring import Deps

P = ParamSpec("P")
R = TypeVar("R")

CLOCKS_DIFFER_PERCENT: Final = 1
"""More than the clocks of two machines differ in speed: NTP corrects less than a tenth of a percent."""


def ends_leases(
    operation: Callable[Concatenate[Deps, P], Versioned[R]],
) -> Callable[Concatenate[Deps, P], R]:
    """Makes an operation return when no gateway uses an earlier answer of Authenticate any more.

    It may wait also when nothing had to be changed: the act before, which changed it, may have failed while it waited.
    Raises DB_UNAVAILABLE, before anything is changed, when the caller leaves no time for the wait.
    """

    @wraps(operation)
    def ended(deps: Deps, /, *args: P.args, **named: P.kwargs) -> R:
        seconds = deps.settings.key_lease_milliseconds * (100 + CLOCKS_DIFFER_PERCENT) / 100_000
        left_seconds = deadline.remaining_seconds()
        if left_seconds is not None and left_seconds < seconds + LEAST_USEFUL_SECONDS:
            raise too_late()
        done = operation(deps, *args, **named)
        rest_seconds = seconds - deps.known.age_seconds(done.version)
        if rest_seconds > 0:
            threading.Event().wait(rest_seconds)  # no connection and no lock is held
        return done.answer

    return ended

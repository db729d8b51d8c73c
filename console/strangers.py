"""The names that strangers may guess at a surface (`kit.web.walls.strangers`).

A session is known by its cookie, an invitation by its link, a sign-in by password by its network and e-mail address. So
a flood of guesses reaches identity at a pace, and neither open sessions nor people in their own networks wait for it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from kit.rpc.errors import database_unavailable
from kit.web.walls import turned_away
from kit.web.walls.places import Bound, NoPlace, Places
from kit.web.walls.strangers import QUESTION_SECONDS, Kind, Strangers

SESSIONS: Final = "sessions"
SIGN_INS: Final = "sign-ins"
LINKS: Final = "links"
KINDS: Final = {
    SESSIONS: Kind(at_a_time=2, missing="SESSION_INVALID"),
    LINKS: Kind(at_a_time=2, missing="INVITATION_INVALID"),
    # A person may sign in from a new network at any moment.
    SIGN_INS: Kind(at_a_time=16, missing="SIGN_IN_REFUSED", denied_again_seconds=0),
}
PER_MINUTE: Final = 60
"""Cookies that are no session's, links that are no invitation's, and tries to sign in by password where a person is not
known, of one network.
"""
PASSKEYS_AT_A_TIME: Final = 2
PASSKEYS_WAITING: Final = 1000
PASSKEYS_OF_ONE: Final = 100
PASSKEY_SECONDS: Final = 4.0


class PasskeyTurns:
    """The calls of one worker that sign in by passkey. Anyone may ask for a challenge, so networks take turns."""

    def __init__(self) -> None:
        in_all = Bound(running=PASSKEYS_AT_A_TIME, waiting=PASSKEYS_WAITING)
        of_one = Bound(running=PASSKEYS_AT_A_TIME, waiting=PASSKEYS_OF_ONE)
        self._places = Places(in_all, of_one=of_one, seconds=PASSKEY_SECONDS, kept_seconds=QUESTION_SECONDS)

    @asynccontextmanager
    async def turn(self, network: str) -> AsyncIterator[None]:
        """Holds a turn of the network during the block. Raises DB_UNAVAILABLE when none came in time."""
        try:
            async with self._places.place(network):
                yield
        except NoPlace:
            turned_away.count("strangers", "passkeys at a time")
            raise database_unavailable() from None


def strangers_of_surface() -> Strangers:
    """Returns the bounds of one worker."""
    return Strangers(PER_MINUTE, KINDS, message="Too many guesses came from your network")

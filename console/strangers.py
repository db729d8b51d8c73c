"""The names that strangers may guess at a surface (`kit.web.walls.strangers`).

A session is known by its cookie, a sign-in by password by its network and e-mail address. So a flood of guesses reaches
accounts at a pace, and neither open sessions nor people in their own networks wait for it.
"""

from typing import Final

from kit.web.walls.strangers import Kind, Strangers

SESSIONS: Final = "sessions"
SIGN_INS: Final = "sign-ins"
KINDS: Final = {
    SESSIONS: Kind(at_a_time=2, missing="SESSION_INVALID"),
    # A person may sign in from a new network at any moment.
    SIGN_INS: Kind(at_a_time=16, missing="SIGN_IN_REFUSED", denied_again_seconds=0),
}
PER_MINUTE: Final = 60
"""Cookies that are no session's, and tries to sign in by password where a person is not known, of one network."""


def strangers_of_surface() -> Strangers:
    """Returns the bounds of one worker."""
    return Strangers(PER_MINUTE, KINDS, message="Too many guesses came from your network")

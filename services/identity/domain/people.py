"""The rules of people, without a database: roles, sessions, factors, invitations, pauses after wrong guesses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from ipaddress import ip_address, ip_network
from typing import Final
from uuid import UUID

NAME_CHARACTERS: Final = 128
PASSKEY_NAME_CHARACTERS: Final = 64
USER_AGENT_CHARACTERS: Final = 256
ADDRESS_CHARACTERS: Final = 64

ADMIN: Final = "admin"
OWNER: Final = "owner"

INVITATION_LASTS: Final = timedelta(hours=72)
MEMBERS_INVITATIONS_OPEN_MOST: Final = 20
MEMBERS_INVITATIONS_A_DAY_MOST: Final = 50
"""Bounds of the invitations that the members of one merchant make: each is an e-mail to an address of their choice."""
STEP_UP_LASTS: Final = timedelta(minutes=5)
CHALLENGE_LASTS: Final = timedelta(minutes=5)
TOTP_STARTED_LASTS: Final = timedelta(minutes=15)
KEY_KEPT: Final = timedelta(seconds=10)
"""How long a process uses the signing key that it has read."""
KEY_PUBLISHED_AHEAD: Final = timedelta(seconds=75)
"""How long a new signing key is published before it signs: every service fetches the keys once a minute, give or take a
tenth, so it knows the key before the first token."""
KEY_OVERLAP: Final = timedelta(minutes=3)
"""How long a replaced signing key stays known: it signs for `KEY_PUBLISHED_AHEAD` and, in some process, for `KEY_KEPT`
more; its last token lives for a minute."""
AHEAD_AT_MOST: Final = timedelta(seconds=5)
"""How far the clock of another process may be ahead."""
SESSIONS_OPEN_MOST: Final = 20
"""Open sessions of one person. A further one ends the oldest."""
SESSIONS_A_MINUTE_MOST: Final = 10
"""Sign-ins of one person, because each leaves an act for ever. Further ones are delayed."""
SEEN_EVERY: Final = timedelta(seconds=30)
"""A session's last use is written at most this often."""
ADDRESSES_KNOWN_MOST: Final = 100
"""Addresses from which a person has signed in, the last used ones, by which a network is known."""


class Surface(Enum):
    DESK = "desk"
    DASHBOARD = "dashboard"


class Way(Enum):
    PASSKEY = "passkey"
    PASSWORD = "password"  # noqa: S105  the name of a way to sign in
    RECOVERY = "recovery_code"
    """Password with a recovery code in place of a TOTP code."""
    INVITATION = "invitation"


class Purpose(Enum):
    """The work for which a passkey answers a challenge."""

    SIGN_IN = "sign_in"
    STEP_UP = "step_up"
    REGISTER = "register"


# -- people


@dataclass(frozen=True, slots=True)
class Membership:
    merchant_id: UUID
    roles: Sequence[str]


@dataclass(frozen=True, slots=True)
class Person:
    """A person with all roles; disabled while `disabled_at` is set."""

    id: UUID
    email: str
    name: str
    roles: Sequence[str]
    disabled_at: datetime | None
    created_at: datetime
    last_seen_at: datetime | None
    has_complete_factors: bool
    memberships: Sequence[Membership] = ()

    def may_use(self, surface: Surface) -> bool:
        if self.disabled_at is not None:
            return False
        return bool(self.roles if surface is Surface.DESK else self.memberships)

    def merchant_of(self, chosen: UUID | None) -> Membership | None:
        """Returns the membership that a session acts for: the chosen one, else the only one."""
        for each in self.memberships:
            if each.merchant_id == chosen:
                return each
        return self.memberships[0] if len(self.memberships) == 1 else None

    def roles_at(self, merchant_id: UUID) -> Sequence[str]:
        return next((each.roles for each in self.memberships if each.merchant_id == merchant_id), ())

    def is_only_of(self, merchant_id: UUID) -> bool:
        """Whether the person has no role outside of this merchant, so that its owners decide over the account."""
        return not self.roles and all(each.merchant_id == merchant_id for each in self.memberships)


@dataclass(frozen=True, slots=True)
class Invitation:
    id: UUID
    email: str
    name: str
    roles: Sequence[str]
    merchant_id: UUID | None
    member_roles: Sequence[str]
    expires_at: datetime
    invited_by: str
    by_operator: bool

    @property
    def surface(self) -> Surface:
        return Surface.DESK if self.merchant_id is None else Surface.DASHBOARD


# -- sessions


@dataclass(frozen=True, slots=True)
class Limits:
    """A session ends when it was not used for `idle`, and `absolute` after its start."""

    idle: timedelta
    absolute: timedelta


@dataclass(frozen=True, slots=True)
class Client:
    """A browser; `network` is the part of its address under which the console counts it."""

    address: str
    user_agent: str
    network: str = ""

    def shares_network_with(self, address: str) -> bool:
        try:
            parsed = ip_address(address)
            return (getattr(parsed, "ipv4_mapped", None) or parsed) in ip_network(self.network)
        except ValueError:  # a text that is no address, or no network is given
            return address == self.address


@dataclass(frozen=True, slots=True)
class Session:
    id: UUID
    person_id: UUID
    surface: Surface
    way: Way
    address: str
    user_agent: str
    started_at: datetime
    last_seen_at: datetime
    stepped_up_at: datetime | None
    merchant_id: UUID | None

    def is_live(self, now: datetime, limits: Limits) -> bool:
        return now < self.last_seen_at + limits.idle and now < self.started_at + limits.absolute

    def stepped_up_until(self, now: datetime) -> datetime | None:
        """Returns the end of the step-up; None when it is over or never was, or is later than now."""
        at = self.stepped_up_at
        if at is None or not at - AHEAD_AT_MOST <= now < at + STEP_UP_LASTS:
            return None
        return at + STEP_UP_LASTS

    def may_add_factors(self, now: datetime, own: "Factors") -> bool:
        """Returns whether the person, whose factors on this surface are `own`, may add some: after a step-up; soon
        after a recovery code, which stands in for a lost factor; and after a link, as long as none are complete.
        """
        if self.stepped_up_until(now) is not None:
            return True
        if self.way is Way.RECOVERY:
            return now < self.started_at + STEP_UP_LASTS
        return self.way is Way.INVITATION and not own.are_complete


# -- factors


@dataclass(frozen=True, slots=True)
class Passkey:
    id: UUID
    name: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class Factors:
    """The proofs that a person can give. `passkeys` are those of one host name (RP id)."""

    passkeys: int
    has_password: bool
    has_totp: bool

    @property
    def are_complete(self) -> bool:
        """Whether they are a whole way to sign in: a passkey, or a password with TOTP."""
        return self.passkeys > 0 or (self.has_password and self.has_totp)


# -- guesses


@dataclass(frozen=True, slots=True)
class Patience:
    """The failures that are free, after which each further one doubles the delay; one is forgiven in each period of
    `forgiven_every`.
    """

    free: int
    longest: timedelta
    forgiven_every: timedelta


MOST_COUNTED: Final = 1_000_000
"""A larger count, of guesses or of attempts to send a mail, was written by SQL; one more might overflow."""
GUESSES_FORGOTTEN_AFTER: Final = timedelta(hours=24)
PATIENCE: Final[Mapping[str, Patience]] = {
    "network": Patience(free=20, longest=timedelta(minutes=15), forgiven_every=timedelta(minutes=5)),
    "person": Patience(free=5, longest=timedelta(minutes=15), forgiven_every=timedelta(hours=1)),
    "step_up": Patience(free=5, longest=timedelta(minutes=15), forgiven_every=timedelta(hours=1)),
}
"""By kind of counter. Many people share a network, so it has more free failures."""


@dataclass(frozen=True, slots=True)
class Failures:
    """A number of failures, and the time from which the next period of forgiving is counted."""

    count: int
    since: datetime

    def at(self, now: datetime, patience: Patience) -> "Failures":
        """Returns those that are not forgiven."""
        periods = max((now - self.since) // patience.forgiven_every, 0)
        if periods >= self.count:
            return Failures(0, now)
        return Failures(self.count - periods, self.since + periods * patience.forgiven_every)


def delay_after(failures: int, patience: Patience) -> timedelta:
    """Returns the time until the next guess is looked at, after this many failures in a row."""
    over = failures - patience.free
    if over < 0:
        return timedelta(0)
    return min(timedelta(seconds=2 ** min(over + 1, 20)), patience.longest)


# -- e-mail


def mail_due_after(attempts: int) -> timedelta:
    """Returns the pause before the next attempt: from 30 seconds to an hour."""
    return min(timedelta(seconds=30 * 2 ** min(attempts - 1, 10)), timedelta(hours=1))

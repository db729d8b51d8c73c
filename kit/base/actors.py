"""The author of the work in progress: a person, the operator's command, a merchant's program, or a process of ours.

Each call has its own context, so an actor that is bound there ends with the call. Timers, consumers and harnesses have
that of their process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

STAFF_ROLES: Final = ("viewer", "desk", "treasury", "prices", "admin", "auditor")
MEMBER_ROLES: Final = ("owner", "developer", "finance", "viewer")

THE_OPERATOR: Final = "the operator"
"""The name of each operator for members of merchants, who do not learn which of them acted."""
API_KEY: Final = "API key"
"""The name of a merchant's program for people."""


@dataclass(frozen=True, kw_only=True)
class Actor:
    """The author of a change.

    kind            "person", "cli", "api" (a merchant's program) or "process" (a timer, a consumer, a harness)
    name            e-mail address of the person, USER@HOST of the command line, the name of the process
    surface         "desk", "dashboard", "cli", "api" or ""
    roles           roles of the staff on the desk, of the member on the dashboard; empty for others
    merchant_id     the merchant that a member or a program acts for; None: of no merchant
    stepped_up_at   the last proof of a second factor in this session
    on_behalf_of    the person that the command line named, without proof
    """

    kind: str
    name: str
    surface: str = ""
    person_id: UUID | None = None
    session_id: UUID | None = None
    roles: frozenset[str] = frozenset()
    merchant_id: UUID | None = None
    stepped_up_at: datetime | None = None
    on_behalf_of: str = ""

    def __str__(self) -> str:
        """Returns the text for people and for the columns `actor`: an e-mail address, `cli:USER@HOST`, `api`."""
        if self.kind == "person":
            return self.name
        named = f"{self.kind}:{self.name}" if self.name else self.kind
        return f"{named} for {self.on_behalf_of}" if self.on_behalf_of else named


_current: ContextVar[Actor | None] = ContextVar("actor", default=None)
_of_process: Actor | None = None
_missing_proof: ContextVar[Exception | None] = ContextVar("missing_proof", default=None)


def bind(actor: Actor) -> None:
    """Makes `actor` the author of the work of this context."""
    _current.set(actor)


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Makes `actor` the author of the work inside the block: for a call that learns its person only by its work."""
    before = _current.set(actor)
    try:
        yield
    finally:
        _current.reset(before)


def bind_process(actor: Actor) -> None:
    """Makes `actor` the author of all work of this process that has no author of its own."""
    global _of_process  # noqa: PLW0603  one per process, set at its start
    _of_process = actor


def current() -> Actor:
    """Returns the author. Raises LookupError when the work has none: a fault of the code, which must bind one first."""
    actor = _current.get() or _of_process
    if actor is None:
        raise LookupError("this work has no author; bind one with kit.base.actors.bind")
    return actor


def demand_proof(refusal: Exception) -> None:
    """Makes the work of this context change nothing: its first change raises `refusal`, after the rules have passed."""
    _missing_proof.set(refusal)


def lacks_proof() -> bool:
    """Returns whether the author of this context has yet to give a proof."""
    return _missing_proof.get() is not None


def require_proof() -> None:
    """Raises the refusal of an author who has yet to give a proof."""
    refusal = _missing_proof.get()
    if refusal is not None:
        raise refusal

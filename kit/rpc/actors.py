"""The actor of a call in its metadata: what a client sends, and the merchant that a member is bound to.

The console sends a token of identity (`kit.rpc.actor_tokens`), the operator's command its user and host. A process of
ours sends nothing: its certificate names it. `kit.rpc.permissions` checks all of it before the operation.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Final
from urllib.parse import quote, unquote
from uuid import UUID

from kit.base import actors
from kit.base.actors import Actor
from kit.base.emails import EMAIL_CHARACTERS, is_email
from kit.base.ids import parse_id
from kit.rpc.errors import Refused

TOKEN_KEY: Final = "fiatgate-actor"  # noqa: S105  the name of the metadata
"""A token of identity: a person on the desk or on the dashboard."""
CLI_KEY: Final = "fiatgate-cli-actor"
"""USER@HOST of the operator's command, percent-encoded."""
CLI_AS_KEY: Final = "fiatgate-cli-as"
"""The e-mail address of the person that the command line names, percent-encoded; it proves nothing."""

NAME_MAX_CHARACTERS: Final = EMAIL_CHARACTERS
"""The longest USER@HOST, which has the limit of an e-mail address."""

Carried = tuple[tuple[str, str], ...]
"""Metadata of a call."""

_carried: ContextVar[Carried] = ContextVar("carried_actor")
_carried_by_process: Carried = ()


# -- clients


def carried() -> Carried:
    """Returns the metadata by which the calls of this context name their actor; empty for a process of ours."""
    return _carried.get(_carried_by_process)


def carry_token(token: str) -> None:
    """Makes the calls of this context those of the token's person."""
    _carried.set(((TOKEN_KEY, token),))


def carry_cli(name: str, *, on_behalf_of: str = "") -> None:
    """Makes the calls of this process those of an operator at the command line.

    name          USER@HOST
    on_behalf_of  e-mail address of the person; empty: none is named
    """
    global _carried_by_process  # noqa: PLW0603  one per process, set at its start
    named = ((CLI_AS_KEY, quote(on_behalf_of, safe="@")),) if on_behalf_of else ()
    _carried_by_process = ((CLI_KEY, quote(name[:NAME_MAX_CHARACTERS], safe="@")), *named)


# -- servers


def cli_actor(metadata: Mapping[str, str | bytes]) -> Actor | None:
    """Returns the operator that the metadata names; None when a name is malformed."""
    name = _text(metadata[CLI_KEY])
    on_behalf_of = _text(metadata.get(CLI_AS_KEY, ""))
    if not name or on_behalf_of is None or (on_behalf_of and not is_email(on_behalf_of)):
        return None
    return Actor(kind="cli", name=name, surface="cli", on_behalf_of=on_behalf_of)


def _text(value: str | bytes) -> str | None:
    if not isinstance(value, str):
        return None
    text = unquote(value, errors="replace")
    return text if len(text) <= NAME_MAX_CHARACTERS and text.isprintable() else None


def require_merchant(merchant_id: UUID | str, not_found: Callable[[], Refused]) -> None:
    """Raises `not_found()` when the author is a member of another merchant. For operations that load the object by its
    own id: a foreign object must look like one that does not exist.
    """
    if not may_see_merchant(actors.current(), merchant_id):
        raise not_found()


def may_see_merchant(actor: Actor, merchant_id: UUID | str) -> bool:
    """Returns whether the merchant's data are open to the actor: a member sees its own merchant only."""
    if actor.surface != "dashboard":
        return True
    id = parse_id(merchant_id) if isinstance(merchant_id, str) else merchant_id
    return id is not None and id == actor.merchant_id


# -- turns


def side(actor: Actor) -> str:
    """Returns the side of the actor in calls that members and operators make: each has places of its own."""
    return "members" if actor.surface == "dashboard" else "operators"


def parts(actor: Actor) -> tuple[str, str]:
    """Returns the merchant, empty for none, and the author: merchants take turns, and in these people."""
    return str(actor.merchant_id or ""), str(actor)

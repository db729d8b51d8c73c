"""Checks of request values that are rules of this service; those of all services are in kit/rpc/values.py."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from kit.base.actors import MEMBER_ROLES, STAFF_ROLES
from kit.rpc import values
from services.accounts.domain import (
    ADDRESS_CHARACTERS,
    NAME_CHARACTERS,
    USER_AGENT_CHARACTERS,
    Client,
)

SESSION_TOKEN_CHARACTERS: Final = 64


_is_site = re.compile(r"://|@|\w\.\w{2,}").search


def person_name(name: str) -> str:
    """Accepts the name of a person, which others choose and the person reads: it must not lead to a site."""
    shown = values.label("name", name.strip(), most=NAME_CHARACTERS)
    if _is_site(shown):
        raise values.invalid("name", "Expected a name, without addresses of sites or mailboxes")
    return shown


def staff_roles(roles: Iterable[str]) -> list[str]:
    return _roles("roles", roles, STAFF_ROLES)


def member_roles(field: str, roles: Iterable[str]) -> list[str]:
    return _roles(field, roles, MEMBER_ROLES)


def _roles(field: str, roles: Iterable[str], known: Sequence[str]) -> list[str]:
    given = set(roles)
    if not given <= set(known):
        raise values.invalid(field, f"Expected some of {', '.join(known)}")
    return [role for role in known if role in given]


def client_from(address: str, user_agent: str, network: str) -> Client:
    """Returns the browser; unprintable characters go, long texts are cut."""
    shown = "".join(each for each in user_agent if each.isprintable())
    return Client(
        address=_storable(address), user_agent=shown[:USER_AGENT_CHARACTERS], network=_storable(network)
    )


def _storable(address: str) -> str:
    return address[:ADDRESS_CHARACTERS].replace("\0", "")

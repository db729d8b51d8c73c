"""Checks of request values that are rules of this service; those of all services are in kit/rpc/values.py.

Each `parse_` function is for `values.parsed`: it returns the value to store, or raises ValueError with the end of the
message.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from kit.rpc import values
from services.accounts.domain import (
    ADDRESS_CHARACTERS,
    EMAIL_CHARACTERS,
    MEMBER_ROLES,
    STAFF_ROLES,
    USER_AGENT_CHARACTERS,
    Client,
)

SESSION_TOKEN_CHARACTERS: Final = 64


# Quotes, names and comments are refused: they are further ways to write one mailbox, so one person could be two, and
# libraries for mail fail on some of them.
_is_address = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9-]+(\.[a-z0-9-]+)*").fullmatch


def parse_email(text: str) -> str:
    """Returns the address in lower case, because people are distinguished by it. Whether it receives mail is not
    checked. A domain with other letters is written in its ASCII form (xn--…).
    """
    email = text.strip().lower()
    if len(email) > EMAIL_CHARACTERS or _is_address(email) is None:
        raise ValueError("expected an e-mail address")
    return email


def staff_roles(roles: Iterable[str]) -> list[str]:
    return _roles("roles", roles, STAFF_ROLES)


def member_roles(field: str, roles: Iterable[str]) -> list[str]:
    return _roles(field, roles, MEMBER_ROLES)


def _roles(field: str, roles: Iterable[str], known: Sequence[str]) -> list[str]:
    given = set(roles)
    if not given <= set(known):
        raise values.invalid(field, f"Expected some of {', '.join(known)}")
    return [role for role in known if role in given]


def client_from(address: str, user_agent: str) -> Client:
    """Returns the browser; unprintable characters go, long texts are cut."""
    shown = "".join(each for each in user_agent if each.isprintable())
    return Client(
        address=address[:ADDRESS_CHARACTERS].replace("\0", ""), user_agent=shown[:USER_AGENT_CHARACTERS]
    )

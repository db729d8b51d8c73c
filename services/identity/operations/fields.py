"""Checks of request values that are rules of this service; those of all services are in kit/rpc/values.py.

The functions `parse_` are for `values.parsed`: each returns the value to store, or raises ValueError with the end of
the message.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kit.base.actors import MEMBER_ROLES, STAFF_ROLES
from kit.base.emails import EMAIL_CHARACTERS
from kit.rpc import values
from services.identity.domain.merchants import (
    ALLOWED_CODES,
    CATEGORY_CODE,
    FRAME_ORIGINS,
    KEY_NAME_CHARACTERS,
    LateMoney,
)
from services.identity.domain.people import (
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


def parse_name(text: str) -> str:
    name = text.strip()
    if not 1 <= len(name) <= NAME_CHARACTERS:
        raise ValueError(f"expected 1 to {NAME_CHARACTERS} characters")
    return _printable(name)


def parse_key_name(text: str) -> str:
    """Returns a name for people; may be empty."""
    name = text.strip()
    if len(name) > KEY_NAME_CHARACTERS:
        raise ValueError(f"expected at most {KEY_NAME_CHARACTERS} characters")
    return _printable(name)


def parse_email(text: str) -> str:
    """Returns the address in lower case, because owners are distinguished by it. Whether it receives mail is not
    checked. It takes more than kit.base.emails does: an owner of an earlier version must stay blockable.
    """
    email = text.strip().lower()
    if len(email) > EMAIL_CHARACTERS or not re.fullmatch(r"[^@\s]{1,64}@[^@\s]+", email):
        raise ValueError("expected an e-mail address")
    return _printable(email)


def parse_category_code(text: str) -> str:
    if not re.fullmatch(CATEGORY_CODE, text):
        raise ValueError("expected 1 to 64 characters of a-z, 0-9, - and _")
    return text


def parse_currency_codes(texts: Iterable[str]) -> list[str]:
    return _codes(texts, r"[A-Za-z]{3}", "three letters each", normal=str.upper)


def parse_method_codes(texts: Iterable[str]) -> list[str]:
    return _codes(texts, r"[A-Za-z0-9_-]{1,64}", "1 to 64 characters of A-Z, a-z, 0-9, - and _ each")


def parse_colour(text: str) -> str:
    if not re.fullmatch(r"#[0-9a-fA-F]{6}", text):
        raise ValueError("expected a colour such as #1d5bb8")
    return text.lower()


def parse_late_money(text: str) -> str:
    if text not in list(LateMoney):
        raise ValueError(f"expected one of {', '.join(LateMoney)}")
    return text


def parse_origins(texts: Iterable[str]) -> list[str]:
    """Origins as browsers define them: scheme, host, and a port unless it is the scheme's default. No wildcards."""
    given = list(texts)
    if not all(
        re.fullmatch(r"https?://[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?(:[1-9][0-9]{0,4})?", text)
        for text in given
    ):
        raise ValueError("expected origins such as https://shop.example, in lower case and without a path")
    origins = list(dict.fromkeys(given))
    if len(origins) > FRAME_ORIGINS:
        raise ValueError(f"expected at most {FRAME_ORIGINS} origins")
    return origins


def _codes(texts: Iterable[str], pattern: str, form: str, *, normal: Callable[[str], str] = str) -> list[str]:
    given = list(texts)
    if not all(re.fullmatch(pattern, text) for text in given):
        raise ValueError(f"expected {form}")
    codes = list(dict.fromkeys(map(normal, given)))
    if len(codes) > ALLOWED_CODES:
        raise ValueError(f"expected at most {ALLOWED_CODES} codes")
    return codes


def _printable(text: str) -> str:
    """Returns the text, unless it has control characters (NUL among them), line separators or halves of surrogate
    pairs.
    """
    if any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in text):
        raise ValueError("expected no control characters")
    return text

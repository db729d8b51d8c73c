"""E-mail addresses of people, in the one form by which people are distinguished."""

import re
from typing import Final

EMAIL_CHARACTERS: Final = 254
"""The longest address that mail servers take."""

# Quotes, names and comments are refused: they are further ways to write one mailbox, so one person could be two, and
# libraries for mail fail on some of them.
_is_address = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9-]+(\.[a-z0-9-]+)*").fullmatch


def parse_email(text: str) -> str:
    """Returns the address in lower case. Whether it receives mail is not checked. A domain with other letters is
    written in its ASCII form (xn--…). Raises ValueError with the end of a message.
    """
    email = text.strip().lower()
    if len(email) > EMAIL_CHARACTERS or _is_address(email) is None:
        raise ValueError("expected an e-mail address")
    return email


def is_email(text: str) -> bool:
    """Returns whether `parse_email` takes the text."""
    try:
        return bool(parse_email(text))
    except ValueError:
        return False

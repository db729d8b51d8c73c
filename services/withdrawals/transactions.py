"""One normal form for each transaction, so that a second spelling of it cannot complete a second withdrawal.

The hash of a transaction has 32 bytes on every network here. People copy it in capitals, with or without 0x. TON's
explorers differ, so its hashes are also copied in hexadecimal or in one of the two alphabets of base64.
"""

import base64
import re
from collections.abc import Iterator
from typing import Final

_HEXADECIMAL: Final = "(?:0[xX])?([0-9A-Fa-f]{64})"
_BASE64: Final = "([A-Za-z0-9+/]{43}|[A-Za-z0-9_-]{43})=?"
_WITH_0X: Final = frozenset({"ERC20", "BEP20", "POLYGON"})
_WITH_BASE64: Final = frozenset({"TON"})


def pattern(network: str) -> str:
    """Returns the forms of a hash on the network, as a regular expression for the whole text."""
    return f"{_HEXADECIMAL}|{_BASE64}" if network in _WITH_BASE64 else _HEXADECIMAL


def normal_form(network: str, text: str) -> str:
    """Returns the stored form: the hash in lower-case hexadecimal digits, after 0x on networks whose explorers
    write that.

    A text that is no hash, such as an operator's own mark for a payment, is stored as it was typed.
    """
    digits = _digits(network, text)
    if digits is None:
        return text
    return f"0x{digits}" if network in _WITH_0X else digits


def writings(network: str, text: str) -> list[str]:
    """Returns every lower-case form in which the transaction may be stored; each form gives the same list.

    Marks that differ only in case or in 0x count as one: a second one would be a mistake.
    """
    digits = _digits(network, text)
    if digits is None:
        mark = text.lower().removeprefix("0x")
        return [mark, f"0x{mark}"]
    return sorted(set(_writings(network, digits)))


def is_same(network: str, one: str, other: str) -> bool:
    """Returns whether both texts name one transaction."""
    return writings(network, one) == writings(network, other)


def _writings(network: str, digits: str) -> Iterator[str]:
    yield from (digits, f"0x{digits}")
    if network in _WITH_BASE64:
        hash = bytes.fromhex(digits)
        for encoded in (base64.b64encode(hash), base64.urlsafe_b64encode(hash)):
            # In lower case two different hashes could have equal base64, but that is too improbable to matter.
            padded = encoded.decode().lower()
            yield from (padded, padded.rstrip("="))


def _digits(network: str, text: str) -> str | None:
    """Returns 64 lower-case hexadecimal digits; None for a text that is no hash."""
    found = re.fullmatch(_HEXADECIMAL, text)
    if found:
        return found[1].lower()
    found = re.fullmatch(_BASE64, text) if network in _WITH_BASE64 else None
    if found is None:
        return None
    return base64.b64decode(found[1].replace("-", "+").replace("_", "/") + "=").hex()

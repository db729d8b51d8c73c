"""Short codes that people read, copy and dictate: seven random characters of Crockford's base 32 and a check character.

The alphabet has no I, L, O and U, so that no two of its characters look alike. With the check character, a weighted sum
over the field with 32 elements is zero: each character counts by another power of an element that generates the field.
So it finds every wrong character, every swap of two characters, neighbours or not, and every pair of equal neighbours
that was typed as another such pair (docs/decisions/0006-a-reference-for-every-transfer.md).
"""

import secrets
from collections.abc import Iterator
from typing import Final

ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LENGTH: Final = 8
GROUP: Final = 4

_FIELD_POLYNOMIAL: Final = (
    0b100101  # x^5 + x^2 + 1, which is primitive: the powers of x are all 31 other elements
)
_VALUES: Final = {character: value for value, character in enumerate(ALPHABET)}
_LOOKS_LIKE: Final = str.maketrans("OIL", "011")
_BETWEEN: Final = str.maketrans("", "", " -\t\u00a0")


def new_code() -> str:
    """Returns a fresh random code. One of 2^35: the caller checks that it is not in use."""
    code = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH - 1))
    return code + check_character(code)


def check_character(characters: str) -> str:
    """Returns the character that completes the code. Raises KeyError for a character outside of the alphabet."""
    return ALPHABET[_times_x(_sum(characters))]


def parse_code(text: str) -> str | None:
    """Returns the code as it is stored, None for text that is none.

    Accepts lower case, O for 0, I and L for 1, and blanks and hyphens anywhere.
    """
    typed = text.translate(_BETWEEN)
    if (
        len(typed) != LENGTH or not typed.isascii()
    ):  # some other letters become two when they become upper case
        return None
    code = typed.upper().translate(_LOOKS_LIKE)
    return code if _VALUES.keys() >= set(code) and not _sum(code) else None


def codes_in(text: str) -> Iterator[str]:
    """Yields every run of characters that is a code, once blanks and punctuation are left out, as `parse_code` does.

    Runs overlap. Of the runs of a random text, 1 of 32 is a code.
    """
    characters = [each for each in text.upper().translate(_LOOKS_LIKE) if each.isalnum()]
    total = run = 0
    for place, character in enumerate(characters):
        value = _VALUES.get(character)
        if value is None:  # a letter that no code has
            total = run = 0
            continue
        if run == LENGTH:
            total ^= _FIRST[_VALUES[characters[place - LENGTH]]]
        else:
            run += 1
        total = _times_x(total) ^ value
        if run == LENGTH and not total:
            yield "".join(characters[place - LENGTH + 1 : place + 1])


def in_groups(code: str) -> str:
    """Returns the code as it is shown: "7K3M 9QTX"; empty for an empty one."""
    return " ".join(code[start : start + GROUP] for start in range(0, len(code), GROUP))


def _sum(characters: str) -> int:
    """Returns the sum of the characters, each one times x to the power of the number of characters after it."""
    total = 0
    for character in characters:
        total = _times_x(total) ^ _VALUES[character]
    return total


def _times_x(value: int) -> int:
    shifted = value << 1
    return shifted ^ _FIELD_POLYNOMIAL if shifted & 32 else shifted


_FIRST: Final = tuple(_sum(character + "0" * (LENGTH - 1)) for character in ALPHABET)
"""By the value of a character: its part of the sum as the first one of a code."""

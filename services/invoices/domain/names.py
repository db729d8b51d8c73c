"""The name on the account that a customer paid from: what is accepted, and the words by which operators find it."""

import re
import unicodedata

_NOT_OF_A_NAME = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters, line ends and direction marks: they could change how an operator's list reads. The joiners of
Persian and Indian scripts belong to names.
"""


def is_name(text: str) -> bool:
    """Returns whether the text is one line that shows as it is stored."""
    return bool(text.strip()) and _NOT_OF_A_NAME.search(text) is None


def words_of_name(name: str) -> str:
    """Returns the words for the search: without accents, in small letters, without anything between them but a blank.

    Banks write names in capitals and often without accents: "Zoë Müller-Łukasz" is "ZOE MULLER LUKASZ" there.
    """
    apart = unicodedata.normalize("NFKD", name.casefold()).translate(_LETTERS_WITHOUT_DECOMPOSITION)
    plain = "".join(each for each in apart if unicodedata.category(each) not in ("Mn", "Cf"))
    return " ".join(re.findall(r"\w+", plain)) or name.casefold()


_LETTERS_WITHOUT_DECOMPOSITION = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe"})

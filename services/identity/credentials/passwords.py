"""Passwords: Argon2id, and which ones are refused.

A password that is common is one of few pieces: words that many choose, the person's own name, keyboard rows, years,
repeats. Each piece counts as one character, however long it is.
"""

import re
import secrets
from collections.abc import Iterable, Sequence
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError

LEAST_CHARACTERS: Final = 12
MOST_CHARACTERS: Final = 256
LEAST_PIECES: Final = 6
OWN_WORD_CHARACTERS: Final = 3
"""Shorter parts of a name or address are no words: they are in too many other words."""


class Passwords:
    """Hashes and compares. Each call uses 64 MiB and a tenth of a second, so callers bound their number.

    The cost is that of RFC 9106, section 4, second option, with one lane: a guess must not occupy several cores.

    passes, memory_kib  the cost of one hash; less is for tests, which make hundreds
    """

    def __init__(self, *, passes: int = 3, memory_kib: int = 64 * 1024) -> None:
        self._hasher = PasswordHasher(time_cost=passes, memory_cost=memory_kib, parallelism=1)
        self._of_nobody = self._hasher.hash(secrets.token_urlsafe())

    def hash(self, password: str) -> str:
        return self._hasher.hash(password)

    def fits(self, stored: str | None, password: str) -> bool:
        """Returns whether the password is the stored one. Without a stored one the work is the same."""
        try:
            self._hasher.verify(stored or self._of_nobody, password)
        except VerificationError:
            return False
        return stored is not None


def weakness_of(password: str, *, own: Iterable[str]) -> str:
    """Returns why the password is refused, as a sentence; "" when it is not.

    own  texts of the person: e-mail address, name
    """
    if len(password) < LEAST_CHARACTERS:
        return f"A password has {LEAST_CHARACTERS} characters or more"
    if len(password) > MOST_CHARACTERS:
        return f"A password has {MOST_CHARACTERS} characters or fewer"
    own_words = [word for text in own for word in re.findall(r"\w+", text.lower())]
    if _pieces(password.lower(), own_words) < LEAST_PIECES:
        return "This password is too common or too close to your name; take several unusual words"
    return ""


_LEET: Final = str.maketrans("04135$@!7", "oaies" + "sait")
_ROWS: Final = (
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890",
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "qwertzuiop",
    "azertyuiop",
    "1q2w3e4r5t6y7u8i9o0p",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik",
    "qazwsxedcrfvtgbyhnujmik",
    "!@#$%^&*()",
    "789456123",
)
_RUN: Final = 3
"""Neighbours on a row from which on they are one piece."""

_TEXT: Final = """
fiatgate password passwort passwd motdepasse contrasena senha parola haslo secret geheim admin administrator root
manager operator merchant welcome willkommen bienvenue hello login letmein master access default change changeme system
server service support account user test testing guest temp temporary internet computer windows google facebook apple
samsung microsoft amazon netflix minecraft pokemon starwars batman superman spiderman dragon monkey tiger lion eagle
phoenix shadow ninja pirate killer hunter warrior soldier ranger knight king queen prince princess angel devil heaven
lucky happy smile love loveyou iloveyou lovely sweet sweetheart honey baby babygirl babyboy darling friend friends
forever always never flower rose butterfly sunshine summer winter spring autumn sommer january february march april june
july august september october november december monday tuesday wednesday thursday friday saturday sunday
football baseball basketball soccer hockey liverpool chelsea arsenal barcelona realmadrid manchester united juventus
yankees cowboys
michael michelle jennifer jessica jordan ashley nicole daniel andrew robert william thomas charlie george anthony joshua
matthew christopher alexander alexandra elizabeth victoria samantha stephanie natasha maria diego carlos fernando
mustang ferrari porsche mercedes corvette harley yamaha honda toyota coffee chocolate cookie banana orange cheese pepper
ginger buster bailey maggie silver golden diamond purple yellow black white green blue red money dollar bitcoin crypto
tether wallet payment business company london berlin paris moscow america canada germany france russia india china
brasil mexico freedom liberty trustno trust nothing whatever something please thankyou fuckyou fuck jesus christ
godisgood god bless family mother father sister brother children home house office school college university the and you
are my is me i a in of for with one two three four five six seven eight nine zero new old this that qwerty asdf zxcv
pass word
"""
_WORDS: Final = frozenset(_TEXT.split())


def _pieces(text: str, own: Sequence[str]) -> int:
    """Returns the least number of pieces that the text is made of: words, runs on a row, repeats, single characters."""
    plain = text.translate(_LEET)
    words = {*_WORDS, *(word for word in own if len(word) >= OWN_WORD_CHARACTERS)}
    longest = max(map(len, words))
    least = [0] * (len(text) + 1)  # of the first n characters
    for end in range(1, len(text) + 1):
        best = least[end - 1] + 1
        for start in range(max(0, end - longest), end):
            if text[start:end] in words or plain[start:end] in words:
                best = min(best, least[start] + 1)
        for start in range(end - 2, -1, -1):
            part = text[start:end]
            if _is_run(part):
                best = min(best, least[start] + 1)
            elif len(part) >= _RUN:
                break
        if _is_year(text[max(0, end - 4) : end]):
            best = min(best, least[end - 4] + 1)
        best = min(best, _with_repeat(text, end, least))
        least[end] = best
    return least[len(text)]


def _with_repeat(text: str, end: int, least: list[int]) -> int:
    """Returns the least number when the last characters repeat those before them: a repeat is free."""
    found = end
    for size in range(1, end // 2 + 1):
        if text[end - size : end] == text[end - 2 * size : end - size]:
            found = min(found, least[end - size])
    return found


def _is_run(part: str) -> bool:
    return len(part) >= _RUN and any(part in row or part in row[::-1] for row in _ROWS)


def _is_year(part: str) -> bool:
    return re.fullmatch(r"(19|20)\d\d", part) is not None

"""docs/glossary.md: one entry per word, in order, and the same sentences as the page at /docs."""

import re
from pathlib import Path
from typing import Final

import pytest

from gateway.openapi.words import WORDS

FILE: Final = Path(__file__).resolve().parents[1] / "docs" / "glossary.md"
TEXT: Final = FILE.read_text().partition('\n\n<a id="second-senses">')[0]
ENTRIES: Final = {
    word: (anchor, meaning)
    for anchor, word, meaning in re.findall(
        r'^- <a id="([^"]+)"></a>\*\*([^*]+)\*\*: (.*)$', TEXT, re.MULTILINE
    )
}


@pytest.mark.parametrize("word", WORDS)
def test_the_glossary_says_what_the_page_says(word: str) -> None:
    assert ENTRIES[word][1] == WORDS[word]


def test_every_entry_has_an_anchor_of_its_word() -> None:
    assert len(ENTRIES) == TEXT.count("<a id=") > len(WORDS)
    assert {word.lower().replace(" ", "-"): word for word in ENTRIES} == {
        anchor: word for word, (anchor, _) in ENTRIES.items()
    }


def test_the_entries_are_in_alphabetical_order() -> None:
    assert list(ENTRIES) == sorted(ENTRIES, key=str.lower)


def test_an_entry_is_short() -> None:
    assert not {word for word, (_, meaning) in ENTRIES.items() if len(meaning) > 300}

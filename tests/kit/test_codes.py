"""kit/base/codes: what people may type, and which mistakes the check character finds."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.base.codes import ALPHABET, LENGTH, check_character, in_groups, new_code, parse_code

heads = st.text(ALPHABET, min_size=LENGTH - 1, max_size=LENGTH - 1)
codes = heads.map(lambda head: head + check_character(head))
places = st.integers(0, LENGTH - 1)


@given(codes)
def test_a_code_is_read_as_it_is_stored(code: str) -> None:
    assert parse_code(code) == code
    assert parse_code(in_groups(code)) == code


@given(codes, st.data())
def test_a_code_is_read_in_every_form_that_people_type(code: str, data: st.DataObject) -> None:
    typed = ""
    for character in code:
        looks = {"0": "0Oo", "1": "1IiLl"}.get(character, character + character.lower())
        typed += data.draw(st.sampled_from(looks)) + data.draw(
            st.sampled_from(["", " ", "-", " - ", "\u00a0"])
        )
    assert parse_code(f" {typed}") == code


@given(codes, places, st.sampled_from(ALPHABET))
def test_every_wrong_character_is_found(code: str, place: int, other: str) -> None:
    wrong = code[:place] + other + code[place + 1 :]
    assert (parse_code(wrong) is None) == (wrong != code)


def test_no_single_mistake_passes_at_any_place_whatever_the_character() -> None:
    """The sum is linear: a mistake passes for every code, or for none. So this covers all codes."""
    zero = "0" * LENGTH
    for place, other in itertools.product(range(LENGTH), ALPHABET[1:]):
        assert parse_code(zero[:place] + other + zero[place + 1 :]) is None


@given(codes, places, places)
def test_every_swap_of_two_characters_is_found(code: str, one: int, other: int) -> None:
    swapped = list(code)
    swapped[one], swapped[other] = code[other], code[one]
    assert (parse_code("".join(swapped)) is None) == ("".join(swapped) != code)


@given(codes, st.integers(0, LENGTH - 2), st.sampled_from(ALPHABET), st.sampled_from(ALPHABET))
def test_a_pair_typed_as_another_pair_is_found(code: str, place: int, one: str, other: str) -> None:
    head = (code[:place] + one + one + code[place + 2 :])[: LENGTH - 1]
    right = head + check_character(head)
    if right[place] != right[place + 1] or one == other:
        return
    wrong = right[:place] + other + other + right[place + 2 :]
    assert parse_code(wrong) is None


@pytest.mark.parametrize(
    "text",
    ["", "7K3M", "7K3M 9QTXX", "UUUU UUUU", "7K3M_9QTX", "\uff10" * 8, "ß" * 4, "ß" * 8, "0" * 9, "é" * 8],
)
def test_other_text_is_no_code(text: str) -> None:
    assert parse_code(text) is None


def test_codes_are_shown_in_two_groups() -> None:
    code = new_code()
    assert in_groups(code) == f"{code[:4]} {code[4:]}"


def test_fresh_codes_are_codes_and_differ() -> None:
    made = {new_code() for _ in range(1000)}
    assert len(made) == 1000
    assert all(parse_code(code) == code for code in made)

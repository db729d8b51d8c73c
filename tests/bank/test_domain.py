"""References in the texts of banks, and what makes two lines the same."""

import random
from dataclasses import replace
from datetime import date
from decimal import Decimal
from uuid import RFC_4122

from hypothesis import given
from hypothesis import strategies as st

from kit.base.codes import ALPHABET, LENGTH, check_character, codes_in, in_groups, parse_code
from services.bank.domain.lines import Direction, Line, Status, identities, line_id, references_in
from services.bank.files.reading import read
from tests.bank.shapes import mt940

heads = st.text(ALPHABET, min_size=LENGTH - 1, max_size=LENGTH - 1)
codes = heads.map(lambda head: head + check_character(head))
words = st.text("abcdefgh JKMNP.,-/:äß0123456789", max_size=40)


def mangled(code: str, chance: random.Random) -> str:
    """Returns the code as people type it: groups, small letters, letters for digits, blanks and punctuation."""
    likes = {"0": "0Oo", "1": "1IiLl"}
    between = ["", "", "", " ", "-", ".", "/", "  ", "\u00a0"]
    return "".join(
        chance.choice(likes.get(each, each + each.lower())) + chance.choice(between) for each in code
    ).strip()


@given(
    st.lists(codes, min_size=1, max_size=4),
    st.lists(words, min_size=5, max_size=5),
    st.randoms(use_true_random=False),
)
def test_every_reference_is_found_however_people_and_banks_mangle_the_text(
    references: list[str], around: list[str], chance: random.Random
) -> None:
    text = around[0] + "".join(
        f" {mangled(code, chance)} {word}" for code, word in zip(references, around[1:], strict=False)
    )
    flat = text.translate(str.maketrans("", "", "äß"))
    for width in (27, 35, len(text) + 1):
        pieces = [text[at : at + width] for at in range(0, len(text), width)]
        for joint in ("", " ", "\n", " \n"):
            assert set(references) <= set(references_in([joint.join(pieces)]))
    assert set(references) <= set(references_in([flat.upper()]))


@given(codes, words)
def test_a_reference_is_found_through_the_fields_of_a_file(code: str, before: str) -> None:
    plain = " ".join(before.replace(":", "").replace("-", "").replace("/", "").split())
    text = f"{plain} {in_groups(code)}"
    pieces = "".join(f"?{20 + at // 27}{text[at : at + 27]}" for at in range(0, len(text), 27))
    content = mt940(":61:260102C5,00NTRFNONREF", f":86:166{pieces}", closing="C260102EUR1005,00")
    ((line,),) = (statement.lines for statement in read(content.encode()))
    assert code in references_in([*line.references, line.text])


@given(st.text(f"{ALPHABET}OILuUoil ä-", max_size=60))
def test_codes_in_a_text_are_those_that_parse_code_accepts(text: str) -> None:
    letters = "".join(filter(str.isalnum, text))
    windows = (parse_code(letters[at : at + LENGTH]) for at in range(len(letters) - LENGTH + 1))
    assert list(codes_in(text)) == [code for code in windows if code]


def test_the_fields_for_references_come_first_and_the_rest_is_cut() -> None:
    ours = "7K3M9QT" + check_character("7K3M9QT")
    noise = "".join(random.Random(1).choices(ALPHABET, k=8_000))
    found = references_in([ours, noise])
    assert (found[0], len(found)) == (ours, 100)


def test_one_of_32_windows_of_a_random_text_is_a_candidate() -> None:
    """So a text of 140 characters has four false ones; with 10,000 open deals one of a million hits a deal."""
    noise = "".join(random.Random(1).choices(ALPHABET, k=100_000))
    assert 3_000 < sum(1 for _ in codes_in(noise)) < 3_250


LINE = Line(
    account="A1",
    direction=Direction.CREDIT,
    amount=Decimal("10.50"),
    currency="EUR",
    status=Status.BOOKED,
    booked_on=date(2026, 1, 2),
    valued_on=None,
    position="Line 1",
    source_id="B1",
    counterparty_name="Max Muster",
    text="Order 7K3M 9QT9",
)


def test_the_same_file_again_gives_the_same_identities_and_equal_payments_two() -> None:
    lines = [LINE, replace(LINE, position="Line 2"), replace(LINE, amount=Decimal("105"))]
    found = identities(lines)
    again = [
        replace(each, text="ORDER7K3M9QT9", amount=each.amount.normalize(), status=Status.PENDING)
        for each in lines
    ]
    assert len(set(found)) == 3
    assert identities(again) == found


def test_each_value_of_a_line_makes_another_identity() -> None:
    changed = [
        LINE,
        replace(LINE, account="A2"),
        replace(LINE, direction=Direction.DEBIT),
        replace(LINE, amount=Decimal("105.0")),
        replace(LINE, currency="USD"),
        replace(LINE, booked_on=date(2026, 1, 3)),
        replace(LINE, text="Order"),
        replace(LINE, counterparty_name="Max"),
        replace(LINE, counterparty_account="DE1"),
    ]
    assert len({identities([each])[0] for each in changed}) == len(changed)


def test_the_id_of_a_line_is_the_same_each_time_and_ids_follow_the_days() -> None:
    days = [date(1969, 1, 1), date(2026, 1, 2), date(2026, 1, 3), date(9999, 12, 31)]
    ids = [line_id("A1", "fp:1", day) for day in days]
    assert ids == sorted(set(ids)) == [line_id("A1", "fp:1", day) for day in days]
    assert {each.version for each in ids} == {8} and {each.variant for each in ids} == {RFC_4122}
    assert len({line_id(*of, days[1]) for of in (("A1", "fp:1"), ("A2", "fp:1"), ("A1", "fp:2"))}) == 3

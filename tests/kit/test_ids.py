"""kit.base.ids: what is an id and what is only somebody's order number."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.base.ids import (
    CELL_BITS,
    MOST_CELL,
    SECRET_BITS,
    TIME_BITS,
    UNIT_SECONDS,
    first_secret_id,
    new_id,
    parse_id,
    secret_id,
)

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
# What the 26 bits of time reach.
MOMENTS = st.integers(0, (UNIT_SECONDS << TIME_BITS) - 1).map(
    lambda seconds: datetime.fromtimestamp(seconds, UTC)
)


def test_new_ids_are_version_7_and_only_grow() -> None:
    ids = [new_id() for _ in range(1000)]
    assert {each.version for each in ids} == {7}
    assert ids == sorted(ids)
    assert len(set(ids)) == 1000


@given(at=MOMENTS)
def test_a_secret_id_is_a_version_8_of_the_standard_variant(at: datetime) -> None:
    made = secret_id(at, cell=7)
    assert (made.version, made.variant) == (8, uuid.RFC_4122)
    assert parse_id(str(made)) == made


@given(one=MOMENTS, other=MOMENTS)
def test_secret_ids_sort_by_their_time_in_units(one: datetime, other: datetime) -> None:
    units = [int(at.timestamp()) // UNIT_SECONDS for at in (one, other)]
    first, second = secret_id(one, cell=0), secret_id(other, cell=0)
    assert [each.int >> (128 - TIME_BITS) for each in (first, second)] == units
    if units[0] != units[1]:
        assert (first < second) == (units[0] < units[1])


@given(at=MOMENTS)
def test_the_first_secret_id_of_a_time_stands_before_all_others_of_it(at: datetime) -> None:
    first = first_secret_id(at)
    assert parse_id(str(first)) == first
    assert first <= secret_id(at, cell=0)


def test_secret_ids_of_one_instant_share_nothing_but_the_time_the_cell_version_and_variant() -> None:
    always_set = always_clear = (1 << 128) - 1
    for _ in range(200):  # a random bit that 200 ids have in common: once in 2^199 runs
        made = secret_id(NOW, cell=3).int
        always_set &= made
        always_clear &= ~made
    assert (always_set | always_clear).bit_count() == 128 - SECRET_BITS == TIME_BITS + CELL_BITS + 4 + 2


@given(cell=st.integers(0, MOST_CELL))
def test_the_last_two_digits_of_a_secret_id_are_its_cell(cell: int) -> None:
    assert int(str(secret_id(NOW, cell=cell))[-2:], 16) == cell


@pytest.mark.parametrize("cell", [-1, MOST_CELL + 1])
def test_there_are_cells_0_to_255(cell: int) -> None:
    with pytest.raises(ValueError, match="expected 0 to 255"):
        secret_id(NOW, cell=cell)


def test_ids_made_at_the_same_moment_are_no_series() -> None:
    """Ids of version 7 that one process makes within a millisecond share 96 bits and differ in the last 32."""
    made = [secret_id(NOW, cell=0).int for _ in range(1000)]
    assert made != sorted(made)
    assert len({each >> 32 for each in made}) == 1000


def test_a_secret_id_sorts_after_version_7_and_past_2106_it_still_is_one() -> None:
    assert secret_id(NOW, cell=0) > new_id()
    late = secret_id(datetime(2106, 2, 7, tzinfo=UTC) + timedelta(days=1), cell=0)
    assert late.version == 8
    assert late < secret_id(NOW, cell=0)


def test_an_id_is_read_back_in_either_case() -> None:
    one = new_id()
    assert parse_id(str(one)) == one
    assert parse_id(str(one).upper()) == one


@pytest.mark.parametrize(
    "text",
    [
        "",
        "order-1",
        "{01a1f868-ce33-7093-ad97-76aeaf3cfa65}",
        "urn:uuid:01a1f868-ce33-7093-ad97-76aeaf3cfa65",
        "01a1f868ce337093ad9776aeaf3cfa65",
        "01a1f868-ce33-7093-ad97-76aeaf3cfa65\n",
        " 01a1f868-ce33-7093-ad97-76aeaf3cfa65",
        "01a1f868-ce33-7093-ad97-76aeaf3cfa6٣",
    ],
)
def test_only_the_canonical_form_is_an_id(text: str) -> None:
    assert parse_id(text) is None

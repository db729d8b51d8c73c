"""kit.db.rows: columns by the fields of a dataclass, and typed values of them."""

from dataclasses import dataclass
from enum import StrEnum

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, Text, func

from kit.db.rows import Rows


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Bead:
    colour: Colour
    size: int
    letters: int
    owner: str | None


TABLE = Table(
    "beads",
    MetaData(),
    Column("id", Integer),
    Column("size", Integer),
    Column("colour", Text),
    Column("x", Text),
)
BEADS = Rows(Bead, TABLE, without=("owner",), letters=func.length(TABLE.c.colour))


def test_columns_have_the_names_and_order_of_the_fields() -> None:
    assert [column.name for column in BEADS.columns] == ["colour", "size", "letters"]


def test_a_field_without_a_column_is_an_error_at_once() -> None:
    with pytest.raises(KeyError, match="owner"):
        Rows(Bead, TABLE, letters=func.length(TABLE.c.colour))


def test_text_of_an_enumeration_becomes_its_member() -> None:
    bead = BEADS.make("red", 3, 3, None)
    assert bead == Bead(Colour.RED, 3, 3, None)
    assert isinstance(bead.colour, Colour)
    with pytest.raises(KeyError, match="green"):
        BEADS.make("green", 3, 5, None)

"""Rows as frozen dataclasses. A class names its columns once; queries select them, and callers get typed values."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, Generic, TypeVar, get_type_hints

from sqlalchemy import FromClause, Result, Row, SQLColumnExpression

T = TypeVar("T")


class Rows(Generic[T]):
    """The columns of a table that a dataclass is made of: those with the names of its fields, in their order.

    without   fields that are no column: the caller of `make` passes them at their place
    computed  expressions for fields that the table does not have
    """

    def __init__(
        self,
        kind: type[T],
        table: FromClause,
        *,
        without: Collection[str] = (),
        **computed: SQLColumnExpression[Any],
    ) -> None:
        types = get_type_hints(kind)
        names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # a dataclass has no type of its own
        self.columns = [
            computed[name].label(name) if name in computed else table.c[name]
            for name in names
            if name not in without
        ]
        self.make: Callable[..., T] = _with_members(
            kind, [(number, types[name]) for number, name in enumerate(names) if _is_enum(types[name])]
        )
        """Makes the dataclass of its values, passed one by one. The text of an enumeration becomes its member; KeyError
        when it has none.
        """

    def of(self, row: Row[Any]) -> T:
        """Makes the dataclass of a row that may have columns of other tables too."""
        return self.of_columns(row._mapping)

    def of_columns(self, values: Mapping[Any, Any]) -> T:
        """Makes the dataclass of the values by their columns."""
        return self.make(*(values[column] for column in self.columns))

    def all(self, result: Result[Any]) -> list[T]:
        return [self.make(*row) for row in result]

    def one_or_none(self, result: Result[Any]) -> T | None:
        """Returns the only row, or None. Raises SQLAlchemy's MultipleResultsFound when there are more."""
        row = result.one_or_none()
        return None if row is None else self.make(*row)


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _with_members(kind: type[T], enums: list[tuple[int, type[Enum]]]) -> Callable[..., T]:
    members = [(number, {member.value: member for member in enum}) for number, enum in enums]

    def make(*values: Any) -> T:
        converted = list(values)
        for number, of_text in members:
            converted[number] = of_text[converted[number]]
        return kind(*converted)

    return make if enums else kind

"""The statement that creates a row or replaces it, and the columns of a method."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.db.database import table_of
from kit.db.rows import Rows
from services.catalog.domain import Method
from services.catalog.models import PaymentMethod

METHOD: Final = Rows(Method, table_of(PaymentMethod))


def put(tx: Session, table: Any, key: str, values: Mapping[str, Any], *, keeps: Collection[str] = ()) -> None:
    """Inserts the row, or replaces the one with the same `key`, which `keeps` these columns."""
    query = insert(table).values(values)
    replaced = {name: query.excluded[name] for name in values if name != key and name not in keeps}
    tx.execute(query.on_conflict_do_update(index_elements=[key], set_=replaced))

"""The statement that creates a row or replaces it."""

from typing import Any

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session


def put(tx: Session, table: Any, key: str, values: dict[str, Any]) -> None:
    """Inserts the row, or replaces the one with the same `key`."""
    query = insert(table).values(values)
    replaced = {name: query.excluded[name] for name in values if name != key}
    tx.execute(query.on_conflict_do_update(index_elements=[key], set_=replaced))

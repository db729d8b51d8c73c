"""The statement that creates a row or replaces it, and the columns of a method."""

from typing import Any, Final

from sqlalchemy import Boolean, cast, func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.db.database import if_known, table_of
from kit.db.rows import Rows
from services.catalog.domain import AccountKind, Method
from services.catalog.models import PaymentMethod

METHOD: Final = Rows(
    Method,
    table_of(PaymentMethod),
    takes_reference=func.coalesce(cast(if_known("payment_methods", "takes_reference"), Boolean), False),
    account_kind=func.coalesce(if_known("payment_methods", "account_kind"), AccountKind.FREE.value),
)


def put(tx: Session, table: Any, key: str, values: dict[str, Any]) -> None:
    """Inserts the row, or replaces the one with the same `key`."""
    query = insert(table).values(values)
    replaced = {name: query.excluded[name] for name in values if name != key}
    tx.execute(query.on_conflict_do_update(index_elements=[key], set_=replaced))

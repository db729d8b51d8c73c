"""Steps that migrations of several services share."""

from collections.abc import Sequence

from alembic import op
from sqlalchemy import TextClause

INDEX_WAIT_SECONDS = 300
"""How long the making of an index waits for one older transaction: meanwhile it stops nothing."""


def index_beside_traffic(
    name: str,
    table: str,
    columns: Sequence[str | TextClause],
    *,
    where: TextClause | None = None,
    using: str = "btree",
) -> None:
    """Makes an index while the table is written to, however large the table is.

    It is no transaction: the rest of an interrupted attempt is dropped and the index made anew. Never make a unique
    one: the version before may write rows that it refuses.
    """
    with op.get_context().autocommit_block():
        op.execute(f"SET lock_timeout = '{INDEX_WAIT_SECONDS}s'")
        op.drop_index(name, table, if_exists=True, postgresql_concurrently=True)
        op.create_index(
            name,
            table,
            columns,
            postgresql_where=where,
            postgresql_using=using,
            postgresql_concurrently=True,
        )
        op.execute("RESET lock_timeout")

"""The step of later migrations: by the time they run, tables are large and written to."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

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
    include: Sequence[str] = (),
    using: str = "btree",
    options: Mapping[str, str] = MappingProxyType({}),
    unique: bool = False,
) -> None:
    """Makes an index while the table is written to, however large the table is. It also holds the columns of `include`.

    It is no transaction: the rest of an interrupted attempt is dropped and the index made anew. Make a unique one only
    on a column of the same migration: of another, the version before may write rows that it refuses.
    """
    with op.get_context().autocommit_block():
        op.execute(f"SET lock_timeout = '{INDEX_WAIT_SECONDS}s'")
        op.drop_index(name, table, if_exists=True, postgresql_concurrently=True)
        op.create_index(
            name,
            table,
            columns,
            postgresql_where=where,
            postgresql_include=list(include),
            unique=unique,
            postgresql_using=using,
            postgresql_with=dict(options),
            postgresql_concurrently=True,
        )
        op.execute("RESET lock_timeout")

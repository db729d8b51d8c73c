"""Alembic's environment and file template, shared by all services, and steps that they have in common; `kit.migrate` is
the way in.
"""

from collections.abc import Sequence

from alembic import op
from sqlalchemy import TextClause

INDEX_WAIT_SECONDS = 300
"""How long an index in the making waits for one transaction begun before it: it stops nobody meanwhile."""


def index_beside_traffic(
    name: str, table: str, columns: Sequence[str | TextClause], *, where: TextClause | None = None
) -> None:
    """An index made while the table is written to, however large that is.

    No transaction holds it together: what an attempt cut short has left behind is dropped and made anew. Never a
    unique one: the version before may write what it refuses.
    """
    with op.get_context().autocommit_block():
        op.execute(f"SET lock_timeout = '{INDEX_WAIT_SECONDS}s'")
        op.drop_index(name, table, if_exists=True, postgresql_concurrently=True)
        op.create_index(name, table, columns, postgresql_where=where, postgresql_concurrently=True)
        op.execute("RESET lock_timeout")

"""What a service's role may do in its database, where another role owns it.

The owner migrates and then grants anew what the service declares beside its migrations (`RIGHTS`): a table and the
rights on it. The service's role owns nothing: it can't change a table, switch a trigger off or give itself a right.
"""

import re
from collections.abc import Mapping, Set

from sqlalchemy import Connection, text

_TABLES = text("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")
_COLUMNS = text(
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
)
_COLUMN_LIST = re.compile(r"\((.+?)\)")
_EVERYWHERE = {"alembic_version": "SELECT"}


def grant(connection: Connection, role: str, rights: Mapping[str, str]) -> None:
    """Give `role` exactly these rights, in one transaction: a right that stays is never missing in between.

    A table that the declaration leaves out is not to be touched. What the schema does not have yet is passed over.
    """
    quote = connection.dialect.identifier_preparer.quote
    with connection.begin():
        database = connection.scalar(text("SELECT current_database()"))
        tables = connection.scalars(_TABLES).all()
        columns = {(table, column) for table, column in connection.execute(_COLUMNS)}
        to = quote(role)
        for statement in (
            f"GRANT CONNECT ON DATABASE {quote(str(database))} TO {to}",
            f"GRANT USAGE ON SCHEMA public TO {to}",
            f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {to}",
        ):
            connection.execute(text(statement))
        for table in tables:
            allowed = _EVERYWHERE.get(table) or rights.get(table)
            if allowed:
                there = {column for of_table, column in columns if of_table == table}
                connection.execute(text(f"GRANT {_limited(allowed, there)} ON {quote(table)} TO {to}"))


def _limited(allowed: str, there: Set[str]) -> str:
    """The same rights on no other columns than those that are there."""

    def known(named: re.Match[str]) -> str:
        return f"({', '.join(each for each in named[1].split(', ') if each in there)})"

    return _COLUMN_LIST.sub(known, allowed)

"""The rights of a service's role in its database, where another role owns the database.

The owner migrates, then grants the rights that the service declares beside its migrations (`RIGHTS`): each table with
the rights on it. The service's role owns nothing: it can't change a table, switch a trigger off or give itself a right.
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
    """Gives `role` exactly these rights, in one transaction: a right that stays is never missing in between.

    The role has no right on a table without a declaration, and other roles have none on the database. Declared tables
    and columns that do not exist yet are skipped.
    """
    quote = connection.dialect.identifier_preparer.quote
    with connection.begin():
        database = connection.scalar(text("SELECT current_database()"))
        tables = connection.scalars(_TABLES).all()
        columns = {(table, column) for table, column in connection.execute(_COLUMNS)}
        to = quote(role)
        for statement in (
            # Each new database lets every role of the server in, and the service's own make temporary tables.
            f"REVOKE ALL ON DATABASE {quote(str(database))} FROM PUBLIC",
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
    """Returns the same rights, limited to columns that exist."""

    def known(named: re.Match[str]) -> str:
        return f"({', '.join(each for each in named[1].split(', ') if each in there)})"

    return _COLUMN_LIST.sub(known, allowed)

"""The check that a database has the tables that the code needs, without Alembic (kit.db.migrate), which is slow
to import.

A version serves on its own schema and on the one before (docs/decisions/0025): migrations and processes of an upgrade
come in any order. On an older schema a process waits for `migrate`. The old processes keep serving, because any newer
schema suits them.
"""

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from weakref import WeakSet

import psycopg2.errors
from sqlalchemy import Connection, Engine, exc, text
from sqlalchemy.orm import Session

from kit.db.database import Database
from kit.work.worker import Outage

_IS_USABLE = text("SELECT coalesce(has_table_privilege(to_regclass('public.' || :table), 'INSERT'), false)")

_LACKING = text("""
SELECT name FROM unnest(CAST(:names AS text[])) name
WHERE to_regclass('public.' || quote_ident(name)) IS NULL ORDER BY name
""")


class SchemaBehind(Outage):
    """A migration that this version can't do without has not run yet."""


class WrongDatabase(Exception):
    """The database has a schema, but not that of the service."""


class NewTable:
    """A table that the newest migration adds: the code of the same version runs without it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._usable: WeakSet[Engine] = WeakSet()

    def is_usable(self, connection: Connection | Session) -> bool:
        """Returns whether the table exists and the role may write to it. Once it does, no further query is made."""
        engine = (connection.get_bind() if isinstance(connection, Session) else connection).engine
        if engine in self._usable:
            return True
        usable = bool(connection.scalar(_IS_USABLE, {"table": self._name}))
        if usable:
            self._usable.add(engine)
        return usable


def versions(service: str) -> Path | None:
    """Returns the folder of a service's migrations; None when there is no such service."""
    migrations = _migrations(service)
    return None if migrations is None else Path(str(migrations.__file__)).parent / "versions"


def needs(service: str) -> str:
    """Returns the oldest revision that the service runs on."""
    revision: str = getattr(_migrations(service), "NEEDS", "")
    return revision


def rights(service: str | Path) -> Mapping[str, str]:
    """Returns the rights of the service's role on each table; empty for a folder of versions."""
    declared: Mapping[str, str] = (
        {} if isinstance(service, Path) else getattr(_migrations(service), "RIGHTS", {})
    )
    return declared


def waits_for(service: str, db: Database) -> str:
    """Returns the newest migration if it has not run yet but the service can do without it; "" if it has run.

    Raises SchemaBehind when a migration is missing that the service can't do without, and WrongDatabase when the tables
    are not the service's. A schema newer than this version is fine.
    """
    folder = versions(service)
    if folder is None:
        return ""
    known = sorted(path.name.partition("_")[0] for path in folder.glob("[0-9]*_*.py"))
    there = _revision(db)
    if there is None or there in known[: known.index(needs(service))]:
        raise SchemaBehind(
            f"the schema is at {there or 'nothing'}, this version needs {needs(service)}: run migrate"
        )
    with db.autocommit() as connection:
        check_tables(service, connection)
    return known[-1] if there in known[:-1] else ""


def check_tables(service: str, connection: Connection) -> None:
    """Raises WrongDatabase unless the database has all tables of the models: each schema since NEEDS has them."""
    names = sorted(importlib.import_module(f"services.{service}.models").Base.metadata.tables)
    if lacking := connection.scalars(_LACKING, {"names": names}).all():
        raise WrongDatabase(f"this is not the database of {service}: it lacks {', '.join(lacking)}")


def _migrations(service: str) -> ModuleType | None:
    if importlib.util.find_spec(f"services.{service}") is None:
        return None
    return importlib.import_module(f"services.{service}.migrations")


def _revision(db: Database) -> str | None:
    try:
        with db.autocommit() as connection:
            return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    except exc.ProgrammingError as error:
        if isinstance(error.orig, psycopg2.errors.UndefinedTable):
            return None
        if isinstance(error.orig, psycopg2.errors.InsufficientPrivilege):
            # `migrate` grants rights after its last migration; before that the owner alone may read the table.
            raise SchemaBehind(
                "this role has no rights in its database yet: run migrate as its owner"
            ) from error
        raise

"""Whether a database has what the code needs, by one look at it: Alembic (kit.migrate) takes long to import.

Migrations run first (docs/operations.md, Upgrades). Where new processes are started before that is done, they wait and
the old ones, which the new schema suits as well, serve on.
"""

import importlib.util
from pathlib import Path

import psycopg2.errors
from sqlalchemy import exc, text

from kit.db import Database
from kit.worker import Outage


class SchemaBehind(Outage):
    """Its migration has not run yet."""


def versions(service: str) -> Path | None:
    """The folder of a service's migrations; None when there is no such service."""
    spec = importlib.util.find_spec(f"services.{service}")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "migrations" / "versions"


def require(service: str, db: Database) -> None:
    """Raises SchemaBehind when the newest migration of this version has not run; a newer one is as good."""
    folder = versions(service)
    if folder is None:
        return
    known = sorted(path.name.partition("_")[0] for path in folder.glob("[0-9]*_*.py"))
    there = _revision(db)
    if there is None or there in known[:-1]:
        raise SchemaBehind(
            f"the schema is at {there or 'nothing'}, this version needs {known[-1]}: run migrate"
        )


def _revision(db: Database) -> str | None:
    try:
        with db.autocommit() as connection:
            return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    except exc.ProgrammingError as error:
        if isinstance(error.orig, psycopg2.errors.UndefinedTable):
            return None
        raise

"""Migrations: each service keeps only `migrations/versions/*.py`, the rest of Alembic's parts are here.

A parameter `service` is its name (`"invoices"`) or the folder of its versions (a `Path`).
A developer writes the next migration from the changed models, against a scratch database, with

    python -m kit.db.migrate new invoices "add the deal's holder" --url postgresql://…
"""

import argparse
import importlib
import operator
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg2.errors
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    CheckConstraint,
    Connection,
    MetaData,
    NullPool,
    create_engine,
    exc,
    inspect,
    make_url,
    text,
)
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from kit.db import rights, schema
from kit.db.connections import CONNECT_TIMEOUT_SECONDS
from kit.db.database import DatabaseUnavailable, first_line
from kit.work.worker import Outage

SHARED = Path(__file__).parent / "migrations"
LOCK_TIMEOUT_SECONDS = 10
"""A migration that can't get a table's lock in time fails and is run again: longer waiting would stop all traffic."""
OTHERS_MIGRATE_SECONDS = 600
OTHERS_ASK_SECONDS = 0.2


class OthersMigrate(Outage):
    """Another migration of this database has run for too long: find out why, then run this one again."""


def upgrade(service: str | Path, url: str, to: str = "head", *, role: str = "") -> bool:
    """Brings the database to the newest version, or to an older one; safe when several processes start at once.

    Returns false when a newer version has migrated it already: nothing is changed then, and this version runs on it
    (docs/decisions/0025).

    `role` is the service's own role, when `url` is that of the owner: it gets the rights that the service declares
    (kit.db.rights).

    Raises `DatabaseUnavailable` when the database can't be reached, `OthersMigrate` and `TableInUse` when another
    process holds it up, `WrongDatabase` when its tables are not the service's. Steps done by then stay done; the next
    try continues from there.
    """
    with _connection(url) as connection:
        _wait_for_others(connection)
        if _is_newer(service, connection):
            return False
        try:
            command.upgrade(_config(service, connection), to)
        except exc.OperationalError as error:
            if isinstance(error.orig, psycopg2.errors.LockNotAvailable):
                raise TableInUse(f"{str(error.orig).partition(chr(10))[0]}: who holds it?") from error
            raise
        except exc.ProgrammingError as error:
            if isinstance(error.orig, psycopg2.errors.UndefinedTable):
                raise schema.WrongDatabase(f"this is not the database of {service}: {error.orig}") from error
            raise
        if isinstance(service, str) and to == "head":
            schema.check_tables(service, connection)
        if role:
            connection.commit()  # ends the transaction of the queries
            rights.grant(connection, role, schema.rights(service))
        return True


def _is_newer(service: str | Path, connection: Connection) -> bool:
    """Returns whether a newer version of Fiatgate has migrated the database: its revision is not among ours."""
    there = _current(connection)
    known = {each.revision for each in ScriptDirectory.from_config(_config(service)).walk_revisions()}
    is_newer = there is not None and there not in known
    if is_newer and isinstance(service, str):
        schema.check_tables(service, connection)
    connection.commit()  # ends the transaction of the query
    return is_newer


def _wait_for_others(connection: Connection) -> None:
    """Waits until no other process migrates; it then finds nothing left to do. The lock ends with the session.

    The lock is tried again and again: an index made beside the traffic (kit.db.migrations) would wait for the end of a
    statement that waits for the lock.
    """

    def locked() -> bool:
        taken = connection.scalar(
            text("SELECT pg_try_advisory_lock(:key)"), {"key": zlib.crc32(b"kit.migrate")}
        )
        connection.commit()
        return bool(taken)

    trying = Retrying(
        retry=retry_if_result(operator.not_),
        wait=wait_fixed(OTHERS_ASK_SECONDS),
        stop=stop_after_delay(OTHERS_MIGRATE_SECONDS),
    )
    try:
        trying(locked)
    except RetryError:
        raise OthersMigrate(f"another migration has been running for {OTHERS_MIGRATE_SECONDS} s") from None


def is_current(service: str | Path, url: str) -> bool:
    """Returns whether nothing is left to do: one query and a listing of the folder, for quick warm starts."""
    with _connection(url) as connection:
        return _current(connection) == head(service)


def head(service: str | Path) -> str | None:
    """Returns the newest revision in the service's folder; None when it has none."""
    return ScriptDirectory.from_config(_config(service)).get_current_head()


class TableInUse(Outage):
    """A transaction held a table for too long: the step has changed nothing."""


class Difference(NamedTuple):
    """One change that the database would need to equal the models.

    kind  `add_…` for a thing that only the models have, `remove_…` for one that only the database has, else `modify_…`;
          the thing: table, column, index, constraint, fk, check
    """

    kind: str
    text: str


def drift(url: str, metadata: MetaData) -> list[Difference]:
    """Returns the differences between a migrated database and the models; empty when they agree.

    Alembic compares tables, columns, types, defaults, indexes, keys and unique constraints; check constraints
    are compared by name here, since Alembic leaves them out.
    """
    with _connection(url) as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "include_name": whole_tables(connection),
            },
        )
        # The changes of one column come together, as a list.
        found = [
            each
            for together in compare_metadata(context, metadata)
            for each in (together if isinstance(together, list) else [together])
        ]
        return [
            Difference(each[0], repr(each)) for each in found if not _is_in_each_partition(connection, each)
        ] + _check_constraint_drift(connection, metadata)


def new_revision(service: str | Path, url: str, metadata: MetaData, message: str) -> None:
    """Writes the next migration, with everything that the models have and the database (migrated first) lacks."""
    upgrade(service, url)
    with _connection(url) as connection:
        command.revision(_config(service, connection, metadata), message=message, autogenerate=True)


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


_IS_PARTITION: Final = text("SELECT relispartition FROM pg_class WHERE oid = to_regclass(quote_ident(:name))")
_PARTITIONS_OF: Final = text(
    "SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = to_regclass(quote_ident(:head))"
)


def whole_tables(connection: Connection) -> Callable[..., bool]:
    """Returns Alembic's filter by name: all but partitions, which no model names."""
    return lambda name, kind, _: kind != "table" or not connection.scalar(_IS_PARTITION, {"name": name})


def _is_in_each_partition(connection: Connection, difference: Any) -> bool:
    """Returns whether each partition has the unique constraint that the model has and the head lacks
    (kit.db.migrations.months).
    """
    if difference[0] != "add_constraint":
        return False
    columns = [column.name for column in difference[1].columns]
    partitions = connection.scalars(_PARTITIONS_OF, {"head": difference[1].table.name}).all()
    inspector = inspect(connection)
    return bool(partitions) and all(
        columns in [unique["column_names"] for unique in inspector.get_unique_constraints(each)]
        for each in partitions
    )


def _check_constraint_drift(connection: Connection, metadata: MetaData) -> list[Difference]:
    inspector = inspect(connection)
    found = []
    for table in metadata.sorted_tables:
        if not inspector.has_table(table.name):
            continue  # reported as a missing table already
        migrated = {check["name"] for check in inspector.get_check_constraints(table.name)}
        migrated.discard(f"ck_{table.name}_bounds")  # of kit.db.migrations.guards.bound_values
        modelled = {
            str(inspector.dialect.identifier_preparer.format_constraint(each)).strip('"')
            for each in table.constraints
            if isinstance(each, CheckConstraint)
        }
        found += [
            Difference("add_check", f"check {name} of {table.name} is in no migration")
            for name in sorted(modelled - migrated)
        ]
        found += [
            Difference("remove_check", f"check {name} of {table.name} is in no model")
            for name in sorted(map(str, migrated - modelled))
        ]
    return found


def _versions(service: str | Path) -> Path:
    folder = service if isinstance(service, Path) else schema.versions(service)
    if folder is None:
        raise LookupError(f"there is no services.{service}")
    return folder


def _config(
    service: str | Path, connection: Connection | None = None, metadata: MetaData | None = None
) -> Config:
    config = Config()
    config.set_main_option("script_location", str(SHARED).replace("%", "%%"))
    config.set_main_option("version_locations", str(_versions(service)).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("file_template", "%%(rev)s_%%(slug)s")
    config.attributes["connection"] = connection
    config.attributes["metadata"] = metadata
    return config


@contextmanager
def _connection(url: str) -> Iterator[Connection]:
    engine = create_engine(
        make_url(url).set(drivername="postgresql+psycopg2"),
        poolclass=NullPool,
        connect_args={
            "application_name": "migrate",
            "connect_timeout": CONNECT_TIMEOUT_SECONDS,
            "options": f"-c lock_timeout={int(1000 * LOCK_TIMEOUT_SECONDS)}ms -c timezone=UTC",
        },
    )
    try:
        connection = engine.connect()
    except exc.OperationalError as error:
        raise DatabaseUnavailable(first_line(error.orig)) from error
    with connection:
        yield connection


def main(arguments: list[str] | None = None) -> None:
    """Runs `python -m kit.db.migrate new|upgrade|check SERVICE …`, for developers; services migrate themselves."""
    parser = argparse.ArgumentParser(prog="python -m kit.db.migrate")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("new", "upgrade", "check"):
        of_verb = verbs.add_parser(verb)
        of_verb.add_argument("service", help="its name, as invoices")
        if verb == "new":
            of_verb.add_argument("message", help="what the migration does, in words")
        of_verb.add_argument("--url", required=True, help="postgresql://user:password@host:port/name")
    given = parser.parse_args(arguments)
    if given.verb == "upgrade":
        upgrade(given.service, given.url)
        return
    metadata = importlib.import_module(f"services.{given.service}.models").Base.metadata
    if given.verb == "new":
        new_revision(given.service, given.url, metadata, given.message)
        return
    differences = drift(given.url, metadata)
    sys.stdout.write("".join(f"{each.text}\n" for each in differences))
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()

"""Fresh migrated databases, quickly: migrated once into a template, then copied."""

import itertools
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import psycopg2
from psycopg2 import sql

import kit.db.migrate
from deploy.local import databases
from tests.support.servers import PostgresServer

_PASSWORD = "service-of-tests"
_SUPERUSER = "past_all_rules"


class Databases:
    """The templates of one test session's PostgreSQL."""

    def __init__(self, postgres: PostgresServer) -> None:
        self._postgres = postgres
        self._templates: dict[tuple[str, str], str] = {}
        self._numbers = itertools.count(1)
        self._returned: dict[str, list[str]] = {}
        self._snapshots: dict[str, Snapshot] = {}
        databases.ensure_role(postgres.admin_url, _SUPERUSER, password=_PASSWORD)
        with closing(psycopg2.connect(postgres.admin_url)) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            cursor.execute(f"ALTER ROLE {_SUPERUSER} SUPERUSER")
            cursor.execute(f"ALTER ROLE {_SUPERUSER} SET session_replication_role = replica")
            # It would visit hundreds of databases without end, and plans of queries would change as it likes.
            cursor.execute("ALTER SYSTEM SET autovacuum = off")
            cursor.execute("SELECT pg_reload_conf()")

    def fresh(self, service: str, revision: str = "head") -> str:
        """The URL of a new database with the service's tables, empty: as they are now, or were at an older revision."""
        template = self._templates.get((service, revision)) or self._make_template(service, revision)
        name = f"{service}_{next(self._numbers)}"
        owner = databases.owner_of(service)
        databases.create_database(self._postgres.admin_url, name, owner=owner, template=template)
        return self._granted(service, name)

    def drop(self, url: str) -> None:
        """Drop the database behind a URL given by `fresh`, whoever is still connected."""
        databases.drop_database(self._postgres.admin_url, urlsplit(url).path.removeprefix("/"))

    def borrow(self, service: str) -> str:
        """The URL of a database like a new one: one that came back, if possible, emptied."""
        returned = self._returned.setdefault(service, [])
        while returned:
            url = returned.pop()
            if self._snapshots[url].make_like_new():
                return url
            self.drop(url)
        url = self.fresh(service)
        self._snapshots[url] = Snapshot(url)
        return url

    def give_back(self, service: str, url: str) -> None:
        """The next `borrow` may have it."""
        self._returned[service].append(url)

    def _make_template(self, service: str, revision: str) -> str:
        name = f"{service}_template_{revision}"
        owner = databases.owner_of(service)
        for role in (service, owner):
            databases.ensure_role(self._postgres.admin_url, role, password=_PASSWORD)
        databases.hide_statements_of(self._postgres.admin_url, service)
        databases.create_database(self._postgres.admin_url, name, owner=owner)
        kit.db.migrate.upgrade(service, self._url(owner, name), revision, role=service)
        self._templates[service, revision] = name
        return name

    def _granted(self, service: str, name: str) -> str:
        """A copy has the template's grants on tables, but not those on the database itself."""
        as_owner = self._url(databases.owner_of(service), name)
        with closing(psycopg2.connect(as_owner)) as connection, connection, connection.cursor() as cursor:
            statement = sql.SQL("GRANT CONNECT ON DATABASE {} TO {}")
            cursor.execute(statement.format(sql.Identifier(name), sql.Identifier(service)))
        return self._url(service, name)

    def _url(self, role: str, database: str) -> str:
        return self._postgres.url(database, user=role, password=_PASSWORD)


def owner_url(url: str) -> str:
    """A database given by `fresh` as the role that owns it and migrates it."""
    parts = urlsplit(url)
    role = databases.owner_of(parts.username or "")
    return parts._replace(netloc=parts.netloc.replace(f"{parts.username}:", f"{role}:", 1)).geturl()


def past_all_rules(url: str) -> str:
    """A database given by `fresh` as a superuser for whom no trigger fires."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.replace(f"{parts.username}:", f"{_SUPERUSER}:", 1)).geturl()


class Snapshot:
    """The rows of a database given by `fresh`, which begins anew with them."""

    def __init__(self, url: str) -> None:
        self._url = past_all_rules(url)
        with closing(psycopg2.connect(self._url)) as connection, connection.cursor() as cursor:
            cursor.execute(_SCHEMA)
            self._schema = cursor.fetchall()
            cursor.execute(_TABLES)
            tables: list[tuple[str, str]] = cursor.fetchall()
            # A loop of another thread may read several of these tables: then it loses the deadlock, and tries again.
            steps: list[Any] = [sql.SQL("SET LOCAL deadlock_timeout = '1min'")]
            # A few rows of small tables: to truncate these, with their indexes, takes six times as long.
            steps += [sql.SQL("DELETE FROM {}").format(sql.Identifier(table)) for table, _ in tables]
            for table, columns in tables:
                cursor.execute(sql.SQL("SELECT {0}::text FROM {0}").format(sql.Identifier(table)))
                insert = f"INSERT INTO {{0}} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns}"
                insert += " FROM (SELECT ({1}::{0}).*) AS row"
                steps += [
                    sql.SQL(insert).format(sql.Identifier(table), sql.Literal(row))
                    for (row,) in cursor.fetchall()
                ]
            self._rows = sql.SQL(";").join(steps).as_string(cursor)
            cursor.execute(_SEQUENCES)
            self._sequences = ";".join(each for (each,) in cursor.fetchall())

    def restore(self) -> None:
        """Makes the rows of all tables what they were."""
        with closing(psycopg2.connect(self._url)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(self._rows)

    def make_like_new(self) -> bool:
        """Ends all connections, then does as `restore` and resets sequences; False if tables changed, became large or
        were analyzed: then only a new database is like new.
        """
        with closing(psycopg2.connect(self._url)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(_SCHEMA)
            if cursor.fetchall() != self._schema:
                return False
            cursor.execute(_ALONE)
            cursor.execute(f"{self._rows}; {self._sequences}")
            return True


_TABLES = """
SELECT c.relname, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition GROUP BY c.oid
"""
_CATALOGS = (
    *("pg_class", "pg_attribute", "pg_attrdef", "pg_constraint", "pg_trigger", "pg_proc", "pg_policy"),
    *("pg_type", "pg_namespace", "pg_rewrite"),
)
# Each change of a table, function or right gives a row of a catalog a new xmin.
_SCHEMA = " UNION ALL ".join(
    [
        *(f"SELECT '{each}', count(*), max(xmin::text::bigint) FROM {each}" for each in _CATALOGS),
        "SELECT 'settings', count(*), 0 FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase"
        " WHERE d.datname = current_database()",
        "SELECT datname, datconnlimit, xmin::text::bigint FROM pg_database WHERE datname = current_database()",
        "SELECT 'analyzed tables', count(*), 0 FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relkind = 'r' AND reltuples >= 0",
        "SELECT 'large tables', count(*), 0 FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND pg_relation_size(oid) > 500000",
    ]
)
_ALONE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_SEQUENCES = """
SELECT format('SELECT setval(%L, %s, %L)', sequencename, coalesce(last_value, start_value), last_value IS NOT NULL)
FROM pg_sequences WHERE schemaname = 'public'
"""

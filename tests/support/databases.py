"""Fresh migrated databases, quickly: migrated once into a template, then copied."""

from __future__ import annotations

import itertools
from contextlib import closing
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
        databases.ensure_role(postgres.admin_url, _SUPERUSER, password=_PASSWORD)
        with (
            closing(psycopg2.connect(postgres.admin_url)) as connection,
            connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(f"ALTER ROLE {_SUPERUSER} SUPERUSER")
            cursor.execute(f"ALTER ROLE {_SUPERUSER} SET session_replication_role = replica")

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

    def _make_template(self, service: str, revision: str) -> str:
        name = f"{service}_template_{revision}"
        owner = databases.owner_of(service)
        for role in (service, owner):
            databases.ensure_role(self._postgres.admin_url, role, password=_PASSWORD)
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

"""Fresh migrated databases, quickly: migrated once into a template, then copied."""

from __future__ import annotations

import itertools
from urllib.parse import urlsplit

import kit.migrate
from deploy.local import databases
from tests.support.servers import PostgresServer

_PASSWORD = "service-of-tests"


class Databases:
    """The templates of one test session's PostgreSQL."""

    def __init__(self, postgres: PostgresServer) -> None:
        self._postgres = postgres
        self._templates: dict[tuple[str, str], str] = {}
        self._numbers = itertools.count(1)

    def fresh(self, service: str, revision: str = "head") -> str:
        """The URL of a new database with the service's tables, empty: as they are now, or were at an older revision."""
        template = self._templates.get((service, revision)) or self._make_template(service, revision)
        name = f"{service}_{next(self._numbers)}"
        databases.create_database(self._postgres.admin_url, name, owner=service, template=template)
        return self._url(service, name)

    def drop(self, url: str) -> None:
        """Drop the database behind a URL given by `fresh`, whoever is still connected."""
        databases.drop_database(self._postgres.admin_url, urlsplit(url).path.removeprefix("/"))

    def _make_template(self, service: str, revision: str) -> str:
        name = f"{service}_template_{revision}"
        databases.ensure_role(self._postgres.admin_url, service, password=_PASSWORD)
        databases.create_database(self._postgres.admin_url, name, owner=service)
        kit.migrate.upgrade(service, self._url(service, name), revision)
        self._templates[service, revision] = name
        return name

    def _url(self, service: str, database: str) -> str:
        return self._postgres.url(database, user=service, password=_PASSWORD)

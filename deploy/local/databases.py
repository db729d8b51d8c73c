"""One database and one role per service; no role sees another's database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import cursor

SERVICES = ("merchants", "catalog", "invoices", "withdrawals", "webhooks")


def ensure_role(admin_url: str, role: str, *, password: str) -> None:
    """Make `role`, or set its password: it may log in and nothing else."""
    with _admin(admin_url) as admin:
        admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,))
        verb = "ALTER" if admin.fetchone() else "CREATE"
        statement = sql.SQL(verb + " ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD {}")
        admin.execute(statement.format(sql.Identifier(role), sql.Literal(password)))


def ensure_database(admin_url: str, name: str, *, owner: str) -> None:
    """Make the database `name` for `owner` alone unless it is there."""
    with _admin(admin_url) as admin:
        admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
        missing = admin.fetchone() is None
    if missing:
        create_database(admin_url, name, owner=owner)


def create_database(admin_url: str, name: str, *, owner: str, template: str = "template1") -> None:
    """Make `name` for `owner` alone, a copy of `template`, to which nobody may be connected."""
    names = {
        "name": sql.Identifier(name),
        "owner": sql.Identifier(owner),
        "template": sql.Identifier(template),
    }
    with _admin(admin_url) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {name} OWNER {owner} TEMPLATE {template}").format(**names))
        admin.execute(sql.SQL("REVOKE ALL ON DATABASE {name} FROM PUBLIC").format(**names))


def drop_database(admin_url: str, name: str) -> None:
    """Drop the database `name`, its connections included."""
    with _admin(admin_url) as admin:
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def _admin(admin_url: str) -> Iterator[cursor]:
    connection = psycopg2.connect(admin_url, connect_timeout=3)
    try:
        connection.autocommit = True  # CREATE DATABASE runs in no transaction
        with connection.cursor() as admin:
            yield admin
    finally:
        connection.close()

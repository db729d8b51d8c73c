"""One database per service with two roles: the owner, which migrates, and the service's own role, which may read and
write the rows that the service needs. No role can reach another's database.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import cursor


def owner_of(service: str) -> str:
    """Returns the role that owns the service's database."""
    return f"{service}_owner"


CONNECTIONS_OF_A_SERVICE = 90
"""Enough for two processes of any service. All together leave some to the owners and the superuser (postgres.py):
no role can take all connections of the server."""
CONNECTIONS_OF_AN_OWNER = 5
NO_LIMIT = -1


def ensure_role(admin_url: str, role: str, *, password: str, connections: int = NO_LIMIT) -> None:
    """Makes `role`, or sets its password and limit: it may log in, with this many connections, and nothing else."""
    with _admin(admin_url) as admin:
        admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,))
        verb = "ALTER" if admin.fetchone() else "CREATE"
        statement = sql.SQL(
            verb + " ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE CONNECTION LIMIT {} PASSWORD {}"
        )
        admin.execute(statement.format(sql.Identifier(role), sql.Literal(connections), sql.Literal(password)))


def hide_statements_of(admin_url: str, role: str) -> None:
    """Lets no session of the role see the statements of another: they have the seals of rows before the commit."""
    with _admin(admin_url) as admin:
        admin.execute(sql.SQL("ALTER ROLE {} SET track_activities = off").format(sql.Identifier(role)))


def ensure_roles_of(admin_url: str, service: str, *, password: str, owners_password: str) -> None:
    """Makes the service's role and its owner's. Neither may connect to the databases of the server itself (`postgres`,
    `template1`).
    """
    ensure_role(admin_url, service, password=password, connections=CONNECTIONS_OF_A_SERVICE)
    hide_statements_of(admin_url, service)
    ensure_role(admin_url, owner_of(service), password=owners_password, connections=CONNECTIONS_OF_AN_OWNER)
    with _admin(admin_url) as admin:
        admin.execute("REVOKE CONNECT, TEMPORARY ON DATABASE postgres, template1 FROM PUBLIC")


def ensure_database(admin_url: str, name: str, *, owner: str) -> None:
    """Makes the database `name` for `owner` alone, unless it exists."""
    with _admin(admin_url) as admin:
        admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
        missing = admin.fetchone() is None
    if missing:
        create_database(admin_url, name, owner=owner)


# In one transaction: the service, which may be running, is never without its rights. `migrate` narrows them.
_HAND_OVER = """
REASSIGN OWNED BY {service} TO {owner};
GRANT CONNECT ON DATABASE {name} TO {service};
GRANT USAGE ON SCHEMA public TO {service};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {service};
"""


def hand_over(admin_url: str, database_url: str, *, service: str, owner: str) -> None:
    """Gives to the owner's role all that the service's role owns. `database_url` is the database, as a superuser."""
    name = urlsplit(database_url).path.removeprefix("/")
    with _admin(admin_url) as admin:
        admin.execute(
            "SELECT 1 FROM pg_database JOIN pg_roles ON pg_roles.oid = datdba WHERE datname = %s AND rolname = %s",
            (name, service),
        )
        if admin.fetchone() is None:
            return
    names = {"service": sql.Identifier(service), "owner": sql.Identifier(owner), "name": sql.Identifier(name)}
    connection = psycopg2.connect(database_url, connect_timeout=3)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '10s'")
            cursor.execute(sql.SQL(_HAND_OVER).format(**names))
    finally:
        connection.close()


def create_database(admin_url: str, name: str, *, owner: str, template: str = "template1") -> None:
    """Makes `name` for `owner` alone, as a copy of `template`, which must have no connections."""
    names = {
        "name": sql.Identifier(name),
        "owner": sql.Identifier(owner),
        "template": sql.Identifier(template),
    }
    with _admin(admin_url) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {name} OWNER {owner} TEMPLATE {template}").format(**names))
        admin.execute(sql.SQL("REVOKE ALL ON DATABASE {name} FROM PUBLIC").format(**names))


def drop_database(admin_url: str, name: str) -> None:
    """Drops the database `name` and ends its connections."""
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

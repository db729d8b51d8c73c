"""Migrates every service's database to its newest version: `python -m deploy.local.schema HOME`.

It runs in its own process, which ends afterwards: the migration tools would only occupy memory.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg2

import kit.db.migrate
from deploy.local import databases, schema_stamp
from deploy.local.home import Home
from deploy.local.waiting import wait_until

READY_SECONDS = 60


def bring_up_to_date(home: Home, stack: dict[str, Any]) -> None:
    """Waits for PostgreSQL, makes missing roles and databases, migrates; raises the errors of each step."""
    admin_url = str(stack["postgres_url"])
    wait_until(lambda: _answers(admin_url), "PostgreSQL to answer", timeout_seconds=READY_SECONDS)
    for service, place in stack["services"].items():
        url, owner_url = place["database_url"], place["migration_database_url"]
        # Otherwise it is the caller's own server, with its own roles.
        if _server_of(url) == _server_of(admin_url):
            owner = databases.owner_of(service)
            databases.ensure_roles_of(
                admin_url, service, password=_password_of(url), owners_password=_password_of(owner_url)
            )
            databases.ensure_database(admin_url, service, owner=owner)
            as_superuser = f"{admin_url.rpartition('/')[0]}/{service}"
            databases.hand_over(admin_url, as_superuser, service=service, owner=owner)
        if owner_url:
            kit.db.migrate.upgrade(service, owner_url, role=unquote(urlsplit(url).username or ""))
        else:
            kit.db.migrate.upgrade(service, url)
    schema_stamp.mark_current(home)


def _password_of(url: str) -> str:
    return unquote(urlsplit(url).password or "")


def _server_of(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _answers(url: str) -> bool:
    try:
        psycopg2.connect(url, connect_timeout=1).close()
    except psycopg2.OperationalError:
        return False
    return True


if __name__ == "__main__":
    _home = Home(Path(sys.argv[1]))
    bring_up_to_date(_home, _home.running_stack())

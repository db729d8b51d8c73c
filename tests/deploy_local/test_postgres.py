"""The embedded PostgreSQL: starts as any account, survives crashes, keeps services apart."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest

from deploy.local import databases
from deploy.local.postgres import Postgres, clear_stale_lock
from kit.base.services import SERVICES
from tests.support.servers import PostgresServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> PostgresServer:
    return PostgresServer(tmp_path_factory.mktemp("own-postgres"))


def ask(url: str, query: str) -> object:
    connection = psycopg2.connect(url)
    try:
        with connection.cursor() as cursor:
            cursor.execute(query)
            row = cursor.fetchone()
            assert row is not None
            return row[0]
    finally:
        connection.close()


def test_it_runs_whoever_we_are_and_counts_in_utc(postgres: PostgresServer) -> None:
    assert ask(postgres.admin_url, "SHOW timezone") == "UTC"
    assert str(ask(postgres.admin_url, "SHOW server_version")).startswith("18")


def test_after_a_kill_it_starts_again_with_its_data(server: PostgresServer) -> None:
    server.start()
    databases.ensure_role(server.admin_url, "someone", password="x")
    databases.ensure_database(server.admin_url, "kept", owner="someone")
    server.kill()
    server.start()
    assert ask(server.url("kept", user="someone", password="x"), "SELECT current_database()") == "kept"
    server.stop()


def test_a_role_reaches_its_own_database_only(postgres: PostgresServer) -> None:
    for name in ("hers", "his"):
        databases.ensure_role(postgres.admin_url, name, password=name)
        databases.ensure_database(postgres.admin_url, name, owner=name)
    assert ask(postgres.url("hers", user="hers", password="hers"), "SELECT current_user") == "hers"
    with pytest.raises(psycopg2.OperationalError, match="permission denied for database"):
        psycopg2.connect(postgres.url("his", user="hers", password="hers"))
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(postgres.url("hers", user="hers", password="his"))


@pytest.mark.parametrize("shared", ["postgres", "template1"])
def test_a_services_role_reaches_no_database_of_the_server_itself(
    postgres: PostgresServer, shared: str
) -> None:
    databases.ensure_roles_of(postgres.admin_url, "nosy", password="nosy", owners_password="nosy")
    for role in ("nosy", "nosy_owner"):
        with pytest.raises(psycopg2.OperationalError, match="permission denied for database"):
            psycopg2.connect(postgres.url(shared, user=role, password="nosy"))
    assert ask(postgres.admin_url, "SELECT current_database()") == "postgres"


def test_one_services_role_leaves_connections_to_the_others(postgres: PostgresServer) -> None:
    databases.ensure_role(postgres.admin_url, "greedy", password="greedy", connections=2)
    databases.ensure_database(postgres.admin_url, "greedy", owner="greedy")
    url = postgres.url("greedy", user="greedy", password="greedy")
    with closing(psycopg2.connect(url)) as first, closing(psycopg2.connect(url)), first.cursor() as cursor:
        with pytest.raises(psycopg2.OperationalError, match="too many connections for role"):
            psycopg2.connect(url)
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            cursor.execute("ALTER ROLE greedy CONNECTION LIMIT -1")


def test_the_roles_of_a_stack_together_leave_some_connections(tmp_path: Path) -> None:
    limit = databases.CONNECTIONS_OF_A_SERVICE + databases.CONNECTIONS_OF_AN_OWNER
    of_the_server = Postgres(data=tmp_path, port=1, password="").settings()["max_connections"]
    assert len(SERVICES) * limit < int(of_the_server) - 10


def test_a_lock_left_by_a_dead_server_is_removed_even_when_its_number_lives_again(tmp_path: Path) -> None:
    lock = tmp_path / "postmaster.pid"
    lock.write_text(f"{os.getpid()}\n{tmp_path}\n")  # our own number: alive, but no PostgreSQL
    clear_stale_lock(tmp_path)
    assert not lock.exists()


def test_a_lock_that_was_half_written_is_removed(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text("")
    clear_stale_lock(tmp_path)
    assert not (tmp_path / "postmaster.pid").exists()

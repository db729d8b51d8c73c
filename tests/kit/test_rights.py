"""What a service's role may not do: neither to its history nor to what guards it."""

from collections.abc import Callable
from contextlib import closing

import psycopg2
import pytest

from deploy.local import databases
from kit.audit.rights import ACT_RIGHTS
from kit.base.services import SERVICES
from kit.db import migrate, schema
from kit.db.migrations.approvals import TERMS
from tests.support.databases import Databases, owner_url
from tests.support.servers import PostgresServer


def execute(url: str, statement: str) -> None:
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(statement)


REFUSED = (
    "CREATE TABLE mine ()",
    "CREATE TEMPORARY TABLE mine ()",
    "CREATE SCHEMA mine",
    "ALTER TABLE {table} DISABLE TRIGGER ALL",
    "ALTER TABLE {table} OWNER TO {service}",
    "ALTER TABLE {table} ADD COLUMN mine text",
    "CREATE TRIGGER mine AFTER INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger()",
    "DROP TABLE {table}",
    "TRUNCATE {table}",
    "SET session_replication_role = replica",
    "SET ROLE {service}_owner",
    "UPDATE alembic_version SET version_num = '0001'",
)


@pytest.mark.parametrize("service", SERVICES)
def test_a_services_role_changes_no_table_and_no_right(
    database_url: Callable[[str], str], service: str
) -> None:
    with closing(psycopg2.connect(database_url(service))) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        for table in schema.rights(service):
            for statement in REFUSED:
                with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                    cursor.execute(statement.format(table=table, service=service))


def test_a_services_role_gives_itself_no_right(database_url: Callable[[str], str]) -> None:
    with closing(psycopg2.connect(database_url("invoices"))) as connection, connection.cursor() as cursor:
        # PostgreSQL only warns that it gave nothing.
        cursor.execute("GRANT DELETE, UPDATE ON deals TO invoices")
        cursor.execute(
            "SELECT has_table_privilege('deals', 'DELETE'), has_column_privilege('deals', 'conversion_rate', 'UPDATE')"
        )
        assert cursor.fetchone() == (False, False)


NEVER_CHANGED = {
    "identity": {
        "people": {"id", "email", "created_at"},
        "memberships": {"person_id", "merchant_id", "created_at"},
        "invitations": {
            "id",
            "token_hash",
            "email",
            "name",
            "roles",
            "merchant_id",
            "member_roles",
            "invited_by",
            "by_operator",
            "created_at",
            "expires_at",
        },
        "passkeys": {"id", "person_id", "rp_id", "credential_id", "credential", "name", "created_at", "seal"},
        "totps": {"person_id"},
        "recovery_codes": {"person_id", "code_hash", "created_at", "seal"},
        "challenges": {"id", "kind", "surface", "session_id", "challenge", "expires_at"},
        "sessions": {"id", "person_id", "surface", "way", "address", "user_agent", "started_at"},
        "signing_keys": {"id", "public_key", "created_at", "seal"},
        "mails": {"invitation_id"},
        "notices": {
            "id",
            "person_id",
            "merchant_id",
            "network",
            "address",
            "added_by",
            "usable_at",
            "created_at",
            "seal",
        },
        "owners": {"id", "email", "created_at"},
        "merchants": {"id", "owner_id", "created_at"},
        "logos": {"digest", "content_type", "content", "created_at", "kept_for"},
        "categories": {"code"},
        "api_keys": {"id", "merchant_id", "name", "hint", "key_hash", "scopes", "created_at", "seal"},
        "lookup_key": {"id", "created_at"},
        "approvals": set(TERMS),
    },
    "catalog": {
        "currencies": {"code"},
        "payment_methods": {"code"},
        "logos": {"digest", "content_type", "content", "created_at"},
        "rates": {"id", "currency_code", "source_rate", "origin", "taken_at", "document", "validity", "seal"},
        "held_rates": {"currency_code"},
        "poll_turns": {"id"},
        "approvals": set(TERMS),
    },
}


@pytest.mark.parametrize("service", NEVER_CHANGED)
def test_a_services_role_gives_no_key_to_another_merchant_and_changes_no_id(
    database_url: Callable[[str], str], service: str
) -> None:
    """For example, it can't give its own API key another merchant's data."""
    with closing(psycopg2.connect(database_url(service))) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, array_agg(attname::text) FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
            " WHERE relname = ANY (%s) AND relkind = 'r' AND attnum > 0 AND NOT attisdropped"
            " AND NOT has_column_privilege(pg_class.oid, attnum, 'UPDATE') GROUP BY 1",
            (sorted({*schema.rights(service)} - {*ACT_RIGHTS}),),  # tests/kit/test_acts.py has those
        )
        assert {table: set(columns) for table, columns in cursor.fetchall()} == NEVER_CHANGED[service]


@pytest.mark.parametrize("service", SERVICES)
def test_the_rights_on_every_table_are_declared(_databases: Databases, service: str) -> None:
    url = _databases.fresh(service)
    try:
        with closing(psycopg2.connect(owner_url(url))) as connection, connection.cursor() as cursor:
            # The service reaches a partition through its table only, and has no right on it.
            cursor.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
                " AND relkind IN ('r', 'p') AND NOT relispartition"
            )
            tables = {name for (name,) in cursor.fetchall()} - {"alembic_version"}
            assert tables == set(schema.rights(service)), f"services/{service}/migrations: RIGHTS"
            cursor.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tableowner = %s", (service,)
            )
            assert cursor.fetchall() == []
    finally:
        _databases.drop(url)


def test_a_database_that_the_service_owned_changes_hands_while_it_is_in_use(postgres: PostgresServer) -> None:
    """With webhooks, which has partitions."""
    service = "webhooks"
    name, owner = f"{service}_handed_over", databases.owner_of(service)
    for role in (service, owner):
        databases.ensure_role(postgres.admin_url, role, password="handed-over")
    databases.create_database(postgres.admin_url, name, owner=service)
    url, owners_url = (postgres.url(name, user=role, password="handed-over") for role in (service, owner))
    as_superuser = f"{postgres.admin_url.rpartition('/')[0]}/{name}"
    try:
        migrate.upgrade(service, url, schema.needs(service))
        with closing(psycopg2.connect(url)) as before, before.cursor() as cursor:
            databases.hand_over(postgres.admin_url, as_superuser, service=service, owner=owner)
            databases.hand_over(postgres.admin_url, as_superuser, service=service, owner=owner)  # no harm
            cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            for (table,) in cursor.fetchall():
                cursor.execute(f"SELECT count(*) FROM {table}")
        migrate.upgrade(service, owners_url, role=service)
        migrate.upgrade(service, owners_url, role=service)
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            execute(url, f"ALTER TABLE {next(iter(schema.rights(service)))} DISABLE TRIGGER USER")
        execute(owners_url, f"ALTER TABLE {next(iter(schema.rights(service)))} DISABLE TRIGGER USER")
    finally:
        databases.drop_database(postgres.admin_url, name)
        for role in (service, owner):  # as the session's other databases know them
            databases.ensure_role(postgres.admin_url, role, password="service-of-tests")


def test_a_migration_takes_from_all_roles_what_a_new_database_gives_them(postgres: PostgresServer) -> None:
    """An operator of Kubernetes makes databases with PostgreSQL's own rights: CONNECT and TEMPORARY for PUBLIC."""
    name, password = "catalog_as_made", "service-of-tests"
    roles = ("catalog", databases.owner_of("catalog"), "invoices")
    for role in roles:
        databases.ensure_role(postgres.admin_url, role, password=password)
    databases.create_database(postgres.admin_url, name, owner=databases.owner_of("catalog"))
    with closing(psycopg2.connect(postgres.admin_url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(f"GRANT CONNECT, TEMPORARY ON DATABASE {name} TO PUBLIC")
    own, owners, others = (postgres.url(name, user=role, password=password) for role in roles)
    try:
        execute(own, "CREATE TEMPORARY TABLE mine ()")
        execute(others, "SELECT 1")
        migrate.upgrade("catalog", owners, role="catalog")
        execute(own, "SELECT count(*) FROM currencies")
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            execute(own, "CREATE TEMPORARY TABLE mine ()")
        with pytest.raises(psycopg2.OperationalError, match="permission denied for database"):
            execute(others, "SELECT 1")
    finally:
        databases.drop_database(postgres.admin_url, name)

"""`fiatgate verify` names every difference between a schema and what the migrations make."""

from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest

from kit.base.services import SERVICES
from kit.db.books import check_page
from kit.db.database import Database
from kit.db.described import flat, schema_part
from tests.support.databases import Databases, past_all_rules
from tests.support.schemas import file_of, text_of


@pytest.fixture(scope="module", params=SERVICES)
def service_url(request: pytest.FixtureRequest, _databases: Databases) -> Iterator[tuple[str, str]]:
    url = _databases.fresh(request.param)
    yield request.param, url
    _databases.drop(url)


def differences(service: str, url: str) -> list[str]:
    db = Database(url, name=service, pool_size=1)
    try:
        page = check_page(db, schema_part(service), after="", limit=1000)
    finally:
        db.dispose()
    assert page.checked > 5
    assert page.unreadable == []
    return [f"{each.subject} {each.field}: {each.found} / {each.due}" for each in page.problems]


def test_each_file_is_what_the_migrations_make(service_url: tuple[str, str]) -> None:
    service, url = service_url
    assert file_of(service).read_text() == text_of(url), "run `make docs`"
    assert differences(service, url) == []


def test_a_restored_dump_has_the_same_description(
    _databases: Databases, service_url: tuple[str, str]
) -> None:
    """Reading a definition again takes parentheses out of `((a OR b) OR c)`."""
    service, url = service_url
    again = """
    DO $$ DECLARE its record; BEGIN
      FOR its IN SELECT conrelid::regclass AS of, conname AS name, pg_get_constraintdef(oid) AS definition
        FROM pg_constraint WHERE contype = 'c' AND conparentid = 0 AND coninhcount = 0
          AND connamespace = 'public'::regnamespace
      LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', its.of, its.name);
        EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I %s', its.of, its.name, its.definition);
      END LOOP;
      FOR its IN SELECT tgrelid::regclass AS of, tgname AS name, pg_get_triggerdef(oid) AS definition
        FROM pg_trigger WHERE NOT tgisinternal AND tgparentid = 0
      LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', its.name, its.of);
        EXECUTE its.definition;
      END LOOP;
    END $$
    """
    with closing(psycopg2.connect(past_all_rules(url))) as owner, owner, owner.cursor() as cursor:
        cursor.execute(again)
    assert differences(service, url) == []


@pytest.mark.parametrize(
    ("definition", "due"),
    [
        ("CHECK ((((a) OR (b)) OR (c)))", "CHECK (((a) OR (b) OR (c)))"),
        ("((a AND (b AND c)) AND d)", "(a AND b AND c AND d)"),
        ("((a OR b) AND c)", "((a OR b) AND c)"),
        ("(f((a AND b)) AND NOT (b AND c))", "(f((a AND b)) AND NOT (b AND c))"),
        ("(x = ') OR (' OR (a OR b))", "(x = ') OR (' OR a OR b)"),
        ("(a AND (b OR c) AND (d AND e))", "(a AND (b OR c) AND d AND e)"),
    ],
)
def test_only_parentheses_without_a_meaning_are_taken_out(definition: str, due: str) -> None:
    assert flat(definition) == due


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("ALTER TABLE transfers DROP CONSTRAINT uq_transfers_reference", "constraint uq_transfers_reference"),
        ("ALTER TABLE accounts DISABLE TRIGGER accounts_stay", "trigger accounts_stay: D "),
        ("DROP TRIGGER transfers_move_balances ON transfers", "trigger transfers_move_balances: nothing"),
        (
            "CREATE TRIGGER t BEFORE INSERT ON acts FOR EACH ROW EXECUTE FUNCTION refuse_change()",
            "acts trigger t",
        ),
        ("CREATE RULE r AS ON INSERT TO acts DO INSTEAD NOTHING", "acts rule r"),
        ("CREATE POLICY p ON accounts USING (balance > 5)", "accounts policy p"),
        ("CREATE POLICY p ON accounts FOR INSERT WITH CHECK (balance > 5)", "p: a t {-} with (balance >"),
        ("ALTER TABLE withdrawals DISABLE TRIGGER ALL", "trigger RI_ConstraintTrigger_"),
        (
            "ALTER ROLE withdrawals SET session_replication_role = replica",
            "session session_replication_role: replica",
        ),
        ("ALTER ROLE withdrawals SET track_activities = on", "session track_activities: on"),
        (
            "CREATE OPERATOR public.=== (FUNCTION = texteq, LEFTARG = text, RIGHTARG = text)",
            "relation ===(text,text) operator: texteq",
        ),
        (
            "GRANT DELETE ON transfers TO withdrawals",
            "transfers rights: DELETE, INSERT, SELECT / INSERT, SELECT",
        ),
        ("GRANT UPDATE (amount) ON transfers TO PUBLIC", "transfers rights: PUBLIC UPDATE (amount), INSERT"),
        (
            'ALTER TABLE acts ALTER object TYPE text COLLATE "default"',
            'acts column object: text not null / text "C"',
        ),
        (
            "CREATE TABLE more () INHERITS (transfers); ALTER EXTENSION plpgsql ADD TABLE more",
            "relation more relation: r p transfers",
        ),
        ("ALTER TABLE accounts ENABLE ROW LEVEL SECURITY", "accounts row security"),
        (
            "ALTER TABLE accounts RENAME TO kept; CREATE VIEW accounts AS SELECT * FROM kept",
            "relation accounts relation: v",
        ),
        ("CREATE TABLE more () INHERITS (transfers)", "relation more relation: r p transfers"),
        (
            "CREATE SCHEMA aside; CREATE TABLE aside.more () INHERITS (transfers)",
            "relation transfers relation: r p above aside.more",
        ),
        ("ALTER TABLE withdrawals ALTER substatus SET DEFAULT 'processing'", "withdrawals column substatus"),
        ("ALTER TABLE withdrawals ALTER updated_at DROP NOT NULL", "withdrawals column updated_at"),
        (
            "CREATE OR REPLACE FUNCTION move_balances() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
            "move_balances() function",
        ),
        ("DROP INDEX uq_approvals_object", "index uq_approvals_object"),
        ("UPDATE alembic_version SET version_num = '0002'", "revision: 0002 / 0001"),
    ],
)
def test_a_difference_is_named(_databases: Databases, sql: str, named: str) -> None:
    url = _databases.fresh("withdrawals")
    with closing(psycopg2.connect(past_all_rules(url))) as owner, owner, owner.cursor() as cursor:
        cursor.execute(sql)
        cursor.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO withdrawals")
    try:
        found = differences("withdrawals", url)
    finally:
        with closing(psycopg2.connect(past_all_rules(url))) as owner, owner, owner.cursor() as cursor:
            cursor.execute("ALTER ROLE withdrawals RESET session_replication_role")
            cursor.execute("ALTER ROLE withdrawals SET track_activities = off")
        _databases.drop(url)
    assert any(named in each for each in found), found


def test_a_session_of_the_service_does_not_see_the_statement_of_another(_databases: Databases) -> None:
    """It has the seal of a row before the row is committed."""
    url = _databases.fresh("withdrawals")
    with closing(psycopg2.connect(url)) as service, closing(psycopg2.connect(url)) as thief:
        service.cursor().execute("SELECT 'a seal'")
        other = thief.cursor()
        other.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", (service.info.backend_pid,))
        assert other.fetchall() == [("",)]
        other.execute("ALTER ROLE withdrawals RESET ALL")
        thief.commit()
    with closing(psycopg2.connect(url)) as later:
        assert later.info.parameter_status("is_superuser") == "off"
        cursor = later.cursor()
        cursor.execute("SHOW track_activities")
        assert cursor.fetchall() == [("off",)]


def test_rights_of_a_role_that_owns_its_tables_are_no_difference(_databases: Databases) -> None:
    url = _databases.fresh("withdrawals")
    with closing(psycopg2.connect(past_all_rules(url))) as owner, owner, owner.cursor() as cursor:
        cursor.execute(
            "SELECT format('ALTER TABLE %I OWNER TO withdrawals', tablename) FROM pg_tables WHERE schemaname = 'public'"
        )
        for (statement,) in cursor.fetchall():
            cursor.execute(statement)
    found = differences("withdrawals", url)
    _databases.drop(url)
    assert found == []


def test_a_trigger_of_one_month_alone_is_named(_databases: Databases) -> None:
    url = _databases.fresh("webhooks")
    with closing(psycopg2.connect(past_all_rules(url))) as owner, owner, owner.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r' ORDER BY 1 LIMIT 1"
        )
        (month,) = cursor.fetchone() or ("",)
        cursor.execute(
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
            f" CREATE TRIGGER t BEFORE INSERT ON {month} FOR EACH ROW EXECUTE FUNCTION no()"
        )
    found = differences("webhooks", url)
    _databases.drop(url)
    assert [each.partition(":")[0] for each in found] == [
        f"relation {month} trigger t",
        "relation no() function",
    ]

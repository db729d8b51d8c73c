"""Acts: written with the change, by its author, never changed afterwards."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from contextvars import Context, copy_context
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import uuid4

import psycopg2
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DataError, ProgrammingError

from kit.audit import acts
from kit.base import actors
from kit.base.actors import Actor
from kit.base.clock import SystemClock
from kit.base.services import SERVICES
from kit.db.database import Database
from tests.support.databases import owner_url
from tests.support.signing import SEALS

AUTHOR: Final = Actor(
    kind="person",
    name="ada@example.com",
    surface="desk",
    person_id=uuid.uuid4(),
    session_id=uuid.uuid4(),
)


@pytest.fixture
def db(database_url: Callable[[str], str]) -> Iterator[Database]:
    database = Database(database_url("catalog"), name="tests", pool_size=2, seals=SEALS)
    yield database
    database.dispose()


def as_author(call: Callable[[], Any], author: Actor = AUTHOR) -> Any:
    """The call's own context, as a call over gRPC has one."""

    def bound() -> Any:
        actors.bind(author)
        return call()

    return copy_context().run(bound)


def record(db: Database, *arguments: Any, **named: Any) -> None:
    def written() -> None:
        with db.transaction() as tx:
            acts.record(tx, *arguments, **named)

    as_author(written)


def execute(url: str, statement: str) -> list[tuple[Any, ...]]:
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def newest(url: str) -> dict[str, Any]:
    ((row,),) = execute(url, "SELECT to_jsonb(acts) FROM acts ORDER BY id DESC LIMIT 1")
    return dict(row)


def count(url: str) -> int:
    ((number,),) = execute(url, "SELECT count(*) FROM acts")
    return int(number)


def test_an_act_has_its_author_its_object_and_the_fields_that_changed(
    db: Database, database_url: Callable[[str], str]
) -> None:
    merchant = uuid.uuid4()

    record(
        db,
        "rate.set",
        "currency:EUR",
        merchant_id=merchant,
        before={"rate": Decimal("1.0500"), "source": "sources", "enabled": True, "at": None},
        after={
            "rate": Decimal("1.06"),
            "source": "sources",
            "enabled": False,
            "at": datetime(2026, 1, 2, tzinfo=UTC),
        },
        note="by telephone",
    )

    act = newest(database_url("catalog"))
    assert act["changes"] == [
        ["rate", "1.05", "1.06"],
        ["enabled", "yes", "no"],
        ["at", "", "2026-01-02T00:00:00.000+00:00"],
    ]
    assert (act["act"], act["object"], act["merchant_id"]) == ("rate.set", "currency:EUR", str(merchant))
    assert (act["actor_kind"], act["actor_name"], act["surface"]) == ("person", "ada@example.com", "desk")
    assert (act["person_id"], act["session_id"]) == (str(AUTHOR.person_id), str(AUTHOR.session_id))
    assert (act["note"], act["refused"]) == ("by telephone", "")
    at = datetime.fromisoformat(act["at"])
    assert at == acts.time_of(uuid.UUID(act["id"]))
    assert abs((SystemClock().now() - at).total_seconds()) < 60


def test_there_is_no_act_when_nothing_changed(db: Database, database_url: Callable[[str], str]) -> None:
    before = count(database_url("catalog"))

    record(db, "rate.set", "currency:EUR", before={"rate": Decimal("1.0")}, after={"rate": Decimal("1.00")})

    assert count(database_url("catalog")) == before


def test_there_is_no_act_when_the_change_fails(db: Database, database_url: Callable[[str], str]) -> None:
    before = count(database_url("catalog"))

    def failing() -> None:
        with db.transaction() as tx:
            acts.record(tx, "rate.set", "currency:EUR")
            raise KeyError("later in the transaction")

    with pytest.raises(KeyError):
        as_author(failing)
    assert count(database_url("catalog")) == before


def test_work_without_an_author_changes_nothing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actors, "_of_process", None)

    def unbound() -> None:
        with db.transaction() as tx:
            acts.record(tx, "rate.set", "currency:EUR")

    with pytest.raises(LookupError, match="no author"):
        Context().run(unbound)  # an empty one: a test before this one may have bound an author


@pytest.mark.parametrize(
    "field", ["key_hash", "secret", "totp_secret", "password", "session_token", "sealed_secret"]
)
def test_a_secret_is_never_written_into_an_act(db: Database, field: str) -> None:
    with pytest.raises(ValueError, match="is a secret"):
        record(db, "key.create", "key:1", after={field: "x"})


def test_texts_that_the_database_refuses_are_cleaned_and_long_ones_are_cut(
    db: Database, database_url: Callable[[str], str]
) -> None:
    record(db, "method.set", "method:x\x00y", after={"name": "a\ud800b"}, note="n" * 5000)

    act = newest(database_url("catalog"))
    assert act["object"] == "method:xy"
    assert act["changes"] == [["name", "", "a?b"]]
    assert len(act["note"]) == acts.MOST_CHARACTERS


def test_refusals_are_acts_and_a_flood_of_them_is_only_counted(
    db: Database, database_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acts, "monotonic_seconds", lambda: 1000.0)
    before, missed = count(database_url("catalog")), acts.NOT_WRITTEN._value.get()

    def refuse(author: Actor, times: int) -> None:
        for _ in range(times):
            acts.record_refusal(
                db, "CatalogService/SetRate", "NOT_PERMITTED", actor=author, object="currency:EUR"
            )

    refuse(AUTHOR, 50)
    assert count(database_url("catalog")) == before + acts.REFUSALS_OF_ONE_PER_SECOND
    another = replace(AUTHOR, person_id=uuid4(), name="ben@example.com")
    refuse(another, 1)
    assert newest(database_url("catalog"))["actor_name"] == "ben@example.com"
    for _ in range(20):
        refuse(replace(AUTHOR, person_id=uuid4()), 1)
    assert count(database_url("catalog")) == before + acts.REFUSALS_PER_SECOND
    assert acts.NOT_WRITTEN._value.get() == missed + 71 - acts.REFUSALS_PER_SECOND
    assert newest(database_url("catalog"))["refused"] == "NOT_PERMITTED"


SWALLOW: Final = """
CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER swallow BEFORE INSERT ON acts FOR EACH ROW EXECUTE FUNCTION swallow()
"""


def test_a_change_whose_act_a_trigger_swallows_is_undone(
    db: Database, database_url: Callable[[str], str]
) -> None:
    owner, before = owner_url(database_url("catalog")), count(database_url("catalog"))
    execute(owner, SWALLOW)
    try:
        with pytest.raises(DataError):
            record(db, "rate.set", "currency:EUR", after={"rate": "1"})
    finally:
        execute(owner, "DROP TRIGGER swallow ON acts; DROP FUNCTION swallow()")
    record(db, "rate.set", "currency:EUR", after={"rate": "1"})
    assert count(database_url("catalog")) == before + 1


def test_a_policy_that_hides_rows_is_an_error(db: Database, database_url: Callable[[str], str]) -> None:
    owner = owner_url(database_url("catalog"))
    execute(owner, "ALTER TABLE acts ENABLE ROW LEVEL SECURITY")
    try:
        with pytest.raises(ProgrammingError, match="row-level security"), db.autocommit() as connection:
            connection.execute(text("SELECT count(*) FROM acts"))
    finally:
        execute(owner, "ALTER TABLE acts DISABLE ROW LEVEL SECURITY")


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("table", ["acts", "act_chain", "act_heads"])
@pytest.mark.parametrize(
    "verb", ["UPDATE {table} SET {column} = {column}", "DELETE FROM {table}", "TRUNCATE {table}"]
)
def test_neither_the_service_nor_the_owner_changes_or_deletes_an_act(
    database_url: Callable[[str], str], service: str, table: str, verb: str
) -> None:
    column = {"acts": "note", "act_chain": "number", "act_heads": "count"}[table]
    url = database_url(service)
    for each in (url, owner_url(url)):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            execute(each, verb.format(table=table, column=column))

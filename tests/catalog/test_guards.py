"""The database guards what deals were priced with."""

from collections.abc import Callable

import psycopg2
import pytest

from tests.support.databases import owner_url


@pytest.mark.parametrize(
    "statement", ["UPDATE rates SET source_rate = 1", "DELETE FROM rates", "TRUNCATE rates"]
)
def test_an_accepted_rate_can_be_neither_changed_nor_removed(
    database_url: Callable[[str], str], statement: str
) -> None:
    connection = psycopg2.connect(owner_url(database_url("catalog")))
    try:
        with (
            pytest.raises(psycopg2.errors.RestrictViolation, match="append-only"),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
    finally:
        connection.close()


@pytest.mark.parametrize("rate", ["0", "-1", "NaN"])
def test_the_database_takes_no_rate_that_is_not_above_zero(
    database_url: Callable[[str], str], rate: str
) -> None:
    connection = psycopg2.connect(database_url("catalog"))
    try:
        with pytest.raises(psycopg2.errors.CheckViolation), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO held_rates VALUES ('EUR', %s, '2026-01-01', '{}')",
                (rate,),
            )
    finally:
        connection.close()

"""kit.db.alone: one at a time, and nobody keeps the place for ever."""

import logging

import pytest

from deploy.local.waiting import wait_until
from kit.db.alone import alone
from kit.db.database import Database, DatabaseUnavailable


def _is_free(db: Database, what: str) -> bool:
    with alone(db, what, at_most_seconds=30) as entered:
        return entered


def test_one_at_a_time_is_inside_and_the_next_one_afterwards(db: Database) -> None:
    with alone(db, "work", at_most_seconds=30) as entered:
        assert entered
        assert not _is_free(db, "work")
        assert _is_free(db, "other work")
    with pytest.raises(ZeroDivisionError), alone(db, "work", at_most_seconds=30):
        raise ZeroDivisionError
    assert _is_free(db, "work")


def test_who_did_not_come_in_goes_without_a_warning(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.INFO, "sqlalchemy.dialects.postgresql"),  # tells what the server remarks
        alone(db, "work", at_most_seconds=30),
        alone(db, "work", at_most_seconds=30) as entered,
    ):
        assert not entered
    assert "WARNING" not in caplog.text


def test_who_was_stopped_inside_loses_the_place_and_is_told(db: Database) -> None:
    with (
        pytest.raises(DatabaseUnavailable),
        alone(db, "work", at_most_seconds=1) as entered,
    ):
        assert entered
        wait_until(lambda: _is_free(db, "work"), "the place to be free", timeout_seconds=10)
    assert _is_free(db, "work")

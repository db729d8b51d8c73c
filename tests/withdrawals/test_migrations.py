"""The migrations and the models say the same."""

from __future__ import annotations

from collections.abc import Callable

from kit import migrate
from services.withdrawals.models import Base


def test_the_migrated_database_is_what_the_models_say(database_url: Callable[[str], str]) -> None:
    assert migrate.drift(database_url("withdrawals"), Base.metadata) == []

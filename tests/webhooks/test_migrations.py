"""What the migrations make is what the models say."""

from collections.abc import Callable

from kit import migrate
from services.webhooks.models import Base


def test_migrated_database_and_models_agree(database_url: Callable[[str], str]) -> None:
    assert migrate.drift(database_url("webhooks"), Base.metadata) == []

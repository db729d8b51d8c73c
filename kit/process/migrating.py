"""`migrate`: brings the service's database to the newest version."""

from typing import Any
from urllib.parse import unquote, urlsplit

from kit import config, log
from kit.clock import monotonic_seconds
from kit.process.service import Service
from kit.process.stopping import FAILED, stop_on_signals
from kit.process.waiting import once_the_database_answers
from kit.worker import Stop

_log = log.get_logger()


def migrate(service: Service[Any, Any], settings: config.ServiceSettings) -> int:
    """Migrates and returns the exit code."""
    from kit import migrate as migrations  # noqa: PLC0415  Alembic takes long to import and only this needs it

    started = monotonic_seconds()
    stop = Stop()
    stop_on_signals(stop)

    owner_url, role = settings.migration_database_url, urlsplit(settings.database_url).username or ""
    if not owner_url:
        _log.warning("migrating as the service's own role", missing="MIGRATION_DATABASE_URL")

    def upgrade() -> None:
        if owner_url:
            migrations.upgrade(service.name, owner_url, role=unquote(role))
        else:
            migrations.upgrade(service.name, settings.database_url)

    if not once_the_database_answers(upgrade, settings, stop):
        return FAILED
    _log.info("migrated", seconds=round(monotonic_seconds() - started, 2))
    return 0

"""`migrate`: brings the service's database to the newest version."""

from typing import Any
from urllib.parse import unquote, urlsplit

from kit.base.clock import monotonic_seconds
from kit.base.config.processes import DatabaseSettings
from kit.base.config.variables import EXIT_CODE, variables_of
from kit.db import schema
from kit.observe.log import get_logger
from kit.process.service import Service
from kit.process.stopping import FAILED, stop_on_signals
from kit.process.waiting import once_the_database_answers
from kit.work.worker import Stop

_log = get_logger()


def migrate(service: Service[Any, Any], settings: DatabaseSettings) -> int:
    """Migrates and returns the exit code. It reads only the settings of the database, no key."""
    from kit.db import migrate as migrations  # noqa: PLC0415  Alembic takes long to import and only this needs it

    started = monotonic_seconds()
    stop = Stop()
    stop_on_signals(stop)

    owner_url, role = settings.migration_database_url, urlsplit(settings.database_url).username or ""
    if not owner_url:
        _log.warning("owner_role_unused", missing="MIGRATION_DATABASE_URL")

    def upgrade() -> None:
        if owner_url:
            done = migrations.upgrade(service.name, owner_url, role=unquote(role))
        else:
            done = migrations.upgrade(service.name, settings.database_url)
        if done:
            _log.info("schema_migrated", seconds=round(monotonic_seconds() - started, 2))
        else:
            _log.warning("migration_skipped")

    try:
        if not once_the_database_answers(upgrade, settings, stop):
            return FAILED
    except schema.WrongDatabase as error:
        _log.error(
            "database_mismatched",
            setting=variables_of(type(settings), "database_url")[0],
            error=str(error),
        )
        return EXIT_CODE
    return 0

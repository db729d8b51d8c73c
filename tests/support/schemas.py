"""`python -m tests.support.schemas` writes services/*/migrations/schema.txt from databases that were just migrated."""

import tempfile
from pathlib import Path

from sqlalchemy import create_engine, make_url, text

from kit.base.services import SERVICES
from kit.db import schema
from kit.db.described import describe, written
from tests.support.databases import Databases
from tests.support.servers import PostgresServer


def file_of(service: str) -> Path:
    folder = schema.versions(service)
    assert folder is not None
    return folder.with_name("schema.txt")


def text_of(url: str) -> str:
    """Returns the content of schema.txt for a database."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg2"))
    try:
        with engine.connect() as connection:
            revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
            connection.execute(text("SET timezone = UTC"))
            return written(str(revision), describe(connection))
    finally:
        engine.dispose()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        postgres = PostgresServer(Path(folder))
        postgres.start()
        try:
            databases = Databases(postgres)
            for service in SERVICES:
                file_of(service).write_text(text_of(databases.fresh(service)))
        finally:
            postgres.stop()


if __name__ == "__main__":
    main()

"""docs/operations/backup-and-restore.md, "Backups": its commands dump every database, and a dump restores it."""

import os
import re
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psycopg2

from deploy.local import databases
from deploy.local.postgres import binary
from tests.k8s.manifests import SERVICES
from tests.support.databases import owner_url
from tests.support.servers import PostgresServer

DOCUMENT: Final = Path(__file__).resolve().parents[1] / "docs" / "operations" / "backup-and-restore.md"
PARTS: Final = """
SELECT relid::regclass::text, has_table_privilege('webhooks', relid, 'SELECT')
FROM pg_partition_tree('attempts') ORDER BY 1
"""


def commands() -> str:
    (found,) = re.findall(
        r"^# Backups\n.*?```sh\n(.*?)```", DOCUMENT.read_text().partition("## Restore\n")[0], re.DOTALL
    )
    return str(found)


def parts(url: str) -> list[tuple[str, bool]]:
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(PARTS)
        return cursor.fetchall()


def test_the_documented_dump_has_every_database_and_can_be_restored(
    database_url: Callable[[str], str], postgres: PostgresServer, tmp_path: Path
) -> None:
    """Where roles are apart: the service's own role may not read the parts of a table."""
    programs = f"{binary('pg_dump').parent}{os.pathsep}{os.environ['PATH']}"
    urls = {each: owner_url(database_url(each)) for each in SERVICES}
    addresses = {
        name: value
        for each, url in urls.items()
        for name, value in (
            (f"FIATGATE_{each.upper()}_DATABASE_URL", database_url(each)),
            (f"FIATGATE_{each.upper()}_MIGRATION_DATABASE_URL", url),
        )
    }
    subprocess.run(
        ["sh", "-c", commands()], cwd=tmp_path, env={"PATH": programs, **addresses}, check=True, timeout=60
    )
    assert {each.name for each in tmp_path.iterdir()} == {f"{each}.dump" for each in SERVICES}

    owner = databases.owner_of("webhooks")
    databases.create_database(postgres.admin_url, "webhooks_restored", owner=owner)
    restored = urlsplit(urls["webhooks"])._replace(path="/webhooks_restored").geturl()
    try:
        subprocess.run(
            [
                str(binary("pg_restore")),
                "--exit-on-error",
                f"--dbname={restored}",
                str(tmp_path / "webhooks.dump"),
            ],
            check=True,
            timeout=60,
        )
        assert ("attempts_rest", False) in parts(restored)
        assert parts(restored) == parts(urls["webhooks"])
    finally:
        databases.drop_database(postgres.admin_url, "webhooks_restored")

"""Logos: found by their digest."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.base.pictures import Picture
from kit.db.database import table_of
from kit.db.rows import Rows
from services.identity.domain import merchants as domain
from services.identity.models import Logo


def keep_logo(tx: Session, logo: Picture, *, at: datetime, kept_for: UUID | None) -> None:
    """Stores the logo unless it is there: the digest names the content, so the stored one is equal."""
    new = insert(Logo).values(
        digest=logo.digest,
        content_type=logo.content_type,
        content=logo.content,
        created_at=at,
        kept_for=kept_for,
    )
    tx.execute(new.on_conflict_do_nothing())


def has_logo(tx: Session, digest: str) -> bool:
    return tx.scalar(select(Logo.digest).where(Logo.digest == digest)) is not None


_KEPT_FOR = text(
    "SELECT count(*) FROM (SELECT FROM logos WHERE kept_for = :merchant_id AND created_at > :since LIMIT :limit) kept"
)


def logos_kept_for(tx: Session, merchant_id: UUID, *, since: datetime, limit: int) -> int:
    """Returns the number of logos that were first stored for the merchant since then, counted to the limit."""
    found = tx.execute(_KEPT_FOR, {"merchant_id": merchant_id, "since": since, "limit": limit})
    return int(found.scalar_one())


_LOGOS = Rows(domain.Logo, table_of(Logo))


def logo(connection: Connection, digest: str) -> domain.Logo | None:
    return _LOGOS.one_or_none(connection.execute(select(*_LOGOS.columns).where(Logo.digest == digest)))

"""Keys of connectors."""

from dataclasses import asdict
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import Connection, insert, select, text, update
from sqlalchemy.orm import Session

from kit.db.database import table_of
from kit.db.rows import Rows
from services.bank.models import Connector
from services.bank.store.views import ConnectorView

_CONNECTORS: Final = table_of(Connector)
_ROWS: Final = Rows(ConnectorView, _CONNECTORS)
_OF: Final = _CONNECTORS.c
_LOCK: Final = text("SELECT pg_advisory_xact_lock(hashtextextended('connector ' || :name, 0))")
_ALL: Final = select(*_ROWS.columns)


def add(tx: Session, connector: ConnectorView) -> None:
    tx.execute(insert(_CONNECTORS), asdict(connector))


def active_first(tx: Session | Connection, most: int) -> list[ConnectorView]:
    return _ROWS.all(tx.execute(_ALL.order_by(_OF.revoked_at.is_not(None), _OF.id.desc()).limit(most)))


def locked(tx: Session, id: UUID) -> ConnectorView | None:
    return _ROWS.one_or_none(tx.execute(_ALL.where(_OF.id == id).with_for_update()))


def by_hash(tx: Session | Connection, key_hash: bytes) -> ConnectorView | None:
    return _ROWS.one_or_none(tx.execute(_ALL.where(_OF.key_hash == key_hash)))


def of_the_name(tx: Session | Connection, name: str) -> list[UUID]:
    return list(tx.scalars(select(_OF.id).where(_OF.name == name)))


def by_id(tx: Session | Connection, id: UUID) -> ConnectorView | None:
    return _ROWS.one_or_none(tx.execute(_ALL.where(_OF.id == id)))


def newest(tx: Session) -> str:
    """Returns the id of the newest connector, empty when there is none."""
    return str(tx.scalar(select(_OF.id).order_by(_OF.created_at.desc(), _OF.id.desc()).limit(1)) or "")


def lock_name(tx: Session, name: str) -> None:
    """Lets posts and new keys of one name follow each other."""
    tx.execute(_LOCK, {"name": name})


def hear(tx: Session, id: UUID, *, at: datetime) -> None:
    tx.execute(update(_CONNECTORS).where(_OF.id == id).values(heard_at=at))


def revoke(tx: Session, id: UUID, *, at: datetime) -> None:
    tx.execute(update(_CONNECTORS).where(_OF.id == id).values(revoked_at=at))

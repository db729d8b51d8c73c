"""Saved profiles of CSV files. A row without a profile is one that was deleted: its name may be used again."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.db.database import table_of
from kit.db.rows import Rows
from services.bank.models import CsvProfile
from services.bank.store.views import ProfileView

_PROFILES: Final = table_of(CsvProfile)
_ROWS: Final = Rows(ProfileView, _PROFILES)
_OF: Final = _PROFILES.c
_SAVED: Final = select(*_ROWS.columns).where(_OF.profile.is_not(None))


def put(tx: Session, profile: ProfileView) -> None:
    row = asdict(profile)
    changed = {name: value for name, value in row.items() if name != "name"}
    saved = insert(_PROFILES).values(row).on_conflict_do_update(index_elements=["name"], set_=changed)
    tx.execute(saved)


def by_name(tx: Session | Connection, name: str) -> ProfileView | None:
    return _ROWS.one_or_none(tx.execute(_SAVED.where(_OF.name == name)))


def locked(tx: Session, name: str) -> ProfileView | None:
    return _ROWS.one_or_none(tx.execute(_SAVED.where(_OF.name == name).with_for_update()))


def by_names(tx: Session | Connection, most: int) -> Sequence[ProfileView]:
    return _ROWS.all(tx.execute(_SAVED.order_by(_OF.name).limit(most)))

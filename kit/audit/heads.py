"""Heads of other services' chains, kept where the owner of their database can't write.

Each service gives its head to identity every few seconds and keeps that of identity, which the answer has. `fiatgate
verify` compares each chain with the heads that the other services keep: a chain that was cut short lacks one. The log
line `acts_chained` has each head too.

A restored backup is a chain that was cut short. An operator then has the others keep its present head (`restart`),
which is an act.
"""

from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.orm import Session

from kit.audit import acts
from kit.audit.chain import Head, hash_at
from kit.base.clock import Clock
from kit.base.seals import Seals, canonical
from kit.base.services import SERVICES
from kit.db.database import Database, seals_of

KEEPER: Final = "identity"
"""The service that keeps the heads of all others; each of them keeps the keeper's."""
RESTART: Final = "heads.restart"
"""The act of an operator who has a shorter chain believed."""
_SEALED: Final = "head of another chain of acts"

# A row with another time can't be read: it was added past the service, and must not stop the reading of the others.
_READABLE: Final = "at BETWEEN '1970-01-01' AND '3000-01-01'"
_LAST = text(f"""
SELECT last.* FROM unnest(:services) AS of (service) CROSS JOIN LATERAL (
  SELECT service, count, hash, at, seal FROM act_heads WHERE act_heads.service = of.service AND {_READABLE}
  ORDER BY at DESC, number DESC LIMIT 1
) AS last
""")  # noqa: S608  made of constants
_OF_SERVICE = text(f"""
SELECT service, count, hash, at, seal FROM act_heads WHERE service = :service AND {_READABLE}
ORDER BY at DESC, number DESC
""")  # noqa: S608  made of constants
_ODD = text(f"""
SELECT DISTINCT left(service, 40) FROM act_heads WHERE service <> ALL(:services) OR NOT {_READABLE} LIMIT 100
""")  # noqa: S608  made of constants
_ADD = text("""
INSERT INTO act_heads (service, count, hash, at, seal) VALUES (:service, :count, :hash, :at, :seal)
""")
_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('act_heads ' || :service, 0))")


class HeadRefused(Exception):
    """The given head contradicts the one that is kept: acts were removed or rewritten."""


def keep(
    db: Database, clock: Clock, *, service: str, count: int, hash: bytes, continues: int | None = None
) -> Head:
    """Keeps the head of the service, if its chain has grown, and returns the kept one. With `continues`, the count of
    the kept head that the service has found in its chain, only if that is still the kept one. Raises HeadRefused for a
    chain that is shorter, or another one.
    """
    with db.transaction() as tx:
        tx.execute(_LOCK, {"service": service})
        before = last(tx, service)
        if before is not None and count < before.count:
            raise HeadRefused(f"the chain of {service} has {count} entries; it had {before.count}")
        if before is not None and count == before.count:
            if hash != before.hash:
                raise HeadRefused(f"entry {count} of {service} has another hash than before")
            return before
        if before is not None and continues not in (None, before.count):
            return before
        made = Head(count, hash, clock.now())
        _add(tx, service, made)
        return made


def require_in_chain(tx: Session, *, by: str, count: int, hash: bytes) -> None:
    """Raises HeadRefused unless this service's chain has the head that another one keeps of it."""
    if count and hash_at(tx, count) != hash:
        raise HeadRefused(f"{by} keeps another entry {count} than this chain has")


def last(tx: Session, service: str) -> Head | None:
    """Returns the head of the service that this one keeps: the last that a process of this service wrote."""
    with tx.execute(_OF_SERVICE, {"service": service}, execution_options={"yield_per": 100}) as found:
        row = next((each for each in found.mappings() if _is_sealed(seals_of(tx), each)), None)
    return None if row is None else Head(row["count"], bytes(row["hash"]), row["at"])


def restart(db: Database, clock: Clock, *, service: str, count: int, hash: bytes, note: str) -> None:
    """Keeps a head of the service that may be shorter than the one before, and records the act of the operator."""
    with db.transaction() as tx:
        tx.execute(_LOCK, {"service": service})
        known = last(tx, service)
        before = {} if known is None else {"entries": known.count, "head": known.hash.hex()}
        now = {"entries": count, "head": hash.hex()}
        _add(tx, service, Head(count, hash, clock.now()))
        acts.record(tx, RESTART, f"service:{service}", before=before, after=now, note=note)


def kept(tx: Session) -> dict[str, Head]:
    """Returns the last head of each other service that this one keeps."""
    return {service: head for service in SERVICES if (head := last(tx, service)) is not None}


def forged(tx: Session) -> list[str]:
    """Returns the services whose last head was not written by a process of this service, or one with an odd time."""
    seals, services = seals_of(tx), {"services": list(SERVICES)}
    unsealed = [
        row["service"] for row in tx.execute(_LAST, services).mappings() if not _is_sealed(seals, row)
    ]
    return sorted({*unsealed, *tx.scalars(_ODD, services)})


def _add(tx: Session, service: str, head: Head) -> None:
    row = {"service": service, "count": head.count, "hash": head.hash, "at": head.at}
    tx.execute(_ADD, row | {"seal": seals_of(tx).seal(_SEALED, _sealed_part(row))})


def _is_sealed(seals: Seals, row: Any) -> bool:
    return seals.is_right(_SEALED, _sealed_part({**row, "hash": bytes(row["hash"])}), bytes(row["seal"]))


def _sealed_part(row: Any) -> bytes:
    return canonical([row["service"], row["count"], row["hash"], row["at"]])

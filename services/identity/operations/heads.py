"""The heads of other services' chains of acts, which identity keeps."""

from typing import Final

from kit.audit import chain, heads
from kit.audit.chain import Head
from kit.audit.heads import HeadRefused
from kit.base import actors
from kit.base.services import SERVICES
from kit.rpc import values
from services.identity.wiring import Deps

_OTHERS: Final = frozenset(SERVICES) - {heads.KEEPER}


def keep_head(
    deps: Deps, *, service: str, given: Head, continues: int, own: Head
) -> tuple[Head, Head | None]:
    """Keeps the head of the service if that goes on from the kept one, and returns the kept one and that of identity.
    `own` is the head of identity that the service keeps, of 0 entries without one. Raises VALIDATION_ERROR, also for a
    chain that contradicts a kept head.
    """
    # With TLS the certificate names the caller: no service speaks for another one.
    if service not in _OTHERS or actors.current().name not in ("", service):
        raise values.invalid("service", "Expected the name of the calling service")
    for name, head in (("", given), ("own_", own)):
        values.whole_number(f"{name}count", head.count, least=0)
        if head.count and len(head.hash) != len(chain.EMPTY):
            raise values.invalid(f"{name}hash", f"Expected {len(chain.EMPTY)} bytes")
    try:
        with deps.db.transaction() as tx:
            heads.require_in_chain(tx, by=service, count=own.count, hash=own.hash)
        kept = heads.keep(
            deps.db, deps.clock, service=service, count=given.count, hash=given.hash, continues=continues
        )
    except HeadRefused as refused:
        raise values.invalid("count", str(refused)) from None
    with deps.db.autocommit() as connection:
        return kept, chain.head(connection)

"""The heads of other services' chains of acts, which accounts keeps."""

from typing import Final

from kit.audit import chain, heads
from kit.audit.chain import Head
from kit.audit.heads import HeadRefused
from kit.base import actors
from kit.base.services import SERVICES
from kit.rpc import values
from services.accounts.wiring import Deps

_OTHERS: Final = frozenset(SERVICES) - {heads.KEEPER}


def keep_head(deps: Deps, *, service: str, count: int, hash: bytes) -> Head | None:
    """Keeps the head of the service and returns that of accounts. Raises VALIDATION_ERROR, also for a head that
    contradicts the kept one.
    """
    # With TLS the certificate names the caller: no service speaks for another one.
    if service not in _OTHERS or actors.current().name not in ("", service):
        raise values.invalid("service", "Expected the name of the calling service")
    values.whole_number("count", count, least=0)
    if len(hash) != len(chain.EMPTY):
        raise values.invalid("hash", f"Expected {len(chain.EMPTY)} bytes")
    try:
        heads.keep(deps.db, deps.clock, service=service, count=count, hash=hash)
    except HeadRefused as refused:
        raise values.invalid("count", str(refused)) from None
    with deps.db.autocommit() as connection:
        return chain.head(connection)

"""The heads of other services' chains of acts, which accounts keeps."""

from typing import Final

from kit.audit import heads
from kit.audit.chain import Head
from kit.audit.heads import Exchange, HeadRefused
from kit.base import actors
from kit.base.config.processes import SERVICES
from kit.rpc import values
from services.accounts.wiring import Deps

_OTHERS: Final = frozenset(SERVICES) - {heads.KEEPER}


def exchange_heads(deps: Deps, *, service: str, number: int, count: int, hash: bytes) -> Exchange:
    """Keeps the head of the service and returns the exchange. Raises VALIDATION_ERROR, also for a head that contradicts
    the one before.
    """
    # With TLS the certificate names the caller: no service speaks for another one.
    if service not in _OTHERS or actors.current().name not in ("", service):
        raise values.invalid("service", "Expected the name of the calling service")
    values.whole_number("number", number, least=1)
    values.whole_number("count", count, least=0)
    if len(hash) != 32:
        raise values.invalid("hash", "Expected 32 bytes")
    try:
        return heads.answer(deps.db, deps.clock, service=service, number=number, theirs=Head(count, hash))
    except HeadRefused as refused:
        raise values.invalid("count", str(refused)) from None

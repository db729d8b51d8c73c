"""The heads of other services' chains of acts, which accounts keeps."""

from typing import Final

from fiatgate.accounts.v1 import accounts_pb2 as pb
from kit.audit import heads
from kit.audit.chain import Head
from kit.audit.heads import Exchange, HeadRefused
from kit.base import actors
from kit.base.proto import most_of
from kit.base.services import SERVICES
from kit.rpc import values
from services.accounts.wiring import Deps

_NOTE_MOST_CHARACTERS: Final = most_of(pb.RestartExchangesRequest, "note")
_OTHERS: Final = frozenset(SERVICES) - {heads.KEEPER}


def exchange_heads(deps: Deps, *, service: str, number: int, count: int, hash: bytes) -> Exchange:
    """Keeps the head of the service and returns the exchange. Raises VALIDATION_ERROR, also for a head that contradicts
    the one before.
    """
    # With TLS the certificate names the caller: no service speaks for another one.
    if service not in _OTHERS or actors.current().name not in ("", service):
        raise values.invalid("service", "Expected the name of the calling service")
    values.whole_number("number", number, least=1)
    theirs = _head(count, hash)
    try:
        return heads.answer(deps.db, deps.clock, service=service, number=number, theirs=theirs)
    except HeadRefused as refused:
        raise values.invalid("count", str(refused)) from None


def restart_exchanges(deps: Deps, *, service: str, count: int, hash: bytes, note: str) -> Exchange:
    """Begins a new series of exchanges with the service, and returns its first one. Raises VALIDATION_ERROR."""
    if service not in _OTHERS:
        raise values.invalid("service", f"Expected one of {', '.join(sorted(_OTHERS))}")
    reason = values.text("note", note, least=0, most=_NOTE_MOST_CHARACTERS)
    return heads.restart(deps.db, deps.clock, service=service, theirs=_head(count, hash), note=reason)


def _head(count: int, hash: bytes) -> Head:
    """Raises VALIDATION_ERROR."""
    values.whole_number("count", count, least=0)
    if len(hash) != 32:
        raise values.invalid("hash", "Expected 32 bytes")
    return Head(count, hash)

"""Who may call what, once both ends of a connection have proved who they are (`kit.rpc.tls`).

Each service says it beside its servicers (`CALLERS` in its rpc.py), method by method: a certificate that is stolen from
one process opens what that process needs, and nothing else.
"""

from __future__ import annotations  # grpc's classes are generic in their stubs only

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import grpc

from kit import log, metrics

Callers = Mapping[str, frozenset[str]]
"""DNS name in the caller's certificate -> what it may call, as `InvoicesService/CreateInvoice`, or `ALL`.

Whoever is named may ask for health besides.
"""

ALL: Final = "*"
"""Every method, status and reflection too: an operator."""

# Without labels: it is there from the start, at 0, so that the first one is seen as an increase.
REFUSED: Final = metrics.counter("rpc_peers_refused", "Calls by peers of ours that may not make them")

_HEALTH: Final = ("Health/Check", "Health/Watch")

_log = log.get_logger()


class Guard:
    """Lets through the calls that `callers` names, and answers PERMISSION_DENIED to all others."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    def around(
        self, method: str, handler: grpc.RpcMethodHandler[Any, Any]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """The handler of `/package.Service/Method`, of whichever kind, behind the guard."""
        make, behaviour = _kind(handler)

        @functools.wraps(behaviour)  # also takes over the attributes by which gRPC chooses threads
        def behave(request: Any, context: grpc.ServicerContext, *rest: Any) -> Any:
            proved: Mapping[str, Any] = context.auth_context()
            names = [name.decode() for name in proved.get("peer_dns", ())]
            if not any(self._may(name, method) for name in names):
                _log.warning("peer refused", method=method, names=names, peer=context.peer())
                REFUSED.inc()
                context.abort(grpc.StatusCode.PERMISSION_DENIED, "not permitted")
            return behaviour(request, context, *rest)

        guarded: grpc.RpcMethodHandler[Any, Any] = make(
            behave, handler.request_deserializer, handler.response_serializer
        )
        return guarded

    def _may(self, name: str, method: str) -> bool:
        permitted = self._callers.get(name)
        if permitted is None:
            return False
        asked = method.rpartition(".")[2]
        return asked in permitted or ALL in permitted or asked in _HEALTH


def _kind(handler: grpc.RpcMethodHandler[Any, Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What makes a handler of the same kind, and its behaviour."""
    for kind in ("unary_unary", "unary_stream", "stream_unary", "stream_stream"):
        behaviour = getattr(handler, kind)
        if behaviour is not None:
            return getattr(grpc, f"{kind}_rpc_method_handler"), behaviour
    raise AssertionError("a handler without behaviour")

"""The methods that each caller may use, when both ends of a connection have proved their names (`kit.rpc.tls`).

Each service declares them beside its servicers (`CALLERS` in its rpc.py), method by method. So a certificate that is
stolen from one process opens the methods that this process needs, and no others.
"""

from __future__ import annotations  # grpc's classes are generic in their stubs only

import functools
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final

import grpc

from kit.observe import metrics
from kit.observe.log import get_logger

Callers = Mapping[str, frozenset[str]]
"""DNS name in the caller's certificate -> the methods that it may call, as `InvoicesService/CreateInvoice`, or `ALL`.

Each named caller may also call health.
"""

ALL: Final = "*"
"""Every method, also status and reflection: for an operator."""

# Without labels, so that it exists from the start at 0 and the first refusal is an increase.
REFUSED: Final = metrics.counter("rpc_peers_refused", "Calls that the caller's certificate does not allow")

_HEALTH: Final = ("Health/Check", "Health/Watch")

_log = get_logger()

# gRPC runs each call in its own context.
_caller: ContextVar[str | None] = ContextVar("caller", default=None)


def current() -> str | None:
    """Returns the name that the caller of this call has proved; None without TLS."""
    return _caller.get()


class Guard:
    """Lets the calls pass that `callers` allows, and answers PERMISSION_DENIED to all others."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    def around(
        self, method: str, handler: grpc.RpcMethodHandler[Any, Any]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """Returns the handler of `/package.Service/Method` behind the guard, for a handler of any kind."""
        make, behaviour = _kind(handler)

        @functools.wraps(behaviour)  # also copies the attributes by which gRPC chooses threads
        def behave(request: Any, context: grpc.ServicerContext, *rest: Any) -> Any:
            proved: Mapping[str, Any] = context.auth_context()
            names = [name.decode() for name in proved.get("peer_dns", ())]
            permitted = next((name for name in names if self._may(name, method)), None)
            if permitted is None:
                _log.warning("peer_refused", method=method, names=names, peer=context.peer())
                REFUSED.inc()
                context.abort(grpc.StatusCode.PERMISSION_DENIED, "not permitted")
            _caller.set(permitted)
            return behaviour(request, context, *rest)

        guarded: grpc.RpcMethodHandler[Any, Any] = make(
            behave, handler.request_deserializer, handler.response_serializer
        )
        return guarded

    def _may(self, name: str, method: str) -> bool:
        permitted = self._callers.get(name)
        if permitted is None:
            return False
        called = method.rpartition(".")[2]
        return called in permitted or ALL in permitted or called in _HEALTH


def _kind(handler: grpc.RpcMethodHandler[Any, Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Returns the function that makes a handler of the same kind, and the handler's behaviour."""
    for kind in ("unary_unary", "unary_stream", "stream_unary", "stream_stream"):
        behaviour = getattr(handler, kind)
        if behaviour is not None:
            return getattr(grpc, f"{kind}_rpc_method_handler"), behaviour
    raise AssertionError("a handler without behaviour")

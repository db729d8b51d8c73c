"""The callers of each method, when both ends of a connection have proved their names (`kit.rpc.tls`).

The proto declares them, method by method (`fiatgate.rpc.v1.access`). So a certificate that is stolen from one process
opens the methods that this process needs, and no others.
"""

from __future__ import annotations  # grpc's classes are generic in their stubs only

import functools
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final

import grpc

from kit.observe import metrics
from kit.observe.log import get_logger

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
    """Lets the calls of permitted callers pass, and answers PERMISSION_DENIED to all others. The callers of any method
    of the server may also call health.
    """

    def __init__(self) -> None:
        self._callers: set[str] = set()

    def around(
        self, method: str, handler: grpc.RpcMethodHandler[Any, Any], callers: frozenset[str]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """Returns the handler of `/package.Service/Method` behind the guard, for a handler of any kind."""
        self._callers |= callers
        permitted_names = self._callers if method.rpartition(".")[2] in _HEALTH else callers
        make, behaviour = _kind(handler)

        @functools.wraps(behaviour)  # also copies the attributes by which gRPC chooses threads
        def behave(request: Any, context: grpc.ServicerContext, *rest: Any) -> Any:
            proved: Mapping[str, Any] = context.auth_context()
            names = [name.decode() for name in proved.get("peer_dns", ())]
            permitted = next((name for name in names if name in permitted_names), None)
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


def _kind(handler: grpc.RpcMethodHandler[Any, Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Returns the function that makes a handler of the same kind, and the handler's behaviour."""
    for kind in ("unary_unary", "unary_stream", "stream_unary", "stream_stream"):
        behaviour = getattr(handler, kind)
        if behaviour is not None:
            return getattr(grpc, f"{kind}_rpc_method_handler"), behaviour
    raise AssertionError("a handler without behaviour")

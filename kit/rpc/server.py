"""The gRPC server of every service: threads, the work around each call, health, reflection, graceful stop.

Only `_Method` turns exceptions into answers, so servicers have no try/except. It also checks the permission of
the call's actor, binds the actor, the deadline and the request id for the work of the call, makes its log line and its
span, and counts it.
"""

from __future__ import annotations  # grpc's classes are generic in their stubs only

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent import futures
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from grpc_status import rpc_status
from prometheus_client import Counter, Histogram

from kit.base import actors, request_id
from kit.base.actors import Actor
from kit.base.clock import monotonic_seconds
from kit.base.proto import NoTime
from kit.base.tls import Identity
from kit.observe import log, metrics, tracing
from kit.rpc import deadline, errors, made_calls, tls, values
from kit.rpc.callers import Guard
from kit.rpc.errors import Refused
from kit.rpc.limits import LEAST_USEFUL_SECONDS, MESSAGE_MAX_BYTES
from kit.rpc.made_calls import MadeCalls
from kit.rpc.permissions import Check, Checks, Permission, permission_of
from kit.rpc.slots import Pool, Pools, Slots, Use
from kit.rpc.spans import CallSpans, answered
from kit.work.worker import Outage

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

# A call without deadline has centuries left.
NO_DEADLINE_SECONDS: Final = 3600

# With round_robin a client finds new pods only when it reconnects, so the server ends connections of this age.
CONNECTION_MAX_AGE_SECONDS: Final = 120
CONNECTION_AGE_GRACE_SECONDS: Final = 30

# Probes and the status have their own threads: a server whose threads are all busy isn't broken, and restarting it
# would make things worse.
_PROBES: Final = ("/grpc.health.", "/fiatgate.status.")
_UNWRAPPED: Final = ("/grpc.",)

# Enough for the supervisors of the process; any other client that finds the port can't exhaust it with watches.
_PROBES_AT_ONCE: Final = 16

# The name for a liveness probe: a process that waits for NATS isn't ready, but a restart would not help.
ALIVE: Final = "alive"

REPEATED: Final = frozenset({"QueuesService/ListQueues"})
"""Calls that open pages repeat all the time: those that succeed are logged as those of processes."""

_PEOPLE: Final = frozenset({"person", "cli"})

SLOW_SECONDS: Final = 0.25
"""A call that takes longer has a log line, as one that is refused and one of a person or an operator. Any other has a
line at level debug only: the line of the caller's request names it (kit.rpc.made_calls), and one of its own took a
quarter of the processor time of a call.
"""

CALLS: Final = metrics.counter(
    "rpc_calls", "Calls answered, by gRPC code and the reason of a refusal", ["method", "code", "reason"]
)
CALL_SECONDS: Final = metrics.histogram("rpc_seconds", "How long calls took to answer", ["method"])

_CHANNEL_OPTIONS: Final[list[tuple[str, int]]] = [
    ("grpc.so_reuseport", 0),  # a port that is taken must be an error
    ("grpc.max_receive_message_length", MESSAGE_MAX_BYTES),
    ("grpc.max_send_message_length", MESSAGE_MAX_BYTES),
    ("grpc.max_connection_age_ms", CONNECTION_MAX_AGE_SECONDS * 1000),
    ("grpc.max_connection_age_grace_ms", CONNECTION_AGE_GRACE_SECONDS * 1000),
    # Clients ping every 30 s (kit.rpc.client); by default a server closes such a connection as an attack.
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
]

Behaviour = Callable[[Any, grpc.ServicerContext], Any]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The limits of a server.

    service               the name by which protos choose the permissions of a contract that several services serve
    threads               work on calls at the same time
    max_concurrent_calls  in work or waiting; more are refused at once (the client sees DB_UNAVAILABLE)
    slots                 kinds of calls that have threads and bounds of their own; all others share `threads`
    call_seconds          longest a call may take when its caller sets no deadline
    identity              the certificate of this process: it serves over TLS only, and only permitted callers
    checks                the checks of actors; None: a server without people, whose calls have no author
    """

    service: str = ""
    threads: int = 4
    max_concurrent_calls: int = 1024
    slots: Sequence[Slots] = ()
    call_seconds: float = 5
    identity: Identity | None = None
    checks: Checks | None = None


class RpcServer(grpc.Server):
    """A grpc.Server to pass to `add_…Servicer_to_server`. It remembers the services that it was given.

    `start` adds health (SERVING) and reflection; `stop` is graceful. Health also has the name `alive`: SERVING as long
    as the process can answer, independent of `set_serving`.
    """

    def __init__(self, options: Options | None = None) -> None:
        options = options or Options()
        self._options = options
        self._services: list[str] = []
        self._probe_threads = futures.ThreadPoolExecutor(2, thread_name_prefix="probe")
        self._pools = Pools(options.slots, threads=options.threads)
        self._wrapping = _Wrapping(options, self._probe_threads, self._pools)
        self._server = grpc.server(
            futures.ThreadPoolExecutor(options.threads, thread_name_prefix="rpc"),
            maximum_concurrent_rpcs=options.max_concurrent_calls,
            options=_CHANNEL_OPTIONS,
        )
        self._health = health.HealthServicer(
            experimental_non_blocking=True, experimental_thread_pool=self._probe_threads
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self)
        self._probed: grpc.Server | None = None

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        handlers = tuple(generic_rpc_handlers)
        self._services += [
            each.service_name() for each in handlers if isinstance(each, grpc.ServiceRpcHandler)
        ]
        self._server.add_generic_rpc_handlers([_Wrapped(each, self._wrapping) for each in handlers])

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]
    ) -> None:
        wrapped = {
            name: self._wrapping.of(f"/{service_name}/{name}", handler)
            for name, handler in method_handlers.items()
        }
        self._server.add_registered_method_handlers(service_name, wrapped)

    def listen(self, address: str) -> int:
        """Opens a port for calls, over TLS if the options have an identity; otherwise as `add_insecure_port`."""
        if self._options.identity is None:
            return self.add_insecure_port(address)
        return self.add_secure_port(address, tls.server_credentials(self._options.identity))

    def listen_for_probes(self, address: str) -> int:
        """Opens a port without TLS that serves health and nothing else; as `add_insecure_port`."""
        self._probed = grpc.server(
            futures.ThreadPoolExecutor(1, thread_name_prefix="probed"),
            maximum_concurrent_rpcs=_PROBES_AT_ONCE,
            options=_CHANNEL_OPTIONS,
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._probed)
        return self._probed.add_insecure_port(address)

    def add_insecure_port(self, address: str) -> int:
        """Binds at once and returns the port; raises RuntimeError when the address is taken or not of this machine."""
        return self._server.add_insecure_port(address)

    def add_secure_port(self, address: str, server_credentials: grpc.ServerCredentials) -> int:
        return self._server.add_secure_port(address, server_credentials)

    def start(self) -> None:
        reflection.enable_server_reflection([*self._services, reflection.SERVICE_NAME], self)
        self._server.start()
        if self._probed is not None:
            self._probed.start()
        self._health.set(ALIVE, health_pb2.HealthCheckResponse.SERVING)
        self.set_serving(True)

    def set_serving(self, serving: bool) -> None:
        """Sets the answer of health for the process ("") and each of its services."""
        status = (
            health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        )
        for name in ("", *self._services):
            self._health.set(name, status)

    def slots_use(self) -> Mapping[str, Use]:
        """Returns the use of each kind of calls now, by its name."""
        return self._pools.use()

    def stop(self, grace: float | None) -> threading.Event:
        """Turns health to NOT_SERVING, refuses new calls, and gives those in work `grace` seconds.

        Returns at once; the event is set when the last call has ended.
        """
        self._health.enter_graceful_shutdown()
        if self._probed is not None:
            self._probed.stop(grace)
        return self._server.stop(grace)


class _Wrapping:
    """Wraps each method once, when it is registered: an interceptor of gRPC would be run for each call."""

    def __init__(self, options: Options, probe_threads: futures.ThreadPoolExecutor, pools: Pools) -> None:
        self._call_seconds = options.call_seconds
        self._probe_threads = probe_threads
        self._pools = pools
        self._service = options.service
        self._guard = Guard() if options.identity is not None else None
        self._checks = options.checks
        self._wrapped: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}  # only methods that exist

    def of(self, method: str, handler: grpc.RpcMethodHandler[Any, Any]) -> grpc.RpcMethodHandler[Any, Any]:
        """Returns the handler of `/package.Service/Method` with all that is done around its calls."""
        wrapped = self._wrapped.get(method)
        if wrapped is None:
            permission = permission_of(method, self._service)
            if handler.unary_unary is not None:  # only health and reflection have streams
                handler = self._wrap(method, handler, permission)
            if self._guard is not None:
                handler = self._guard.around(method, handler, permission.callers)
            wrapped = self._wrapped[method] = handler
        return wrapped

    def _wrap(
        self, method: str, handler: grpc.RpcMethodHandler[Any, Any], permission: Permission
    ) -> grpc.RpcMethodHandler[Any, Any]:
        assert handler.unary_unary is not None
        behaviour: Behaviour = handler.unary_unary
        pool = self._pools.get(permission.kind)
        if not method.startswith(_UNWRAPPED):
            check = None if self._checks is None else self._checks.of(method, permission)
            behaviour = _Method(method, behaviour, self._call_seconds, pool, check)
        threads = self._probe_threads if method.startswith(_PROBES) else pool
        if threads is not None:
            behaviour = _in_threads_of_its_own(behaviour, threads)
        return grpc.unary_unary_rpc_method_handler(
            behaviour, handler.request_deserializer, handler.response_serializer
        )


class _Wrapped(grpc.GenericRpcHandler):
    """The handlers of a service, wrapped: for methods that are not registered by name."""

    def __init__(self, handlers: grpc.GenericRpcHandler, wrapping: _Wrapping) -> None:
        self._handlers = handlers
        self._wrapping = wrapping

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler = self._handlers.service(handler_call_details)
        return None if handler is None else self._wrapping.of(handler_call_details.method, handler)


class _Method:
    """One RPC method with its deadline, request id, permission, turn, span, metrics and log line."""

    def __init__(
        self, method: str, behaviour: Behaviour, call_seconds: float, pool: Pool | None, check: Check | None
    ) -> None:
        self._method = method
        self._is_repeated = method.rpartition(".")[2] in REPEATED
        self._behaviour = behaviour
        self._pool = pool
        self._check = check
        self._call_seconds = call_seconds
        self._spans = CallSpans(method)
        self._is_traced = not method.startswith(_PROBES)

    # These are made at the first call, so that a method that is never called has no series.

    @cached_property
    def _seconds(self) -> Histogram:
        return CALL_SECONDS.labels(self._method)

    @cached_property
    def _succeeded(self) -> Counter:
        return CALLS.labels(self._method, grpc.StatusCode.OK.name, "")

    @cached_property
    def _log(self) -> FilteringBoundLogger:
        return log.get_logger().bind()  # an unbound logger would be assembled anew on each line

    def __call__(self, request: Any, context: grpc.ServicerContext) -> Any:
        started = monotonic_seconds()
        seconds = context.time_remaining()
        if seconds > NO_DEADLINE_SECONDS:
            seconds = self._call_seconds
        # gRPC runs each call in its own context, so nothing has to be restored.
        deadline.expires_at.set(started + seconds)
        metadata: dict[str, str | bytes] = dict(context.invocation_metadata())
        request_id.bind(request_id.accepted(metadata.get(request_id.METADATA_KEY)))
        made = made_calls.begin()
        author: Actor | None = None
        refused: Refused | None = None
        response: Any = None
        with self._span(metadata) as span:
            try:
                if self._check is not None:
                    author = self._check.actor_of(request, metadata)
                    actors.bind(author)
                response = self._in_turn(request, context)
            except Exception as error:  # noqa: BLE001  the one place where every exception becomes an answer
                refused = self._refused(error)
            seconds = monotonic_seconds() - started
            self._count(seconds, span, refused)
            self._log_answer(context, seconds, refused, author, made)
        if refused is not None:
            context.abort_with_status(rpc_status.to_status(errors.refused_to_status(refused)))
        return response

    def _in_turn(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Does the work of the call, unless its caller has stopped waiting meanwhile: a call may wait long for
        its turn.
        """
        with nullcontext() if self._pool is None else self._pool.turn(request):
            left_seconds = deadline.remaining_seconds()
            if not context.is_active() or (left_seconds is not None and left_seconds < LEAST_USEFUL_SECONDS):
                raise errors.too_late()
            response = self._behaviour(request, context)
        actors.require_proof()
        return response

    def _span(self, metadata: Mapping[str, str | bytes]) -> tracing.Span:
        if not (tracing.is_on() and self._is_traced):
            return tracing.NOTHING
        traceparent = metadata.get(tracing.HEADER)
        return self._spans.of_server(traceparent if isinstance(traceparent, str) else None)

    def _refused(self, error: Exception) -> Refused:
        if isinstance(error, Refused):
            return error
        if isinstance(error, Outage):
            self._log.warning("database_lost", method=self._method, error=str(error))
            return errors.database_unavailable()
        if isinstance(error, NoTime):
            return values.invalid("time", str(error))
        refused = errors.unexpected()
        self._log.error(
            "rpc_failed", method=self._method, error_id=refused.metadata["error_id"], exc_info=error
        )
        return refused

    def _count(self, seconds: float, span: tracing.Span, refused: Refused | None) -> None:
        self._seconds.observe(seconds)
        if refused is None:
            answered(span, grpc.StatusCode.OK)
            self._succeeded.inc()
        else:
            answered(span, refused.code, refused.reason)
            CALLS.labels(self._method, refused.code.name, refused.reason).inc()

    def _log_answer(
        self,
        context: grpc.ServicerContext,
        seconds: float,
        refused: Refused | None,
        author: Actor | None,
        made: MadeCalls,
    ) -> None:
        by_people = author is not None and author.kind in _PEOPLE and not self._is_repeated
        is_notable = refused is not None or seconds > SLOW_SECONDS or by_people
        if not (is_notable or self._log.is_enabled_for(logging.DEBUG)):
            return
        fields = made.log_fields()
        if author is not None and author.kind in _PEOPLE:
            fields["author"] = str(author.person_id or author)
        if refused is not None:
            fields["reason"] = refused.reason
            if "error_id" in refused.metadata:
                fields["error_id"] = refused.metadata["error_id"]
        write = self._log.info if is_notable else self._log.debug
        write(
            "rpc_answered",
            method=self._method,
            code="OK" if refused is None else refused.code.name,
            duration_ms=round(seconds * 1000, 2),
            peer=context.peer(),
            **fields,
        )


def _in_threads_of_its_own(behaviour: Behaviour, threads: futures.ThreadPoolExecutor) -> Behaviour:
    def behave(request: Any, context: grpc.ServicerContext) -> Any:
        return behaviour(request, context)

    # gRPC reads this attribute of the behaviour; its own health service relies on it.
    behave.experimental_thread_pool = threads  # type: ignore[attr-defined]
    return behave

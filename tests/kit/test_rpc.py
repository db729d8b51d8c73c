"""The gRPC server and client of kit, over real connections on loopback."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from typing import Any, Literal

import grpc
import pytest
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from fiatgate.status.v1 import status_pb2, status_pb2_grpc
from kit.base import request_id
from kit.base.clock import SystemClock
from kit.base.config.processes import Settings
from kit.db.database import DatabaseUnavailable
from kit.observe import log
from kit.rpc import client, deadline, errors, limits, made_calls, server, status
from kit.rpc.errors import Refused
from kit.work.worker import Loop, WorkerHealth

METHOD = "/test.Echo/Do"
Behaviour = Callable[[bytes], bytes]
Start = Callable[..., str]
LinesOf = Callable[[int], list[dict[str, Any]]]


def _echo(behaviour: Behaviour) -> grpc.GenericRpcHandler:
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
        lambda request, context: behaviour(request)
    )
    return grpc.method_handlers_generic_handler("test.Echo", {"Do": handler})


def _method(channel: grpc.Channel, name: str = METHOD) -> Callable[..., bytes]:
    """The client's side of it."""
    method: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(name)
    return method


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a server whose echo does what it's given; returns its address."""
    started: list[server.RpcServer] = []

    def make(behaviour: Behaviour = bytes, *, port: int = 0, **options: Any) -> str:
        made = server.RpcServer(server.Options(**options))
        made.add_generic_rpc_handlers([_echo(behaviour)])
        bound = made.add_insecure_port(f"127.0.0.1:{port}")
        made.start()
        started.append(made)
        return f"127.0.0.1:{bound}"

    make.servers = started  # type: ignore[attr-defined]
    yield make
    for each in started:
        each.stop(0).wait(5)


@pytest.fixture
def call() -> Iterator[Callable[..., bytes]]:
    """Calls an echo through a channel of kit."""
    with_channels: list[grpc.Channel] = []

    def do(address: str, request: bytes = b"hello", **options: Any) -> bytes:
        channel = client.channel(address, name="echo")
        with_channels.append(channel)
        return _method(channel)(request, **options)

    yield do
    for channel in with_channels:
        channel.close()


def _raises(error: Exception) -> Behaviour:
    def behave(request: bytes) -> bytes:
        raise error

    return behave


def _aio_call(address: str, **options: Any) -> bytes:
    async def do() -> bytes:
        async with client.aio_channel(address, name="echo") as channel:
            method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(METHOD)
            answer: bytes = await method(b"hello", **options)
            return answer

    return asyncio.run(do())


@pytest.fixture(params=["threads", "asyncio"])
def any_call(request: pytest.FixtureRequest, call: Callable[..., bytes]) -> Callable[..., bytes]:
    """The same call through either kind of channel."""
    return call if request.param == "threads" else _aio_call


# -- errors


def test_a_refusal_arrives_as_it_was_raised(start: Start, any_call: Callable[..., bytes]) -> None:
    address = start(_raises(errors.not_found("INVOICE_NOT_FOUND", "no such invoice ü", ref="018f")))

    with pytest.raises(Refused) as refused:
        any_call(address)

    assert refused.value.reason == "INVOICE_NOT_FOUND"
    assert refused.value.message == "no such invoice ü"
    assert refused.value.metadata == {"ref": "018f"}
    assert refused.value.code is grpc.StatusCode.NOT_FOUND


def test_an_unexpected_exception_tells_nothing_but_the_id_under_which_it_is_logged(
    start: Start, any_call: Callable[..., bytes]
) -> None:
    with structlog.testing.capture_logs() as lines:
        address = start(_raises(KeyError("secret detail")))
        with pytest.raises(Refused) as refused:
            any_call(address)

    assert refused.value.reason == "INTERNAL_ERROR"
    assert refused.value.code is grpc.StatusCode.INTERNAL
    assert "secret" not in f"{refused.value} {refused.value.metadata}"
    (story,) = [line for line in lines if line["event"] == "rpc_failed"]
    assert story["error_id"] == refused.value.metadata["error_id"]
    assert isinstance(story["exc_info"], KeyError)


def test_a_database_that_is_away_is_the_documented_temporary_error(
    start: Start, any_call: Callable[..., bytes]
) -> None:
    with pytest.raises(Refused) as refused:
        any_call(start(_raises(DatabaseUnavailable("connection refused at 10.0.0.7"))))

    assert refused.value.reason == "DB_UNAVAILABLE"
    assert refused.value.code is grpc.StatusCode.UNAVAILABLE
    assert "10.0.0.7" not in str(refused.value)


def test_a_service_that_is_away_is_told_at_once(any_call: Callable[..., bytes]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"

    with pytest.raises(Refused) as refused:
        any_call(address, timeout=600)  # longer than a test may last: a call that waits for the service hangs

    assert refused.value.reason == "DB_UNAVAILABLE"


def test_a_service_past_its_deadline_is_the_temporary_error(
    start: Start, any_call: Callable[..., bytes]
) -> None:
    release = threading.Event()
    address = start(lambda request: request if release.wait(10) else b"")

    with pytest.raises(Refused) as refused:
        any_call(address, timeout=0.2)
    release.set()

    assert refused.value.reason == "DB_UNAVAILABLE"


def test_an_unknown_method_is_an_internal_error(start: Start) -> None:
    with client.channel(start(), name="echo") as channel, pytest.raises(Refused) as refused:
        _method(channel, "/test.Echo/Undo")(b"")

    assert refused.value.reason == "INTERNAL_ERROR"
    assert refused.value.metadata["error_id"]


def test_an_oversized_request_is_an_internal_error_and_not_called_temporary(
    start: Start, call: Callable[..., bytes]
) -> None:
    with pytest.raises(Refused) as refused:
        call(start(), b"x" * (limits.MESSAGE_MAX_BYTES + 1))

    assert refused.value.reason == "INTERNAL_ERROR"


def test_a_new_channel_does_not_take_over_what_another_one_failed_at(
    start: Start, call: Callable[..., bytes]
) -> None:
    [port] = free_ports(1)
    with pytest.raises(Refused):
        call(f"127.0.0.1:{port}")  # its channel stays, and waits a second before it tries again
    assert call(start(port=port), b"now") == b"now"


def test_a_restarted_service_is_found_again_within_seconds(start: Start) -> None:
    address = start()
    with client.channel(address, name="echo") as channel:
        echo = _method(channel)
        assert echo(b"1") == b"1"
        start.servers.pop().stop(0).wait(5)  # type: ignore[attr-defined]
        with pytest.raises(Refused):
            echo(b"2")
        start(port=int(address.rpartition(":")[2]))

        wait_until(lambda: not _refuses(echo), "an answer", timeout_seconds=30)
        assert echo(b"3") == b"3"


@contextmanager
def _answers_at_first(code: grpc.StatusCode, asked: list[bytes]) -> Iterator[str]:
    """A server, not one of kit, that ends the first call with `code` and does the next; gives its address."""

    def do(request: bytes, context: grpc.ServicerContext) -> bytes:
        asked.append(request)
        if len(asked) == 1:
            context.abort(code, "")
        return request

    stranger = grpc.server(futures.ThreadPoolExecutor(1))
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(do)
    stranger.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Echo", {"Do": handler})])
    port = stranger.add_insecure_port("127.0.0.1:0")
    stranger.start()
    yield f"127.0.0.1:{port}"
    stranger.stop(0).wait(5)


def test_a_call_that_a_stopping_server_had_not_begun_is_made_again(any_call: Callable[..., bytes]) -> None:
    """It answers CANCELLED then. tests/rolling has such servers; they do so once in many stops."""
    asked: list[bytes] = []
    with _answers_at_first(grpc.StatusCode.CANCELLED, asked) as address:
        assert any_call(address) == b"hello"
    assert asked == [b"hello", b"hello"]


def test_a_call_that_may_have_been_begun_is_not_made_again(any_call: Callable[..., bytes]) -> None:
    asked: list[bytes] = []
    with _answers_at_first(grpc.StatusCode.UNAVAILABLE, asked) as address, pytest.raises(Refused):
        any_call(address)
    assert asked == [b"hello"]


def test_calls_go_round_over_all_addresses_of_a_service(start: Start) -> None:
    first, second = start(lambda request: b"first"), start(lambda request: b"second")

    with client.channel(f"ipv4:{first},{second}", name="echo") as channel:
        answers: set[bytes] = set()

        def both_answered() -> bool:
            answers.add(_method(channel)(b""))
            return len(answers) == 2

        wait_until(both_answered, "both answers", timeout_seconds=30)


# -- deadlines


def test_a_call_has_five_seconds_unless_told_otherwise(start: Start, any_call: Callable[..., bytes]) -> None:
    address = start(lambda request: str(deadline.remaining_seconds()).encode(), call_seconds=60)

    assert 3 < float(any_call(address)) < 5.1  # the wire rounds up
    assert 0 < float(any_call(address, timeout=2)) < 2.1


def test_a_call_that_sets_no_deadline_gets_the_servers(start: Start) -> None:
    address = start(lambda request: str(deadline.remaining_seconds()).encode(), call_seconds=3)
    with grpc.insecure_channel(address) as channel:
        answer = _method(channel)(b"")

    assert 0 < float(answer) <= 3


def test_a_call_on_the_way_leaves_its_own_calls_less_than_it_has(
    start: Start, any_call: Callable[..., bytes]
) -> None:
    last = start(lambda request: str(deadline.remaining_seconds()).encode())

    def forward(request: bytes) -> bytes:
        with client.channel(last, name="last") as channel:
            return _method(channel)(request)

    assert float(any_call(start(forward), timeout=100)) < 100


def test_no_call_goes_out_when_no_time_is_left(start: Start, any_call: Callable[..., bytes]) -> None:
    called: list[bytes] = []
    address = start(lambda request: called.append(request) or request)  # type: ignore[func-returns-value]

    with deadline.within(0.01), pytest.raises(Refused) as refused:
        any_call(address)

    assert refused.value.reason == "DB_UNAVAILABLE"
    assert called == []


def test_work_that_waited_past_its_deadline_is_not_begun(start: Start) -> None:
    begun: list[bytes] = []
    release = threading.Event()

    def behave(request: bytes) -> bytes:
        begun.append(request)
        release.wait(10)
        return request

    address = start(behave, threads=1)
    with grpc.insecure_channel(address) as channel, futures.ThreadPoolExecutor() as threads:
        echo = _method(channel)
        first = threads.submit(echo, b"first", timeout=10)
        wait_until(lambda: begun == [b"first"], "the first call", timeout_seconds=30)
        with pytest.raises(grpc.RpcError):
            echo(b"late", timeout=0.1)
        release.set()
        assert first.result() == b"first"
        assert echo(b"third", timeout=5) == b"third"

    assert begun == [b"first", b"third"]


def test_a_nested_deadline_never_exceeds_the_outer_one() -> None:
    with deadline.within(1000):
        with deadline.within(10_000):
            assert (deadline.remaining_seconds() or 0) <= 1000
        with deadline.within(500):
            assert (deadline.remaining_seconds() or 0) <= 500
        assert (deadline.remaining_seconds() or 0) > 500
    assert deadline.remaining_seconds() is None


# -- request id


def test_the_request_id_goes_along(start: Start, any_call: Callable[..., bytes]) -> None:
    address = start(lambda request: request_id.current().encode())

    with request_id.bind("req-7"):
        assert any_call(address) == b"req-7"


@pytest.mark.parametrize("given", [None, "", "a b", "x" * 129, 'quote"'])
def test_a_call_without_a_usable_request_id_gets_one(start: Start, given: str | None) -> None:
    address = start(lambda request: request_id.current().encode())
    metadata = () if given is None else ((request_id.METADATA_KEY, given),)

    with grpc.insecure_channel(address) as channel:
        id = _method(channel)(b"", metadata=metadata)

    assert len(id) == 24
    assert id.decode() != given


def test_one_call_leaves_nothing_behind_for_the_next_on_the_same_thread(start: Start) -> None:
    address = start(lambda request: request_id.current().encode(), threads=1)
    with grpc.insecure_channel(address) as channel:
        echo = _method(channel)
        assert echo(b"", metadata=((request_id.METADATA_KEY, "one"),)) == b"one"
        assert echo(b"") != b"one"


# -- log lines


@contextmanager
def _log_lines(capsys: pytest.CaptureFixture[str], level: Literal["debug", "info"]) -> Iterator[LinesOf]:
    """Gives a function that waits for so many answered calls in the log, and returns their lines."""
    log.configure("echo", Settings(log_level=level))
    lines: list[dict[str, Any]] = []

    def answered(count: int) -> list[dict[str, Any]]:
        def are_there() -> bool:
            read = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
            lines.extend(line for line in read if line["event"] == "rpc_answered")
            return len(lines) >= count

        wait_until(are_there, f"{count} lines", timeout_seconds=30)
        return lines

    try:
        yield answered
    finally:
        structlog.reset_defaults()


def test_each_call_is_a_line_at_level_debug_and_a_refused_one_at_info(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    with _log_lines(capsys, "debug") as answered:
        address = start(lambda request: request if request == b"ok" else _raises(errors.too_late())(request))
        with client.channel(address, name="echo") as channel, request_id.bind("req-9"):
            _method(channel)(b"ok")
            with pytest.raises(Refused):
                _method(channel)(b"no")
        done, refused = answered(2)

    assert (done["level"], done["method"], done["code"]) == ("debug", METHOD, "OK")
    assert done["request_id"] == "req-9"
    assert "reason" not in done
    assert done["duration_ms"] >= 0
    assert done["peer"].startswith("ipv4:127.0.0.1:")
    assert (refused["level"], refused["code"], refused["reason"]) == ("info", "UNAVAILABLE", "DB_UNAVAILABLE")


def test_a_slow_call_is_a_line_at_level_info_that_names_the_calls_it_made(
    start: Start, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "SLOW_SECONDS", -1)  # each call is slow
    with _log_lines(capsys, "info") as answered:
        refusing = start(_raises(errors.not_found("INVOICE_NOT_FOUND", "no such invoice")))
        inner = client.channel(refusing, name="inner")

        def behave(request: bytes) -> bytes:
            for _ in range(made_calls.NAMED_AT_MOST + 2):
                with suppress(Refused):
                    _method(inner)(request)
            return request

        address = start(behave)
        with inner, client.channel(address, name="outer") as channel:
            _method(channel)(b"ok")
        *_, outer = answered(made_calls.NAMED_AT_MOST + 3)

    assert outer["code"] == "OK"
    assert len(outer["calls"]) == made_calls.NAMED_AT_MOST
    assert outer["more_calls"] == 2
    first = outer["calls"][0]
    assert first.pop("duration_ms") >= 0
    assert first == {"service": "inner", "method": METHOD, "code": "NOT_FOUND", "reason": "INVOICE_NOT_FOUND"}


# -- load, health, reflection, stop


def test_calls_beyond_the_limit_are_refused_at_once_as_temporary(start: Start) -> None:
    release, begun = threading.Event(), threading.Event()

    def behave(request: bytes) -> bytes:
        begun.set()
        release.wait(10)
        return request

    address = start(behave, max_concurrent_calls=1)
    with client.channel(address, name="echo") as channel, futures.ThreadPoolExecutor() as threads:
        echo = _method(channel)
        kept = threads.submit(echo, b"kept")
        assert begun.wait(5)

        with pytest.raises(Refused, match="DB_UNAVAILABLE"):
            echo(b"one too many")

        release.set()
        assert kept.result() == b"kept"
        wait_until(lambda: not _refuses(echo), "an answer", timeout_seconds=30)


def _refuses(echo: Callable[..., bytes]) -> bool:
    try:
        return echo(b"again") != b"again"
    except Refused:
        return True


def test_health_answers_while_all_threads_are_busy(start: Start) -> None:
    release, begun = threading.Event(), threading.Event()

    def behave(request: bytes) -> bytes:
        begun.set()
        release.wait(10)
        return request

    address = start(behave, threads=1)
    with client.channel(address, name="echo") as channel, futures.ThreadPoolExecutor() as threads:
        busy = threads.submit(_method(channel), b"busy")
        assert begun.wait(5)
        for name in ("", "test.Echo"):
            answer = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service=name), timeout=10
            )
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        release.set()
        busy.result()


def test_a_graceful_stop_finishes_what_is_in_work_and_takes_nothing_new(start: Start) -> None:
    release, begun = threading.Event(), threading.Event()

    def behave(request: bytes) -> bytes:
        begun.set()
        release.wait(10)
        return request

    address = start(behave)
    running: server.RpcServer = start.servers[0]  # type: ignore[attr-defined]
    with client.channel(address, name="echo") as channel, futures.ThreadPoolExecutor() as threads:
        watched = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert next(watched).status == health_pb2.HealthCheckResponse.SERVING
        in_work = threads.submit(_method(channel), b"in work")
        assert begun.wait(5)

        stopped = running.stop(10)
        assert next(watched).status == health_pb2.HealthCheckResponse.NOT_SERVING
        with client.channel(address, name="echo") as late, pytest.raises(Refused):
            _method(late)(b"late")
        assert not stopped.is_set()
        release.set()

        assert in_work.result(5) == b"in work"
        watched.cancel()
        assert stopped.wait(5)


def test_reflection_lists_the_services(start: Start) -> None:
    with grpc.insecure_channel(start()) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        answer = next(stub.ServerReflectionInfo(iter([asked])))

    names = {each.name for each in answer.list_services_response.service}
    assert {"test.Echo", "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} <= names


def test_a_port_that_is_taken_is_an_error(start: Start) -> None:
    port = int(start().rpartition(":")[2])
    with pytest.raises(RuntimeError):
        start(port=port)


# -- status


def _health(name: str, *, healthy: bool, detail: str = "") -> Any:
    class Told:
        def health(self) -> WorkerHealth:
            return WorkerHealth(name, healthy=healthy, last_run_at=None, detail=detail)

    return Told()


def _status_of(**told: Any) -> status_pb2.GetStatusResponse:
    process: dict[str, Any] = {
        "service": "orders",
        "version": "1.2",
        "started_at": SystemClock().now(),
        "workers": [],
        "database": lambda: None,
        "nats": lambda: True,
        "gauges": list,
    }
    running = server.RpcServer()
    status.add_to(running, status.Process(**{**process, **told}))
    port = running.add_insecure_port("127.0.0.1:0")
    running.start()
    try:
        with client.channel(f"127.0.0.1:{port}", name="orders") as channel:
            return status_pb2_grpc.StatusServiceStub(channel).GetStatus(status_pb2.GetStatusRequest())
    finally:
        running.stop(0).wait(5)


def test_the_status_tells_everything() -> None:
    loop = Loop("relay", lambda: False, every_seconds=60)
    answer = _status_of(
        workers=[loop, _health("expiry", healthy=False, detail="stuck")],
        nats=lambda: False,
        gauges=lambda: [
            status.Gauge("parked", 3, "Events"),
            status.Gauge("oldest_due_seconds", 1.5, "Age"),
            status.Gauge("places", 7, "One of many, for Prometheus", ("method", "card")),
        ],
    )

    assert (answer.service, answer.version) == ("orders", "1.2")
    assert answer.started_at.seconds > 0
    assert (answer.database_ok, answer.nats_ok) == (True, False)
    assert [(each.name, each.healthy, each.detail) for each in answer.workers] == [
        ("relay", True, ""),
        ("expiry", False, "stuck"),
    ]
    assert not answer.workers[0].HasField("last_run_at")
    assert [(each.name, each.value, each.unit) for each in answer.gauges] == [
        ("parked", 3, "count"),
        ("oldest_due_seconds", 1.5, "seconds"),
    ]


def test_the_status_comes_while_the_database_hangs() -> None:
    release = threading.Event()

    answer = _status_of(database=lambda: release.wait(600))  # longer than a test may last
    release.set()

    assert answer.database_ok is False


def test_gauges_that_fail_do_not_hide_the_rest() -> None:
    def fail() -> list[status.Gauge]:
        raise DatabaseUnavailable("away")

    answer = _status_of(gauges=fail)

    assert answer.service == "orders"
    assert answer.database_ok is True
    assert list(answer.gauges) == []


def test_an_asyncio_channel_has_the_types_and_answers_of_the_generated_stub() -> None:
    running = server.RpcServer()
    status.add_to(
        running,
        status.Process(
            service="orders",
            version="1",
            started_at=SystemClock().now(),
            workers=[],
            database=lambda: None,
            nats=lambda: True,
            gauges=list,
        ),
    )
    port = running.add_insecure_port("127.0.0.1:0")
    running.start()

    async def ask() -> status_pb2.GetStatusResponse:
        async with client.aio_channel(f"127.0.0.1:{port}", name="orders") as channel:
            stub = status_pb2_grpc.StatusServiceStub(channel)
            return await stub.GetStatus(status_pb2.GetStatusRequest())

    assert asyncio.run(ask()).service == "orders"
    running.stop(0).wait(5)

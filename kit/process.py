"""The main program of every service: `python -m services.invoices run | serve | work | migrate | settings`.

    run       calls and workers in one process
    serve     calls only
    work      workers only; health and status are served, so that it can be watched like the others
    migrate   brings the service's database to the newest version, then ends
    settings  lists every setting with its default and meaning, then ends

`--processes N` starts N processes that share the port (SO_REUSEPORT); of `run`, the first one works, all
serve; each has a port of its own for its metrics. They are started anew, not forked: gRPC doesn't survive a
fork. Exit codes: 0 stopped as asked, 1 failed (the supervisor starts it again), 2 settings to correct.

Health says NOT_SERVING while one of its workers has stopped doing its work; the name `alive` answers SERVING all the
same, for whoever restarts what does not answer.

SIGTERM and SIGINT stop gracefully within `stop_seconds`: health turns NOT_SERVING, new calls are refused,
calls and workers in progress end. A second signal ends the process at once.
"""

import argparse
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import grpc

from kit import config, log, metrics, tracing
from kit.clock import SystemClock, monotonic_seconds
from kit.rpc import status, tls
from kit.rpc.callers import Callers
from kit.rpc.server import Options, RpcServer
from kit.worker import Fatal, Outage, Stop, Worker, WorkerDied, WorkerHealth, run_all

if TYPE_CHECKING:  # costly to import, and the service brings those it uses
    from kit.bus import Bus
    from kit.db import Database

FAILED: Final = 1
DATABASE_RETRY_SECONDS: Final = 0.25
READINESS_SECONDS: Final = 0.5
PARENT_CHECK_SECONDS: Final = 1.0
# What a process may take beyond `stop_seconds` before its parent kills it.
KILL_AFTER_SECONDS: Final = 15
# Longer than the process lives after giving up; without it gRPC would call a cut-off call finished.
CUT_AFTER_SECONDS: Final = 60

GARBAGE_OBJECTS: Final = 20_000
"""So many new ones before the collector looks at them. Nearly all go by themselves; 700 is Python's own for programs
that have less than this under way."""

_log = log.get_logger()


class Wired(Protocol):
    """What `wire` returns: the service's `Deps`. One that has a `bus` gets it started and closed."""

    @property
    def db(self) -> "Database": ...


S = TypeVar("S", bound=config.ServiceSettings)
D = TypeVar("D", bound=Wired)


@dataclass(frozen=True, kw_only=True)
class Service(Generic[S, D]):
    """What makes one service different from the next.

    name      as in `services.<name>`, in its variables and in the log
    settings  its settings class
    wire      puts its parts together; connects nowhere
    add_to    registers its servicers
    callers   who may call what of them, once TLS tells who calls
    workers   loops that do its work: relay, consumers, timers; any number of processes may run them
    companions  loops that every process of it needs besides: a snapshot kept fresh in memory, the relay of what
              that very process commits
    gauges    numbers worth watching, for `fiatgate status`; may ask the database
    """

    name: str
    settings: type[S]
    wire: Callable[[S], D]
    add_to: Callable[[grpc.Server, D], None]
    callers: Callers
    workers: Callable[[D], Sequence[Worker]] = lambda deps: ()
    companions: Callable[[D], Sequence[Worker]] = lambda deps: ()
    gauges: Callable[[D], Sequence[status.Gauge]] = lambda deps: ()


def main(service: Service[Any, Any], arguments: Sequence[str] | None = None) -> None:
    """Runs the subcommand and ends the process with its exit code."""
    given = _parser(service).parse_args(arguments)
    if given.mode == "settings":
        sys.stdout.write(_settings_table(service))
        sys.exit(0)
    settings = config.load(service.settings)
    log.configure(service.name, settings)
    if given.mode == "migrate":
        code = _migrate(service, settings)
    elif given.processes > 1 and not given.parent:
        code = _supervise(settings, given.mode, given.processes)
    else:
        code = _Process(service, settings, given).run()
        # Everything is closed. A thread stuck in a call or a name look-up would keep the interpreter from ending.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _parser(service: Service[Any, Any]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m services.{service.name}",
        description=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("mode", choices=("run", "serve", "work", "migrate", "settings"))
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="how many share the port")
    # Of a process started by --processes: its parent, at whose death it ends too.
    parser.add_argument("--parent", type=int, default=0, help=argparse.SUPPRESS)
    return parser


def _settings_table(service: Service[Any, Any]) -> str:
    rows = config.describe(service.settings)
    return "".join(f"{' or '.join(row.variables)}\n    {row.default or '-'}: {row.meaning}\n" for row in rows)


def _migrate(service: Service[Any, Any], settings: config.ServiceSettings) -> int:
    from kit import migrate  # noqa: PLC0415  Alembic takes long to import and only this needs it

    started = monotonic_seconds()
    stop = Stop()
    _stop_on_signals(stop)

    def upgrade() -> None:
        migrate.upgrade(service.name, settings.database_url)

    if not _once_the_database_answers(upgrade, settings, stop):
        return FAILED
    _log.info("migrated", seconds=round(monotonic_seconds() - started, 2))
    return 0


def _once_the_database_answers(do: Callable[[], None], settings: config.ServiceSettings, stop: Stop) -> bool:
    """Does it, waiting for the database `start_seconds` at most; false when that, or the stop, came first."""
    give_up_at = monotonic_seconds() + settings.start_seconds
    told = ""
    while not stop.is_set():
        try:
            do()
            return True
        except Outage as outage:
            if monotonic_seconds() >= give_up_at:
                _log.error("database does not answer, giving up", error=str(outage))
                return False
            if told != (told := str(outage)):
                _log.warning("waiting for the database", error=told, at_most_seconds=settings.start_seconds)
        stop.wait(DATABASE_RETRY_SECONDS)
    return False


def settle_memory() -> None:
    """Take what start-up made out of the garbage collector's sight: it lives as long as the process.

    Walking over those half a million objects again and again was a fifth of the delivery engine's time; over what is
    only just under way, another fifteenth, of which rarer rounds spare most.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS)


class _Process:
    """One process of a service."""

    def __init__(
        self, service: Service[Any, Any], settings: config.ServiceSettings, given: argparse.Namespace
    ) -> None:
        self._service = service
        self._settings = settings
        self._mode: str = given.mode
        self._parent: int = given.parent
        self._processes: int = given.processes
        self._started_at = SystemClock().now()
        self._started_seconds = monotonic_seconds()

    def run(self) -> int:
        stop = Stop()
        _stop_on_signals(stop)
        tracing.start(self._service.name, self._settings)
        deps = self._service.wire(self._settings)
        from kit import schema  # noqa: PLC0415  brings SQLAlchemy, which the service has brought by now

        def usable() -> None:
            deps.db.ping()
            if newest := schema.waits_for(self._service.name, deps.db):
                _log.warning("schema behind", newest=newest)

        if not _once_the_database_answers(usable, self._settings, stop):
            return 0 if stop.is_set() else FAILED
        bus: Bus | None = getattr(deps, "bus", None)
        workers = self._workers(deps, bus)
        told = self._told(deps, bus, workers)
        server = self._server(deps, told)
        try:
            server.listen(self._settings.bind)
            if self._settings.health_bind:
                server.listen_for_probes(self._settings.health_bind)
        except RuntimeError as error:
            _log.error("cannot listen", bind=self._settings.bind, error=str(error))
            return FAILED
        if bus is not None:
            bus.start()
        server.start()
        tls.show_expiry(self._settings.identity)
        own = (metrics.Build(self._service.name), status.StatusCollector(told))
        metrics.Exporter(self._settings.metrics_bind, processes=self._processes, own=own).start()
        settle_memory()
        _log.info("started", mode=self._mode, bind=self._settings.bind, workers=[w.name for w in workers])
        return self._until_stopped(stop, server, workers, deps, bus)

    def _workers(self, deps: Any, bus: "Bus | None") -> list[Worker]:
        workers = list(self._service.companions(deps))
        if self._mode != "serve":
            workers += self._service.workers(deps)
        if bus is not None and bus not in workers:
            workers.append(bus)  # ends the process when the connection is given up for good
        if self._parent:
            workers.append(_Orphaned(self._parent))
        return workers

    def _told(self, deps: Any, bus: "Bus | None", workers: Sequence[Worker]) -> status.Process:
        return status.Process(
            service=self._service.name,
            version=metadata.version("fiatgate"),
            started_at=self._started_at,
            workers=workers,
            database=deps.db.ping,
            nats=lambda: bus is None or bus.connected,
            gauges=lambda: self._service.gauges(deps),
            pool=deps.db.pool_use,
        )

    def _server(self, deps: Any, told: status.Process) -> RpcServer:
        settings = self._settings
        server = RpcServer(
            Options(
                threads=settings.threads,
                max_concurrent_calls=settings.max_concurrent_calls,
                call_seconds=settings.call_seconds,
                reuse_port=bool(self._parent),
                identity=settings.identity,
                callers=self._service.callers,
            )
        )
        if self._mode != "work":
            self._service.add_to(server, deps)
        status.add_to(server, told)
        return server

    def _until_stopped(
        self, stop: Stop, server: RpcServer, workers: Sequence[Worker], deps: Any, bus: "Bus | None"
    ) -> int:
        draining, drained, give_up_at = threading.Event(), threading.Event(), 0.0

        def drain() -> None:
            nonlocal drained, give_up_at
            give_up_at = monotonic_seconds() + self._settings.stop_seconds
            drained = server.stop(self._settings.stop_seconds + CUT_AFTER_SECONDS)
            draining.set()

        stop.on_set(drain)
        code = 0
        try:
            run_all(
                [*workers, _Readiness(server, workers)], stop, grace_seconds=self._settings.stop_seconds
            )
        except WorkerDied as died:
            _log.error("worker died", error=str(died), exc_info=died.__cause__)
            code = FAILED
        # The stop has come, but the thread that brought it may not have got to `drain` yet.
        draining.wait(KILL_AFTER_SECONDS)
        if not drained.wait(max(0.0, give_up_at - monotonic_seconds())):
            _log.error("calls did not end in time", stop_seconds=self._settings.stop_seconds)
            code = FAILED
        if bus is not None:
            bus.close()
        deps.db.dispose()
        tracing.stop()
        _log.info("stopped", code=code)
        return code


class _Readiness:
    """Health follows the workers: NOT_SERVING while one of them has stopped doing its work."""

    name = "readiness"

    def __init__(self, server: RpcServer, workers: Sequence[Worker]) -> None:
        self._server = server
        self._workers = workers
        self._ill: list[str] = []

    def run(self, stop: Stop) -> None:
        while not stop.wait(READINESS_SECONDS):
            ill = [health for worker in self._workers if not (health := worker.health()).healthy]
            names = [health.name for health in ill]
            if names != self._ill:
                self._ill = names
                self._server.set_serving(not ill)
                if ill:
                    _log.warning("not ready", workers={health.name: health.detail for health in ill})
                else:
                    _log.info("ready again")

    def health(self) -> WorkerHealth:
        return WorkerHealth(self.name, healthy=True, last_run_at=None)


class _Orphaned:
    """Ends the process when its parent has died without a word, so that nobody serves on behind the next
    one.
    """

    name = "parent"

    def __init__(self, parent: int) -> None:
        self._parent = parent

    def run(self, stop: Stop) -> None:
        while not stop.wait(PARENT_CHECK_SECONDS):
            if os.getppid() != self._parent:
                raise Fatal("the parent process is gone")

    def health(self) -> WorkerHealth:
        return WorkerHealth(self.name, healthy=True, last_run_at=SystemClock().now())


def _stop_on_signals(stop: Stop) -> None:
    """Sets `stop` at the first SIGTERM or SIGINT; the second one ends the process at once."""
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(128 + number)
        asked = True
        # Not here: the handler may have interrupted this very thread while it held the event's lock.
        threading.Thread(target=stop.set, name="stop", daemon=True).start()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)


def _supervise(settings: config.ServiceSettings, mode: str, count: int) -> int:
    """Starts `count` processes and waits; when one ends by itself, the others are stopped and this one
    fails.
    """
    stop = Stop()
    _stop_on_signals(stop)
    others = "serve" if mode == "run" else mode
    children = [_start_child(mode if number == 0 else others, count) for number in range(count)]
    while not stop.wait(0.2) and all(child.poll() is None for child in children):
        pass
    asked = stop.is_set()
    for child in children:
        child.terminate()
    give_up_at = monotonic_seconds() + settings.stop_seconds + KILL_AFTER_SECONDS
    for child in children:
        try:
            child.wait(max(0.0, give_up_at - monotonic_seconds()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    codes = [child.returncode for child in children]
    if not asked:
        _log.error("a process ended by itself", codes=codes)
    return 0 if asked and not any(codes) else FAILED


def _start_child(mode: str, count: int) -> subprocess.Popen[bytes]:
    interpreter_and_module = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    command = [
        sys.executable,
        *interpreter_and_module,
        mode,
        "--processes",
        str(count),
        "--parent",
        str(os.getpid()),
    ]
    # A group of its own: Ctrl-C reaches only the parent, which then stops the children once.
    return subprocess.Popen(command, process_group=0)  # noqa: S603

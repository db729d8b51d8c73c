"""One process: it assembles its parts, starts, watches and stops them."""

import threading
from collections.abc import Sequence
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from kit.audit.chaining import Chaining
from kit.base import actors
from kit.base.actors import Actor
from kit.base.clock import SystemClock, monotonic_seconds
from kit.base.config.processes import FourEyesSettings, ServiceSettings
from kit.base.config.variables import EXIT_CODE, variables_of
from kit.observe import metrics, tracing
from kit.observe.log import get_logger
from kit.process.memory import settle_memory
from kit.process.service import Service
from kit.process.stopping import CUT_AFTER_SECONDS, DRAINING_SECONDS, FAILED, stop_on_signals
from kit.process.waiting import once_the_database_answers
from kit.rpc import audit, status, tls
from kit.rpc.act_heads import ActHeads
from kit.rpc.actor_keys import ActorKeys
from kit.rpc.actor_tokens import Keys, NoKeys
from kit.rpc.errors import Refused
from kit.rpc.permissions import Checks
from kit.rpc.server import Options, RpcServer
from kit.work.worker import Stop, Worker, WorkerDied, WorkerHealth, run_all

if TYPE_CHECKING:  # costly to import; a service that uses it imports it anyway
    from kit.db.database import Database
    from kit.events.bus.connection import Bus

READINESS_SECONDS: Final = 0.5

_log = get_logger()


class Process:
    """One process of a service: `run`, `serve` or `work`."""

    def __init__(self, service: Service[Any, Any], settings: ServiceSettings, *, mode: str) -> None:
        self._service = service
        self._settings = settings
        self._mode = mode
        self._started_at = SystemClock().now()
        self._fetched_keys: ActorKeys | None = None

    def run(self) -> int:
        """Runs until the stop, or until a part that it can't do without ends; returns the exit code."""
        stop = Stop()
        stop_on_signals(stop)
        tracing.start(self._service.name, self._settings)
        actors.bind_process(Actor(kind="process", name=self._service.name))
        deps = self._service.wire(self._settings)
        from kit.db import schema  # noqa: PLC0415  imports SQLAlchemy, which the service has imported by now

        def usable() -> None:
            deps.db.ping()
            if newest := schema.waits_for(self._service.name, deps.db):
                _log.warning("schema_outdated", newest=newest)

        try:
            if not once_the_database_answers(usable, self._settings, stop):
                return 0 if stop.is_set() else FAILED
        except schema.WrongDatabase as error:
            setting = variables_of(type(self._settings), "database_url")[0]
            _log.error("database_mismatched", setting=setting, error=str(error))
            return EXIT_CODE
        bus: Bus | None = getattr(deps, "bus", None)
        server = self._server(deps)
        workers = self._workers(deps, bus)
        reported = self._reported(deps, bus, workers, server)
        status.add_to(server, reported)
        try:
            server.listen(self._settings.bind)
            if self._settings.health_bind:
                server.listen_for_probes(self._settings.health_bind)
        except RuntimeError as error:
            _log.error("listen_failed", bind=self._settings.bind, error=str(error))
            return FAILED
        if bus is not None:
            bus.start()
        server.start()
        tls.show_expiry(self._settings.identity)
        own = (metrics.Build(self._service.name), status.StatusCollector(reported))
        metrics.Exporter(self._settings.metrics_bind, own=own).start()
        settle_memory()
        _log.info(
            "process_started", mode=self._mode, bind=self._settings.bind, workers=[w.name for w in workers]
        )
        if isinstance(self._settings, FourEyesSettings) and not self._settings.four_eyes:
            _log.warning("four_eyes_disabled")
        return self._until_stopped(stop, server, workers, deps, bus)

    def _workers(self, deps: Any, bus: "Bus | None") -> list[Worker]:
        workers = [*self._service.companions(deps), *self._of_acts(deps)]
        if self._mode != "serve":
            workers += self._service.workers(deps)
        if self._fetched_keys is not None:
            workers.append(self._fetched_keys)
        if bus is not None and bus not in workers:
            workers.append(bus)  # ends the process when the connection is closed for good
        return workers

    def _of_acts(self, deps: Any) -> list[Worker]:
        """Returns the workers that chain this service's acts, and give the head of the chain to identity."""
        self._chaining = Chaining(deps.db, SystemClock())
        workers: list[Worker] = [self._chaining.loop()]
        address = self._settings.identity_address
        if address and self._service.actor_keys is None:  # identity keeps no heads of its own
            identity = self._settings.identity
            workers.append(ActHeads(deps.db, self._service.name, address, identity=identity))
        return workers

    def _gauges(self, deps: Any) -> list[status.Gauge]:
        waiting = self._chaining.waiting()
        return [
            *self._service.gauges(deps),
            status.Gauge("acts_unchained", waiting.acts, "Acts that are not in the chain yet"),
            status.Gauge(
                "oldest_unchained_act_seconds",
                waiting.oldest.total_seconds(),
                "Age of the oldest act that is not in the chain yet",
            ),
        ]

    def _reported(
        self, deps: Any, bus: "Bus | None", workers: Sequence[Worker], server: RpcServer
    ) -> status.Process:
        return status.Process(
            service=self._service.name,
            version=metadata.version("fiatgate"),
            started_at=self._started_at,
            workers=workers,
            database=deps.db.ping,
            nats=lambda: bus is None or bus.connected,
            gauges=partial(self._gauges, deps),
            pool=deps.db.pool_use,
            slots=server.slots_use,
            mode=self._settings.mode,
        )

    def _server(self, deps: Any) -> RpcServer:
        settings = self._settings
        server = RpcServer(
            Options(
                service=self._service.name,
                threads=settings.threads,
                max_concurrent_calls=settings.max_concurrent_calls,
                call_seconds=settings.call_seconds,
                identity=settings.identity,
                checks=Checks(keys=self._keys(deps), record=partial(_record_refusal, deps.db)),
                slots=(*self._service.slots, audit.SLOTS),
            )
        )
        if self._mode != "work":
            self._service.add_to(server, deps)
            audit.add_to(server, deps.db, self._service.name)
        return server

    def _keys(self, deps: Any) -> Keys:
        settings = self._settings
        if self._service.actor_keys is not None:
            return self._service.actor_keys(deps)
        if not settings.identity_address:
            return NoKeys()
        self._fetched_keys = ActorKeys(settings.identity_address, identity=settings.identity)
        return self._fetched_keys

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
            run_all([*workers, _Readiness(server, workers)], stop, grace_seconds=self._settings.stop_seconds)
        except WorkerDied as died:
            _log.error("worker_died", error=str(died), exc_info=died.__cause__)
            code = FAILED
        # The stop has come, but its thread may not have reached `drain` yet.
        draining.wait(DRAINING_SECONDS)
        if not drained.wait(max(0.0, give_up_at - monotonic_seconds())):
            _log.error("calls_aborted", stop_seconds=self._settings.stop_seconds)
            code = FAILED
        if bus is not None:
            bus.close()
        deps.db.dispose()
        tracing.stop()
        _log.info("process_stopped", code=code)
        return code


def _record_refusal(db: "Database", actor: Actor, method: str, refused: Refused) -> None:
    """Writes the refused attempt as an act. Without the database it is in the log only; the answer stays a refusal."""
    from kit.audit import acts  # noqa: PLC0415  imports SQLAlchemy, which the service has imported by now

    try:
        acts.record_refusal(
            db,
            "call.refused",
            refused.reason,
            object=f"call:{method}",
            actor=actor,
            note=", ".join(f"{name}: {value}" for name, value in refused.metadata.items()),
        )
    except Exception as error:  # noqa: BLE001  the caller must get the refusal, and no other error in its place
        _log.warning("refusal_not_recorded", method=method, actor=str(actor), error=str(error))


class _Readiness:
    """Lets health follow the workers: NOT_SERVING while one of them has stopped working."""

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
                    _log.warning("readiness_lost", workers={health.name: health.detail for health in ill})
                else:
                    _log.info("readiness_regained")

    def health(self) -> WorkerHealth:
        return WorkerHealth(self.name, healthy=True, last_run_at=None)

"""fiatgate.status.v1.StatusService: the health of a process, for `fiatgate status`, consoles and Prometheus.

Every process serves it, `work` processes too. All its values come from callables, so it imports no service.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, Literal, TypeVar

import grpc
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fiatgate.status.v1 import status_pb2, status_pb2_grpc
from kit.base.proto import timestamp_from
from kit.observe.log import get_logger
from kit.observe.metrics import PREFIX
from kit.rpc.slots import Use
from kit.work.worker import Worker, WorkerHealth

# The proto promises an answer within a second, also while PostgreSQL hangs.
PROBE_SECONDS: Final = 0.7
# Prometheus gives a scrape 10 s, and numbers that come late are better than none.
SCRAPE_SECONDS: Final = 3.0

T = TypeVar("T")

_log = get_logger()


@dataclass(frozen=True)
class Gauge:
    """A number worth watching, such as outbox_unpublished, parked, webhooks_due, oldest_due_seconds.

    `label` is the name and value of the label that distinguishes it from others of its name. Gauges with a label are
    for Prometheus only. The first gauge of a name gives the meaning and the label's name of all. `step` is what an
    operator does about it while it is above zero.
    """

    name: str
    value: float
    meaning: str
    label: tuple[str, str] = ("", "")
    step: str = ""

    @property
    def unit(self) -> Literal["count", "seconds"]:
        return "seconds" if self.name.endswith("_seconds") else "count"


@dataclass(frozen=True, kw_only=True)
class Process:
    """The sources of the status. `database` raises when it doesn't answer. `nats` returns whether it's connected.
    `gauges` may query the database and is left out while that doesn't answer. `pool` is
    `kit.db.database.Database.pool_use`, `slots` is `kit.rpc.server.RpcServer.slots_use`.
    """

    service: str
    version: str
    started_at: datetime
    workers: Sequence[Worker]
    database: Callable[[], None]
    nats: Callable[[], bool]
    gauges: Callable[[], Sequence[Gauge]]
    pool: Callable[[], Mapping[str, int]] = dict
    slots: Callable[[], Mapping[str, Use]] = dict
    mode: str = "live"


class _Probe(Generic[T]):
    """Runs one function in its own thread and waits for it briefly; never a second time while the first hangs."""

    def __init__(self, name: str, query: Callable[[], T]) -> None:
        self._query = query
        self._thread = futures.ThreadPoolExecutor(1, thread_name_prefix=f"probe-{name}")
        self._pending: futures.Future[T] | None = None

    def answer(self, seconds: float = PROBE_SECONDS / 2) -> T:
        """Returns or raises the function's result; TimeoutError while it still runs."""
        if self._pending is None or self._pending.done():
            self._pending = self._thread.submit(self._query)
        return self._pending.result(seconds)


class StatusServicer(status_pb2_grpc.StatusServiceServicer):
    def __init__(self, process: Process) -> None:
        self._process = process
        self._database = _Probe("database", process.database)
        self._gauges = _Probe("gauges", process.gauges)

    def GetStatus(  # noqa: N802  named by the proto
        self, request: status_pb2.GetStatusRequest, context: grpc.ServicerContext
    ) -> status_pb2.GetStatusResponse:
        process = self._process
        database_ok = self._database_ok()
        return status_pb2.GetStatusResponse(
            service=process.service,
            mode=process.mode,
            version=process.version,
            started_at=timestamp_from(process.started_at),
            database_ok=database_ok,
            nats_ok=process.nats(),
            workers=[_health_to_message(worker.health()) for worker in process.workers],
            gauges=[*self._slots_messages(), *(self._gauge_messages() if database_ok else [])],
        )

    def _database_ok(self) -> bool:
        try:
            self._database.answer()
        except Exception:  # noqa: BLE001  any error means that the database is not well
            return False
        return True

    def _slots_messages(self) -> list[status_pb2.Gauge]:
        """Returns gauges only for the kinds of calls that wait or were refused."""
        return [
            status_pb2.Gauge(name=f"calls_{state}_{name}", value=value, unit="count")
            for name, use in self._process.slots().items()
            for state, value in (("waiting", use.waiting), ("refused", use.refused))
            if value
        ]

    def _gauge_messages(self) -> list[status_pb2.Gauge]:
        try:
            gauges = self._gauges.answer()
        except Exception as error:  # noqa: BLE001  must not hide the rest of the answer
            _log.warning("gauges_failed", error=repr(error))
            return []
        return [
            status_pb2.Gauge(
                name=each.name, value=each.value, unit=each.unit, step=each.step, meaning=each.meaning
            )
            for each in gauges
            if each.label == ("", "")
        ]


class StatusCollector(Collector):
    """The status for a scrape. All processes of a service read `gauges` from the same database and each reports them:
    take their maximum, not their sum.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._database = _Probe("scrape-database", process.database)
        self._gauges = _Probe("scrape-gauges", process.gauges)

    def collect(self) -> Iterator[Metric]:
        process = self._process
        database_up = self._database_up()
        yield self._family("database_up", "Whether its database answers", {"": database_up})
        yield self._family("nats_up", "Whether it is connected to NATS", {"": process.nats()})
        health = {each.name: each.healthy for each in (worker.health() for worker in process.workers)}
        yield self._family("worker_healthy", "Whether a loop does its work", health, label="worker")
        pool = process.pool()
        yield self._family("db_pool_connections", "Database connections of this process", pool, label="state")
        slots = process.slots()
        working = {name: use.working for name, use in slots.items()}
        yield self._family("rpc_slots_working", "Calls in work, by kind", working, label="slots")
        waiting = {name: use.waiting for name, use in slots.items()}
        yield self._family("rpc_slots_waiting", "Calls that wait, by kind", waiting, label="slots")
        series: dict[str, list[Gauge]] = {}
        for gauge in self._numbers() if database_up else ():
            series.setdefault(gauge.name, []).append(gauge)
        for name, gauges in series.items():
            values = {gauge.label[1]: gauge.value for gauge in gauges}
            yield self._family(name, gauges[0].meaning, values, label=gauges[0].label[0])

    def _family(self, name: str, meaning: str, values: Mapping[str, float], *, label: str = "") -> Metric:
        """Returns a metric with one series per value of `label`. Without a label, `values` has one entry, under ""."""
        family = GaugeMetricFamily(
            PREFIX + name, meaning, labels=["service", label] if label else ["service"]
        )
        for label_value, value in values.items():
            family.add_metric(
                [self._process.service, label_value] if label else [self._process.service], value
            )
        return family

    def _database_up(self) -> bool:
        try:
            self._database.answer(SCRAPE_SECONDS)
        except Exception:  # noqa: BLE001  any error means that the database is not well
            return False
        return True

    def _numbers(self) -> Sequence[Gauge]:
        try:
            return self._gauges.answer(SCRAPE_SECONDS)
        except Exception as error:  # noqa: BLE001  must not hide the rest of the answer
            _log.warning("gauges_failed", error=repr(error))
            return ()


def _health_to_message(health: WorkerHealth) -> status_pb2.WorkerStatus:
    return status_pb2.WorkerStatus(
        name=health.name,
        last_run_at=timestamp_from(health.last_run_at),
        healthy=health.healthy,
        detail=health.detail,
    )


def add_to(server: grpc.Server, process: Process) -> None:
    status_pb2_grpc.add_StatusServiceServicer_to_server(StatusServicer(process), server)

"""The metrics of a process, for Prometheus to fetch: one registry, and the port that shows it.

A metric is made once, at module level, by `counter`, `gauge` or `histogram`. Counting costs a microsecond or two
(tests/kit/test_metrics.py), so it is always on and only the port can be off. Values that can be read at any time
(queues, loops, the pool) are not counted but read at the scrape: `kit.rpc.status`.

Workers of the gateway share a port of calls but not their metrics: each has its own port, the first free one from the
configured one on. So a scrape shows one process, no file is shared between processes, and the counters of a process end
with it, as Prometheus' rate() expects.
"""

import errno
import threading
from collections.abc import Iterator, Sequence
from http.server import ThreadingHTTPServer
from importlib import metadata
from platform import python_version
from socket import AF_INET, AF_INET6
from socketserver import TCPServer
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import MetricsHandler
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kit.observe.log import get_logger

PREFIX: Final = "fiatgate_"
SECONDS_BUCKETS: Final = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
REQUEST_SECONDS: Final = 10.0
AGAIN_SECONDS: Final = 1.0

_log = get_logger()

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series per counter that no query of ours reads
REGISTRY: Final = CollectorRegistry()
ProcessCollector(registry=REGISTRY)  # CPU seconds, memory, open files: process_*


def counter(name: str, meaning: str, labels: Sequence[str] = ()) -> Counter:
    """Returns a metric `fiatgate_<name>_total` that only grows. Labels must have few values: each is a series."""
    return Counter(PREFIX + name, meaning, labels, registry=REGISTRY)


def gauge(name: str, meaning: str, labels: Sequence[str] = ()) -> Gauge:
    """Returns a metric `fiatgate_<name>` that is set; 0 until then."""
    return Gauge(PREFIX + name, meaning, labels, registry=REGISTRY)


def histogram(name: str, meaning: str, labels: Sequence[str] = ()) -> Histogram:
    """Returns a metric `fiatgate_<name>`, in seconds: a distribution of durations up to 10 s."""
    return Histogram(PREFIX + name, meaning, labels, registry=REGISTRY, buckets=SECONDS_BUCKETS)


UNEXPECTED_ERRORS: Final = counter(
    "unexpected_errors", "Bugs: each is one INTERNAL_ERROR with an error_id in the log"
)
CERTIFICATE_EXPIRES: Final = gauge(
    "tls_certificate_expires_timestamp_seconds", "When the certificate in use ends; 0 without TLS"
)


class Build(Collector):
    """The metric `fiatgate_build_info`: the process, its version, and its Python."""

    def __init__(self, service: str) -> None:
        self._labels = [service, metadata.version("fiatgate"), python_version()]

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            f"{PREFIX}build_info",
            "Always 1; the labels have the values",
            labels=["service", "version", "python"],
        )
        family.add_metric(self._labels, 1)
        yield family


class _Handler(MetricsHandler):
    timeout = REQUEST_SECONDS


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        self.address_family = AF_INET6 if ":" in host else AF_INET
        super().__init__((host, port), _Handler.factory(registry))

    def handle_error(self, request: object, client_address: object) -> None:
        _log.exception("scrape_failed")

    def server_bind(self) -> None:
        # HTTPServer's own queries DNS for our name, which is not used and may hang.
        TCPServer.server_bind(self)


class Exporter:
    """Answers scrapes (GET, any path) in threads of its own while it is open.

    bind       host:port; empty: no port
    processes  how many processes share the setting: this one takes the first free port from there on
    own        the metrics of this process, besides those of its modules

    A port that is taken stops nothing: the error is logged once and the port tried again every second.
    """

    def __init__(self, bind: str, *, processes: int = 1, own: Sequence[Collector] = ()) -> None:
        self._bind = bind
        self._processes = processes
        self._own = own
        self._closed = threading.Event()
        self._opening = threading.Lock()
        self._server: _Server | None = None
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)

    def start(self) -> None:
        if self._bind:
            for collector in self._own:
                REGISTRY.register(collector)
            self._thread.start()

    def close(self) -> None:
        with self._opening:
            self._closed.set()
        if self._server is not None:
            self._server.shutdown()
        if self._bind:
            self._thread.join()
            for collector in self._own:
                REGISTRY.unregister(collector)

    def _serve(self) -> None:
        is_logged = False
        while not self._closed.is_set():
            try:
                with self._opening:
                    if self._closed.is_set():
                        return
                    self._server = self._first_free()
            except OSError as error:
                if not is_logged:
                    _log.error("metrics_not_served", bind=self._bind, error=str(error))
                    is_logged = True
                self._closed.wait(AGAIN_SECONDS)
            else:
                with self._server:
                    self._server.serve_forever()
                return

    def _first_free(self) -> _Server:
        host, _, port = self._bind.rpartition(":")
        for number in range(self._processes):
            try:
                return _Server(host.strip("[]"), int(port) + number, REGISTRY)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
        last = f"-{int(port) + self._processes - 1}" if self._processes > 1 else ""
        raise OSError(errno.EADDRINUSE, f"{self._bind}{last} taken")

"""The main program of a service, as real processes: starting, serving, sharing a port, stopping, dying."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import closing, contextmanager
from pathlib import Path

import grpc
import psycopg2
import pytest
import requests
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

from deploy.local import waiting
from deploy.local.ports import free_ports
from fiatgate.status.v1 import status_pb2, status_pb2_grpc
from kit.db import migrate
from kit.rpc import client
from kit.rpc.errors import Refused
from tests.kit.sample_service import METHOD
from tests.support.collector import Collector
from tests.support.servers import PostgresServer
from tests.support.signing import SEAL_KEY

ROOT = Path(__file__).parents[2]


class Running:
    """A process of the sample service and the ways to ask it."""

    def __init__(self, arguments: list[str], environment: dict[str, str], address: str, log: Path) -> None:
        self.address = address
        self.metrics = ""
        self._log = log
        self.channel = client.channel(address, name="sample")
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.kit.sample_service", *arguments],
                cwd=ROOT,
                env=environment,
                stderr=stderr,
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    def wait_until_serving(self) -> None:
        def serving() -> bool:
            assert self.process.poll() is None, self.log
            return bool(self.health() == health_pb2.HealthCheckResponse.SERVING)

        wait_until(serving)

    def health(self, name: str = "") -> int | None:
        """What the standard health service says; None when nobody answers."""
        with grpc.insecure_channel(self.address) as channel:  # one of kit's would log each failure
            try:
                request = health_pb2.HealthCheckRequest(service=name)
                status: int = health_pb2_grpc.HealthStub(channel).Check(request, timeout=1).status
            except grpc.RpcError:
                return None
            return status

    def wait_until_sleeping(self) -> None:
        wait_until(lambda: ("sleeping", 1) in {(gauge.name, gauge.value) for gauge in self.status().gauges})

    def do(self, request: str = "") -> int:
        """The id of the process that answered."""
        method: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(METHOD)
        return int(method(request.encode()))

    def status(self) -> status_pb2.GetStatusResponse:
        return status_pb2_grpc.StatusServiceStub(self.channel).GetStatus(status_pb2.GetStatusRequest())

    def ends(self, seconds: float = 60) -> int:
        return self.process.wait(seconds)

    def stop(self) -> int:
        self.process.terminate()
        return self.ends()


Start = Callable[..., Running]


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    waiting.wait_until(condition, "it", timeout_seconds=seconds)


@contextmanager
def starting(database_url: Callable[[str], str], folder: Path) -> Iterator[Start]:
    started: list[Running] = []

    def make(*arguments: str, **settings: str) -> Running:
        address = settings.pop("bind", f"127.0.0.1:{free_ports(1)[0]}")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FIATGATE_")}
        own = {
            "sample_database_url": database_url("catalog"),
            "sample_address": address,
            "sample_seal_keys": SEAL_KEY,
            **settings,
        }
        environment |= {f"FIATGATE_{name.upper()}": value for name, value in own.items()}
        started.append(Running(list(arguments), environment, address, folder / f"{len(started)}.log"))
        return started[-1]

    try:
        yield make
    finally:
        for each in started:
            each.channel.close()
            if each.process.poll() is None:
                each.process.kill()
                each.ends()


@pytest.fixture
def start(database_url: Callable[[str], str], tmp_path: Path) -> Iterator[Start]:
    """Starts the sample service with arguments, and settings as keywords; it's gone after the test."""
    with starting(database_url, tmp_path) as make:
        yield make


@pytest.fixture(scope="module")
def running(
    database_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A process that several tests ask; none of them ends it."""
    with starting(database_url, tmp_path_factory.mktemp("running")) as make:
        metrics = f"127.0.0.1:{free_ports(1)[0]}"
        made: Running = make("run", metrics_bind=metrics)
        made.metrics = metrics
        made.wait_until_serving()
        yield made


def test_run_serves_and_works_and_says_so(running: Running) -> None:
    assert running.do() == running.process.pid
    wait_until(lambda: all(worker.HasField("last_run_at") for worker in running.status().workers))
    status = running.status()
    assert status.service == "sample"
    assert status.version
    assert status.database_ok
    assert status.nats_ok, "a service without NATS has nothing to miss there"
    assert {worker.name for worker in status.workers} == {"steps", "snapshot", "acts"}
    gauges = [gauge.name for gauge in status.gauges]
    assert gauges == ["sleeping", "acts_unchained", "oldest_unchained_act_seconds"]


def scraped(running: Running) -> dict[str, float]:
    text = requests.get(f"http://{running.metrics}/metrics", timeout=10).text
    families = list(text_string_to_metric_families(text))
    assert "process_resident_memory_bytes" in {family.name for family in families}
    return {
        " ".join([sample.name, *(value for _, value in sorted(sample.labels.items()))]): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_scrape_tells_of_calls_loops_pool_and_gauges(running: Running) -> None:
    running.do()
    before = scraped(running)
    running.do()
    with pytest.raises(Refused):
        running.do("sleep never")

    found = scraped(running)

    def more(name: str) -> float:
        return found[name] - before.get(name, 0)

    assert more(f"fiatgate_rpc_calls_total OK {METHOD} ") == 1
    assert more(f"fiatgate_rpc_calls_total INTERNAL {METHOD} INTERNAL_ERROR") == 1
    assert more(f"fiatgate_rpc_seconds_count {METHOD}") == 2
    assert found["fiatgate_worker_healthy sample steps"] == 1
    assert found["fiatgate_database_up sample"] == found["fiatgate_nats_up sample"] == 1
    assert found["fiatgate_db_pool_connections sample limit"] == 8
    assert found["fiatgate_sleeping sample"] == 1, "the call that failed left it so"


def test_serve_has_no_workers_but_keeps_its_snapshots_fresh_and_sends_its_last_spans(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")  # none before it stops
    with Collector() as collector:
        running = start("serve", traces_endpoint=collector.url)
        running.wait_until_serving()

        assert running.do() == running.process.pid
        assert [worker.name for worker in running.status().workers] == ["snapshot", "acts"]
        assert not collector.spans
        assert running.stop() == 0
        (call,) = [span for span in collector.spans if span.name == METHOD.removeprefix("/")]
        assert call.resource["service.instance.id"].rpartition(":")[2] == str(running.process.pid)


def test_work_serves_health_and_status_only(start: Start) -> None:
    running = start("work")
    running.wait_until_serving()

    assert {worker.name for worker in running.status().workers} == {"steps", "snapshot", "acts"}
    with pytest.raises(Refused, match="INTERNAL_ERROR"):
        running.do()


def test_health_follows_the_workers_and_alive_does_not(running: Running) -> None:
    serving, not_serving = (
        health_pb2.HealthCheckResponse.SERVING,
        health_pb2.HealthCheckResponse.NOT_SERVING,
    )
    running.do("freeze")
    wait_until(lambda: running.health() == not_serving, seconds=15)  # stale after 1 s
    wait_until(lambda: scraped(running)["fiatgate_worker_healthy sample steps"] == 0, seconds=15)
    assert running.health("alive") == serving, "starting it again would not help"
    assert '"workers": {"steps": "nothing done for' in running.log
    running.do("thaw")
    running.wait_until_serving()


def test_a_connection_to_nats_that_is_closed_for_good_ends_the_process(start: Start, nats_url: str) -> None:
    running = start("run", with_bus="on", nats_url=nats_url)
    running.wait_until_serving()
    wait_until(lambda: running.status().nats_ok)
    assert "bus" in {worker.name for worker in running.status().workers}

    running.do("close")

    # The process checks the connection every second: without it, it learns of no event.
    assert running.ends(20) == 1
    assert "the connection to NATS was closed for good" in running.log
    assert running.health() is None


def test_a_signal_lets_calls_in_work_end(start: Start) -> None:
    running = start("run")
    running.wait_until_serving()
    with futures.ThreadPoolExecutor() as threads:
        in_work = threads.submit(running.do, "sleep 1")
        running.wait_until_sleeping()

        running.process.terminate()

        assert in_work.result(30) == running.process.pid
    assert running.ends() == 0


def test_a_call_that_does_not_end_is_given_up_at_the_bound(start: Start) -> None:
    running = start("run", stop_seconds="1")
    running.wait_until_serving()
    with futures.ThreadPoolExecutor() as threads:
        stuck = threads.submit(running.do, "sleep 600")
        running.wait_until_sleeping()

        assert running.stop() == 1

        assert isinstance(stuck.exception(30), Refused)


def test_a_worker_that_does_not_end_is_given_up_at_the_bound(start: Start) -> None:
    running = start("run", stop_seconds="1")
    running.wait_until_serving()
    running.do("freeze")
    wait_until(lambda: running.health() == health_pb2.HealthCheckResponse.NOT_SERVING)

    running.stop()

    assert '"worker": "steps"' in running.log and "worker_abandoned" in running.log


def test_a_second_signal_ends_the_process_at_once(start: Start) -> None:
    running = start("run", stop_seconds="300")  # longer than `ends` waits
    running.wait_until_serving()
    with futures.ThreadPoolExecutor() as threads:
        stuck = threads.submit(running.do, "sleep 600")
        running.wait_until_sleeping()
        running.process.send_signal(signal.SIGINT)

        def refuses() -> bool:
            try:
                running.do("")
            except Refused:
                return True
            return False

        wait_until(refuses)
        running.process.terminate()

        assert running.ends() == 128 + signal.SIGTERM
        assert isinstance(stuck.exception(30), Refused)


def test_a_dead_worker_takes_the_process_down(start: Start) -> None:
    running = start("run", worker_dies="on")

    assert running.ends() == 1
    assert "worker steps ended by itself" in running.log


def test_a_port_that_is_taken_is_told(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        running = start("run", bind=f"127.0.0.1:{taken.getsockname()[1]}")

        assert running.ends() == 1
    assert "listen_failed" in running.log


def test_wrong_settings_end_it_with_code_2_and_all_of_them_told(start: Start) -> None:
    running = start("run", sample_database_url="nonsense", threads="0")

    assert running.ends() == 2
    assert "FIATGATE_SAMPLE_DATABASE_URL: expected postgresql://" in running.log
    assert "FIATGATE_THREADS" in running.log


def test_settings_lists_them_without_needing_any(start: Start) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FIATGATE_")}
    told = subprocess.run(
        [sys.executable, "-m", "tests.kit.sample_service", "settings"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "FIATGATE_SAMPLE_DATABASE_URL\n    required:" in told
    assert "FIATGATE_SAMPLE_THREADS or FIATGATE_THREADS\n    4:" in told


# -- the database at start


def test_a_database_that_stays_away_is_given_up(start: Start) -> None:
    closed = free_ports(1)[0]
    running = start(
        "run", sample_database_url=f"postgresql://u:hunter2@127.0.0.1:{closed}/d", start_seconds="1"
    )

    assert running.ends() == 1
    assert "database_awaited" in running.log
    assert "database_wait_failed" in running.log
    assert "hunter2" not in running.log


def test_a_database_that_comes_late_is_waited_for(start: Start, postgres: PostgresServer) -> None:
    postgres.stop()
    try:
        running = start("run")
        wait_until(lambda: "database_awaited" in running.log)
        assert running.process.poll() is None
    finally:
        postgres.start()

    running.wait_until_serving()
    assert running.status().database_ok


def test_a_stop_while_waiting_for_the_database_is_obeyed(start: Start) -> None:
    closed = free_ports(1)[0]
    running = start("run", sample_database_url=f"postgresql://u@127.0.0.1:{closed}/d")
    wait_until(lambda: "database_awaited" in running.log)

    assert running.stop() == 0


def test_migrate_needs_no_key_and_leaves_a_newer_schema_as_it_is(empty_url: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FIATGATE_")} | {
        "FIATGATE_IDENTITY_DATABASE_URL": empty_url,
    }

    def migrated() -> str:
        command = [sys.executable, "-m", "services.identity", "migrate"]
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stderr

    assert '"schema_migrated"' in migrated()
    assert migrate.is_current("identity", empty_url)
    with closing(psycopg2.connect(empty_url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("UPDATE alembic_version SET version_num = '9999'")
    assert "migration_skipped" in migrated()

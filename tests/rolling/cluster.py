"""All the pods of deploy/k8s/base on this machine, with what they need, and how one Deployment is rolled."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Self

from deploy.local import demo_people, demo_rates, seed
from deploy.local.home import Home
from deploy.local.plan import PREFIX
from deploy.local.ports import free_ports
from deploy.nats_rights import PROCESSES
from kit.base.services import SERVICES
from kit.db import migrate, schema
from tests.k8s import manifests
from tests.k8s.manifests import Manifest, container, name, process, shared_settings
from tests.rolling.endpoints import Endpoints
from tests.rolling.pods import START_SECONDS, Broken, Pace, Pod, without_settings
from tests.support.databases import Databases, owner_url
from tests.support.servers import NatsServer, PostgresServer
from tests.support.signing import PUBLIC_KEYS, SEAL_KEY, SIGNING_KEY

INVOICE_TTL_SECONDS: Final = 5
HTTP_PORT: Final = 8080
LEAVING_AT_ONCE: Final = 4  # pods of each Deployment: more than are replaced
MASTER_KEY: Final = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="


class Cluster:
    """Use as a context manager: all pods are ready when the block begins, and gone at its end.

    of_each  pods of each Deployment; None: as many as the manifests say
    """

    def __init__(self, folder: Path, *, pace: Pace, of_each: int | None = None) -> None:
        self.folder = folder
        self.endpoints = Endpoints(pace.names_kept_seconds)
        self.restarts = 0
        self._pace = pace
        self._of_each = of_each
        self._opened = ExitStack()
        self._lock = threading.Lock()
        # They die with the thread that started them, not only with this process (deploy.local.child): so one for all.
        self._starter = ThreadPoolExecutor(1)
        self._leaving = ThreadPoolExecutor(len(manifests.DEPLOYMENTS) * LEAVING_AT_ONCE)
        self._network = f"127.{64 + os.getpid() % 128}.{os.getpid() // 128 % 256}"
        self._addresses = iter(range(1, 255))
        self._pods: dict[str, list[Pod]] = {name(each): [] for each in manifests.DEPLOYMENTS}

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            (self.folder / "postgres").mkdir(parents=True)
            self._postgres = PostgresServer(self.folder / "postgres")
            self._nats = NatsServer(self.folder / "nats")
            for server in (self._postgres, self._nats):
                opened.callback(server.stop)
                server.start()
            opened.enter_context(self.endpoints)
            opened.enter_context(self._rates())
            databases = Databases(self._postgres)
            # As the version before has left them: `migrate` comes when it comes.
            self._database_urls = {each: databases.fresh(each, schema.needs(each)) for each in SERVICES}
            opened.enter_context(self._starter)
            opened.enter_context(self._leaving)
            opened.callback(self._stop_pods)
            self._start_pods()
            self._home = Home(self.folder / "home")
            self._home.prepare()
            seed.seed(self._home, self._addresses_of_services())
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def url(self) -> str:
        """The gateway's; `endpoints` knows who that is."""
        return f"http://gateway:{HTTP_PORT}"

    def address(self, service: str) -> str:
        """Of a service: all its ready pods, as they come and go."""
        port = int(shared_settings()[f"{PREFIX}{service.upper()}_ADDRESS"].partition(":")[2])
        return self.endpoints.target(service, port)

    def links(self) -> dict[str, str]:
        """New links of the demo people, by surface."""
        demo_people.invite(self._home, self._addresses_of_services())
        return self._home.links()

    def _addresses_of_services(self) -> dict[str, Any]:
        return {"services": {each: {"address": self.address(each)} for each in SERVICES}}

    def admin_url(self, database: str) -> str:
        """A superuser's URL of a service's database."""
        path = self._database_urls[database].rpartition("/")[2]
        return f"{self._postgres.admin_url.rpartition('/')[0]}/{path}"

    def cli(self, *arguments: str) -> Any:
        """What `fiatgate ARGUMENTS --json` prints, parsed."""
        result = subprocess.run(
            [sys.executable, "-m", "cli", *arguments, "--json"],
            cwd=manifests.ROOT,
            env=dict(os.environ) | self._settings(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return json.loads(result.stdout) if result.stdout else {"ok": False, "problems": [result.stderr]}

    def count(self, deployment: Manifest) -> int:
        """The pods of a Deployment, whenever none is being replaced."""
        return self._of_each or _replicas(deployment)

    def unmigrated(self) -> list[str]:
        """Services whose newest migration has not run."""
        return [each for each, url in self._database_urls.items() if not migrate.is_current(each, url)]

    def began_before_migration(self) -> int:
        """Pods that found the schema of the version before at their start."""
        return sum('"schema_outdated"' in each.read_text() for each in self.folder.glob("*.log"))

    def used(self) -> dict[str, tuple[float, float]]:
        """By Deployment, the most that one of its pods uses: cores since its start, MiB."""
        most: dict[str, tuple[float, float]] = {}
        for each, pods in self._pods.items():
            cores, memory = zip(*(one.used() for one in pods), strict=True)
            most[each] = max(cores), max(memory)
        return most

    # -- rolling

    def roll(
        self, deployment: Manifest, order: Sequence[int], *, tell: Callable[[str], None]
    ) -> list[Future[None]]:
        """Replace its pods one after the other, in this order: the next one is ready before one leaves. Returns what
        ends when one has left, or raises Broken.
        """
        assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
        old = list(self._pods[name(deployment)])
        left: list[Future[None]] = []
        for number in order:
            new = self._start(deployment)
            self._join(deployment, new)
            tell(f"{new} replaces {old[number].address}")
            left.append(self._leaving.submit(self._leave, deployment, old[number], tell))
        return left

    def migrate(self) -> None:
        """The Jobs of all services at once. Raises Broken when one fails."""
        jobs = manifests.of_kind("Job")
        with ThreadPoolExecutor(len(jobs)) as threads:
            for _ in threads.map(self._run_job, jobs):
                pass

    def _run_job(self, job: Manifest) -> None:
        python, *arguments = container(job)["command"]
        assert python == "python"
        ended = subprocess.run(
            [sys.executable, *arguments],
            cwd=manifests.ROOT,
            env=without_settings(os.environ) | self._environment(job, "127.0.0.1"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        if ended.returncode != 0:
            raise Broken(f"{name(job)} ended with {ended.returncode}: {ended.stderr}")

    def _start_pods(self) -> None:
        with ThreadPoolExecutor(len(manifests.DEPLOYMENTS)) as threads:
            # The gateway's pods are ready once all services are, so all at once.
            started = [
                threads.submit(self._join, each, self._start(each))
                for each in manifests.DEPLOYMENTS
                for _ in range(self.count(each))
            ]
        for joined in started:
            joined.result()

    def _start(self, deployment: Manifest) -> Pod:
        with self._lock:
            address = f"{self._network}.{next(self._addresses)}"
            log = self.folder / f"{name(deployment)}-{address}.log"
            made = self._starter.submit(
                Pod, deployment, address, self._environment(deployment, address), log
            ).result()
            self._pods[name(deployment)].append(made)
        return made

    def _join(self, deployment: Manifest, new: Pod) -> None:
        new.wait_until_ready()
        threading.Event().wait(deployment["spec"].get("minReadySeconds", 0))
        if service := _service_of(deployment):
            self.endpoints.add(service, new.address)

    def _leave(self, deployment: Manifest, old: Pod, tell: Callable[[str], None]) -> None:
        service = _service_of(deployment)
        old.leave(self._pace, lambda: self.endpoints.remove(service, old.address) if service else None)
        tell(f"{old} has left")
        with self._lock:
            self._pods[name(deployment)].remove(old)
            self.restarts += 1

    def _stop_pods(self) -> None:
        for each in [each for pods in self._pods.values() for each in pods]:
            each.kill()

    # -- what they are told

    def _environment(self, deployment: Manifest, address: str) -> dict[str, str]:
        """Of the manifest, with addresses of this machine and secrets of this test."""
        secrets = {
            "database-url": "",
            "master-keys": MASTER_KEY,
            "smtp-url": "",
            "fact-signing-key": SIGNING_KEY,
            "seal-keys": SEAL_KEY,
            "fact-public-keys": ",".join(PUBLIC_KEYS),
            "nats-url": "",
        }
        if process(deployment) in PROCESSES:
            secrets["nats-url"] = self._nats.url_of(process(deployment))
        if process(deployment) in SERVICES:
            secrets["database-url"] = self._database_urls[process(deployment)]
            secrets["migration-database-url"] = owner_url(secrets["database-url"])
        own = {
            each["name"]: each["value"].replace("0.0.0.0", address)
            if "value" in each
            else secrets[each["valueFrom"]["secretKeyRef"]["key"]]
            for each in container(deployment)["env"]
        }
        metrics = shared_settings()["FIATGATE_METRICS_BIND"].replace("0.0.0.0", address)
        return self._settings() | {"FIATGATE_METRICS_BIND": metrics} | own

    def _settings(self) -> dict[str, str]:
        return {
            **shared_settings(),
            **{f"{PREFIX}{each.upper()}_ADDRESS": self.address(each) for each in SERVICES},
            # Pages are asked over HTTP here, as behind a proxy that ends TLS; a cookie for TLS would not be sent.
            "FIATGATE_DESK_URL": "http://localhost:8081",
            "FIATGATE_DASHBOARD_URL": "http://localhost:8082",
            "FIATGATE_INVOICE_TTL_SECONDS": str(INVOICE_TTL_SECONDS),
            "FIATGATE_WEBHOOK_ALLOW_PRIVATE": "on",
            "FIATGATE_RATE_ALLOW_PRIVATE": "on",
            "FIATGATE_RATE_SOURCES": json.dumps(demo_rates.sources(self._rates_port)),
            "FIATGATE_RATE_LIMIT_PER_MINUTE": "600000",
            "FIATGATE_NETWORK_PAGE_REQUESTS_PER_MINUTE": "0",  # all customers have one address here
            "FIATGATE_LOG_LEVEL": "warning",
        }

    @contextmanager
    def _rates(self) -> Iterator[None]:
        self._rates_port = free_ports(1)[0]
        rates = subprocess.Popen(demo_rates.command(self._rates_port), cwd=manifests.ROOT)
        try:
            yield
        finally:
            rates.terminate()
            rates.wait()


def _replicas(deployment: Manifest) -> int:
    (scaled,) = [
        each["spec"]["minReplicas"]
        for each in manifests.of_kind("HorizontalPodAutoscaler")
        if name(each) == name(deployment)
    ] or [deployment["spec"]["replicas"]]
    return int(scaled)


def _service_of(deployment: Manifest) -> str | None:
    """The Service that leads to its pods, if one does."""
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    for each in manifests.of_kind("Service"):
        if each["spec"]["selector"].items() <= labels.items():
            return name(each)
    return None

"""The parts of one stack: its settings and its processes, decided before anything starts."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deploy.local import child, demo_rates
from deploy.local.databases import owner_of
from deploy.local.errors import CannotStart
from deploy.local.home import Home
from deploy.local.nats import Nats
from deploy.local.ports import free_ports, free_range, named_in, next_free
from deploy.local.postgres import Postgres
from deploy.local.prometheus import Prometheus
from deploy.nats_rights import OPERATOR, PROCESSES
from kit.base.services import SERVICES
from kit.events.signing import Signer

PREFIX = "FIATGATE_"
PROMETHEUS = "FIATGATE_PROMETHEUS"
"""The Prometheus program to run beside the stack, by name or path; none when not set."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """One supervised process. Groups start together; they stop in the order of `STOPPING_ORDER`."""

    name: str
    group: str
    command: list[str]
    stop_signal: str = "TERM"
    environment: Mapping[str, str] = field(default_factory=dict)  # its own, besides the common one


@dataclass(frozen=True, kw_only=True)
class HttpProcess:
    """A process with an HTTP server: its name, the name in its variables, and what `python -m` runs."""

    name: str
    variables: str
    module: tuple[str, ...]


HTTP = (
    HttpProcess(name="gateway", variables="GATEWAY", module=("gateway", "run")),
    HttpProcess(name="console-desk", variables="DESK", module=("console", "desk")),
    HttpProcess(name="console-dashboard", variables="DASHBOARD", module=("console", "dashboard")),
)
GATEWAY, DESK, DASHBOARD = HTTP

STOPPING_ORDER = ("edge", "services", "data")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A stack that could be started: pure data."""

    home: Home
    port: int
    postgres: Postgres
    nats: Nats
    environment: Mapping[str, str]  # for every process
    database_urls: Mapping[str, str]  # one per service, and only that service gets it
    nats_urls: Mapping[str, str]  # one per process that uses NATS, and only that process gets it
    migration_urls: Mapping[str, str]  # the same as each database's owner, which no service gets
    metrics: Mapping[str, list[str]]  # the addresses at which each process answers scrapes
    prometheus: Prometheus | None
    programs: list[Program]
    serve_only: bool = False

    @property
    def url(self) -> str:
        """The gateway's address (customers may see another one: `FIATGATE_PUBLIC_URL`)."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def consoles(self) -> dict[str, str]:
        """The addresses of desk and dashboard in browsers. A host name, not 127.0.0.1: passkeys need one."""
        return {each.name: self.environment[f"{PREFIX}{each.variables}_URL"] for each in (DESK, DASHBOARD)}

    @property
    def probed(self) -> list[str]:
        """The addresses below which every HTTP process answers `/healthz` and `/readyz`; none in mode "serve"."""
        if self.serve_only:
            return []
        binds = [self.environment[f"{PREFIX}{each.variables}_BIND"] for each in (DESK, DASHBOARD)]
        return [self.url, *(f"http://{bind}" for bind in binds)]

    @property
    def owns_databases(self) -> bool:
        """Whether all databases are in the stack's own PostgreSQL, none given by the caller."""
        return all(f"@127.0.0.1:{self.postgres.port}/" in url for url in self.database_urls.values())

    def as_json(self, *, process_id: int, ready: bool) -> dict[str, Any]:
        """Returns the content of `stack.json`."""
        return {
            "process_id": process_id,
            "ready": ready,
            "url": self.url,
            "postgres_url": self.postgres.url(),
            "nats_urls": {**self.nats_urls, OPERATOR: self.nats.url(OPERATOR)},
            "services": {
                service: {
                    "address": self.environment[f"{PREFIX}{service.upper()}_ADDRESS"],
                    "database_url": self.database_urls[service],
                    "migration_database_url": self.migration_urls[service],
                }
                for service in SERVICES
            },
            "consoles": self.consoles,
            "metrics": self.metrics,
            "prometheus_url": self.prometheus.url if self.prometheus else None,
            "supervisor_config": str(self.home.supervisor_config),
            "logs": str(self.home.logs),
        }


def make_plan(
    home: Home, *, port: int, caller: Mapping[str, str], durable: bool = True, mode: str = "run"
) -> Plan:
    """Chooses free inner ports and returns settings and processes.

    `caller` is the environment of `make run`: its `FIATGATE_*` replace the values chosen here. `mode` is that of the
    services: "run", or "serve" without their workers; then nothing with HTTP starts either, so nobody outside
    changes anything.
    """
    own = _settings_of(caller)
    secrets = home.secrets()
    workers = {each.name: _workers(each, own) for each in HTTP}
    given = {port, *named_in(own)}
    console_ports = next_free([port + 1, port + 2], apart_from=given)
    metrics_ports = free_range(len(SERVICES) + sum(workers.values()), apart_from=[*given, *console_ports])
    postgres_port, nats_port, rates_port, prometheus_port, *service_ports = free_ports(
        4 + len(SERVICES), apart_from=[*given, *console_ports, *metrics_ports]
    )
    postgres = Postgres(
        data=home.postgres / "data", port=postgres_port, password=secrets["postgres"], durable=durable
    )
    nats = Nats(folder=home.nats, port=nats_port, passwords=secrets["nats"], durable=durable)
    metrics = _metrics(metrics_ports, workers)
    environment = {
        "FIATGATE_HOME": str(home.folder),
        **_world(port, rates_port),
        **_consoles(console_ports),
        **{
            f"{PREFIX}{service.upper()}_ADDRESS": f"127.0.0.1:{service_port}"
            for service, service_port in zip(SERVICES, service_ports, strict=True)
        },
        **{f"{PREFIX}{service.upper()}_METRICS_BIND": metrics[service][0] for service in SERVICES},
        **{f"{PREFIX}{each.variables}_METRICS_BIND": metrics[each.name][0] for each in HTTP},
        # More workers and their master would only take memory on a laptop.
        **{f"{PREFIX}{each.variables}_WORKERS": "1" for each in HTTP},
    }
    prometheus = _prometheus(home, caller, prometheus_port, metrics)
    database_urls = {each: _database_url(each, own, postgres, secrets) for each in SERVICES}
    migration_urls = {each: _migration_url(each, own, postgres, secrets) for each in SERVICES}
    nats_urls = _nats_urls(nats, own)
    private = _private(database_urls, nats_urls, own, secrets)
    secret = {"FIATGATE_NATS_URL", *(name for settings in private.values() for name in settings)}
    secret |= set(map(_migration_variable, SERVICES))
    return Plan(
        home=home,
        port=port,
        postgres=postgres,
        nats=nats,
        environment=environment | {name: value for name, value in own.items() if name not in secret},
        database_urls=database_urls,
        nats_urls=nats_urls,
        migration_urls=migration_urls,
        metrics=metrics,
        prometheus=prometheus,
        programs=_programs(postgres, nats, rates_port, private, prometheus, mode=mode),
        serve_only=mode == "serve",
    )


def _programs(
    postgres: Postgres,
    nats: Nats,
    rates_port: int,
    private: Mapping[str, Mapping[str, str]],
    prometheus: Prometheus | None,
    *,
    mode: str,
) -> list[Program]:
    services = [(name, "services", (f"services.{name}", mode)) for name in SERVICES]
    http = [] if mode == "serve" else [(each.name, "edge", each.module) for each in HTTP]
    return [
        *_data_programs(postgres, nats, rates_port),
        *(
            Program(name=name, group=group, command=_python("-m", *module), environment=private[name])
            for name, group, module in (*services, *http)
        ),
        *([Program(name="prometheus", group="edge", command=prometheus.command())] if prometheus else []),
    ]


def _database_url(
    service: str, own: Mapping[str, str], postgres: Postgres, secrets: Mapping[str, Any]
) -> str:
    given = own.get(_database_variable(service))
    return given or postgres.url(service, user=service, password=secrets["databases"][service])


def _migration_url(
    service: str, own: Mapping[str, str], postgres: Postgres, secrets: Mapping[str, Any]
) -> str:
    """Returns "" for a caller's own database without a migration URL: the service's role migrates it."""
    if given := own.get(_migration_variable(service)):
        return given
    if _database_variable(service) in own:
        return ""
    return postgres.url(service, user=owner_of(service), password=secrets["owners"][service])


def _nats_urls(nats: Nats, own: Mapping[str, str]) -> dict[str, str]:
    """Returns each process's own address, or that of the caller's server, which all then share."""
    return {
        process: own.get(_nats_variable(process)) or own.get("FIATGATE_NATS_URL") or nats.url(process)
        for process in PROCESSES
    }


def _data_programs(postgres: Postgres, nats: Nats, rates_port: int) -> list[Program]:
    """Returns the servers that run before the services start."""
    return [
        Program(
            name="postgres",
            group="data",
            command=postgres.supervised_command(),
            stop_signal="INT",  # fast: does not wait for clients
        ),
        Program(name="nats", group="data", command=nats.command()),
        Program(name="demo-rates", group="data", command=demo_rates.command(rates_port)),
    ]


def _private(
    database_urls: Mapping[str, str],
    nats_urls: Mapping[str, str],
    own: Mapping[str, str],
    secrets: Mapping[str, Any],
) -> dict[str, dict[str, str]]:
    """Returns the secrets of each process, which no other process gets."""
    private: dict[str, dict[str, str]] = {
        process: {} for process in (*SERVICES, *(each.name for each in HTTP))
    }
    for service, url in database_urls.items():
        private[service][_database_variable(service)] = url
    for process, url in nats_urls.items():
        private[process][_nats_variable(process)] = url
    private["identity"] |= {
        "FIATGATE_MASTER_KEYS": own.get("FIATGATE_MASTER_KEYS") or secrets["master_key"],
        "FIATGATE_SMTP_URL": own.get("FIATGATE_SMTP_URL", ""),
    }
    signing_key = own.get("FIATGATE_FACT_SIGNING_KEY") or secrets["fact_signing_key"]
    for service, key in secrets["seal_keys"].items():
        variable = f"{PREFIX}{service.upper()}_SEAL_KEYS"
        private[service][variable] = own.get(variable) or key
    public_keys = own.get("FIATGATE_FACT_PUBLIC_KEYS") or _public_key(signing_key)
    private["invoices"] |= {
        "FIATGATE_FACT_SIGNING_KEY": signing_key,
        "FIATGATE_FACT_PUBLIC_KEYS": public_keys,
    }
    for consuming in ("withdrawals", "webhooks"):
        private[consuming] |= {
            "FIATGATE_FACT_PUBLIC_KEYS": public_keys,
        }
    return private


def _public_key(signing_key: str) -> str:
    try:
        return Signer(signing_key).public_key
    except ValueError:
        raise CannotStart(
            "FIATGATE_FACT_SIGNING_KEY: expected one that `fiatgate fact-keys new` prints"
        ) from None


def _world(port: int, rates_port: int) -> dict[str, str]:
    """Returns the settings that connect a local stack: one port, receivers on this machine, invented rates."""
    return {
        "FIATGATE_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "FIATGATE_GATEWAY_BIND": f"127.0.0.1:{port}",
        "FIATGATE_INTERNAL_GATEWAY_URL": f"http://127.0.0.1:{port}",
        "FIATGATE_WEBHOOK_ALLOW_PRIVATE": "on",  # a developer's receiver listens on this very machine
        "FIATGATE_RATE_LIMIT_PER_MINUTE": "600000",  # load tests use one key; the headers are still sent
        "FIATGATE_METHOD_SHARE_PERCENT": "100",  # the demo has one merchant: no accounts are kept free for others
        "FIATGATE_ADDRESS_WAIT_SECONDS": "60",  # a new user tries a withdrawal on the same day
        "FIATGATE_RATE_ALLOW_PRIVATE": "on",  # so does the source of demo rates
        "FIATGATE_DEMO_BANK": "on",
        "FIATGATE_MODE": "test",
        "FIATGATE_TEST_WITHDRAWAL_SECONDS": "600",  # people and tests end withdrawals themselves before
        "FIATGATE_RATE_SOURCES": json.dumps(demo_rates.sources(rates_port)),
    }


def _consoles(ports: Sequence[int]) -> dict[str, str]:
    """Returns the settings of desk and dashboard at these ports."""
    settings: dict[str, str] = {}
    for process, port in zip((DESK, DASHBOARD), ports, strict=True):
        settings |= {
            f"{PREFIX}{process.variables}_BIND": f"127.0.0.1:{port}",
            f"{PREFIX}{process.variables}_URL": f"http://localhost:{port}",
        }
    settings[f"{PREFIX}INTERNAL_DASHBOARD_URL"] = f"http://127.0.0.1:{ports[1]}"
    return settings


def _workers(process: HttpProcess, own: Mapping[str, str]) -> int:
    """Returns the number of its workers; the process itself refuses a setting that is not a number."""
    asked = own.get(f"{PREFIX}{process.variables}_WORKERS", "")
    return int(asked) if re.fullmatch(r"[1-9]\d?", asked) else 1


def _metrics(ports: Sequence[int], workers: Mapping[str, int]) -> dict[str, list[str]]:
    """Returns one address per service, and one per worker of an HTTP process: each takes the first free one of its
    process.
    """
    addresses = iter(f"127.0.0.1:{port}" for port in ports)
    counts = {**dict.fromkeys(SERVICES, 1), **workers}
    return {process: [next(addresses) for _ in range(count)] for process, count in counts.items()}


def _prometheus(
    home: Home, caller: Mapping[str, str], port: int, metrics: Mapping[str, list[str]]
) -> Prometheus | None:
    name = caller.get(PROMETHEUS)
    if not name:
        return None
    program = shutil.which(name, path=caller.get("PATH"))
    if program is None:
        raise CannotStart(f"{PROMETHEUS}={name}: there is no such program on PATH")
    targets = [address for addresses in metrics.values() for address in addresses]
    return Prometheus(program=program, folder=home.folder / "prometheus", port=port, targets=targets)


def _settings_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the `FIATGATE_*` of an environment; an empty one counts as unset."""
    return {name: value for name, value in environment.items() if name.startswith(PREFIX) and value}


def _database_variable(service: str) -> str:
    return f"{PREFIX}{service.upper()}_DATABASE_URL"


def _nats_variable(process: str) -> str:
    return f"{PREFIX}{process.upper()}_NATS_URL"


def _migration_variable(service: str) -> str:
    return f"{PREFIX}{service.upper()}_MIGRATION_DATABASE_URL"


def _python(*arguments: str) -> list[str]:
    return child.command(sys.executable, *arguments)

"""The settings that processes share, one class for each kind of process."""

from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, ValidationInfo, field_validator

from kit.base import tls
from kit.base.config.values import (
    AddressOrNone,
    BaseUrlOrNone,
    CommaSeparated,
    FileOrNone,
    HostAndPort,
    HostAndPortOrNone,
    Key,
    NatsUrl,
    PostgresUrl,
    PostgresUrlOrNone,
)
from kit.base.config.variables import EnvironmentSettings
from kit.base.seals import Seals

# Every process that has a name reads these from a variable with that name first.
_OWN_FIRST: Final = frozenset({"metrics_bind", "nats_url", "tls_ca", "tls_cert", "tls_key"})


class CallerSettings(EnvironmentSettings):
    """The settings of a process that calls services. A process that only calls has no others."""

    tls_ca: str = Field(default="", description="file of the CA of all processes; empty: no TLS")
    tls_cert: str = Field(
        default="",
        description="file of this process's certificate; its DNS name is the process: gateway, invoices, cli",
    )
    tls_key: str = Field(default="", validate_default=True, description="file of its key")

    @field_validator("tls_key")
    @classmethod
    def _all_or_none_and_usable(cls, tls_key: str, info: ValidationInfo) -> str:
        given = [info.data["tls_ca"], info.data["tls_cert"], tls_key]
        if any(given) and not all(given):
            raise ValueError("expected all of TLS_CA, TLS_CERT and TLS_KEY, or none")
        if tls_key:
            tls.read(tls.Files(*map(Path, given)))
        return tls_key

    @classmethod
    def of_each_process(cls) -> frozenset[str]:
        return _OWN_FIRST if cls.service else frozenset()

    @cached_property
    def identity(self) -> tls.Identity | None:
        """The certificate that this process shows to others; one for all its connections. None without TLS."""
        files = tls.Files(Path(self.tls_ca), Path(self.tls_cert), Path(self.tls_key))
        return tls.Identity(files) if self.tls_key else None


class CliSettings(CallerSettings):
    """The settings of the operator's command, and of processes that do an operator's work."""

    service: ClassVar[str] = "cli"

    internal_gateway_url: BaseUrlOrNone = Field(
        default="",
        description="inner address of the gateway, for its health; empty: unknown to the desk, PUBLIC_URL "
        "for `fiatgate status`",
    )
    internal_dashboard_url: BaseUrlOrNone = Field(
        default="",
        description="inner address of the dashboard, for its health; empty: unknown to the desk, "
        "DASHBOARD_URL for `fiatgate status`",
    )
    internal_desk_url: BaseUrlOrNone = Field(
        default="",
        description="address of the desk for `fiatgate status`; empty: DESK_URL",
    )
    demo_url: BaseUrlOrNone = Field(
        default="",
        description="address of the demo pod, for `fiatgate demo`; empty: no trial",
    )


class Settings(CallerSettings):
    """The settings of every process that runs."""

    mode: Literal["live", "test"] = Field(
        default="live",
        description="[test](api.md#test-mode): no money is real; the same in all processes, for ever",
    )
    nats_url: NatsUrl = Field(
        default="nats://127.0.0.1:4222",
        repr=False,
        description="nats://user:password@host:port or tls://…; several servers of a cluster "
        "comma-separated; a user for each process",
    )
    nats_ca: FileOrNone = Field(
        default="",
        description="file of a private CA of NATS",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="lowest level logged"
    )
    log_format: Literal["json", "console"] = Field(default="json", description="for machines, for people")
    metrics_bind: HostAndPortOrNone = Field(
        default="",
        description="host:port for Prometheus; further workers take the next ports; empty: no metrics",
    )
    traces_endpoint: BaseUrlOrNone = Field(
        default="",
        description="OpenTelemetry collector (OTLP/HTTP), as http://host:4318; empty: no traces",
    )
    traces_ratio: Decimal = Field(default=Decimal(1), ge=0, le=1, description="fraction of requests traced")

    @property
    def is_test(self) -> bool:
        return self.mode == "test"


class DatabaseSettings(Settings):
    """The settings of `migrate`: the owner of the tables needs no key of the service."""

    database_url: PostgresUrl = Field(
        repr=False,
        description="postgresql://role:password@host:port/database; several servers as "
        "@/database?host=a,b,c&port=5432,5432,5432&target_session_attrs=read-write",
    )
    migration_database_url: PostgresUrlOrNone = Field(
        default="",
        repr=False,
        description="the same as its owner, for `migrate` alone; empty: DATABASE_URL's role can change its "
        "own rights",
    )
    start_seconds: int = Field(default=60, ge=0, le=600, description="longest wait for the database at start")

    @classmethod
    def of_each_process(cls) -> frozenset[str]:
        of_services = ServiceSettings.model_fields.keys() - Settings.model_fields - {"identity_address"}
        return super().of_each_process() | of_services

    @classmethod
    def of(cls, service: str) -> type["DatabaseSettings"]:
        """Returns the settings that `migrate` of this service reads."""
        return type("DatabaseSettings", (cls,), {"service": service})


class ServiceSettings(DatabaseSettings):
    """The settings of every gRPC service; a subclass gives its name: `service = "invoices"`."""

    # Connections of the calls that do not run on THREADS; tests compare it with SLOTS in the service's rpc.
    slot_connections: ClassVar[int] = 0
    # Threads of THREADS that can share one connection: more than one where they mostly wait for other things.
    threads_per_connection: ClassVar[int] = 1

    bind: HostAndPort = Field(description="host:port to listen on")
    health_bind: HostAndPortOrNone = Field(
        default="",
        description="host:port without TLS for health probes; empty: none",
    )
    threads: int = Field(
        default=4,
        ge=1,
        le=64,
        description="threads for the calls that merchants' requests wait for most; more were slower",
    )
    pool_size: int = Field(
        default=8,
        ge=2,
        le=200,
        description="database connections of a process for THREADS and workers, at least THREADS; other "
        "calls have a few more",
    )
    max_concurrent_calls: int = Field(
        default=1024,
        ge=1,
        le=10_000,
        description="calls in work or waiting in a process; more are refused",
    )
    call_seconds: int = Field(default=5, ge=1, le=60, description="longest call without a deadline")
    stop_seconds: int = Field(default=20, ge=1, le=300, description="time to finish at a stop")
    identity_address: AddressOrNone = Field(
        default="",
        description="identity, whose keys prove people; empty: no person may call this service",
    )
    seal_keys: Annotated[tuple[Key, ...], CommaSeparated] = Field(
        min_length=1,
        repr=False,
        description="comma-separated, 32 random bytes in base64, of this service alone: the first seals acts "
        "and rows, all check; keep earlier ones",
    )

    # A validator of the field, not of the model: so its error is in the same list as all others.
    @field_validator("pool_size")
    @classmethod
    def _threads_find_a_connection(cls, pool_size: int, info: ValidationInfo) -> int:
        if pool_size * cls.threads_per_connection < info.data.get("threads", 0):
            each = "" if cls.threads_per_connection == 1 else f" / {cls.threads_per_connection}"
            raise ValueError(
                f"expected at least as many connections as THREADS{each}, or calls wait for each other"
            )
        return pool_size

    @property
    def connections(self) -> int:
        """The largest number of connections in the pool of one process."""
        return self.pool_size + self.slot_connections

    @cached_property
    def seals(self) -> Seals:
        return Seals(self.seal_keys)


class FourEyesSettings(ServiceSettings):
    """The further settings of a service with calls that need a second person (kit.audit.approvals)."""

    four_eyes: bool = Field(
        default=True,
        description="on: [some calls](operations/daily-work.md#a-second-person) need another person; "
        "off: one person runs everything",
    )


class FactSettings(ServiceSettings):
    """The further settings of a service that consumes signed facts (kit.events.signing)."""

    fact_public_keys: Annotated[tuple[Key, ...], CommaSeparated] = Field(
        min_length=1,
        repr=False,
        description="comma-separated, public keys of FACT_SIGNING_KEY: a fact that none proves has no effect",
    )

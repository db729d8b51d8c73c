"""Settings from the environment: typed, frozen, checked at start. One error lists all problems.

A setting `invoice_ttl_seconds` is read from `FIATGATE_INVOICE_TTL_SECONDS`. The settings of each service
(`ServiceSettings`) carry the service's name: `FIATGATE_INVOICES_DATABASE_URL`, and `FIATGATE_INVOICES_THREADS` before
`FIATGATE_THREADS`. The same holds for `METRICS_BIND`, `NATS_URL` and `TLS_*` of every process.
An empty variable counts as unset. A setting with a standard name (`OTEL_EXPORTER_OTLP_ENDPOINT`) is read from that too,
after ours. `describe` makes the table of docs/settings.md from each field's `description`. A secret has `repr=False`.
"""

import base64
import os
import re
import sys
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from kit.base import keys, tls
from kit.base.clock import SystemClock

PREFIX: Final = "FIATGATE_"
EXIT_CODE: Final = 2
UNSIGNED_FACTS_AT_MOST: Final = timedelta(days=31)
TIME_EXAMPLE: Final = "2026-03-01T12:00:00Z"

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)").fullmatch
_HOST_AND_PORT = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(\d{1,5})").fullmatch


def _host_and_port(text: str) -> str:
    match = _HOST_AND_PORT(text)
    if match is None or int(match[2]) > 65535:
        raise ValueError("expected host:port")
    return text


def _postgresql_url(text: str) -> str:
    if not re.match(r"postgresql(\+psycopg2)?://", text):
        raise ValueError("expected postgresql://role:password@host:port/database")
    return text


def _address(text: str) -> str:
    if not text or any(c.isspace() for c in text) or ":" not in text:
        raise ValueError("expected host:port or a gRPC target such as dns:///host:port")
    return text


def _base_url(text: str) -> str:
    parts = urlsplit(text)
    is_plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise ValueError("expected http(s)://host[:port][/prefix]")
    return text.rstrip("/")


def _readable_file(text: str) -> str:
    if not os.access(text, os.R_OK):
        raise ValueError("expected a file that can be read")
    return text


def _key(text: str) -> str:
    """Returns a key in one form. Reads 32 bytes in base64, in either alphabet, with or without padding."""
    try:
        key = keys.decoded(text)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ValueError("expected 32 random bytes in base64 each, as `openssl rand -base64 32` prints them")
    return base64.urlsafe_b64encode(key).decode()


def _time(value: object) -> object:
    """Refuses every form but ISO 8601 with a zone; pydantic would also take seconds since 1970."""
    if isinstance(value, str) and not _TIME(value):
        raise ValueError(f"expected a time with its zone, as {TIME_EXAMPLE}")
    return value


def _split(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


HostAndPort = Annotated[str, AfterValidator(_host_and_port)]
HostAndPortOrNone = Annotated[str, AfterValidator(lambda text: text and _host_and_port(text))]
PostgresUrl = Annotated[str, AfterValidator(_postgresql_url)]
PostgresUrlOrNone = Annotated[str, AfterValidator(lambda text: text and _postgresql_url(text))]
Address = Annotated[str, AfterValidator(_address)]  # of another service, for kit.rpc.client
Key = Annotated[str, AfterValidator(_key)]
FileOrNone = Annotated[str, AfterValidator(lambda text: text and _readable_file(text))]
BaseUrl = Annotated[str, AfterValidator(_base_url)]  # without a slash at its end
BaseUrlOrNone = Annotated[str, AfterValidator(lambda text: text and _base_url(text))]
Time = Annotated[AwareDatetime, BeforeValidator(_time)]
CommaSeparated = BeforeValidator(_split)  # Annotated[tuple[int, ...], CommaSeparated] reads "30,60,120"


class _Environment(PydanticBaseSettingsSource):
    """Reads each field from the first of its variables that is set."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        for variable in variables_of(self.settings_cls, field_name):
            if text := os.environ.get(variable):
                return text, field_name, False
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        values = {
            name: self.get_field_value(field, name)[0]
            for name, field in self.settings_cls.model_fields.items()
        }
        return {name: value for name, value in values.items() if value is not None}


class CallerSettings(BaseSettings):
    """The settings of a process that calls services. A process that only calls has no others."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    service: ClassVar[str] = ""  # the name in the log; in a service also part of its variables
    own_only: ClassVar[frozenset[str]] = frozenset()  # fields whose variable has that name in it, always

    tls_ca: str = Field(
        default="", description="file with the CA that signs the certificates of all processes; empty: no TLS"
    )
    tls_cert: str = Field(
        default="",
        description="file with this process's certificate; its DNS name is the process's name: gateway, invoices, cli",
    )
    tls_key: str = Field(default="", validate_default=True, description="file with that certificate's key")

    @field_validator("tls_key")
    @classmethod
    def _all_or_none_and_usable(cls, tls_key: str, info: ValidationInfo) -> str:
        given = [info.data["tls_ca"], info.data["tls_cert"], tls_key]
        if any(given) and not all(given):
            raise ValueError("expected all of TLS_CA, TLS_CERT and TLS_KEY, or none")
        if tls_key:
            tls.read(tls.Files(*map(Path, given)))
        return tls_key

    @cached_property
    def identity(self) -> tls.Identity | None:
        """The certificate that this process shows to others; one for all its connections. None without TLS."""
        files = tls.Files(Path(self.tls_ca), Path(self.tls_cert), Path(self.tls_key))
        return tls.Identity(files) if self.tls_key else None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, _Environment(settings_cls)


class CliSettings(CallerSettings):
    """The settings of the operator's command, and of processes that do an operator's work."""

    service: ClassVar[str] = "cli"


class Settings(CallerSettings):
    """The settings of every process that runs."""

    nats_url: str = Field(
        default="nats://127.0.0.1:4222",
        repr=False,
        description="NATS server with JetStream, nats://user:password@host:port or tls://…; each process has a user of "
        "its own",
    )
    nats_ca: FileOrNone = Field(
        default="",
        description="file with the CA of a NATS server at tls://…, when no public one signed its certificate",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="lowest level that is logged"
    )
    log_format: Literal["json", "console"] = Field(
        default="json", description="json for machines, console for people"
    )
    metrics_bind: HostAndPortOrNone = Field(
        default="",
        description="host:port that answers Prometheus; further workers of an HTTP process take the next ports; "
        "empty: no metrics",
    )
    traces_endpoint: BaseUrlOrNone = Field(
        default="",
        description="OpenTelemetry collector that takes traces over OTLP/HTTP, as http://host:4318; empty: no traces",
    )
    traces_ratio: Decimal = Field(
        default=Decimal(1), ge=0, le=1, description="fraction of the requests that are traced"
    )


class DatabaseSettings(Settings):
    """The settings of `migrate`: the owner of the tables needs no key of the service."""

    database_url: PostgresUrl = Field(
        repr=False, description="the service's own database, postgresql://role:password@host:port/database"
    )
    migration_database_url: PostgresUrlOrNone = Field(
        default="",
        repr=False,
        description="the same database as the role that owns it; read by `migrate` alone, which grants DATABASE_URL's "
        "role its rights; empty: `migrate` runs as that role, which then can change its own rights",
    )
    start_seconds: int = Field(default=60, ge=0, le=600, description="longest wait for the database at start")

    @classmethod
    def of(cls, service: str) -> type["DatabaseSettings"]:
        """Returns the settings that `migrate` of this service reads."""
        return type("DatabaseSettings", (cls,), {"service": service})


class ServiceSettings(DatabaseSettings):
    """The settings of every gRPC service; a subclass gives its name: `service = "invoices"`."""

    # Connections of the calls that do not run on THREADS; tests compare it with the SLOTS in the service's rpc.py.
    slot_connections: ClassVar[int] = 0
    # Threads of THREADS that can share one connection: more than one where they mostly wait for other things.
    threads_per_connection: ClassVar[int] = 1

    bind: HostAndPort = Field(description="host:port to listen on; the service's ADDRESS when not set")
    health_bind: HostAndPortOrNone = Field(
        default="",
        description="host:port without TLS that answers health only, for probes, which can't do TLS; empty: none",
    )
    threads: int = Field(
        default=4,
        ge=1,
        le=64,
        description="threads for the calls that merchants' requests wait for most; more than 4 was measured slower",
    )
    pool_size: int = Field(
        default=8,
        ge=2,
        le=200,
        description="database connections of one process for THREADS and workers, at least THREADS; other kinds of "
        "calls have a few more",
    )
    max_concurrent_calls: int = Field(
        default=1024,
        ge=1,
        le=10_000,
        description="calls in work or waiting in one process, of all kinds; more are refused at once",
    )
    call_seconds: int = Field(
        default=5, ge=1, le=60, description="longest time of a call whose caller sets no deadline"
    )
    stop_seconds: int = Field(
        default=20, ge=1, le=300, description="time that calls and workers have to finish at a stop"
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


class FactSettings(ServiceSettings):
    """The further settings of a service that consumes signed facts (kit.events.signing)."""

    fact_public_keys: Annotated[tuple[Key, ...], CommaSeparated] = Field(
        min_length=1,
        repr=False,
        description="comma-separated, public keys of FACT_SIGNING_KEY: a fact that none of them proves has no effect",
    )
    unsigned_facts_until: Time | None = Field(
        default=None,
        description="until then facts without a signature count, for the upgrade from a version that did not sign; as "
        f"{TIME_EXAMPLE}, at most 31 days ahead; empty: never",
    )

    @field_validator("unsigned_facts_until")
    @classmethod
    def _ends_soon(cls, until: AwareDatetime | None) -> AwareDatetime | None:
        if until is not None and until > SystemClock().now() + UNSIGNED_FACTS_AT_MOST:
            raise ValueError(
                f"expected a time at most 31 days ahead, as {TIME_EXAMPLE}: facts can be forged till then"
            )
        return until


# Every process reads these from a variable with its own name first.
_OWN_FIRST: Final = frozenset({"metrics_bind", "nats_url", "tls_ca", "tls_cert", "tls_key"})
# These are never shared between services, so they are only read from a variable with the service's name.
_OWN_ONLY: Final = frozenset({"database_url", "migration_database_url", "bind"})
# Names that other programs use for these settings.
_STANDARD: Final = {"traces_endpoint": ["OTEL_EXPORTER_OTLP_ENDPOINT"]}


def variables_of(cls: type[BaseSettings], field: str) -> list[str]:
    """Returns the environment variables of a field; the first that is set wins."""
    shared = PREFIX + field.upper()
    own = f"{PREFIX}{getattr(cls, 'service', '').upper().replace('-', '_')}_"
    if field in getattr(cls, "own_only", ()):
        return [own + field.upper()]
    if not is_of_each_process(cls, field):
        return [shared, *_STANDARD.get(field, ())]
    if field == "bind":
        return [f"{own}BIND", f"{own}ADDRESS"]
    return [own + field.upper()] if field in _OWN_ONLY else [own + field.upper(), shared]


def is_of_each_process(cls: type[BaseSettings], field: str) -> bool:
    """Returns whether each process may have its own value of a setting that others have too."""
    if field in _OWN_FIRST:
        return issubclass(cls, CallerSettings) and bool(cls.service)
    of_services = ServiceSettings.model_fields.keys() - Settings.model_fields
    return issubclass(cls, DatabaseSettings) and field in of_services


@dataclass(frozen=True)
class Setting:
    """One row of docs/settings.md."""

    variables: list[str]
    default: str  # "required" when there is none, "" for an empty one
    meaning: str


def describe(cls: type[CallerSettings]) -> list[Setting]:
    """Returns every setting of a process, in the order of declaration."""
    return [
        Setting(variables_of(cls, name), _default_text(field), field.description or "")
        for name, field in cls.model_fields.items()
    ]


def _default_text(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True, validated_data={})
    if default is None or default is PydanticUndefined:
        return ""
    if isinstance(default, bool):
        return "on" if default else "off"
    return ",".join(map(str, default)) if isinstance(default, tuple | list) else str(default)


S = TypeVar("S", bound=CallerSettings)


def load(cls: type[S]) -> S:
    """Returns the settings of this process. If some are wrong, writes all problems to stderr and exits with code 2.

    Values are never shown: a mistyped secret is still a secret.
    """
    try:
        return cls()
    except ValidationError as error:
        sys.stderr.write(_complaint(cls, error))
        raise SystemExit(EXIT_CODE) from None


def _complaint(cls: type[CallerSettings], error: ValidationError) -> str:
    problems: list[str] = []
    for problem in error.errors(include_input=False, include_url=False, include_context=False):
        name = str(problem["loc"][0]) if problem["loc"] else ""
        if name not in cls.model_fields:
            problems.append(f"  {problem['msg'].removeprefix('Value error, ')}")
            continue
        variables = variables_of(cls, name)
        variable = next((each for each in variables if os.environ.get(each)), variables[0])
        what = "is not set" if problem["type"] == "missing" else problem["msg"].removeprefix("Value error, ")
        problems.append(f"  {variable}: {what} ({cls.model_fields[name].description})")
    head = f"{cls.service or 'fiatgate'} cannot start, {len(problems)} setting(s) to correct:"
    return "\n".join([head, *problems, ""])

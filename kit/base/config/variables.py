"""Settings from the environment: typed, frozen, checked at start. One error lists all problems.

A setting `invoice_ttl_seconds` is read from `FIATGATE_INVOICE_TTL_SECONDS`. The settings of each service
(`kit.base.config.processes.ServiceSettings`) carry the service's name: `FIATGATE_INVOICES_DATABASE_URL`, and
`FIATGATE_INVOICES_THREADS` before `FIATGATE_THREADS`. The same holds for `METRICS_BIND`, `NATS_URL` and `TLS_*` of
every process. An empty variable counts as unset. A setting with a standard name (`OTEL_EXPORTER_OTLP_ENDPOINT`) is read
from that too, after ours. `describe` makes the table of docs/settings.md from each field's `description`. A secret has
`repr=False`.
"""

import os
import sys
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

PREFIX: Final = "FIATGATE_"
EXIT_CODE: Final = 2
# These are never shared between services, so they are only read from a variable with the service's name.
_OWN_ONLY: Final = frozenset({"database_url", "migration_database_url", "bind", "seal_keys"})
# Names that other programs use for these settings.
_STANDARD: Final = {"traces_endpoint": ["OTEL_EXPORTER_OTLP_ENDPOINT"]}


class _Environment(PydanticBaseSettingsSource):
    """Reads each field from the first of its variables that is set."""

    def __init__(self, settings: type["EnvironmentSettings"]) -> None:
        super().__init__(settings)
        self._settings = settings

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        for variable in variables_of(self._settings, field_name):
            if text := os.environ.get(variable):
                return text, field_name, False
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        values = {
            name: self.get_field_value(field, name)[0]
            for name, field in self.settings_cls.model_fields.items()
        }
        return {name: value for name, value in values.items() if value is not None}


class EnvironmentSettings(BaseSettings):
    """Settings that are read from environment variables and nothing else. Frozen."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    service: ClassVar[str] = ""  # the name in the log; in a service also part of its variables
    named: ClassVar[str] = ""  # the part of its variables, where that is not `service`
    own_only: ClassVar[frozenset[str]] = frozenset()  # fields whose variable has that name in it, always

    @classmethod
    def of_each_process(cls) -> frozenset[str]:
        """Returns the fields that are read from a variable with the process's own name first."""
        return frozenset()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, _Environment(cls)


def variables_of(cls: type[EnvironmentSettings], field: str) -> list[str]:
    """Returns the environment variables of a field; the first that is set wins."""
    shared = PREFIX + field.upper()
    own = f"{PREFIX}{(cls.named or cls.service).upper().replace('-', '_')}_"
    if field in cls.own_only:
        return [own + field.upper()]
    if field not in cls.of_each_process():
        return [shared, *_STANDARD.get(field, ())]
    if field == "bind":
        return [f"{own}BIND", f"{own}ADDRESS"]
    return [own + field.upper()] if field in _OWN_ONLY else [own + field.upper(), shared]


@dataclass(frozen=True)
class Setting:
    """One row of docs/settings.md."""

    variables: list[str]
    default: str  # "required" when there is none, "" for an empty one
    meaning: str


def describe(cls: type[EnvironmentSettings]) -> list[Setting]:
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


S = TypeVar("S", bound=EnvironmentSettings)


def load(cls: type[S]) -> S:
    """Returns the settings of this process. If some are wrong, writes all problems to stderr and exits with code 2.

    Values are never shown: a mistyped secret is still a secret.
    """
    try:
        return cls()
    except ValidationError as error:
        sys.stderr.write(_complaint(cls, error))
        raise SystemExit(EXIT_CODE) from None


def _complaint(cls: type[EnvironmentSettings], error: ValidationError) -> str:
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

"""Settings of the catalog service (docs/settings.md)."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from kit.base.config.processes import FourEyesSettings
from kit.egress.address import check_url

_CURRENCY_CODE = re.compile(r"[A-Z]{3}")


class RateSource(BaseModel):
    """An HTTP address that answers JSON with a number for each of some currencies:

        {"name": "acme", "url": "https://rates.example/usdt", "paths": {"EUR": "data.rates.EUR"}}

    A path is dotted or a JSON pointer; `"invert": true` when the numbers are USDT per fiat, not fiat per USDT.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str = Field(min_length=1, max_length=64)
    url: str
    paths: Mapping[str, str] = Field(min_length=1)
    invert: bool = False

    @model_validator(mode="after")
    def _paths_lead_somewhere(self) -> Self:
        for code, path in self.paths.items():
            if not _CURRENCY_CODE.fullmatch(code):
                raise ValueError(f"{code!r} in paths is no currency code")
            if not path:
                raise ValueError(f"the path of {code} is empty")
        return self


def _from_json(value: object) -> object:
    """Parses a JSON list given as text; pydantic checks its items."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError(f"expected a JSON list: {error}") from None


class CatalogSettings(FourEyesSettings):
    service: ClassVar[str] = "catalog"
    slot_connections: ClassVar[int] = 7

    rates_max_age_seconds: int = Field(
        default=600, ge=1, le=604_800, description="age after which a polled rate is not used"
    )
    rates_poll_seconds: int = Field(
        default=60, ge=1, le=86_400, description="time between polls of the sources"
    )
    rates_min_sources: int = Field(
        default=1,
        ge=1,
        le=100,
        description="sources that must answer before a rate counts",
    )
    rates_max_jump: Decimal = Field(
        default=Decimal("0.10"),
        gt=0,
        le=100,
        description="largest change of a rate, as a fraction; a larger one is held",
    )
    rate_source_timeout_seconds: int = Field(
        default=3, ge=1, le=60, description="longest request to a source"
    )
    # Stands before the sources: the check of their addresses needs it.
    rate_allow_private: bool = Field(
        default=False,
        description="allow http and private addresses of sources; for local stacks only",
    )
    rate_sources: Annotated[tuple[RateSource, ...], BeforeValidator(_from_json)] = Field(
        default=(),
        repr=False,
        description='JSON list of {"name", "url", "paths": {"EUR": "data.rates.EUR"}, "invert"}; '
        "none: rates are set by operators only",
    )

    @field_validator("rate_sources")
    @classmethod
    def _sources_fit_together(
        cls, sources: tuple[RateSource, ...], info: ValidationInfo
    ) -> tuple[RateSource, ...]:
        repeated = [name for name, count in Counter(source.name for source in sources).items() if count > 1]
        if repeated:
            raise ValueError(f"source names must differ: {', '.join(repeated)}")
        for source in sources:
            try:
                check_url(source.url, allow_private=bool(info.data.get("rate_allow_private")))
            except ValueError as error:
                raise ValueError(f"{source.name}: {error}") from None
        least = info.data.get("rates_min_sources", 1)
        sources_per_code = Counter(code for source in sources for code in source.paths)
        lonely = [code for code, count in sources_per_code.items() if count < least]
        if lonely:
            raise ValueError(
                f"fewer than {least} (RATES_MIN_SOURCES) sources for {', '.join(sorted(lonely))}"
            )
        return sources

    @property
    def rates_max_age(self) -> timedelta:
        return timedelta(seconds=self.rates_max_age_seconds)

    @property
    def rates_poll_period(self) -> timedelta:
        return timedelta(seconds=self.rates_poll_seconds)

"""Settings come from the environment, are checked all at once, and never give a secret away."""

import os
from typing import Annotated, ClassVar

import pytest
from pydantic import Field, SecretStr, ValidationError

from kit.base.config.processes import ServiceSettings
from kit.base.config.values import CommaSeparated, nats_servers
from kit.base.config.variables import describe, load
from tests.support.signing import SEAL_KEY


class OrdersSettings(ServiceSettings):
    service: ClassVar[str] = "orders"

    retry_delays: Annotated[tuple[int, ...], CommaSeparated] = Field(
        default=(30, 60), description="seconds between attempts"
    )
    allow_private: bool = Field(default=False, description="admit callbacks to private addresses")
    master_keys: SecretStr = Field(description="keys that encrypt secrets")


@pytest.fixture(autouse=True)
def _no_settings_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("FIATGATE_"):
            monkeypatch.delenv(name)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("FIATGATE_ORDERS_DATABASE_URL", "postgresql://orders:hunter2@db/orders")
    monkeypatch.setenv("FIATGATE_ORDERS_ADDRESS", "127.0.0.1:7001")
    monkeypatch.setenv("FIATGATE_MASTER_KEYS", "hunter3")
    monkeypatch.setenv("FIATGATE_ORDERS_SEAL_KEYS", SEAL_KEY)
    return monkeypatch


def test_every_setting_is_read_from_its_variable(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("FIATGATE_RETRY_DELAYS", "1, 2,3")
    environment.setenv("FIATGATE_ALLOW_PRIVATE", "on")
    environment.setenv("FIATGATE_THREADS", "6")

    settings = load(OrdersSettings)

    assert settings.database_url == "postgresql://orders:hunter2@db/orders"
    assert settings.retry_delays == (1, 2, 3)
    assert settings.allow_private is True
    assert settings.threads == 6
    assert settings.nats_url == "nats://127.0.0.1:4222"


def test_bind_is_the_address_unless_it_is_set(environment: pytest.MonkeyPatch) -> None:
    assert load(OrdersSettings).bind == "127.0.0.1:7001"

    environment.setenv("FIATGATE_ORDERS_ADDRESS", "dns:///orders:7001")
    environment.setenv("FIATGATE_ORDERS_BIND", "0.0.0.0:7001")

    assert load(OrdersSettings).bind == "0.0.0.0:7001"


def test_a_services_own_variable_goes_before_the_shared_one(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("FIATGATE_THREADS", "2")
    environment.setenv("FIATGATE_ORDERS_THREADS", "3")

    assert load(OrdersSettings).threads == 3


def test_another_services_database_is_never_taken(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("FIATGATE_ORDERS_DATABASE_URL")
    environment.setenv("FIATGATE_DATABASE_URL", "postgresql://other@db/other")

    with pytest.raises(SystemExit):
        load(OrdersSettings)


def test_an_empty_variable_counts_as_unset(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("FIATGATE_THREADS", "")

    assert load(OrdersSettings).threads == 4


def test_all_problems_are_told_at_once_with_the_full_name_of_the_variable(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.delenv("FIATGATE_MASTER_KEYS")
    environment.setenv("FIATGATE_ORDERS_DATABASE_URL", "mysql://orders:hunter2@db/orders")
    environment.setenv("FIATGATE_ORDERS_ADDRESS", "nowhere")
    environment.setenv("FIATGATE_THREADS", "many")
    environment.setenv("FIATGATE_LOG_LEVEL", "loud")
    environment.setenv("FIATGATE_RETRY_DELAYS", "1,soon")

    with pytest.raises(SystemExit) as ended:
        load(OrdersSettings)

    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert "orders cannot start, 6 setting(s) to correct" in told
    assert "FIATGATE_MASTER_KEYS: is not set (keys that encrypt secrets)" in told
    assert "FIATGATE_ORDERS_DATABASE_URL: expected postgresql://" in told
    assert "FIATGATE_ORDERS_ADDRESS: expected host:port" in told
    assert "FIATGATE_THREADS: Input should be a valid integer" in told
    assert "FIATGATE_LOG_LEVEL: Input should be 'debug', 'info', 'warning' or 'error'" in told
    assert "FIATGATE_RETRY_DELAYS" in told
    assert "hunter2" not in told


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://orders:hunter2@db/orders",
        "postgresql://orders:hunter2@/orders?host=/run/postgresql",
        "postgresql://orders:hunter2@/orders?host=a,b&port=1,2&target_session_attrs=read-write",
        "postgresql://orders:hunter2@/orders?host=a,b,c&port=1,1,1&target_session_attrs=primary&sslmode=verify-full",
    ],
)
def test_one_database_server_or_several_are_accepted(environment: pytest.MonkeyPatch, url: str) -> None:
    environment.setenv("FIATGATE_ORDERS_DATABASE_URL", url)
    assert load(OrdersSettings).database_url == url


@pytest.mark.parametrize(
    "servers",
    [
        "a:1,b:2/orders?target_session_attrs=read-write",
        "a,b/orders?target_session_attrs=read-write",
        "/orders?host=a:1&host=b:2&target_session_attrs=read-write",
        "/orders?host=a:1",
        "/orders?host=a,b,c&port=1,2&target_session_attrs=read-write",
        "/orders?host=a,b&port=1,2",
        "/orders?host=a,b&port=1,2&target_session_attrs=any",
    ],
)
def test_a_form_of_several_servers_that_fails_later_is_refused_at_the_start_with_the_right_one(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], servers: str
) -> None:
    environment.setenv("FIATGATE_ORDERS_DATABASE_URL", f"postgresql://orders:hunter2@{servers}")
    with pytest.raises(SystemExit):
        load(OrdersSettings)
    told = capsys.readouterr().err
    assert "?host=a,b,c&port=5432,5432,5432&target_session_attrs=read-write" in told
    assert "hunter2" not in told


@pytest.mark.parametrize(
    "servers",
    [
        "nats:4222",
        "http://nats:4222",
        "nats://a:4222,tls://b:4222",
        "nats://,nats://b",
        "nats://a:4222,b:4222",
    ],
)
def test_servers_of_nats_are_urls_of_one_kind(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], servers: str
) -> None:
    environment.setenv("FIATGATE_NATS_URL", servers)
    with pytest.raises(SystemExit):
        load(OrdersSettings)
    assert "NATS_URL: expected nats://user:password@host:port" in capsys.readouterr().err


def test_a_comma_in_a_password_of_nats_separates_no_servers(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("FIATGATE_NATS_URL", "nats://orders:a,b@one:4222, nats://orders:a,b@two:4222")
    assert nats_servers(load(OrdersSettings).nats_url) == [
        "nats://orders:a,b@one:4222",
        "nats://orders:a,b@two:4222",
    ]


def test_a_pool_smaller_than_the_threads_is_a_problem(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.setenv("FIATGATE_THREADS", "8")
    environment.setenv("FIATGATE_ORDERS_POOL_SIZE", "7")

    with pytest.raises(SystemExit):
        load(OrdersSettings)

    assert "FIATGATE_ORDERS_POOL_SIZE: expected at least as many" in capsys.readouterr().err


def test_settings_are_frozen_and_do_not_show_their_secrets(environment: pytest.MonkeyPatch) -> None:
    settings = load(OrdersSettings)

    with pytest.raises(ValidationError):
        settings.threads = 9
    assert "hunter" not in repr(settings)
    assert "hunter" not in str(settings)


def test_a_misspelled_argument_is_refused(environment: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError):
        OrdersSettings(thread=3)  # type: ignore[call-arg]


def test_every_setting_can_be_listed_with_name_default_and_meaning() -> None:
    listed = {setting.variables[0]: setting for setting in describe(OrdersSettings)}

    assert listed["FIATGATE_ORDERS_DATABASE_URL"].default == "required"
    assert listed["FIATGATE_ORDERS_BIND"].variables == ["FIATGATE_ORDERS_BIND", "FIATGATE_ORDERS_ADDRESS"]
    assert listed["FIATGATE_ORDERS_THREADS"].variables == ["FIATGATE_ORDERS_THREADS", "FIATGATE_THREADS"]
    assert listed["FIATGATE_RETRY_DELAYS"].default == "30,60"
    assert listed["FIATGATE_ALLOW_PRIVATE"].default == "off"
    assert listed["FIATGATE_MASTER_KEYS"].meaning == "keys that encrypt secrets"
    assert all(setting.meaning for setting in listed.values()), (
        "a setting nobody explains can't be documented"
    )


@pytest.mark.parametrize("text", ["127.0.0.1:0", "[::1]:65535", "0.0.0.0:80", "invoices:50051"])
def test_a_host_and_port_is_taken(environment: pytest.MonkeyPatch, text: str) -> None:
    environment.setenv("FIATGATE_ORDERS_BIND", text)

    assert load(OrdersSettings).bind == text


@pytest.mark.parametrize("text", ["127.0.0.1", ":80", "a:b", "a:65536", "::1:80", "dns:///a:80", "a b:80"])
def test_what_is_no_host_and_port_is_not_taken(environment: pytest.MonkeyPatch, text: str) -> None:
    environment.setenv("FIATGATE_ORDERS_BIND", text)

    with pytest.raises(SystemExit):
        load(OrdersSettings)

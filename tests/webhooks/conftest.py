"""A webhooks service per test, on the module's database, beside the module's identity service."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.local.ports import free_ports
from tests.support.clock import ManualClock
from tests.support.signing import PUBLIC_KEYS, SEAL_KEY
from tests.webhooks.house import House, MerchantsHouse, empty
from tests.webhooks.worker_process import SHORT_LEASE, WorkerProcess


@pytest.fixture(scope="module")
def merchants(database_url: Callable[[str], str]) -> Iterator[MerchantsHouse]:
    """The module's identity service; whoever closes it must be the last."""
    house = MerchantsHouse(database_url("identity"))
    yield house
    house.close()


@pytest.fixture
def make_house(
    database_url: Callable[[str], str], merchants: MerchantsHouse
) -> Iterator[Callable[..., House]]:
    """`make_house(clock=…, webhook_timeout_seconds=1)`: further processes of the service on one database, each by its
    own way to it if it has one (`database=`, a URL).
    """
    made: list[House] = []

    def make(*, database: str | None = None, **options: Any) -> House:
        house = House(database or database_url("webhooks"), merchants, **options)
        if not made:
            empty(house.deps)
        made.append(house)
        return house

    yield make
    for house in made:
        house.close()


@pytest.fixture
def house(make_house: Callable[..., House]) -> House:
    """The service on a clock that stands still."""
    return make_house(clock=ManualClock())


@pytest.fixture
def live_house(make_house: Callable[..., House]) -> House:
    """The service on the machine's clock, with a timeout that no test waits for."""
    return make_house(webhook_timeout_seconds=25)


@pytest.fixture
def another(make_house: Callable[..., House]) -> House:
    """A worker beside `worker`, in this process, not running yet."""
    return make_house(**SHORT_LEASE)


@pytest.fixture
def worker(
    another: House, database_url: Callable[[str], str], nats_url: str, tmp_path: Path
) -> Iterator[WorkerProcess]:
    """`python -m services.webhooks work` on the same database."""
    environment = {
        "FIATGATE_WEBHOOKS_DATABASE_URL": database_url("webhooks"),
        "FIATGATE_WEBHOOKS_ADDRESS": f"127.0.0.1:{free_ports(1)[0]}",
        "FIATGATE_IDENTITY_ADDRESS": another.merchants.address,
        "FIATGATE_NATS_URL": nats_url,
        "FIATGATE_WEBHOOK_ALLOW_PRIVATE": "on",
        "FIATGATE_FACT_PUBLIC_KEYS": ",".join(PUBLIC_KEYS),
        "FIATGATE_WEBHOOKS_SEAL_KEYS": SEAL_KEY,
        **{f"FIATGATE_{name.upper()}": str(value) for name, value in SHORT_LEASE.items()},
    }
    worker = WorkerProcess(environment, tmp_path / "worker.log")
    yield worker
    worker.process.kill()
    worker.process.wait()

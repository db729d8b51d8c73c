"""The demo world of a first start, and a new key for its merchant: `python -m deploy.local.seed HOME`.

Everything goes through the services' gRPC, like an operator's commands. Safe to run again: the next start completes an
interrupted first one. Once the demo merchant exists, it only makes a key, so an operator's changes stay.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from demo import seeding
from deploy.local.home import Home, write_private_json
from fiatgate.catalog.v1.catalog_pb2_grpc import CatalogServiceStub
from fiatgate.invoices.v1.invoices_pb2_grpc import DealDeskServiceStub
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from kit.base.config.processes import CliSettings
from kit.base.config.variables import load
from kit.rpc import actors
from kit.rpc.client import channel
from kit.rpc.errors import Refused


@retry(
    retry=retry_if_exception(lambda error: isinstance(error, Refused) and error.reason == "DB_UNAVAILABLE"),
    stop=stop_after_delay(30),
    wait=wait_fixed(0.2),
    reraise=True,
)
def seed(home: Home, stack: dict[str, Any]) -> None:
    """Makes the demo world unless its merchant exists, and writes a new key and secret of the merchant to `demo.json`.

    Raises kit.rpc.errors.Refused.
    """
    known = home.demo() or {}
    addresses = {service: place["address"] for service, place in stack["services"].items()}
    identity = load(CliSettings).identity
    with (
        channel(addresses["identity"], name="identity", identity=identity) as merchants,
        channel(addresses["catalog"], name="catalog", identity=identity) as catalog,
        channel(addresses["invoices"], name="invoices", identity=identity) as invoices,
    ):
        of_merchants = MerchantsServiceStub(merchants)
        merchant = seeding.demo_merchant(of_merchants, known.get("merchant_id"))
        if merchant is None:
            seeding.seed_catalog(CatalogServiceStub(catalog))
            seeding.seed_requisites(DealDeskServiceStub(invoices))
            merchant = seeding.seed_merchant(of_merchants)
        key = seeding.new_key(of_merchants, merchant)
    made = {
        "merchant_id": merchant.merchant_id,
        "owner_email": merchant.owner_email,
        "key_id": key.key_id,
        "api_key": key.api_key,
        "secret": key.secret,
    }
    write_private_json(home.demo_file, known | made)


if __name__ == "__main__":
    _home = Home(Path(sys.argv[1]))
    actors.carry_cli(f"make-run@{socket.gethostname()}")
    seed(_home, _home.running_stack())

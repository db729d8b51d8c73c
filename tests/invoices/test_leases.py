"""How long invoices uses merchants' answer for a choice of a method (docs/decisions/0003)."""

from collections.abc import Callable
from uuid import UUID

from fiatgate.merchants.v1 import merchants_pb2 as pb
from services.identity import rpc
from services.identity.config import IdentitySettings
from services.identity.wiring import wire
from services.invoices.clients import IdentityClient
from tests.invoices.conftest import World
from tests.support.serving import TEST_MASTER_KEY, serving
from tests.support.signing import SEAL_KEY


def test_a_merchant_is_used_for_its_lease_and_a_banned_one_has_none(
    world: World, database_url: Callable[[str], str]
) -> None:
    """The acts of `world` do not wait, so that the test sees an answer of before."""
    settings = IdentitySettings(
        seal_keys=(SEAL_KEY,),
        database_url=database_url("identity"),
        bind="127.0.0.1:0",
        desk_url="http://localhost:8081",
        dashboard_url="http://localhost:8082",
        master_keys=(TEST_MASTER_KEY,),
        key_lease_milliseconds=1000,
    )
    deps, seconds = wire(settings), [100.0]
    id = world.merchant.merchant_id
    with serving(rpc.add_to, deps) as address:
        client = IdentityClient(address, now_seconds=lambda: seconds[0])

        def status_at(now_seconds: float) -> str:
            seconds[0] = now_seconds
            return pb.MerchantStatus.Name(client.merchant(UUID(id)).status)

        assert status_at(100.0) == "MERCHANT_STATUS_ACTIVE"
        world.merchants.BanMerchant(pb.BanMerchantRequest(merchant_id=id))
        try:
            assert status_at(100.875) == "MERCHANT_STATUS_ACTIVE"
            assert status_at(101.0) == "MERCHANT_STATUS_BANNED"
        finally:
            world.merchants.UnbanMerchant(pb.UnbanMerchantRequest(merchant_id=id))
        assert status_at(101.0) == "MERCHANT_STATUS_ACTIVE"
    deps.db.dispose()

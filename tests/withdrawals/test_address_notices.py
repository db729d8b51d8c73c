"""A new address is told to identity, whose database has the e-mail then: none is lost while identity is away."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from sqlalchemy import text

from deploy.local.ports import free_ports
from kit.base.ids import new_id
from services.identity import rpc as accounts_rpc
from services.identity import wiring as accounts_wiring
from services.identity.config import IdentitySettings
from services.withdrawals.clients import IdentityClient
from services.withdrawals.operations import addresses
from services.withdrawals.workers import workers
from tests.support.serving import TEST_MASTER_KEY, serving
from tests.support.signing import SEAL_KEY
from tests.withdrawals.conftest import TRC20, TRON_ADDRESS, House

OWNER = """
WITH made AS (
  INSERT INTO people (id, email, name, roles, created_at) VALUES (:id, :email, 'Olga', '{}', now()) RETURNING id
) INSERT INTO memberships (person_id, merchant_id, roles, created_at)
SELECT id, :merchant_id, '{owner}', now() FROM made
"""


@pytest.fixture(scope="module")
def accounts(database_url: Callable[[str], str]) -> Iterator[accounts_wiring.Deps]:
    """A real identity service with a mail server that is away."""
    settings = IdentitySettings(
        seal_keys=(SEAL_KEY,),
        database_url=database_url("identity"),
        bind="127.0.0.1:0",
        master_keys=(TEST_MASTER_KEY,),
        desk_url="http://localhost:8081",
        dashboard_url="http://localhost:8082",
        smtp_url=f"smtp://127.0.0.1:{free_ports(1)[0]}",
        smtp_from="fiatgate@example.com",
    )
    deps = accounts_wiring.wire(settings)
    yield deps
    deps.db.dispose()


def test_the_owners_are_told_though_identity_was_away_first(
    house: House, accounts: accounts_wiring.Deps
) -> None:
    merchant = new_id()
    with accounts.db.transaction() as tx:
        tx.execute(text(OWNER), {"id": new_id(), "email": f"{merchant}@example.com", "merchant_id": merchant})
    added = addresses.add_address(
        house.deps,
        merchant_id=str(merchant),
        withdrawal_method_id=TRC20,
        address=TRON_ADDRESS,
        address_memo=None,
        name="exchange",
    )
    # Removed before anybody was told: the owners learn of it all the same.
    addresses.remove_address(house.deps, address_id=str(added.id))
    away = IdentityClient(f"127.0.0.1:{free_ports(1)[0]}")
    assert addresses.tell_of_new_address(house.deps, away)
    assert not addresses.tell_of_new_address(house.deps, away), "after a pause"
    assert house.execute("SELECT address_id::text FROM address_notices") == [(str(added.id),)]
    house.clock.advance(seconds=addresses.NOTICE_LEASE.seconds)
    with serving(accounts_rpc.add_to, accounts) as address:
        assert addresses.tell_of_new_address(house.deps, IdentityClient(address))
    assert not addresses.tell_of_new_address(house.deps, away)
    assert house.execute("SELECT address_id FROM address_notices") == []
    with accounts.db.transaction() as tx:
        (row,) = tx.execute(
            text("SELECT id, merchant_id, network, address, added_by, usable_at FROM notices")
        )
    assert tuple(row) == (added.id, merchant, "TRC20", TRON_ADDRESS, "the operator", added.usable_at)


def test_a_process_tells_identity_where_people_are_served(house: House) -> None:
    assert "address-notices" not in {each.name for each in workers(house.deps)}
    there = replace(house.deps, identity=IdentityClient("127.0.0.1:1"))
    assert "address-notices" in {each.name for each in workers(there)}

"""The call of withdrawals to accounts: an e-mail to a merchant's owners."""

from fiatgate.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from kit.base.proto import timestamp_from
from kit.base.tls import Identity
from kit.rpc.client import channel
from services.withdrawals.store.views import AddressView

SECONDS_PER_CALL = 5.0


class AccountsClient:
    """The client of the accounts service. Connects on first use."""

    def __init__(self, address: str, *, identity: Identity | None = None) -> None:
        opened = channel(address, name="accounts", identity=identity)
        self._stub = accounts_pb2_grpc.NoticesServiceStub(opened)

    def tell_owners(self, address: AddressView) -> None:
        """Lets the merchant's owners be told of a new address. Raises `Refused`."""
        request = accounts_pb2.TellOwnersRequest(
            notice_id=str(address.id),
            merchant_id=str(address.merchant_id),
            network=address.network,
            address=address.address,
            added_by=address.added_by,
            usable_at=timestamp_from(address.usable_at),
        )
        self._stub.TellOwners(request, timeout=SECONDS_PER_CALL)

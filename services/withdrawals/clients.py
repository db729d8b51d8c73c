"""The calls of withdrawals to identity: it tells owners by e-mail, and knows who is banned."""

from uuid import UUID

from fiatgate.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from fiatgate.merchants.v1 import merchants_pb2, merchants_pb2_grpc
from kit.base.proto import timestamp_from
from kit.base.tls import Identity
from kit.rpc.breaker import Breaker
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from services.withdrawals import errors
from services.withdrawals.store.views import AddressView

SECONDS_PER_CALL = 5.0
MERCHANT_SECONDS = 2.0
"""Of a call that a member waits for."""


class IdentityClient:
    """Connects on first use."""

    def __init__(self, address: str, *, identity: Identity | None = None) -> None:
        opened = channel(address, name="identity", identity=identity)
        self._notices = accounts_pb2_grpc.NoticesServiceStub(opened)
        self._merchants = merchants_pb2_grpc.MerchantsServiceStub(opened)
        self._calls = Breaker("identity", calls="members", seconds=MERCHANT_SECONDS)

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
        self._notices.TellOwners(request, timeout=SECONDS_PER_CALL)

    def refusal_of(self, merchant_id: UUID) -> Refused | None:
        """Returns why the merchant may start nothing now: MERCHANT_NOT_FOUND, OWNER_BLOCKED or MERCHANT_BLOCKED; None
        when it may. Raises `Refused` when identity does not answer.
        """
        request = merchants_pb2.GetMerchantRequest(merchant_id=str(merchant_id))
        try:
            merchant = self._calls.call(self._merchants.GetMerchant, request).merchant
        except Refused as refused:
            if refused.reason != "MERCHANT_NOT_FOUND":
                raise
            return refused
        if merchant.owner_blocked:
            return errors.owner_blocked()
        return errors.merchant_blocked() if merchant.status == merchants_pb2.MERCHANT_STATUS_BANNED else None

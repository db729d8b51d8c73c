"""The calls of webhooks to other services: signing secrets and the default address from identity."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from fiatgate.merchants.v1 import merchants_pb2, merchants_pb2_grpc
from kit.base.tls import Identity
from kit.rpc.client import channel
from kit.rpc.values import LIST_MOST_ROWS

SECONDS_PER_CALL = 5.0

SigningKey = tuple[UUID, UUID]
"""A merchant, and the key that created the invoice."""


@dataclass(frozen=True)
class SigningSecrets:
    """Present signing secrets; merchants without an active key are absent.

    leased              the keys whose own secret it is, not that of a newer key in the place of a deactivated one
    lease_milliseconds  how long a leased one may be used, from the start of the call (docs/decisions/0003)
    """

    of_key: dict[SigningKey, str] = field(default_factory=dict)
    leased: set[SigningKey] = field(default_factory=set)
    lease_milliseconds: int = 0


class IdentityClient:
    """The client of the identity service. Connects on first use."""

    def __init__(self, address: str, *, identity: Identity | None = None) -> None:
        opened = channel(address, name="identity", identity=identity)
        self._stub = merchants_pb2_grpc.MerchantsServiceStub(opened)

    def signing_secrets(self, keys: Iterable[SigningKey]) -> dict[SigningKey, str]:
        """Returns the present signing secret of each; merchants without an active key are absent.

        Raises `Refused` (DB_UNAVAILABLE) when identity doesn't answer.
        """
        return self.leased_secrets(keys).of_key

    def callback_url(self, merchant_id: UUID) -> str:
        """Returns the merchant's default address of webhooks; empty: it has none. Raises `Refused`."""
        request = merchants_pb2.GetMerchantRequest(merchant_id=str(merchant_id))
        return self._stub.GetMerchant(request, timeout=SECONDS_PER_CALL).merchant.callback_url

    def leased_secrets(self, keys: Iterable[SigningKey]) -> SigningSecrets:
        """Returns the same with the time for which they may be used."""
        wanted = sorted(set(keys))
        of_key: dict[SigningKey, str] = {}
        leased: set[SigningKey] = set()
        lease_milliseconds = 0
        for start in range(0, len(wanted), LIST_MOST_ROWS):
            request = merchants_pb2.GetSigningSecretsRequest(
                queries=[
                    merchants_pb2.SigningSecretQuery(
                        merchant_id=str(merchant_id), preferred_key_id=str(key_id)
                    )
                    for merchant_id, key_id in wanted[start : start + LIST_MOST_ROWS]
                ]
            )
            answer = self._stub.GetSigningSecrets(request, timeout=SECONDS_PER_CALL)
            lease_milliseconds = answer.lease_milliseconds
            for one in answer.secrets:
                key = UUID(one.merchant_id), UUID(one.preferred_key_id)
                of_key[key] = one.secret
                if one.key_id == one.preferred_key_id:
                    leased.add(key)
        return SigningSecrets(of_key, leased, lease_milliseconds)

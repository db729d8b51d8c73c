"""The calls of webhooks to other services: signing secrets from merchants."""

from collections.abc import Iterable
from uuid import UUID

from fiatgate.merchants.v1 import merchants_pb2, merchants_pb2_grpc
from kit.base.tls import Identity
from kit.rpc.client import channel
from kit.rpc.values import LIST_MOST_ROWS

SECONDS_PER_CALL = 5.0

SigningKey = tuple[UUID, UUID]
"""A merchant, and the key that created the invoice."""


class MerchantsClient:
    """The client of the merchants service. Connects on first use."""

    def __init__(self, address: str, *, identity: Identity | None = None) -> None:
        opened = channel(address, name="merchants", identity=identity)
        self._stub = merchants_pb2_grpc.MerchantsServiceStub(opened)

    def signing_secrets(self, keys: Iterable[SigningKey]) -> dict[SigningKey, str]:
        """Returns the present signing secret of each; merchants without an active key are absent.

        Raises `Refused` (DB_UNAVAILABLE) when merchants doesn't answer.
        """
        wanted = sorted(set(keys))
        secrets: dict[SigningKey, str] = {}
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
            secrets |= {
                (UUID(one.merchant_id), UUID(one.preferred_key_id)): one.secret for one in answer.secrets
            }
        return secrets

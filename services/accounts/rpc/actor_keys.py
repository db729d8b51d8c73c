"""fiatgate.accounts.v1.ActorKeysService."""

import grpc

from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1 import accounts_pb2_grpc
from services.accounts.operations import keys
from services.accounts.wiring import Deps

# ruff: noqa: N802  the proto names the methods


class ActorKeysServicer(accounts_pb2_grpc.ActorKeysServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def ListActorKeys(
        self, request: pb.ListActorKeysRequest, context: grpc.ServicerContext
    ) -> pb.ListActorKeysResponse:
        return pb.ListActorKeysResponse(
            keys=[
                pb.ActorKey(key_id=str(each.id), public_key=each.public_key)
                for each in keys.list_actor_keys(self._deps)
            ]
        )

    def RotateActorKey(
        self, request: pb.RotateActorKeyRequest, context: grpc.ServicerContext
    ) -> pb.RotateActorKeyResponse:
        return pb.RotateActorKeyResponse(key_id=keys.rotate_actor_key(self._deps))

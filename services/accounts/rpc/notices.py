"""fiatgate.accounts.v1.NoticesService."""

import grpc

from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1 import accounts_pb2_grpc
from kit.base.proto import optional_datetime
from services.accounts.operations import notices
from services.accounts.wiring import Deps

# ruff: noqa: N802  the proto names the methods


class NoticesServicer(accounts_pb2_grpc.NoticesServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def TellOwners(
        self, request: pb.TellOwnersRequest, context: grpc.ServicerContext
    ) -> pb.TellOwnersResponse:
        notices.tell_owners(
            self._deps,
            notice_id=request.notice_id,
            merchant_id=request.merchant_id,
            network=request.network,
            address=request.address,
            added_by=request.added_by,
            usable_at=optional_datetime(request, "usable_at"),
        )
        return pb.TellOwnersResponse()

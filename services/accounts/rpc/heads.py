"""fiatgate.accounts.v1.HeadsService."""

import grpc

from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1 import accounts_pb2_grpc
from services.accounts.operations import heads
from services.accounts.wiring import Deps

# ruff: noqa: N802  the proto names the methods


class HeadsServicer(accounts_pb2_grpc.HeadsServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def KeepHead(self, request: pb.KeepHeadRequest, context: grpc.ServicerContext) -> pb.KeepHeadResponse:
        own = heads.keep_head(self._deps, service=request.service, count=request.count, hash=request.hash)
        return pb.KeepHeadResponse() if own is None else pb.KeepHeadResponse(count=own.count, hash=own.hash)

"""fiatgate.accounts.v1.HeadsService."""

import grpc

from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1 import accounts_pb2_grpc
from kit.audit.chain import Head
from services.accounts.operations import heads
from services.accounts.wiring import Deps

# ruff: noqa: N802  the proto names the methods


class HeadsServicer(accounts_pb2_grpc.HeadsServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def KeepHead(self, request: pb.KeepHeadRequest, context: grpc.ServicerContext) -> pb.KeepHeadResponse:
        now = self._deps.clock.now()
        kept, own = heads.keep_head(
            self._deps,
            service=request.service,
            given=Head(request.count, request.hash, now),
            continues=request.continues,
            own=Head(request.own_count, request.own_hash, now),
        )
        answer = pb.KeepHeadResponse(kept_count=kept.count, kept_hash=kept.hash)
        if own is not None:
            answer.count, answer.hash = own.count, own.hash
        return answer

"""fiatgate.accounts.v1.HeadsService."""

import grpc

from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1 import accounts_pb2_grpc
from kit.base.proto import timestamp_from
from services.accounts.operations import heads
from services.accounts.wiring import Deps

# ruff: noqa: N802  the proto names the methods


class HeadsServicer(accounts_pb2_grpc.HeadsServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def ExchangeHeads(
        self, request: pb.ExchangeHeadsRequest, context: grpc.ServicerContext
    ) -> pb.ExchangeHeadsResponse:
        made = heads.exchange_heads(
            self._deps,
            service=request.service,
            number=request.number,
            count=request.count,
            hash=request.hash,
        )
        return pb.ExchangeHeadsResponse(
            count=made.own.count,
            hash=made.own.hash,
            number=made.number,
            at=timestamp_from(made.at),
            kept_count=made.theirs.count,
            kept_hash=made.theirs.hash,
        )

    def RestartExchanges(
        self, request: pb.RestartExchangesRequest, context: grpc.ServicerContext
    ) -> pb.RestartExchangesResponse:
        made = heads.restart_exchanges(
            self._deps, service=request.service, count=request.count, hash=request.hash, note=request.note
        )
        return pb.RestartExchangesResponse(service=made.service, number=made.number)

"""One list of requests from the lists of all services: their ids are UUIDv7, so their order is that of time."""

from __future__ import annotations  # the asynchronous stubs exist for the type checker only

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fiatgate.approvals.v1 import approvals_pb2 as pb
from kit.rpc.errors import Refused, is_away

if TYPE_CHECKING:
    from fiatgate.approvals.v1.approvals_pb2_grpc import ApprovalsServiceAsyncStub


@dataclass(frozen=True)
class Merged:
    """The requests of all services.

    approvals  in the order of the request
    away       services that did not answer: their requests are missing
    """

    approvals: list[pb.Approval]
    away: list[str]


async def merged(
    services: Mapping[str, ApprovalsServiceAsyncStub], request: pb.ListApprovalsRequest
) -> Merged:
    """Returns the first requests of all services, at most `limit`. Raises the refusal of a service that answers."""
    answers = await asyncio.gather(
        *(stub.ListApprovals(request) for stub in services.values()), return_exceptions=True
    )
    approvals: list[pb.Approval] = []
    away: list[str] = []
    for name, answer in zip(services, answers, strict=True):
        if isinstance(answer, pb.ListApprovalsResponse):
            approvals += answer.approvals
        elif isinstance(answer, Refused) and is_away(answer):
            away.append(name)
        else:
            raise answer
    approvals.sort(key=lambda each: each.approval_id, reverse=not request.oldest_first)
    return Merged(approvals[: request.limit], away)

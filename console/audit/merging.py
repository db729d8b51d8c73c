"""One list of acts from the lists of all services.

The ids of acts are UUIDv7, so their order is that of time, and the last id of a page is the place where each service
continues.
"""

from __future__ import annotations  # the asynchronous stubs exist for the type checker only

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fiatgate.audit.v1 import audit_pb2 as pb
from kit.rpc.errors import Refused, is_away

if TYPE_CHECKING:
    from fiatgate.audit.v1.audit_pb2_grpc import AuditServiceAsyncStub


@dataclass(frozen=True)
class Merged:
    """The acts of all services.

    acts  newest first
    away  services that did not answer, or are of the version before: their acts are missing
    """

    acts: list[pb.Act]
    away: list[str]


async def merged(services: Mapping[str, AuditServiceAsyncStub], request: pb.ListActsRequest) -> Merged:
    """Returns the newest acts of all services, at most `limit`. Raises the refusal of a service that answers."""
    answers = await asyncio.gather(
        *(stub.ListActs(request) for stub in services.values()), return_exceptions=True
    )
    acts: list[pb.Act] = []
    away: list[str] = []
    for name, answer in zip(services, answers, strict=True):
        if isinstance(answer, pb.ListActsResponse):
            acts += answer.acts
        elif isinstance(answer, Refused) and is_away(answer):
            away.append(name)
        else:
            raise answer
    acts.sort(key=lambda act: act.act_id, reverse=True)
    return Merged(acts[: request.limit], away)

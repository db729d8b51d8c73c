"""Calls of operations in this process as a given actor, and the decisions of a second person."""

import contextvars
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc
import pytest

from fiatgate.approvals.v1 import approvals_pb2 as pb
from fiatgate.approvals.v1.approvals_pb2_grpc import ApprovalsServiceStub
from kit.base import actors
from kit.base.actors import Actor
from kit.base.tls import Identity
from kit.rpc import errors, tls
from kit.rpc.actors import CLI_KEY
from kit.rpc.approvals import ApprovalsServicer
from kit.rpc.errors import Refused

R = TypeVar("R")

ADMIN = frozenset({"admin"})
ANN = Actor(kind="person", name="ann@example.com", surface="desk", person_id=uuid.uuid4(), roles=ADMIN)
BEN = Actor(kind="person", name="ben@example.com", surface="desk", person_id=uuid.uuid4(), roles=ADMIN)
CID = Actor(kind="cli", name="root@bastion", surface="cli", on_behalf_of="cid@example.com")


def acting(actor: Actor, call: Callable[[], R]) -> R:
    """The answer of a call whose author is the actor."""

    def run() -> R:
        actors.bind(actor)
        return call()

    return contextvars.copy_context().run(run)


def refusal(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        call(*args, **kwargs)
    return caught.value


def requested(actor: Actor, call: Callable[[], Any]) -> str:
    """The id of the request that the call makes instead of its change."""
    try:
        acting(actor, call)
    except Refused as refused:
        assert refused.reason == "APPROVAL_REQUIRED", refused
        return refused.metadata["approval_id"]
    raise AssertionError("the call needed no second person")


class Approvals:
    """The requests of one service in this process."""

    def __init__(self, servicer: ApprovalsServicer[Any]) -> None:
        self._servicer = servicer

    def approve(self, actor: Actor, approval_id: str, note: str = "") -> pb.Approval:
        request = pb.ApproveRequest(approval_id=approval_id, note=note)
        return acting(actor, lambda: self._servicer.Approve(request, _NO_CONTEXT)).approval

    def link(self, actor: Actor, approval_id: str) -> str:
        """The link of the invitation that the approval made."""
        request = pb.ApproveRequest(approval_id=approval_id)
        return acting(actor, lambda: self._servicer.Approve(request, _NO_CONTEXT)).link

    def reject(self, actor: Actor, approval_id: str, note: str = "") -> pb.Approval:
        request = pb.RejectRequest(approval_id=approval_id, note=note)
        return acting(actor, lambda: self._servicer.Reject(request, _NO_CONTEXT)).approval

    def of(self, object: str) -> list[pb.Approval]:
        request = pb.ListApprovalsRequest(object=object)
        return list(self._servicer.ListApprovals(request, _NO_CONTEXT).approvals)


_NO_CONTEXT: Any = None
"""The servicer uses none."""


@contextmanager
def second_person(
    address: str, *, name: str = "second@tests", service: str = "", identity: Identity | None = None
) -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """A function that makes a call to the service at `address`; None when another person approved it.

    With mTLS it needs an `identity`, and the service's name.
    """
    if identity is None:
        opened = grpc.insecure_channel(address)
    else:
        credentials = tls.channel_credentials(identity.current())
        opened = grpc.secure_channel(address, credentials, [tls.expecting(service)])
    with opened as channel:
        stub = ApprovalsServiceStub(channel)

        def by_two(call: Callable[[], Any]) -> Any:
            try:
                return call()
            except Refused as refused:
                if refused.reason != "APPROVAL_REQUIRED":
                    raise
                for approval_id in refused.metadata["approval_id"].split():
                    request = pb.ApproveRequest(approval_id=approval_id)
                    try:
                        stub.Approve(request, timeout=5, metadata=((CLI_KEY, name),))
                    except grpc.RpcError as error:
                        raise errors.refused_from_rpc_error(error) from None
                return None

        yield by_two

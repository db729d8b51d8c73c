"""The request that waits for a second person when a command changes its object in another way."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from rich.markup import escape

from cli import connection, output, tables
from fiatgate.approvals.v1 import approvals_pb2 as pb
from kit.rpc.errors import Refused

T = TypeVar("T")


def reporting_rejected(service: str, object: str, change: Callable[[], T]) -> T:
    """Makes the change, and reports on stderr the pending request of the object that it has rejected."""
    waiting = _pending(service, object)
    made = change()
    for each in waiting:
        now = connection.approvals(service).GetApproval(pb.GetApprovalRequest(approval_id=each.approval_id))
        if now.approval.state == pb.APPROVAL_STATE_REJECTED:
            request = f"{each.summary} (requested by {each.requested_by})"
            output.note(f"This has rejected a request that waited: {escape(tables.printable(request))}")
    return made


def _pending(service: str, object: str) -> Sequence[pb.Approval]:
    wanted = pb.ListApprovalsRequest(object=object, state=pb.APPROVAL_STATE_PENDING, limit=1)
    try:
        return connection.approvals(service).ListApprovals(wanted).approvals
    except Refused:  # a report must not be in the way of the change
        return ()

"""`fiatgate approvals …`: requests for a second person, of all services that have them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Annotated, Final, TypeVar

import typer
from rich.markup import escape

from cli import author, connection, listing, output, staff, tables
from cli.command import argument, command, group, option
from cli.ids import Ambiguous
from cli.listing import Table
from fiatgate.approvals.v1 import approvals_pb2 as pb
from kit.rpc.errors import Refused, not_found

T = TypeVar("T")

app = group(
    "approvals", "Requests that wait for a second person: what one requested, another approves or rejects."
)

SERVICES: Final = ("withdrawals", "invoices", "catalog", "identity")
"""The services that have such requests."""

TABLE: Final = Table(
    columns="approval_id: id | state | requested_at: requested at | requested_by: requested by"
    " | summary: what approval does",
    stacks="approval_id state | requested_by requested_at | summary",
    empty="No such requests",
    ids=("approval_id",),
    csv="approval_id | service | state | requested_at | requested_by | act | object | merchant_id | summary"
    " | note | decided_at | decided_by | decision_note",
)
WAITING: Final = replace(TABLE, empty="No request waits for a second person")
ID: Final = argument("approval_id", "ID", "The request's id, or its first characters.")
NOTE: Final = option("note", "TEXT", "The reason, which is kept with the decision.")


@command(
    *(app, "list", "", pb.ListApprovalsRequest),
    "state",
    option("object", "KIND:ID", "Only requests about this thing: withdrawal:0197…"),
    option("oldest_first", None, "In the order of time.", default=False),
    option("after_approval_id", "ID", "Begin after this one: the next page.", "--after", default=""),
    modes="csv",
)
def list_all(
    request: pb.ListApprovalsRequest,
    *,
    state: Annotated[
        str, typer.Option(metavar="S", help="pending, approved, rejected, decided, or all.")
    ] = "pending",
    limit: listing.Limit = listing.ROWS,
) -> None:
    """List requests, newest first; without options those that wait."""
    if request.after_approval_id:
        request.after_approval_id = _found(request.after_approval_id).approval_id
    word = None if state in ("all", "decided") else state
    request.state = output.enum_number(pb.ApprovalState.DESCRIPTOR, word)  # type: ignore[assignment]  # a number of it
    request.decided = state == "decided"
    table = WAITING if state == "pending" else TABLE
    listing.show_page(table, request, _listed, "approvals", "approval_id", limit=limit)


@command(app, "show", "0197…", pb.GetApprovalRequest, ID)
def show(request: pb.GetApprovalRequest) -> None:
    """Show a request: what its approval does, its author, and its decision."""
    output.record(_found(request.approval_id))


@command(app, "approve", "0197…", pb.ApproveRequest, ID, NOTE)
def approve(
    request: pb.ApproveRequest,
    context: typer.Context,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Approve without a question.")] = False,
) -> None:
    """Do what another person requested. It is checked again. You can't approve your own request."""
    output.require_yes(yes=yes)
    asked = _found(request.approval_id)
    doubts = _doubts(author.named(context), requester=staff.named_in(asked.requested_by))
    if not yes and asked.state == pb.APPROVAL_STATE_PENDING:
        output.lead(f"{asked.requested_by} requested: {asked.summary}")
        for doubt in doubts:
            output.lead(doubt)
        typer.confirm("Approve?", abort=True, err=True)
    request.approval_id = asked.approval_id
    answer = connection.approvals(asked.service).Approve(request)
    _warn(doubts if yes else ())
    if output.mode.json:
        output.print_json(output.plain(answer.approval) | {"link": answer.link or None})
        return
    output.lead(f"Approved and done: {answer.approval.summary}")
    if answer.link:
        output.lead("Send this link to the person. It works once, within 72 hours:")
        output.lead(answer.link)


@command(app, "reject", '0197… --note "Another address"', pb.RejectRequest, ID, NOTE)
def reject(request: pb.RejectRequest, context: typer.Context) -> None:
    """Reject a request, or withdraw your own. It is kept, and changes nothing."""
    asked = _found(request.approval_id)
    request.approval_id = asked.approval_id
    rejected = connection.approvals(asked.service).Reject(request).approval
    _warn(_doubts(author.named(context)))
    output.outcome(rejected, f"Rejected: {rejected.summary}")


def _doubts(checker: str, *, requester: str = "") -> list[str]:
    """Returns a sentence for each of the two people who is no active person of the staff."""
    of_checker = staff.doubt(checker) if checker else ""
    of_requester = staff.doubt(requester) if requester else ""
    return [
        *([f"Check the address of --as: {of_checker}."] if of_checker else []),
        *([f"Check the requester: {of_requester}."] if of_requester else []),
    ]


def _warn(doubts: Sequence[str]) -> None:
    for doubt in doubts:
        output.note(f"[yellow]{escape(tables.printable(doubt))}[/yellow]")


def _found(beginning: str) -> pb.Approval:
    """Returns the one request whose id begins so. Raises Ambiguous, and Refused when there is none."""
    request = pb.GetApprovalRequest(approval_id=beginning.strip())
    found = [each for each in _answers(lambda service: _get(service, request)) if each is not None]
    if not found:
        raise not_found("APPROVAL_NOT_FOUND", f"No request has an id that begins with {beginning}")
    if len(found) > 1:
        raise Ambiguous("request", beginning, [each.approval_id for each in found], more=False)
    return found[0]


def _get(service: str, request: pb.GetApprovalRequest) -> pb.Approval | None:
    try:
        return connection.approvals(service).GetApproval(request).approval
    except Refused as refused:
        if refused.reason != "APPROVAL_NOT_FOUND":
            raise
        return None


def _listed(wanted: pb.ListApprovalsRequest) -> pb.ListApprovalsResponse:
    """Returns the requests of all services in the order of time: their ids begin with it."""
    lists = _answers(lambda service: connection.approvals(service).ListApprovals(wanted).approvals)
    found = sorted(
        chain.from_iterable(lists), key=lambda each: each.approval_id, reverse=not wanted.oldest_first
    )
    return pb.ListApprovalsResponse(approvals=found)


def _answers(call: Callable[[str], T]) -> Sequence[T]:
    """Returns the answer of each service, and names those that are away. Raises Refused when all are."""
    found, away = connection.answers(SERVICES, call)
    for service in away:
        output.note(f"[bold red]{service} does not answer[/bold red]: its requests are missing here")
    return found

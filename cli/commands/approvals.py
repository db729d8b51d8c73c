"""`fiatgate approvals …`: requests for a second pair of eyes, of all services that have them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Annotated, Any, Final, TypeVar

import typer
from rich.markup import escape

from cli import author, connection, csv_file, output, paging, staff, tables
from cli.csv_file import Csv
from cli.ids import Ambiguous
from cli.output import Json
from fiatgate.approvals.v1 import approvals_pb2 as pb
from kit.rpc.errors import Refused, not_found
from kit.rpc.values import LIST_MOST_ROWS

T = TypeVar("T")

app = typer.Typer(
    help="Requests that wait for a second person: what one requested, another approves or rejects.",
    no_args_is_help=True,
)

SERVICES: Final = ("withdrawals", "invoices", "catalog", "accounts")
"""The services that have such requests."""

COLUMNS: Final = {
    "approval_id": "id",
    "state": "state",
    "requested_at": "requested at",
    "requested_by": "requested by",
    "summary": "what approval does",
}
CSV_COLUMNS: Final = (
    *("approval_id", "service", "state", "requested_at", "requested_by", "act", "object", "merchant_id"),
    *("summary", "note", "decided_at", "decided_by", "decision_note"),
)
STACKS: Final = (("approval_id", "state"), ("requested_by", "requested_at"), ("summary",))

Id = Annotated[str, typer.Argument(metavar="ID", help="The request's id, or its first characters.")]
Note = Annotated[str, typer.Option(metavar="TEXT", help="The reason, which is kept with the decision.")]


@app.command("list", epilog="Example: fiatgate approvals list")
def list_all(
    *,
    state: Annotated[
        str, typer.Option(metavar="S", help="pending, approved, rejected, decided, or all.")
    ] = "pending",
    object: Annotated[
        str, typer.Option(metavar="KIND:ID", help="Only requests about this thing: withdrawal:0197…")
    ] = "",
    oldest_first: Annotated[bool, typer.Option("--oldest-first", help="In the order of time.")] = False,
    after: Annotated[str, typer.Option(metavar="ID", help="Begin after this one: the next page.")] = "",
    limit: paging.Limit = paging.ROWS,
    as_csv: Csv = False,
    as_json: Json = False,
) -> None:
    """List requests, newest first; without options those that wait."""
    wanted = pb.ListApprovalsRequest(
        object=object,
        limit=paging.asked(limit),
        oldest_first=oldest_first,
        after_approval_id=_found(after).approval_id if after else "",
    )
    word = {"all": None, "decided": None}.get(state, state)
    wanted.state = output.enum_number(pb.ApprovalState.DESCRIPTOR, word)  # type: ignore[assignment]  # see deals
    wanted.decided = state == "decided"
    if as_csv:
        csv_file.write(_csv_rows(wanted), CSV_COLUMNS)
        return
    listed = _listed(wanted)
    found = paging.page(listed, limit)
    rows = [output.plain(each) for each in found]
    if not as_json:
        short = output.shortened([each.approval_id for each in found])
        rows = [row | {"approval_id": short[row["approval_id"]]} for row in rows]
    empty = "No request waits for a second person" if state == "pending" else "No such requests"
    output.rows(rows, COLUMNS, as_json=as_json, empty=empty, stacks=STACKS)
    if paging.is_cut(listed, limit):
        paging.print_more(found[-1].approval_id)


def _csv_rows(wanted: pb.ListApprovalsRequest) -> Iterator[dict[str, Any]]:
    wanted.limit = LIST_MOST_ROWS
    while True:
        page = _listed(wanted)[:LIST_MOST_ROWS]
        yield from map(output.plain, page)
        if len(page) < LIST_MOST_ROWS:
            return
        wanted.after_approval_id = page[-1].approval_id


@app.command("show", epilog="Example: fiatgate approvals show 0197…")
def show(approval_id: Id, *, as_json: Json = False) -> None:
    """Show a request: what its approval does, its author, and its decision."""
    output.record(_found(approval_id), as_json=as_json)


@app.command("approve", epilog="Example: fiatgate approvals approve 0197…")
def approve(
    context: typer.Context,
    approval_id: Id,
    *,
    note: Note = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Approve without a question.")] = False,
    as_json: Json = False,
) -> None:
    """Do what another person requested. It is checked again. You can't approve your own request."""
    if as_json and not yes:
        raise typer.BadParameter("with --json there is no question: add --yes", param_hint="--yes")
    asked = _found(approval_id)
    doubts = _doubts(author.named(context), requester=staff.named_in(asked.requested_by))
    if not yes and asked.state == pb.APPROVAL_STATE_PENDING:
        output.lead(f"{asked.requested_by} requested: {asked.summary}")
        for doubt in doubts:
            output.lead(doubt)
        typer.confirm("Approve?", abort=True, err=True)
    request = pb.ApproveRequest(approval_id=asked.approval_id, note=note)
    answer = connection.approvals(asked.service).Approve(request)
    _warn(doubts if yes else ())
    if as_json:
        output.print_json(output.plain(answer.approval) | {"link": answer.link or None})
        return
    output.lead(f"Approved and done: {answer.approval.summary}")
    if answer.link:
        output.lead("Send this link to the person. It works once, within 72 hours:")
        output.lead(answer.link)


@app.command("reject", epilog='Example: fiatgate approvals reject 0197… --note "Another address"')
def reject(context: typer.Context, approval_id: Id, *, note: Note = "", as_json: Json = False) -> None:
    """Reject a request, or withdraw your own. It is kept, and changes nothing."""
    asked = _found(approval_id)
    request = pb.RejectRequest(approval_id=asked.approval_id, note=note)
    rejected = connection.approvals(asked.service).Reject(request).approval
    _warn(_doubts(author.named(context)))
    output.outcome(rejected, f"Rejected: {rejected.summary}", everything=False, as_json=as_json)


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


def _listed(wanted: pb.ListApprovalsRequest) -> Sequence[pb.Approval]:
    """Returns the requests of all services in the order of time: their ids begin with it."""
    lists = _answers(lambda service: connection.approvals(service).ListApprovals(wanted).approvals)
    found = chain.from_iterable(lists)
    return sorted(found, key=lambda each: each.approval_id, reverse=not wanted.oldest_first)


def _answers(call: Callable[[str], T]) -> Sequence[T]:
    """Returns the answer of each service, and names those that are away. Raises Refused when all are."""
    found, away = connection.answers(SERVICES, call)
    for service in away:
        output.note(f"[bold red]{service} does not answer[/bold red]: its requests are missing here")
    return found

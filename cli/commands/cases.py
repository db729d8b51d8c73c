"""`fiatgate cases …`: customers' reports of money that came late."""

from pathlib import Path
from typing import Annotated, Final

import typer

from cli import connection, grouping, ids, listing, output
from cli.command import argument, command, group, option, period
from cli.listing import Row, Table
from cli.verifying_money import unbacked
from fiatgate.invoices.v1 import invoices_pb2 as pb

app = group("cases", "Late money: the invoice had ended, and the customer reports a payment.")
NUMBER: Final = argument("number", "NUMBER", "The number that the customer has.", min=1)
TABLE: Final = Table(
    columns="number: case | state | age | due | merchant | invoice_id: invoice | deal_id: deal | note: customer's text"
    " | outcome: answer",
    stacks="number state | age due | invoice_id deal_id | merchant | note outcome",
    empty="No such cases",
    noun="case",
    ids=("invoice_id", "deal_id"),
)


@command(
    *(app, "list", "--open", pb.ListCasesRequest),
    option("open_only", None, "Only cases that wait for an answer.", "--open", default=False),
    ids.of_merchant(),
    *period("opened_from", "opened_before"),
    option("after_number", "NUMBER", "Begin after this one.", "--after", default=0),
)
def list_all(request: pb.ListCasesRequest, *, limit: listing.Limit = listing.ROWS) -> None:
    """List cases, newest first."""
    call = connection.desk().ListCases
    listing.show_page(
        *(TABLE, request, call, "cases", "number", "fiatgate cases show NUMBER"),
        limit=limit,
        for_people=_for_people,
    )


def _for_people(row: Row) -> Row:
    return {"state": "resolved" if row["resolved_at"] else "open", "age": output.age(row["opened_at"])}


@command(app, "show", "1001 --save-picture receipt.jpg", pb.GetCaseRequest, NUMBER)
def show(
    request: pb.GetCaseRequest,
    *,
    save_picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the picture that the customer sent here.")
    ] = None,
) -> None:
    """Show a case with its invoice, the requisite that the customer saw, and whether it has a picture."""
    whole = output.plain(connection.desk().GetCase(request))
    if save_picture is not None:
        save(save_picture, whole["case"]["deal_id"], pb.PROOF_KIND_CASE)
    if output.mode.json:
        output.print_json(whole["case"] | {name: whole[name] for name in ("invoice", "requisite", "proof")})
    else:
        grouping.print_case(whole)


@command(
    *(app, "resolve", '1001 --ended-as return --outcome "Sent back to your account"', pb.ResolveCaseRequest),
    NUMBER,
    option("outcome", "TEXT", "The answer; the customer reads it.", required=True),
    option(
        "ended_as",
        "WHAT",
        "What was done with the money: credit, return, answer_only.",
        required=True,
    ),
    modes="all",
)
def resolve(request: pb.ResolveCaseRequest) -> None:
    """Close a case with an answer; the invoice stays as it is. First credit the money (`fiatgate corrections make
    --kind late_credit`) or return it (`fiatgate refunds request --origin late`): an end that nothing backs is refused.
    """
    found = connection.desk().GetCase(pb.GetCaseRequest(number=request.number)).case
    missing = "" if found.HasField("resolved_at") else unbacked(found, request.ended_as)
    if missing:
        raise typer.BadParameter(missing, param_hint="--ended-as")
    case = connection.desk().ResolveCase(request).case
    output.outcome(case, f"Case {case.number} is closed; the customer reads your answer on the page.")


def save(file: Path, deal_id: str, kind: pb.ProofKind.ValueType) -> None:
    """Writes a customer's picture to a file that must not exist yet."""
    answer = connection.desk().GetProof(pb.GetProofRequest(deal_id=deal_id, kind=kind))
    try:
        with file.open("xb") as out:
            out.write(answer.content)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from None
    output.note(f"[dim]{file}: {answer.proof.content_type}, {answer.proof.size} bytes[/dim]")

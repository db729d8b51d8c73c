"""`fiatgate cases …`: customers' reports of money that came late."""

from pathlib import Path
from typing import Annotated

import typer

from cli import connection, grouping, output
from cli.output import INT64_MOST, Json
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.rpc.values import LIST_MOST_ROWS, LIST_ROWS

NAME = "cases"
app = typer.Typer(
    help="Late money: the invoice had ended, and the customer reports a payment.", no_args_is_help=True
)
Number = Annotated[
    int, typer.Argument(metavar="NUMBER", help="The number that the customer has.", min=1, max=INT64_MOST)
]
EARLIER_NAMES = {"token_normalize_func": lambda name: {"save-proof": "save-picture"}.get(name, name)}
"""For the commands with `--save-picture`, which was called `--save-proof` before."""
COLUMNS = ("number", "opened_at", "invoice_id", "deal_id", "resolved_at", "outcome")


@app.command("list", epilog="Example: fiatgate cases list --open")
def list_all(
    *,
    open_only: Annotated[bool, typer.Option("--open", help="Only cases that wait for an answer.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=LIST_MOST_ROWS)] = LIST_ROWS,
    as_json: Json = False,
) -> None:
    """List cases, newest first."""
    answer = connection.desk().ListCases(pb.ListCasesRequest(open_only=open_only, limit=limit))
    output.records(answer.cases, COLUMNS, as_json=as_json, empty="No such cases")


@app.command(
    "show",
    epilog="Example: fiatgate cases show 1001 --save-picture receipt.jpg",
    context_settings=EARLIER_NAMES,
)
def show(
    number: Number,
    *,
    save_picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the picture that the customer sent here.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a case with its invoice, the requisite that the customer saw, and whether it has a picture."""
    whole = output.plain(connection.desk().GetCase(pb.GetCaseRequest(number=number)))
    if save_picture is not None:
        save(save_picture, whole["case"]["deal_id"], pb.PROOF_KIND_CASE)
    if as_json:
        output.print_json(whole["case"] | {name: whole[name] for name in ("invoice", "requisite", "proof")})
    else:
        grouping.print_case(whole)


@app.command("resolve", epilog='Example: fiatgate cases resolve 1001 --outcome "Sent back to your account"')
def resolve(
    number: Number,
    *,
    outcome: Annotated[str, typer.Option(metavar="TEXT", help="The answer; the customer reads it.")],
    as_json: Json = False,
) -> None:
    """Close a case with an answer. The invoice stays as it is: pay back, or credit by a new invoice."""
    request = pb.ResolveCaseRequest(number=number, outcome=outcome)
    output.record(connection.desk().ResolveCase(request).case, as_json=as_json)


def save(file: Path, deal_id: str, kind: pb.ProofKind.ValueType) -> None:
    """Writes a customer's picture to a file that must not exist yet."""
    answer = connection.desk().GetProof(pb.GetProofRequest(deal_id=deal_id, kind=kind))
    try:
        with file.open("xb") as out:
            out.write(answer.content)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from None
    output.note(f"[dim]{file}: {answer.proof.content_type}, {answer.proof.size} bytes[/dim]")

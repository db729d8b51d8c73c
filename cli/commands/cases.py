"""`fiatgate cases …`: customers' reports of money that came late."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cli import connection, grouping, ids, names, output, paging
from cli.moments import Since, Until
from cli.output import INT64_MOST, Everything, Json
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.proto import timestamp_from

app = typer.Typer(
    help="Late money: the invoice had ended, and the customer reports a payment.", no_args_is_help=True
)
Number = Annotated[
    int, typer.Argument(metavar="NUMBER", help="The number that the customer has.", min=1, max=INT64_MOST)
]
EARLIER_NAMES = {"token_normalize_func": lambda name: {"save-proof": "save-picture"}.get(name, name)}
"""For the commands with `--save-picture`, which was called `--save-proof` before."""
COLUMNS = {
    "number": "case",
    "state": "state",
    "age": "age",
    "merchant": "merchant",
    "invoice_id": "invoice",
    "deal_id": "deal",
    "note": "customer's text",
    "outcome": "answer",
}
STACKS = (("number", "state"), ("age",), ("invoice_id", "deal_id"), ("merchant",), ("note", "outcome"))


@app.command("list", epilog="Example: fiatgate cases list --open")
def list_all(
    *,
    open_only: Annotated[bool, typer.Option("--open", help="Only cases that wait for an answer.")] = False,
    merchant: ids.OfMerchant = "",
    since: Since = None,
    until: Until = None,
    after: Annotated[
        int, typer.Option("--after", metavar="NUMBER", min=0, max=INT64_MOST, help="Begin after this one.")
    ] = 0,
    limit: paging.Limit = paging.ROWS,
    as_json: Json = False,
) -> None:
    """List cases, newest first."""
    request = pb.ListCasesRequest(
        open_only=open_only,
        limit=paging.asked(limit),
        opened_from=timestamp_from(since),
        opened_before=timestamp_from(until),
        after_number=after,
        merchant_id=merchant,
    )
    found = connection.desk().ListCases(request).cases
    paging.print_page(found, limit, table=_print_page, last_id=lambda last: str(last.number), as_json=as_json)


def _print_page(page: Sequence[pb.Case], *, more: bool) -> None:
    merchants = names.of_merchants(case.merchant_id for case in page)
    short = output.shortened(id for case in page for id in (case.invoice_id, case.deal_id))
    rows = [
        output.plain(case)
        | {
            "state": "resolved" if case.HasField("resolved_at") else "open",
            "age": output.age(output.plain(case)["opened_at"]),
            "merchant": merchants[case.merchant_id],
            "invoice_id": short[case.invoice_id],
            "deal_id": short[case.deal_id],
        }
        for case in page
    ]
    output.overview(output.counted("case", page, more=more), "fiatgate cases show NUMBER")
    output.rows(rows, COLUMNS, as_json=False, empty="No such cases", stacks=STACKS)


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
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Close a case with an answer. The invoice stays as it is: pay back, or credit by a new invoice."""
    request = pb.ResolveCaseRequest(number=number, outcome=outcome)
    case = connection.desk().ResolveCase(request).case
    sentence = f"Case {number} is closed; the customer reads your answer on the page."
    output.outcome(case, sentence, everything=everything, as_json=as_json)


def save(file: Path, deal_id: str, kind: pb.ProofKind.ValueType) -> None:
    """Writes a customer's picture to a file that must not exist yet."""
    answer = connection.desk().GetProof(pb.GetProofRequest(deal_id=deal_id, kind=kind))
    try:
        with file.open("xb") as out:
            out.write(answer.content)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from None
    output.note(f"[dim]{file}: {answer.proof.content_type}, {answer.proof.size} bytes[/dim]")

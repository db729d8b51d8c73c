"""`fiatgate audit …`: the acts of all services, merged by time, and the heads of their chains."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Any, Final

import typer

from cli import acts, connection, csv_file, ids, names, output, paging
from cli.csv_file import Csv
from cli.moments import Since, Until
from cli.output import Json
from console.words.acts import author_of
from fiatgate.audit.v1 import audit_pb2 as pb
from kit.base.proto import timestamp_from
from kit.base.services import SERVICES
from kit.rpc.values import LIST_MOST_ROWS

app = typer.Typer(
    help="Acts, newest first: the changes by people, the command line and programs, with their authors."
)

COLUMNS: Final = {
    "at": "time",
    "author": "author",
    "did": "did",
    "changed": "changed",
    "merchant": "merchant",
    "note": "note",
}
STACKS: Final = (("at", "merchant"), ("author", "note"), ("did", "changed"))
CSV_COLUMNS: Final = (
    *("at", "author", "act", "object", "merchant_id", "changes", "note", "refused", "service"),
    *("author_kind", "person_id", "session_id", "surface", "on_behalf_of", "request_id", "act_id"),
)


@app.callback(invoke_without_command=True, epilog="Example: fiatgate audit --act deal --since 24h")
def list_all(
    context: typer.Context,
    *,
    author: Annotated[
        str, typer.Option(metavar="AUTHOR", help="An e-mail address, a person's id, or USER@HOST.")
    ] = "",
    act: Annotated[
        str, typer.Option(metavar="ACT", help="deal.confirm, or deal for all acts on deals.")
    ] = "",
    object: Annotated[str, typer.Option(metavar="KIND:ID", help="deal:0197…, or deal for all deals.")] = "",
    merchant: ids.OfMerchant = "",
    since: Since = None,
    until: Until = None,
    after: Annotated[str, typer.Option(metavar="ACT_ID", help="Begin after this act: the next page.")] = "",
    limit: paging.Limit = paging.ROWS,
    as_csv: Csv = False,
    as_json: Json = False,
) -> None:
    """List acts, newest first. CSV has all of them, whatever the limit.

    Exit code 1 when a service did not answer.
    """
    if context.invoked_subcommand is not None:
        return
    request = pb.ListActsRequest(
        author=author,
        act=act,
        object=object,
        merchant_id=merchant,
        since=timestamp_from(since),
        until=timestamp_from(until),
        after_act_id=after,
    )
    away: list[str] = []
    if as_csv:
        request.limit = LIST_MOST_ROWS
        csv_file.write(map(_csv_row, acts.merged(request, away)), CSV_COLUMNS)
    else:
        request.limit = paging.asked(limit)
        found = list(islice(acts.merged(request, away), paging.asked(limit)))
        page = paging.page(found, limit)
        if as_json:
            output.print_json([output.plain(each) for each in page])
        else:
            _print_page(page, more=paging.is_cut(found, limit))
        if paging.is_cut(found, limit):
            output.note(f"[dim]More: add[/dim] --after {page[-1].act_id}")
    for service in away:
        output.refusal("NOT_LISTED", f"{service} did not answer, so its acts are missing here", {})
    if away:
        raise typer.Exit(1)


def _print_page(page: Sequence[pb.Act], *, more: bool) -> None:
    merchants = names.of_merchants(each.merchant_id for each in page if each.merchant_id)
    next_commands = ["fiatgate audit --object KIND:ID"] if page else []
    output.overview(output.counted("act", page, more=more), *next_commands)
    rows = [
        {
            "at": output.plain(each)["at"],
            "author": author_of(each),
            "did": acts.sentence_of(each),
            "changed": acts.changes_of(each),
            "merchant": merchants.get(each.merchant_id, ""),
            "note": each.note,
        }
        for each in page
    ]
    output.rows(rows, COLUMNS, as_json=False, empty="No such acts", stacks=STACKS)


def _csv_row(act: pb.Act) -> dict[str, Any]:
    row = output.plain(act)
    actor = row["actor"]
    return (
        row
        | {"author": author_of(act), "changes": acts.changes_of(act), "author_kind": actor["kind"]}
        | {name: actor[name] for name in ("person_id", "session_id", "surface", "on_behalf_of")}
    )


@app.command("heads", epilog="Example: fiatgate audit heads --json")
def heads(*, as_json: Json = False) -> None:
    """Show the ends of the chains. Keep them out of reach of those who administer the databases; later `fiatgate verify
    --heads FILE` finds acts that were removed or rewritten since.
    """
    found = list(_heads())
    if as_json:
        output.print_json({"heads": found})
        return
    output.overview(
        "The acts of each service up to now, each with the hash that they add up to.",
        "fiatgate audit heads --json > heads.json",
        "fiatgate verify --heads heads.json",
    )
    stacks = (("service",), ("count", "at"), ("hash",))
    output.rows(found, ("service", "count", "at", "hash"), as_json=False, empty="No acts yet", stacks=stacks)


@app.command(
    "restart-head", epilog="Example: fiatgate audit restart-head webhooks --note 'Restored a backup'"
)
def restart_head(
    service: Annotated[str, typer.Argument(help="The service whose database was restored.")],
    *,
    note: Annotated[str, typer.Option(help="The reason, for the act.")] = "",
    as_json: Json = False,
) -> None:
    """Have the other services keep the present head of a chain, although it is shorter than the one before: after a
    restored backup. Run `fiatgate verify` first and keep its report: acts that are missing now are not missed any more.
    """
    if service not in SERVICES:
        raise typer.BadParameter(f"not one of {', '.join(SERVICES)}", param_hint="SERVICE")
    head = acts.head_of(service).head
    keepers = [each for each in SERVICES if each != "accounts"] if service == "accounts" else ["accounts"]
    request = pb.RestartHeadRequest(service=service, count=head.count, hash=head.hash or bytes(32), note=note)
    for keeper in keepers:
        made = connection.audit(keeper).RestartHead(request)
    sentence = f"{' and '.join(keepers)} kept the head of {service} anew, of {head.count} acts."
    output.outcome(made, sentence, everything=False, as_json=as_json)


def _heads() -> Iterator[dict[str, Any]]:
    for service in SERVICES:
        answer = acts.head_of(service)
        if answer.HasField("head"):
            row = output.plain(answer.head)
            yield {"service": service, "count": row["count"], "at": row["at"], "hash": answer.head.hash.hex()}

"""`fiatgate audit …`: the acts of all services, merged by time, and the heads of their chains."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Final

import typer

from cli import acts, connection, ids, listing, output
from cli.command import command, option, period, shaped
from cli.listing import Row, Table
from console.words.acts import author_of
from fiatgate.audit.v1 import audit_pb2 as pb
from kit.base.services import SERVICES
from kit.rpc.values import LIST_MOST_ROWS

app = typer.Typer(
    name="audit",
    help="Acts, newest first: the changes by people, the command line and programs, with their authors.",
)

TABLE: Final = Table(
    columns="at: time | author | did | changed | merchant | note",
    stacks="at merchant | author note | did changed",
    empty="No such acts",
    noun="act",
    csv="at | author | act | object | merchant_id | changes | note | refused | service"
    " | actor.kind: author_kind | actor.person_id: person_id | actor.session_id: session_id"
    " | actor.surface: surface | actor.on_behalf_of: on_behalf_of | request_id | act_id",
)
HEADS: Final = Table(
    columns="service | count | at | hash", stacks="service | count at | hash", empty="No acts yet"
)


@app.callback(invoke_without_command=True, epilog="Example: fiatgate audit --act deal --since 24h")
@shaped(
    pb.ListActsRequest,
    option("author", "AUTHOR", "An e-mail address, a person's id, or USER@HOST."),
    option("act", "ACT", "deal.confirm, or deal for all acts on deals."),
    option("object", "KIND:ID", "deal:0197…, or deal for all deals."),
    ids.of_merchant(),
    *period("since", "until"),
    option("after_act_id", "ACT_ID", "Begin after this act: the next page.", "--after"),
    modes="csv",
)
def list_all(
    request: pb.ListActsRequest, context: typer.Context, *, limit: listing.Limit = listing.ROWS
) -> None:
    """List acts, newest first. CSV has all of them, whatever the limit.

    Exit code 1 when a service did not answer.
    """
    if context.invoked_subcommand is not None:
        return
    away: list[str] = []
    if output.mode.csv:
        request.limit = LIST_MOST_ROWS
        found = acts.merged(request, away)
        csv = (
            output.plain(each) | {"author": author_of(each), "changes": acts.changes_of(each)}
            for each in found
        )
        listing.write_csv(csv, TABLE.csv)
    else:
        request.limit = listing.asked(limit)
        some = list(islice(acts.merged(request, away), request.limit))
        page, more = some[:limit], listing.is_cut(some, limit)
        rows = [output.plain(each) | ({} if output.mode.json else _for_people(each)) for each in page]
        TABLE.show(rows, *["fiatgate audit --object KIND:ID"] * bool(page), more=more)
        if more:
            output.note(f"[dim]More: add[/dim] --after {page[-1].act_id}")
    output.end_without(away, "NOT_LISTED", "its acts are")


def _for_people(act: pb.Act) -> Row:
    return {"author": author_of(act), "did": acts.sentence_of(act), "changed": acts.changes_of(act)}


@command(app, "heads", "--json")
def heads() -> None:
    """Show the ends of the chains. Keep them out of reach of those who administer the databases; later `fiatgate verify
    --heads FILE` finds acts that were removed or rewritten since.
    """
    found = list(_heads())
    if output.mode.json:
        output.print_json({"heads": found})
        return
    HEADS.show(
        found,
        *("fiatgate audit heads --json > heads.json", "fiatgate verify --heads heads.json"),
        above="The acts of each service up to now, each with the hash that they add up to.",
    )


def _heads() -> Iterator[dict[str, Any]]:
    for service in SERVICES:
        answer = acts.head_of(service)
        if answer.HasField("head"):
            row = output.plain(answer.head)
            yield {"service": service, "count": row["count"], "at": row["at"], "hash": answer.head.hash.hex()}


@command(app, "restart-head", "webhooks --note 'Restored a backup'")
def restart_head(
    service: Annotated[str, typer.Argument(help="The service whose database was restored.")],
    *,
    note: Annotated[str, typer.Option(help="The reason, for the act.")],
) -> None:
    """Have the other services keep the present head of a chain, although it is shorter than the one before: after a
    restored backup. Run `fiatgate verify` first and keep its report: acts that are missing now are not missed any more.
    """
    if service not in SERVICES:
        raise typer.BadParameter(f"not one of {', '.join(SERVICES)}", param_hint="SERVICE")
    head = acts.head_of(service).head
    keepers = [each for each in SERVICES if each != "identity"] if service == "identity" else ["identity"]
    request = pb.RestartHeadRequest(service=service, count=head.count, hash=head.hash or bytes(32), note=note)
    for keeper in keepers:
        made = connection.audit(keeper).RestartHead(request)
    sentence = f"{' and '.join(keepers)} kept the head of {service} anew, of {head.count} acts."
    output.outcome(made, sentence)

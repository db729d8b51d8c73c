"""`fiatgate requisites …`"""

import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cli import connection, ids, output, several, tables
from cli.acts import sentence_of
from cli.commands import methods
from cli.output import Everything, Json
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.pasted import PastedRow, pasted_rows

app = typer.Typer(help="Accounts that customers pay to.", no_args_is_help=True)
COLUMNS = {
    "requisite_id": "requisite",
    "method_code": "method",
    "account": "account",
    "holder": "holder",
    "bank": "bank",
    "load": "open deals",
    "today": "today",
    "last_used_at": "last used",
    "enabled": "enabled",
}
STACKS = (
    ("requisite_id", "method_code"),
    ("account", "holder"),
    ("bank", "today"),
    ("load", "enabled"),
    ("last_used_at",),
)
LIST_COLUMNS: Final = ("account", "holder", "bank", "max_deals")
LIST_MOST_BYTES: Final = 256 * 1024


@app.command(
    "add",
    epilog='Example: fiatgate requisites add sepa --holder "A. Holder" --account DE02120300000000202051',
)
def add(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="Method code.")],
    *,
    holder: Annotated[str, typer.Option(metavar="H")],
    account: Annotated[str, typer.Option(metavar="A", help="Account or card number.")],
    bank: Annotated[str | None, typer.Option(metavar="B")] = None,
    max_deals: Annotated[
        int, typer.Option(metavar="N", min=1, max=10_000, help="Largest number of open deals on it.")
    ] = 100,
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Add an account to a payment method."""
    request = pb.AddRequisiteRequest(
        method_code=method, holder=holder, account=account, bank=bank, max_deals=max_deals
    )
    added = connection.desk().AddRequisite(request).requisite
    sentence = f"Added: customers may pay to {added.account} of {added.holder} by {added.method_code}."
    output.outcome(added, sentence, everything=everything, as_json=as_json)


@app.command("add-list", epilog="Example: fiatgate requisites add-list sepa accounts.csv")
def add_list(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="Method code.")],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV: account, holder, bank, max_deals; -: standard input.")
    ],
    *,
    check: Annotated[bool, typer.Option("--check", help="Only list what is wrong. Add nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Add the accounts of a list: all of them, or none. Exit code 1 when a line is wrong."""
    try:
        lines = pasted_rows(_text_of(file), LIST_COLUMNS)
        given = [_new(line) for line in lines]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from None
    request = pb.CheckRequisitesRequest(method_code=method, requisites=given)
    checked = [output.plain(each) for each in connection.desk().CheckRequisites(request).requisites]
    rows = [{"line": line.line} | row for line, row in zip(lines, checked, strict=True)]
    wrong = sum(bool(row["problem"]) for row in rows)
    if check or wrong:
        if not as_json:
            output.overview(f"{wrong} of {len(rows)} lines are wrong. Nothing was added.")
        stacks: tables.Stacks = (("line", "account"), ("field", "problem"))
        shown = ("line", "account", "field", "problem")
        output.rows(rows, shown, as_json=as_json, empty="No lines", stacks=stacks)
        raise typer.Exit(1 if wrong else 0)
    adding = pb.AddRequisitesRequest(method_code=method, requisites=given)
    added = connection.desk().AddRequisites(adding).requisites
    columns = ("requisite_id", "account", "holder", "bank", "max_deals")
    stacks = (("requisite_id",), ("account", "holder"), ("bank", "max_deals"))
    output.rows([output.plain(each) for each in added], columns, as_json=as_json, empty="None", stacks=stacks)


def _text_of(file: Path) -> str:
    """Returns the text of the file, or of standard input for "-". Raises ValueError for one that can't be read."""
    try:
        if str(file) == "-":
            content = sys.stdin.buffer.read(LIST_MOST_BYTES + 1)
        else:
            with file.open("rb") as opened:
                content = opened.read(LIST_MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror}") from None
    if len(content) > LIST_MOST_BYTES:
        raise ValueError(f"{file} has more than {LIST_MOST_BYTES // 1024} KiB")
    return content.decode("utf-8-sig")


def _new(line: PastedRow) -> pb.NewRequisite:
    """Returns the account of a line. Raises ValueError for a number of deals that is none."""
    cells = line.cells
    if cells["max_deals"] and not cells["max_deals"].isdecimal():
        raise ValueError(f"line {line.line}: max_deals is a number")
    return pb.NewRequisite(
        account=cells["account"],
        holder=cells["holder"],
        bank=cells["bank"] or None,
        max_deals=int(cells["max_deals"] or 0),
    )


@app.command("show", epilog="Example: fiatgate requisites show 0197…")
def show(
    requisite_id: ids.RequisiteId,
    *,
    days: Annotated[
        int, typer.Option(metavar="N", min=1, max=31, help="The days to count, up to today.")
    ] = 14,
    as_json: Json = False,
) -> None:
    """Show an account with its deals by day (UTC) and its history: who added, disabled and enabled it."""
    request = pb.GetRequisiteRequest(requisite_id=requisite_id, days=days)
    answer = connection.desk().GetRequisite(request)
    whole: dict[str, Any] = output.plain(answer)
    if as_json:
        output.print_json(whole)
        return
    acts = zip(whole["acts"], answer.acts, strict=True)
    history = [{"at": each["at"], "act": sentence_of(act)} for each, act in acts]
    account = whole["requisite"] | {"last_used_at": whole["last_used_at"]}
    output.groups({"account": account, "days": whole["days"], "history": history})


@app.command("list", epilog="Example: fiatgate requisites list --method sepa")
def list_all(
    *,
    method: Annotated[
        str, typer.Option(metavar="METHOD", help="Only requisites of this payment method.")
    ] = "",
    text: Annotated[
        str, typer.Option(metavar="TEXT", help="Only those with this in account, holder or bank.")
    ] = "",
    full: Annotated[bool, typer.Option("--full", help="Only those without a free place.")] = False,
    as_json: Json = False,
) -> None:
    """List accounts with their open deals, and the deals of today (UTC)."""
    methods.require_known(method)
    request = pb.ListRequisitesRequest(method_code=method, text=text, full=full, with_use=not as_json)
    answer = connection.desk().ListRequisites(request)
    rows = [output.plain(each) for each in answer.requisites]
    for row, use in zip(rows, answer.uses, strict=False):
        row["today"] = f"{use.completed} of {use.opened}: {use.amount}" if use.opened else None
        row["last_used_at"] = output.plain(use)["last_used_at"]
    if not as_json:
        short_ids = output.shortened(row["requisite_id"] for row in rows)
        rows = [
            row
            | {
                "requisite_id": short_ids[row["requisite_id"]],
                "load": f"{row['open_deals']} of {row['max_deals']}",
            }
            for row in rows
        ]
        output.overview(output.counted("requisite", rows))
    empty = "No requisites yet: fiatgate requisites add"
    output.rows(rows, COLUMNS, as_json=as_json, empty=empty, stacks=STACKS)


@app.command("disable", epilog="Example: fiatgate requisites disable 0197… 0198…")
def disable(
    requisite_ids: ids.RequisiteIds, *, everything: Everything = False, as_json: Json = False
) -> None:
    """Open no new deals on accounts; open ones continue. Exit code 1 when one was not disabled."""
    several.each(
        requisite_ids,
        lambda id: connection.desk().DisableRequisite(pb.DisableRequisiteRequest(requisite_id=id)).requisite,
        lambda each: f"Disabled: {each.account} gets no new deals; {each.open_deals} are open.",
        everything=everything,
        as_json=as_json,
    )


@app.command("enable", epilog="Example: fiatgate requisites enable 0197… 0198…")
def enable(requisite_ids: ids.RequisiteIds, *, everything: Everything = False, as_json: Json = False) -> None:
    """Open new deals on accounts again. Exit code 1 when one was not enabled."""
    several.each(
        requisite_ids,
        lambda id: connection.desk().EnableRequisite(pb.EnableRequisiteRequest(requisite_id=id)).requisite,
        lambda each: f"Enabled: {each.account} gets new deals.",
        everything=everything,
        as_json=as_json,
    )

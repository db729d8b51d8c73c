"""`fiatgate requisites …`"""

import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cli import connection, ids, output, several
from cli.acts import sentence_of
from cli.command import argument, command, group, option
from cli.commands import methods
from cli.listing import Table
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.money import amount_text
from kit.base.pasted import PastedRow, pasted_rows

app = group("requisites", "Accounts that customers pay to.")
METHOD: Final = argument("method_code", "METHOD", "Method code.")
TABLE: Final = Table(
    columns="requisite_id: requisite | method_code: method | account | holder | bank | load: open deals | today"
    " | last_used_at: last used | enabled",
    stacks="requisite_id method_code | account holder | bank today | load enabled | last_used_at",
    empty="No requisites yet: fiatgate requisites add",
    noun="requisite",
    ids=("requisite_id",),
)
CHECKED: Final = Table(
    columns="line | account | field | problem", stacks="line account | field problem", empty="No lines"
)
ADDED: Final = Table(
    columns="requisite_id | account | holder | bank | max_deals",
    stacks="requisite_id | account holder | bank max_deals",
    empty="None",
)
LIST_COLUMNS: Final = ("account", "holder", "bank", "max_deals")
LIST_MOST_BYTES: Final = 256 * 1024


@command(
    *(app, "add", 'sepa --holder "A. Holder" --account DE02120300000000202051', pb.AddRequisiteRequest),
    METHOD,
    option("holder", "H", required=True),
    option("account", "A", "Account or card number.", required=True),
    option("bank", "B"),
    option("max_deals", "N", "Largest number of open deals on it.", default=100, min=1, max=10_000),
    modes="all",
)
def add(request: pb.AddRequisiteRequest) -> None:
    """Add an account to a payment method."""
    added = connection.desk().AddRequisite(request).requisite
    sentence = f"Added: customers may pay to {added.account} of {added.holder} by {added.method_code}."
    output.outcome(added, sentence)


@command(app, "add-list", "sepa accounts.csv", pb.AddRequisitesRequest, METHOD)
def add_list(
    request: pb.AddRequisitesRequest,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV: account, holder, bank, max_deals; -: standard input.")
    ],
    *,
    check: Annotated[bool, typer.Option("--check", help="Only list what is wrong. Add nothing.")] = False,
) -> None:
    """Add the accounts of a list: all of them, or none. Exit code 1 when a line is wrong."""
    try:
        lines = pasted_rows(_text_of(file), LIST_COLUMNS)
        request.requisites.extend(_new(line) for line in lines)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from None
    checking = pb.CheckRequisitesRequest(method_code=request.method_code, requisites=request.requisites)
    checked = [output.plain(each) for each in connection.desk().CheckRequisites(checking).requisites]
    rows = [{"line": line.line} | row for line, row in zip(lines, checked, strict=True)]
    wrong = sum(bool(row["problem"]) for row in rows)
    if check or wrong:
        CHECKED.show(rows, above=f"{wrong} of {len(rows)} lines are wrong. Nothing was added.")
        raise typer.Exit(1 if wrong else 0)
    ADDED.show_all(connection.desk().AddRequisites(request).requisites)


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


@command(
    *(app, "show", "0197…", pb.GetRequisiteRequest),
    ids.one("requisite"),
    option("days", "N", "The days to count, up to today.", default=14, min=1, max=31),
)
def show(request: pb.GetRequisiteRequest) -> None:
    """Show an account with its deals by day (UTC) and its history: who added, disabled and enabled it."""
    answer = connection.desk().GetRequisite(request)
    whole: dict[str, Any] = output.plain(answer)
    if output.mode.json:
        output.print_json(whole)
        return
    acts = zip(whole["acts"], answer.acts, strict=True)
    history = [{"at": each["at"], "act": sentence_of(act)} for each, act in acts]
    account = whole["requisite"] | {"last_used_at": whole["last_used_at"]}
    output.groups({"account": account, "days": whole["days"], "history": history})


@command(
    *(app, "list", "--method sepa", pb.ListRequisitesRequest),
    option("method_code", "METHOD", "Only requisites of this payment method.", "--method"),
    option("text", "TEXT", "Only those with this in account, holder or bank."),
    option("full", None, "Only those without a free place.", default=False),
)
def list_all(request: pb.ListRequisitesRequest) -> None:
    """List accounts with their open deals, and the deals of today (UTC)."""
    methods.require_known(request.method_code)
    request.with_use = not output.mode.json
    answer = connection.desk().ListRequisites(request)
    rows = [output.plain(each) for each in answer.requisites]
    for row, use in zip(rows, answer.uses, strict=False):
        row["today"] = f"{use.completed} of {use.opened}: {amount_text(use.amount)}" if use.opened else None
        row["last_used_at"] = output.plain(use)["last_used_at"]
        row["load"] = f"{row['open_deals']} of {row['max_deals']}"
    TABLE.show(rows)


@command(app, "disable", "0197… 0198…", modes="all")
def disable(requisite_ids: ids.RequisiteIds) -> None:
    """Open no new deals on accounts; open ones continue. Exit code 1 when one was not disabled."""
    call = connection.desk().DisableRequisite
    several.each(
        requisite_ids,
        lambda id: call(pb.DisableRequisiteRequest(requisite_id=id)).requisite,
        lambda each: f"Disabled: {each.account} gets no new deals; {each.open_deals} are open.",
    )


@command(app, "enable", "0197… 0198…", modes="all")
def enable(requisite_ids: ids.RequisiteIds) -> None:
    """Open new deals on accounts again. Exit code 1 when one was not enabled."""
    call = connection.desk().EnableRequisite
    several.each(
        requisite_ids,
        lambda id: call(pb.EnableRequisiteRequest(requisite_id=id)).requisite,
        lambda each: f"Enabled: {each.account} gets new deals.",
    )

"""`fiatgate bank …`"""

from pathlib import Path
from typing import Annotated, Final

import typer

from cli import banking, connection, ids, listing, output, several
from cli.command import argument, command, group, option
from cli.listing import Table
from fiatgate.bank.v1 import bank_pb2 as pb
from fiatgate.bank.v1 import feed_pb2
from fiatgate.invoices.v1 import lines_pb2
from kit.base.money import amount_text, money_text
from kit.rpc.errors import invalid

app = group("bank", "Files of banks, their lines, and the deals that they have paid.")
connectors = group("bank connectors", "Programs that post the lines of accounts, with their keys.")
app.add_typer(connectors, name="connectors")
rules = group("bank rules", "Which lines confirm deals without a person.")
app.add_typer(rules, name="rules")
profiles = group("bank profiles", "The forms of CSV files, by name.")
app.add_typer(profiles, name="profiles")
LINES: Final = Table(
    columns="line_id: line | state | tier | booked_on: day | came: amount | counterparty_name: from | text"
    " | deal_id: deal",
    stacks="line_id | state tier | booked_on | came | counterparty_name text | deal_id",
    empty="No such lines: fiatgate bank import FILE",
    noun="line",
    ids=("line_id", "deal_id"),
)
IMPORTS: Final = Table(
    columns="import_id: import | state | imported_at: time | file_name: file | format | lines | new_lines: new"
    " | problem",
    stacks="import_id | state | imported_at | file_name format | lines new_lines | problem",
    empty="No file was imported: fiatgate bank import FILE",
    noun="import",
    ids=("import_id",),
)
CONNECTORS: Final = Table(
    columns="connector_id: connector | name | hint: key | accounts | heard_at: heard | silent | active",
    stacks="connector_id | name hint | accounts | heard_at silent | active",
    empty="No connectors yet: fiatgate bank connectors create NAME --account ACCOUNT:EUR",
    noun="connector",
    ids=("connector_id",),
)
PROFILES: Final = Table(
    columns="name | changed_at: changed | actor: changed by",
    stacks="name | changed_at actor",
    empty="No profile is saved yet: fiatgate bank profiles save NAME JSON_FILE",
    noun="profile",
)
RULES: Final = Table(
    columns="method_code: method | enabled: on | deal_most: most a deal | day_most: most a day | day_sum: today"
    " | currency_code: currency | actor: changed by | changed_at: changed",
    stacks="method_code enabled | deal_most day_most | day_sum currency_code | actor changed_at",
    empty="No line confirms a deal without a person: fiatgate bank rules on METHOD --deal 100 --day 1000",
    noun="rule",
)
DAYS: Final = Table(
    columns="day | account | currency_code: currency | opening | matched | proposed | unmatched | ignored | refunds"
    " | debits: other debits | reversed: taken back | closing | difference",
    stacks="day account | currency_code opening closing | matched proposed unmatched ignored"
    " | refunds debits reversed"
    " | difference",
    empty="No line was booked in these days: fiatgate bank import FILE",
    noun="day",
    csv="day | account | currency_code | opening | matched | proposed | unmatched | ignored | refunds | debits"
    " | reversed | closing | difference | lines | open_lines",
)
UNLINKED: Final = Table(
    columns="deal_id: deal | created_at: opened | amount_fiat: amount | currency_code: currency | account | reference"
    " | sender_name: sender",
    stacks="deal_id | created_at | amount_fiat currency_code | account reference | sender_name",
    empty="Each confirmed deal of these days has its bank line.",
    noun="deal",
    ids=("deal_id",),
    csv="deal_id | invoice_id | created_at | amount_fiat | currency_code | account | reference | sender_name",
)
LineIds = Annotated[list[str], ids.many("line", "LINE_ID …")]
FileArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="CAMT.052, .053, .054, MT940, or CSV with --profile; at most 8 MiB."),
]


@command(app, "import", "statement.xml", modes="all")
def import_file(
    file: FileArgument,
    *,
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME_OR_JSON_FILE", help="The form of a CSV file: docs/operators.md#csv-files."
        ),
    ] = "",
) -> None:
    """Import a bank's statement. It is taken whole, or refused whole; the same file again changes nothing."""
    request = pb.ImportFileRequest(content=_bytes_of(file, "FILE"), file_name=file.name)
    if Path(profile).is_file():
        request.profile = _text_of(Path(profile), "--profile")
    else:
        request.profile_name = profile
    _show(banking.imported(request))


@command(app, "demo-statement", modes="all")
def demo_statement() -> None:
    """Import a statement of an invented bank, with transfers for the deals of the demo merchant."""
    _show(banking.demo_statement())


def _show(found: pb.Import) -> None:
    if found.state == pb.IMPORT_STATE_REFUSED:
        raise invalid("BANK_FILE_REFUSED", found.problem)
    if found.state == pb.IMPORT_STATE_WAITING:
        output.outcome(found, "The file is kept and not read yet.", "fiatgate bank imports")
        return
    output.outcome(
        found,
        f"{found.lines} lines are taken, {found.new_lines} of them new.",
        "fiatgate bank lines --state proposed",
    )


def _bytes_of(file: Path, hint: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint=hint) from None


def _text_of(file: Path, hint: str) -> str:
    return _bytes_of(file, hint).decode(errors="replace")


@command(*(app, "imports", "", pb.ListImportsRequest), modes="csv")
def imports(request: pb.ListImportsRequest, *, limit: listing.Limit = listing.ROWS) -> None:
    """List the files that were imported, newest first."""
    listing.show_page(*(IMPORTS, request, connection.bank().ListImports, "imports", "import_id"), limit=limit)


@command(
    *(app, "lines", "--state unmatched", pb.ListLinesRequest),
    option("state", "S", "proposed, unmatched, matched, ignored, waiting, outgoing, reversed."),
    option("tier", "T", "certain, amount_differs, confirmed, ended, hint, none."),
    option("account", "A", "Only lines of this account.", default=""),
    option("deal_id", "ID", "Only lines of this deal.", "--deal", default="", parser=ids.parser_of("deal")),
    ids.after("line"),
    modes="csv",
)
def lines(request: pb.ListLinesRequest, *, limit: listing.Limit = listing.ROWS) -> None:
    """List the lines of banks, newest first."""
    listing.show_page(
        *(LINES, request, connection.bank().ListLines, "lines", "line_id", "fiatgate bank confirm LINE_ID"),
        limit=limit,
        for_people=lambda row: {
            "came": _came(row),
            "tier": row["tier"].replace("unspecified", ""),
        },
    )


def _came(row: listing.Row) -> str:
    """Returns the amount that waits, as the desk shows it: "11.27 EUR of 22.57" of a line that is used in part."""
    if row["state"] == "matched" or row["left"] == row["amount"]:
        return money_text(row["amount"], row["currency_code"])
    whole = amount_text(row["amount"], row["currency_code"])
    return f"{money_text(row['left'], row['currency_code'])} of {whole}"


@command(
    *(app, "day", "2026-11-28", pb.ListDaysRequest),
    argument("first_day", "DAY"),
    option("last_day", "DAY", "The last of several days.", "--until", default=""),
    option("account", "A", "Only this account.", default=""),
    option("after_key", "KEY", "Only days behind this one.", "--after", default=""),
    modes="csv",
)
def day(request: pb.ListDaysRequest, *, limit: listing.Limit = listing.ROWS) -> None:
    """Show the day's end of each account: what came and went beside the bank's balances. A difference other than zero
    means that lines are missing.
    """
    request.last_day = request.last_day or request.first_day
    listing.show_page(
        *(DAYS, request, connection.bank().ListDays, "days", "key", "fiatgate bank lines --state unmatched"),
        limit=limit,
    )


@command(
    *(app, "unlinked", "--from 2026-11-01 --until 2026-11-28", lines_pb2.ListUnlinkedDealsRequest),
    option("first_day", "DAY", "The first day on which they were opened.", "--from", required=True),
    option("last_day", "DAY", "The last one, at most 30 days later.", "--until", required=True),
    ids.after("deal"),
    modes="csv",
)
def unlinked(request: lines_pb2.ListUnlinkedDealsRequest, *, limit: listing.Limit = listing.ROWS) -> None:
    """List deals that were confirmed without a bank line, on accounts whose lines are imported, newest first."""
    known = connection.bank().ListAccounts(pb.ListAccountsRequest()).accounts
    request.accounts.extend(
        lines_pb2.ImportedAccount(account=each.account, first_day=each.first_day) for each in known
    )
    listing.show_page(
        *(UNLINKED, request, connection.line_payments().ListUnlinkedDeals, "deals", "deal_id"),
        *("fiatgate bank lines --state unmatched",),
        limit=limit,
    )


@command(app, "confirm", "0197…", modes="all")
def confirm(line_ids: LineIds) -> None:
    """Confirm the deals that are proposed for these lines, each paid by its line. Exit code 1 when one was not
    confirmed.
    """
    several.each(line_ids, banking.confirmed, lambda line: f"Confirmed: deal {output.short(line.deal_id)}.")


@command(app, "repair", modes="all")
def repair() -> None:
    """Fetch all payments by lines from invoices again, in the place of what bank knows of them, after a restore:
    `fiatgate verify` names what differs.
    """
    request = pb.FollowPaymentsRequest(replace_after=0)
    while after := connection.bank().FollowPayments(request).replace_after:
        request.replace_after = after
    output.outcome({"repaired": True}, "All payments are fetched.", "fiatgate verify")


@command(
    *(app, "ignore", "0197… --reason 'our own transfer'", pb.IgnoreLineRequest),
    ids.one("line", "LINE_ID"),
    option("reason", "TEXT", "For people.", required=True),
    modes="all",
)
def ignore(request: pb.IgnoreLineRequest) -> None:
    """Take a line out of the work."""
    connection.bank().IgnoreLine(request)
    output.outcome(request, "Ignored.", f"fiatgate bank restore {request.line_id}")


@command(*(app, "restore", "0197…", pb.RestoreLineRequest), ids.one("line", "LINE_ID"), modes="all")
def restore(request: pb.RestoreLineRequest) -> None:
    """Put an ignored line back."""
    connection.bank().RestoreLine(request)
    output.outcome(request, "It is looked at anew.", "fiatgate bank lines")


# -- connectors


@command(
    *(
        connectors,
        "create",
        "till-bank --account DE89370400440532013000:EUR",
        feed_pb2.CreateConnectorRequest,
    ),
    argument("name", "NAME", "Two keys with one name are the same source."),
    option(
        "silence_seconds",
        "S",
        "After so long without a post an alert is raised.",
        "--silence",
        default=0,
        min=0,
    ),
)
def create(
    request: feed_pb2.CreateConnectorRequest,
    *,
    account: Annotated[
        list[str],
        typer.Option(metavar="ACCOUNT:CURRENCY", help="An account that it may post for; may be repeated."),
    ],
) -> None:
    """Make a connector's key. It is shown only now."""
    for each in account:
        number, _, currency = each.rpartition(":")
        request.accounts.add(account=number, currency_code=currency)
    output.record(connection.feed().CreateConnector(request))
    output.note("[yellow]Save the key now: it cannot be shown again.[/yellow]")


@command(connectors, "list")
def list_connectors() -> None:
    """List connectors, active ones first, with the time of their last post."""
    found = [
        output.plain(each)
        for each in connection.feed().ListConnectors(feed_pb2.ListConnectorsRequest()).connectors
    ]
    for row in found if not output.mode.json else ():
        row["accounts"] = " ".join(f"{each['account']}:{each['currency_code']}" for each in row["accounts"])
    CONNECTORS.show(found)


@command(
    *(connectors, "revoke", "0197…", feed_pb2.RevokeConnectorRequest),
    ids.one("connector", "CONNECTOR_ID"),
    modes="all",
)
def revoke(request: feed_pb2.RevokeConnectorRequest) -> None:
    """Refuse a connector's key from now on."""
    found = connection.feed().RevokeConnector(request).connector
    output.outcome(found, f"Revoked: the key of {found.name}.", "fiatgate bank connectors list")


# -- profiles


@command(profiles, "list")
def list_profiles() -> None:
    """List the profiles of CSV files; --json has what each says."""
    found = connection.bank().ListCsvProfiles(pb.ListCsvProfilesRequest()).profiles
    PROFILES.show([output.plain(each) for each in found])


@command(
    *(profiles, "save", "savings savings.json", pb.SaveCsvProfileRequest),
    argument("name", "NAME"),
    modes="all",
)
def save(
    request: pb.SaveCsvProfileRequest,
    *,
    file: Annotated[Path, typer.Argument(metavar="JSON_FILE", help="As docs/operators.md#csv-files says.")],
) -> None:
    """Save the form of a bank's CSV files, in the place of one with this name. Earlier imports stay."""
    request.profile = _text_of(file, "JSON_FILE")
    saved = connection.bank().SaveCsvProfile(request).profile
    output.outcome(saved, f"Saved: {saved.name}.", f"fiatgate bank import FILE --profile {saved.name}")


@command(*(profiles, "delete", "savings", pb.DeleteCsvProfileRequest), argument("name", "NAME"), modes="all")
def delete(request: pb.DeleteCsvProfileRequest) -> None:
    """Delete a profile. Imports by it stay."""
    connection.bank().DeleteCsvProfile(request)
    output.outcome(request, f"Deleted: {request.name}.", "fiatgate bank profiles list")


# -- rules


@command(rules, "list")
def list_rules() -> None:
    """List the rules by which lines that certainly fit confirm deals without a person."""
    found = connection.line_payments().ListLineRules(lines_pb2.ListLineRulesRequest()).rules
    RULES.show([output.plain(each) for each in found])


@command(
    *(rules, "on", "sepa_eur --deal 100 --day 1000", lines_pb2.SetLineRuleRequest),
    argument("method_code", "METHOD"),
    option("deal_most", "AMOUNT", "The most that a deal may have.", "--deal", required=True),
    option("day_most", "AMOUNT", "The most that all deals of a day may have.", "--day", required=True),
    modes="all",
)
def on(request: lines_pb2.SetLineRuleRequest) -> None:
    """Let lines that certainly fit confirm deals of a method up to these limits. A second person approves it, or a
    higher limit.
    """
    request.enabled = True
    rule = connection.line_payments().SetLineRule(request).rule
    output.outcome(rule, f"Lines confirm deals of {rule.method_code}.", "fiatgate bank rules list")


@command(
    *(rules, "off", "sepa_eur", lines_pb2.SetLineRuleRequest), argument("method_code", "METHOD"), modes="all"
)
def off(request: lines_pb2.SetLineRuleRequest) -> None:
    """Leave all deals of a method to people, at once."""
    rule = connection.line_payments().SetLineRule(request).rule
    output.outcome(rule, f"People confirm deals of {rule.method_code}.", "fiatgate bank rules list")

"""`fiatgate verify`: verifies every cent, in one report."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from cli import acts, output, restoring, tables, verifying, verifying_bank, verifying_money
from cli.command import INT32_MOST, shaped
from cli.moments import moment
from cli.verifying import Findings, Repairs
from fiatgate.audit.v1 import audit_pb2
from kit.base.clock import SystemClock

EXAMPLE: Final = "fiatgate verify --repair"

PROBLEMS: Final = 1
UNREADABLE: Final = 3  # 2 is a wrong command
NOT_RUN: Final = 4

Check = Callable[[Findings], None]


@dataclass(frozen=True, kw_only=True)
class _Scope:
    """All, or the invoices that may have changed `since` a time; the heads to compare with."""

    grace_seconds: int
    known: Sequence[audit_pb2.Head]
    since: datetime | None


@shaped(None)
def verify(
    *,
    mend: Annotated[
        bool, typer.Option("--repair", help="Rebuild from PostgreSQL what is missing, then verify again.")
    ] = False,
    grace_seconds: Annotated[
        int,
        typer.Option(
            min=0, max=INT32_MOST, help="Invoices finished later than this may still be on their way."
        ),
    ] = 30,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            metavar="INVOICE_ID",
            help="With --repair: request that this invoice is announced as it is now, though its row was changed "
            "without the service; another person approves it. May be given again.",
        ),
    ] = None,
    repair_seconds: Annotated[
        int, typer.Option(min=1, max=INT32_MOST, help="Longest wait for the effects of a repair.")
    ] = 60,
    heads: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="From `fiatgate audit heads --json`: finds acts that were removed or rewritten since.",
        ),
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            metavar="TIME",
            parser=moment,
            help="After a restore to TIME: compare with the facts that NATS has stored since then, and read only "
            "invoices of the day before TIME and later; rows are not compared with their acts. 24h, "
            "2026-11-22T14:30.",
        ),
    ] = None,
) -> None:
    """Verify the books: each decided value has its act, the ledger sums to zero, each success is credited and announced
    once, and no act is missing.

    Exit code 0 when all is right, 1 when something is wrong, 3 when something could not be read, 4 when a check did not
    run to its end. Everything that can be read is checked in each case.
    """
    if accept and not mend:
        raise typer.BadParameter("it needs --repair", param_hint="--accept")
    if since is not None and since > SystemClock().now():
        raise typer.BadParameter("the time is in the future", param_hint="--since")
    scope = _Scope(grace_seconds=grace_seconds, known=_known(heads), since=since)
    findings = _verify(scope, quiet=output.mode.json)
    repairs = Repairs()
    if mend and findings.problems:
        repairs = verifying.repair(findings, accepted=accept or ())
        if since is not None:
            restoring.restore_forgotten(repairs, since=since)
        if repairs.done:
            findings = _verify_until_right(scope, repair_seconds)
    to_look_up = [] if since is None else restoring.withdrawals_to_look_up(since)
    _report(findings, repairs, scope, to_look_up)
    raise typer.Exit(exit_code(findings))


def exit_code(findings: Findings) -> int:
    """Returns 0 when all is right; of several, the gravest code."""
    if findings.problems:
        return PROBLEMS
    if findings.not_run:
        return NOT_RUN
    return UNREADABLE if findings.unreadable else 0


def _known(heads: Path | None) -> Sequence[audit_pb2.Head]:
    try:
        return () if heads is None else acts.exported(heads)
    except acts.NoHeads as error:
        raise typer.BadParameter(str(error), param_hint="--heads") from None


def _checks(scope: _Scope) -> dict[str, Check]:
    settled_before = SystemClock().now() - timedelta(seconds=scope.grace_seconds)
    after = "" if scope.since is None else restoring.before_ids_since(scope.since)
    first: dict[str, Check] = {"books": verifying.check_books}
    if scope.since is not None:
        first = {"facts of NATS": partial(restoring.check_forgotten, since=scope.since)}
    return {
        **first,
        "ledger": verifying.check_ledger,
        "credits": partial(verifying.check_credits, settled_before=settled_before, after=after),
        "corrections": verifying_money.check_corrections,
        "refunds": verifying_money.check_refunds,
        "cases": verifying_money.check_cases,
        "bank lines": partial(verifying_bank.check_lines, settled_before=settled_before),
        "webhook events": partial(verifying.check_webhooks, settled_before=settled_before, after=after),
        "stuck events": verifying.check_stuck_events,
        "parked events": verifying.check_parked,
        "acts": partial(verifying.check_acts, known=scope.known),
    }


def _verify(scope: _Scope, *, quiet: bool) -> Findings:
    findings = Findings()
    columns = (SpinnerColumn(), TextColumn("{task.description:15}"), TextColumn("{task.completed:,} read"))
    silent = quiet or not output.console.is_terminal
    with Progress(*columns, console=output.console, transient=True, disable=silent) as progress:
        for name, check in _checks(scope).items():
            findings.advance = partial(progress.advance, progress.add_task(name, total=None))
            with verifying.going_on(findings, name):
                check(findings)
    return findings


def _verify_until_right(scope: _Scope, repair_seconds: int) -> Findings:
    """Verifies again until the repaired facts have arrived or the time is over."""
    attempts = Retrying(
        retry=retry_if_result(lambda findings: bool(findings.problems)),
        stop=stop_after_delay(repair_seconds),
        wait=wait_fixed(0.5),
    )
    try:
        return attempts(_verify, scope, quiet=True)
    except RetryError as late:
        last: Findings = late.last_attempt.result()
        return last


def _report(findings: Findings, repairs: Repairs, scope: _Scope, to_look_up: Sequence[str]) -> None:
    if output.mode.json:
        output.print_json(
            {
                "ok": not exit_code(findings),
                "checked": findings.checked,
                "settling": findings.settling,
                "unchained": findings.unchained,
                "problems": [asdict(problem) for problem in findings.problems],
                "unreadable": findings.unreadable,
                "not_run": findings.not_run,
                "repaired": repairs.done,
                "refused": repairs.refused,
                "unlike": repairs.unlike,
                "to_look_up": to_look_up,
                "requested": repairs.requested,
            }
        )
        return
    show = partial(output.console.print, soft_wrap=True)  # ids in sentences are never broken over two lines
    counts = {name: f"{number:,}" for name, number in findings.checked.items()}
    output.record(counts, title="Checked")
    if findings.settling:
        output.note(f"[dim]{findings.settling} facts are still on their way (finished moments ago)[/dim]")
    if findings.unchained:
        output.note(f"[dim]{findings.unchained} acts of the last moments are not in the chain yet[/dim]")
    _report_repairs(repairs)
    lines = (
        *(("red", problem.check, problem.text) for problem in findings.problems),
        *(("red", "could not read", text) for text in findings.unreadable),
        *(("red", "not verified", text) for text in findings.not_run),
        *(("yellow", "look up", text) for text in to_look_up),
    )
    for colour, label, text in lines:
        show(f"[bold {colour}]{label}[/bold {colour}]  {escape(tables.printable(text))}")
    if not exit_code(findings):
        show(f"[bold green]{_all_right(scope, to_look_up)}[/bold green]")
    elif any(problem.invoice_id for problem in findings.problems) and not repairs.done:
        show("Some of this can be rebuilt: [bold]fiatgate verify --repair[/bold]")


def _all_right(scope: _Scope, to_look_up: Sequence[str]) -> str:
    """Returns a sentence that claims no more than was read."""
    if scope.since is None:
        return "Every cent is accounted for."
    but = ", but for the withdrawals to look up," if to_look_up else ","
    return (
        f"What the restore lost is accounted for{but} as far as NATS and the invoices created since "
        f"{restoring.created_since(scope.since):%Y-%m-%dT%H:%M:%SZ} show it. For every cent: fiatgate verify"
    )


def _report_repairs(repairs: Repairs) -> None:
    show = partial(output.console.print, soft_wrap=True)
    for line in repairs.done:
        show(f"[cyan]repaired[/cyan]  {escape(tables.printable(line))}")
    for invoice_id in repairs.refused:
        show(f"[bold red]not announced[/bold red]  invoice {invoice_id}: nothing proves it")
    for invoice_id, why in repairs.unlike.items():
        show(f"[bold red]not restored[/bold red]  invoice {invoice_id}: {escape(tables.printable(why))}")
    for approval_id in repairs.requested:
        show(
            f"Another person must approve it: [bold]fiatgate approvals approve {approval_id} --as THEIR_EMAIL[/bold]"
        )

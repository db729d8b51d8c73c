"""`fiatgate balance MERCHANT`, and with a month the statement of its ledger."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final

import typer

from cli import connection, csv_file, ids, output, paging
from cli.csv_file import Csv
from cli.moments import Month, month
from cli.output import Json
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.money import usdt_text
from kit.base.proto import timestamp_from
from kit.rpc.values import LIST_MOST_ROWS

EXAMPLE: Final = "fiatgate balance 0197…"

COLUMNS: Final = {
    "created_at": "time",
    "kind": "transfer",
    "of": "invoice or withdrawal",
    "amount": "USDT",
    "after.available": "available after",
    "after.reserved": "reserved after",
}
CSV_COLUMNS: Final = (
    *("transfer_id", "created_at", "kind", "invoice_id", "withdraw_uuid", "amount"),
    *("available_after", "reserved_after"),
)


def balance(
    merchant_id: ids.MerchantId,
    *,
    of_month: Annotated[
        Month | None,
        typer.Option("--month", metavar="YYYY-MM", parser=month, help="The statement of this month, in UTC."),
    ] = None,
    after: Annotated[str, typer.Option(metavar="ID", help="Begin after this transfer: the next page.")] = "",
    limit: paging.Limit = paging.ROWS,
    as_csv: Csv = False,
    as_json: Json = False,
) -> None:
    """Show a merchant's USDT: available, reserved, credited and withdrawn. With a month every transfer of it, with the
    balance after each.
    """
    if of_month is not None:
        _statement(merchant_id, of_month, after=after, limit=limit, as_csv=as_csv, as_json=as_json)
        return
    if as_csv or after:
        raise typer.BadParameter("transfers are listed by --month", param_hint="--month")
    answer = connection.withdrawals().GetBalance(pb.GetBalanceRequest(merchant_id=merchant_id))
    sentence = f"{answer.available} USDT can be withdrawn."
    output.outcome(answer, sentence, everything=True, as_json=as_json)


def _statement(
    merchant_id: str, of_month: Month, *, after: str, limit: int, as_csv: bool, as_json: bool
) -> None:
    span: dict[str, Any] = {
        "merchant_id": merchant_id,
        "created_from": timestamp_from(of_month.start),
        "created_before": timestamp_from(of_month.end),
    }
    request = pb.ListTransfersRequest(**span, after_transfer_id=after, with_balances=True)
    if as_csv:
        csv_file.write(_csv_rows(request), CSV_COLUMNS)
        return
    sums = connection.withdrawals().GetStatement(pb.GetStatementRequest(**span))
    request.limit = paging.asked(limit)
    found = connection.withdrawals().ListTransfers(request).transfers
    page = paging.page(found, limit)
    if as_json:
        output.print_json(output.plain(sums) | {"transfers": [output.plain(each) for each in page]})
    else:
        output.lead(f"{of_month}: {_held(sums.opening)} before, {_held(sums.closing)} after.")
        output.records(sums.sums, ("kind", "count", "amount"), as_json=False, empty="No transfers")
        output.console.print()
        _print_crossing(sums)
        output.console.print()
        _print_transfers(page)
    if paging.is_cut(found, limit):
        paging.print_more(page[-1].transfer_id, whole=True)


def _held(balance: pb.MerchantBalance) -> str:
    return f"{balance.available} USDT available and {balance.reserved} reserved"


def _print_crossing(sums: pb.GetStatementResponse) -> None:
    """Prints what a report of the month counts: the credits by the time of the payment."""
    credited = sum(
        (Decimal(each.amount) for each in sums.sums if each.kind == pb.TRANSFER_KIND_CREDIT), Decimal(0)
    )
    paid, elsewhere = Decimal(sums.crossing.paid), Decimal(sums.crossing.credited)
    output.console.print(
        f"Paid in the month, as reports count it: {usdt_text(credited - elsewhere + paid)} USDT. Of the credits above,"
        f" {usdt_text(elsewhere)} were paid in another month; {usdt_text(paid)} were credited in another one.",
        soft_wrap=True,
    )
    rows = [output.plain(each) for each in sums.crossing.credits]
    if rows:
        output.rows(rows, ("invoice_id", "paid_at", "credited_at", "amount"), as_json=False, empty="")


def _print_transfers(page: Sequence[pb.Transfer]) -> None:
    shown = output.shortened(each.invoice_id or each.withdraw_uuid for each in page)
    rows = [output.plain(each) | {"of": shown[each.invoice_id or each.withdraw_uuid]} for each in page]
    output.rows(rows, COLUMNS, as_json=False, empty="No transfers")


def _csv_rows(request: pb.ListTransfersRequest) -> Iterator[dict[str, Any]]:
    """Yields a row for each transfer, page by page. Each page begins with the balance at the end of the one before."""
    request.limit = LIST_MOST_ROWS
    while True:
        page = connection.withdrawals().ListTransfers(request).transfers
        for each in page:
            after = {"available_after": each.after.available, "reserved_after": each.after.reserved}
            yield output.plain(each) | after
        if len(page) < LIST_MOST_ROWS:
            return
        request.after_transfer_id = page[-1].transfer_id
        request.after_balance.CopyFrom(page[-1].after)

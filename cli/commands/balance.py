"""`fiatgate balance MERCHANT`, and with a month the statement of its ledger."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Final

import typer

from cli import connection, ids, listing, output
from cli.command import shaped
from cli.listing import Row, Table
from cli.moments import Month, month
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.money import amount_text, money_text, usdt_text
from kit.base.proto import timestamp_from
from kit.rpc.values import LIST_MOST_ROWS

EXAMPLE: Final = "fiatgate balance 0197…"

TRANSFERS: Final = Table(
    columns="created_at: time | kind: transfer | of | amount: USDT"
    " | after.available: available after | after.reserved: reserved after | after.owed: owed after",
    empty="No transfers",
    ids=("of",),
    csv="transfer_id | created_at | kind | invoice_id | withdraw_uuid | correction_id | refund_id | amount"
    " | after.available: available_after | after.reserved: reserved_after | after.owed: owed_after",
)
LESS: Final = "credited, less what went back"
"""The name of `credited` for people. Reports count what was credited, and leave out what went back."""
OF: Final = ("invoice_id", "withdraw_uuid", "correction_id", "refund_id")
SUMS: Final = Table(columns="kind | count | amount", empty="No transfers")
CREDITS: Final = Table(columns="invoice_id | paid_at | credited_at | amount", empty="")


@shaped(None, modes="csv")
def balance(
    merchant_id: ids.MerchantId,
    *,
    of_month: Annotated[
        Month | None,
        typer.Option("--month", metavar="YYYY-MM", parser=month, help="The statement of this month, in UTC."),
    ] = None,
    after: Annotated[str, typer.Option(metavar="ID", help="Begin after this transfer: the next page.")] = "",
    limit: listing.Limit = listing.ROWS,
) -> None:
    """Show a merchant's USDT: available, reserved, withdrawn, and credited, less what went back. With a month every
    transfer of it, with the balance after each.
    """
    if of_month is not None:
        _statement(merchant_id, of_month, after=after, limit=limit)
        return
    if output.mode.csv or after:
        raise typer.BadParameter("transfers are listed by --month", param_hint="--month")
    answer = connection.withdrawals().GetBalance(pb.GetBalanceRequest(merchant_id=merchant_id))
    values: dict[str, Any] = output.plain(answer)
    if not output.mode.json:
        values = {LESS if name == "credited" else name: amount_text(value) for name, value in values.items()}
    output.outcome(values, f"{money_text(answer.available, 'USDT')} can be withdrawn.", whole=True)


def _statement(merchant_id: str, of_month: Month, *, after: str, limit: int) -> None:
    span: dict[str, Any] = {
        "merchant_id": merchant_id,
        "created_from": timestamp_from(of_month.start),
        "created_before": timestamp_from(of_month.end),
    }
    request = pb.ListTransfersRequest(**span, after_transfer_id=after, with_balances=True)
    if output.mode.csv:
        listing.write_csv(_all_transfers(request), TRANSFERS.csv)
        return
    sums = connection.withdrawals().GetStatement(pb.GetStatementRequest(**span))
    request.limit = listing.asked(limit)
    found = [output.plain(each) for each in connection.withdrawals().ListTransfers(request).transfers]
    page = found[:limit]
    if output.mode.json:
        output.print_json(output.plain(sums) | {"transfers": page})
    else:
        output.lead(f"{of_month}: {_held(sums.opening)} before, {_held(sums.closing)} after.")
        SUMS.show_all(sums.sums)
        output.console.print()
        _print_crossing(sums)
        output.console.print()
        TRANSFERS.show([each | {"of": next(filter(None, map(each.get, OF)))} for each in page])
    if listing.is_cut(found, limit):
        listing.print_more(page[-1]["transfer_id"], whole=True)


def _held(balance: pb.MerchantBalance) -> str:
    owed = f", {amount_text(balance.owed)} owed" if Decimal(balance.owed) else ""
    return f"{money_text(balance.available, 'USDT')} available and {amount_text(balance.reserved)} reserved{owed}"


def _print_crossing(sums: pb.GetStatementResponse) -> None:
    """Prints what a report of the month counts: the credits by the time of the payment."""
    credited = sum(
        (Decimal(each.amount) for each in sums.sums if each.kind == pb.TRANSFER_KIND_CREDIT), Decimal(0)
    )
    paid, elsewhere = Decimal(sums.crossing.paid), Decimal(sums.crossing.credited)
    output.console.print(
        f"Paid in the month, as reports count it: {_usdt(credited - elsewhere + paid)} USDT. Of the credits above,"
        f" {_usdt(elsewhere)} were paid in another month; {_usdt(paid)} were credited in another one.",
        soft_wrap=True,
    )
    if sums.crossing.credits:
        CREDITS.show_all(sums.crossing.credits)


def _usdt(amount: Decimal) -> str:
    return amount_text(usdt_text(amount))


def _all_transfers(request: pb.ListTransfersRequest) -> Iterator[Row]:
    """Yields a row for each transfer, page by page. Each page begins with the balance at the end of the one before."""
    request.limit = LIST_MOST_ROWS
    while True:
        page = connection.withdrawals().ListTransfers(request).transfers
        yield from map(output.plain, page)
        if len(page) < LIST_MOST_ROWS:
            return
        request.after_transfer_id = page[-1].transfer_id
        request.after_balance.CopyFrom(page[-1].after)

"""`fiatgate withdrawals …`"""

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import typer

from cli import connection, csv_file, ids, names, output, paging, pending, several, stories
from cli.csv_file import Csv
from cli.moments import Since, Until
from cli.output import INT32_MOST, Everything, Json
from console.words.withdrawals import history
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from kit.base.proto import timestamp_from
from kit.rpc.errors import Refused
from kit.rpc.values import LIST_MOST_ROWS

app = typer.Typer(
    help="Withdrawals and their methods: create, process, complete, fail, cancel.", no_args_is_help=True
)
COLUMNS = {
    "withdraw_uuid": "withdrawal",
    "state": "state",
    "age": "age",
    "amount": "USDT",
    "amount_to_receive": "to send",
    "address": "address",
    "external_tx_id": "transaction",
    "merchant": "merchant",
}
CSV_COLUMNS: Final = (
    *(
        "withdraw_uuid",
        "created_at",
        "merchant_id",
        "merchant",
        "status",
        "substatus",
        "amount",
        "network_fee",
    ),
    *(
        "amount_to_receive",
        "withdrawal_method_id",
        "address",
        "address_memo",
        "external_tx_id",
        "processed_at",
    ),
)
STACKS = (
    ("withdraw_uuid", "state"),
    ("age",),
    ("amount", "amount_to_receive"),
    ("address", "external_tx_id"),
    ("merchant",),
)


@app.command("methods", epilog="Example: fiatgate withdrawals methods")
def methods(*, as_json: Json = False) -> None:
    """List the withdrawal methods: network, fee and minimum."""
    answer = connection.withdrawals().ListWithdrawalMethods(pb.ListWithdrawalMethodsRequest())
    columns = ("method_id", "code", "network", "name", "network_fee", "min_amount", "memo_allowed", "enabled")
    output.records(answer.methods, columns, as_json=as_json, empty="No withdrawal methods")


@app.command(
    "set-method",
    epilog='Example: fiatgate withdrawals set-method USDT-TRC20 --network TRC20 --name "USDT on Tron" --fee 1 --min 5',
)
def set_method(
    code: Annotated[str, typer.Argument(metavar="CODE")],
    *,
    network: Annotated[
        str, typer.Option(metavar="N", help="TRC20, ERC20, BEP20, POLYGON or TON; a method keeps it.")
    ],
    name: Annotated[str, typer.Option(metavar="N", help="Shown to operators.")],
    fee: Annotated[str, typer.Option(metavar="A", help="USDT taken off each amount.")],
    minimum: Annotated[str, typer.Option("--min", metavar="A", help="Least amount, the fee included.")],
    memo: Annotated[bool, typer.Option("--memo/--no-memo", help="Whether a memo may be given.")] = False,
    enabled: Annotated[
        bool, typer.Option("--enabled/--disabled", help="Whether new withdrawals may use it.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Create a withdrawal method or replace its options."""
    method = pb.WithdrawalMethod(
        code=code,
        network=network,
        name=name,
        network_fee=fee,
        min_amount=minimum,
        memo_allowed=memo,
        enabled=enabled,
    )
    answer = connection.withdrawals().SetWithdrawalMethod(pb.SetWithdrawalMethodRequest(method=method))
    output.record(answer.method, as_json=as_json)


@app.command(
    "create", epilog="Example: fiatgate withdrawals create 0197… --method 1 --address T… --amount 50"
)
def create(
    merchant_id: ids.MerchantId,
    *,
    method: Annotated[
        int, typer.Option(metavar="ID", min=1, max=INT32_MOST, help="See `fiatgate withdrawals methods`.")
    ],
    address: Annotated[str, typer.Option(metavar="A", help="Wallet address on the method's network.")],
    memo: Annotated[
        str | None, typer.Option(metavar="M", help="Memo or tag, where the network uses one.")
    ] = None,
    amount: Annotated[str, typer.Option(metavar="A", help="USDT, the fee included.")],
    request_key: Annotated[
        str | None,
        typer.Option(metavar="UUID", help="A repeated call with the same key creates nothing twice."),
    ] = None,
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Reserve an amount of a merchant's balance for sending."""
    request = pb.CreateWithdrawalRequest(
        merchant_id=merchant_id,
        withdrawal_method_id=method,
        address=address,
        address_memo=memo,
        amount=amount,
        request_key=request_key or str(new_id()),
    )
    try:
        made = connection.withdrawals().CreateWithdrawal(request).withdrawal
    except Refused as refused:
        if refused.reason in {"DB_UNAVAILABLE", "INTERNAL_ERROR"}:  # it may have been made before the error
            output.note(
                f"It may have been made. To repeat it, not make two: --request-key {request.request_key}"
            )
        raise
    output.outcome(
        made,
        f"Reserved: {made.amount} USDT, of which {made.amount_to_receive} go to {made.address}.",
        f"fiatgate withdrawals process {output.short(made.withdraw_uuid)}",
        everything=everything,
        as_json=as_json,
    )


@app.command("list", epilog="Example: fiatgate withdrawals list --stage requested --oldest-first")
def list_all(
    *,
    merchant: ids.OfMerchant = "",
    status: Annotated[
        str | None, typer.Option(metavar="S", help="pending, success, failed, cancelled.")
    ] = None,
    stage: Annotated[str | None, typer.Option(metavar="S", help="requested, processing, done.")] = None,
    method: Annotated[
        int, typer.Option(metavar="ID", min=0, max=INT32_MOST, help="Only of this method.")
    ] = 0,
    address: Annotated[str, typer.Option(metavar="A", help="Only to this address.")] = "",
    tx: Annotated[str, typer.Option(metavar="H", help="Only with this transaction, in any spelling.")] = "",
    amount_from: Annotated[str, typer.Option(metavar="A", help="Only this amount or more.")] = "",
    amount_to: Annotated[str, typer.Option(metavar="A", help="Only this amount or less.")] = "",
    since: Since = None,
    until: Until = None,
    oldest_first: Annotated[bool, typer.Option("--oldest-first", help="In the order of time.")] = False,
    after: Annotated[str, ids.after("withdrawal")] = "",
    limit: paging.Limit = paging.ROWS,
    as_csv: Csv = False,
    as_json: Json = False,
) -> None:
    """List withdrawals, newest first."""
    request = pb.ListAllWithdrawalsRequest(
        merchant_id=merchant,
        limit=paging.asked(limit),
        created_from=timestamp_from(since),
        created_before=timestamp_from(until),
        after_withdraw_uuid=after,
        withdrawal_method_id=method,
        address=address,
        external_tx_id=tx,
        amount_from=amount_from,
        amount_to=amount_to,
        oldest_first=oldest_first,
    )
    request.status = output.enum_number(pb.WithdrawalStatus.DESCRIPTOR, status)  # type: ignore[assignment]  # see deals
    request.stage = output.enum_number(pb.WithdrawalStage.DESCRIPTOR, stage)  # type: ignore[assignment]  # see deals
    if as_csv:
        csv_file.write(_csv_rows(request), CSV_COLUMNS)
        return
    found = connection.withdrawals().ListAllWithdrawals(request).withdrawals
    paging.print_page(
        found, limit, table=_print_page, last_id=lambda last: last.withdraw_uuid, as_json=as_json
    )


def _csv_rows(request: pb.ListAllWithdrawalsRequest) -> Iterator[dict[str, Any]]:
    request.limit = LIST_MOST_ROWS
    while True:
        page = connection.withdrawals().ListAllWithdrawals(request).withdrawals
        merchants = names.of_merchants(each.merchant_id for each in page)
        for each in page:
            yield output.plain(each) | {"merchant": merchants[each.merchant_id]}
        if len(page) < LIST_MOST_ROWS:
            return
        request.after_withdraw_uuid = page[-1].withdraw_uuid


def _print_page(page: Sequence[pb.Withdrawal], *, more: bool) -> None:
    merchants = names.of_merchants(each.merchant_id for each in page)
    short_ids = output.shortened(each.withdraw_uuid for each in page)
    rows = [
        row
        | {
            "withdraw_uuid": short_ids[row["withdraw_uuid"]],
            "state": row["substatus"] or row["status"],
            "age": output.age(row["created_at"]),
            "merchant": merchants[row["merchant_id"]],
        }
        for row in map(output.plain, page)
    ]
    output.overview(
        output.counted("withdrawal", page, more=more),
        "fiatgate withdrawals show ID",
        "fiatgate withdrawals process ID …",
    )
    output.rows(rows, COLUMNS, as_json=False, empty="No such withdrawals", stacks=STACKS)


@app.command("show", epilog="Example: fiatgate withdrawals show 0197…")
def show(withdraw_uuid: ids.WithdrawalId, *, as_json: Json = False) -> None:
    """Show a withdrawal with its history."""
    story = _story(withdraw_uuid)
    withdrawal = story.withdrawal
    moments = history(story)
    if as_json:
        transfers = [output.plain(each) for each in story.transfers]
        pending = story.pending_approval_id or None
        more = {"timeline": stories.as_json(moments), "transfers": transfers, "pending_approval_id": pending}
        output.print_json(output.plain(withdrawal) | more)
        return
    state = withdrawal.substatus or output.enum_word(pb.WithdrawalStatus.DESCRIPTOR, withdrawal.status)
    to_send = f"{withdrawal.amount_to_receive} to {withdrawal.address}"
    sentence = f"{withdrawal.amount} USDT, {state.replace('_', ' ')}: {to_send}."
    output.outcome(withdrawal, sentence, *_next_steps(story), everything=True, as_json=False)
    stories.print_timeline(moments)


def _story(withdraw_uuid: str) -> pb.GetWithdrawalStoryResponse:
    """Returns the withdrawal and its history. Raises Refused WITHDRAWAL_NOT_FOUND."""
    return connection.withdrawals().GetWithdrawalStory(
        pb.GetWithdrawalStoryRequest(withdraw_uuid=withdraw_uuid)
    )


def _next_steps(story: pb.GetWithdrawalStoryResponse) -> list[str]:
    withdrawal = story.withdrawal
    id = output.short(withdrawal.withdraw_uuid)
    if withdrawal.status != pb.WITHDRAWAL_STATUS_PENDING:
        return []
    if withdrawal.substatus == "processing":
        return [f"fiatgate withdrawals complete {id} --tx HASH"]
    if story.pending_approval_id:
        return [f"fiatgate approvals approve {output.short(story.pending_approval_id)} --as THEIR_EMAIL"]
    return [f"fiatgate withdrawals process {id}"]


@app.command("process", epilog="Example: fiatgate withdrawals process 0197… 0198…")
def process(
    withdraw_uuids: ids.WithdrawalIds, *, everything: Everything = False, as_json: Json = False
) -> None:
    """Mark withdrawals as being sent: from now on the merchant can't cancel them.

    One that is being sent already is refused, because a second person may send it. Exit code 1 when one was refused.
    """
    several.each(
        withdraw_uuids,
        lambda id: (
            connection.withdrawals()
            .ProcessWithdrawal(pb.ProcessWithdrawalRequest(withdraw_uuid=id, expected_stage="requested"))
            .withdrawal
        ),
        lambda each: f"Being sent: send {each.amount_to_receive} USDT to {each.address}{_memo(each)}.",
        "fiatgate withdrawals complete {id} --tx HASH",
        everything=everything,
        as_json=as_json,
    )


def _memo(withdrawal: pb.Withdrawal) -> str:
    return f", memo {withdrawal.address_memo}" if withdrawal.HasField("address_memo") else ""


@app.command("complete", epilog="Example: fiatgate withdrawals complete 0197… --tx 9f2c…")
def complete(
    withdraw_uuid: ids.WithdrawalId,
    *,
    tx: Annotated[str, typer.Option(metavar="H", help="Transaction hash, or a mark of your own.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Take a mark without a question.")] = False,
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Mark it as sent. A text that is no hash of the network is taken when you agree."""
    if not yes:
        _require_hash(_story(withdraw_uuid), tx, as_json=as_json)
    request = pb.CompleteWithdrawalRequest(withdraw_uuid=withdraw_uuid, external_tx_id=tx)
    done = connection.withdrawals().CompleteWithdrawal(request).withdrawal
    sentence = (
        f"Sent: {done.amount_to_receive} USDT to {done.address} with transaction {done.external_tx_id}."
    )
    output.outcome(done, sentence, everything=everything, as_json=as_json)


def _require_hash(story: pb.GetWithdrawalStoryResponse, tx: str, *, as_json: bool) -> None:
    """Ends the command unless the text is a hash of the withdrawal's network, or the operator agrees. A withdrawal that
    has ended is left to the service's answer.
    """
    withdrawal, method = story.withdrawal, story.method
    if withdrawal.status != pb.WITHDRAWAL_STATUS_PENDING or re.fullmatch(method.transaction_pattern, tx):
        return
    message = f"{tx!r} is no hash of a transaction on {method.network}"
    if as_json or not sys.stdin.isatty():
        nothing = "Nothing was changed. If it is a mark of your own: --yes"
        output.refusal("NOT_A_HASH", f"{message}. {nothing}", {"external_tx_id": tx})
        raise typer.Exit(1)
    output.lead(f"{message}. {withdrawal.amount_to_receive} USDT go to {withdrawal.address}.")
    typer.confirm("Mark it as sent all the same?", abort=True, err=True)


@app.command("fail", epilog="Example: fiatgate withdrawals fail 0197… --substatus invalid_address")
def fail(
    withdraw_uuids: ids.WithdrawalIds,
    *,
    substatus: Annotated[
        str, typer.Option(metavar="S", help="failed, invalid_address or unknown.")
    ] = "failed",
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Mark withdrawals as failed: the amounts are available again. Exit code 1 when one was not marked."""
    several.each(
        withdraw_uuids,
        lambda id: _fail(id, substatus),
        lambda each: f"Failed: {each.amount} USDT are available to the merchant again.",
        everything=everything,
        as_json=as_json,
    )


def _fail(id: str, substatus: str) -> pb.Withdrawal:
    request = pb.FailWithdrawalRequest(withdraw_uuid=id, substatus=substatus)
    with pending.reporting_rejected("withdrawals", f"withdrawal:{id}"):
        return connection.withdrawals().FailWithdrawal(request).withdrawal


@app.command("cancel", epilog="Example: fiatgate withdrawals cancel 0197… --by-user")
def cancel(
    withdraw_uuids: ids.WithdrawalIds,
    *,
    by_user: Annotated[bool, typer.Option("--by-user", help="The merchant requested it.")] = False,
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Cancel withdrawals: the amounts are available again. Exit code 1 when one was not canceled."""
    several.each(
        withdraw_uuids,
        lambda id: _cancel(id, by_user=by_user),
        lambda each: f"Canceled: {each.amount} USDT are available to the merchant again.",
        everything=everything,
        as_json=as_json,
    )


def _cancel(id: str, *, by_user: bool) -> pb.Withdrawal:
    request = pb.CancelWithdrawalRequest(withdraw_uuid=id, by_user=by_user)
    with pending.reporting_rejected("withdrawals", f"withdrawal:{id}"):
        return connection.withdrawals().CancelWithdrawal(request).withdrawal

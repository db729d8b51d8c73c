"""`fiatgate withdrawals …`"""

import re
import sys
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from cli import connection, ids, names, output, paging, pending, several
from cli.moments import Since, Until
from cli.output import INT32_MOST, Everything, Json
from fiatgate.find.v1 import find_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from kit.base.proto import timestamp_from
from kit.rpc.errors import Refused, not_found

NAME = "withdrawals"
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
STACKS = (
    ("withdraw_uuid", "state"),
    ("age",),
    ("amount", "amount_to_receive"),
    ("address", "external_tx_id"),
    ("merchant",),
)

_HASH: Final = re.compile(r"(0x)?[0-9a-f]{64}", re.IGNORECASE).fullmatch
_HASH_OF_TON: Final = re.compile(r"([A-Za-z0-9+/]{43}|[A-Za-z0-9_-]{43})=?").fullmatch


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


@app.command("list", epilog="Example: fiatgate withdrawals list --status pending")
def list_all(
    *,
    merchant: ids.OfMerchant = "",
    status: Annotated[
        str | None, typer.Option(metavar="S", help="pending, success, failed, cancelled.")
    ] = None,
    since: Since = None,
    until: Until = None,
    after: Annotated[str, ids.after("withdrawal")] = "",
    limit: paging.Limit = paging.ROWS,
    as_json: Json = False,
) -> None:
    """List withdrawals, newest first."""
    request = pb.ListAllWithdrawalsRequest(
        merchant_id=merchant,
        limit=paging.asked(limit),
        created_from=timestamp_from(since),
        created_before=timestamp_from(until),
        after_withdraw_uuid=after,
    )
    request.status = output.enum_number(pb.WithdrawalStatus.DESCRIPTOR, status)  # type: ignore[assignment]  # see deals
    found = connection.withdrawals().ListAllWithdrawals(request).withdrawals
    paging.print_page(
        found, limit, table=_print_page, last_id=lambda last: last.withdraw_uuid, as_json=as_json
    )


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
    """Show a withdrawal."""
    withdrawal = _named(withdraw_uuid)
    state = withdrawal.substatus or output.enum_word(pb.WithdrawalStatus.DESCRIPTOR, withdrawal.status)
    to_send = f"{withdrawal.amount_to_receive} to {withdrawal.address}"
    sentence = f"{withdrawal.amount} USDT, {state.replace('_', ' ')}: {to_send}."
    next_commands = _next_steps(withdrawal)
    output.outcome(withdrawal, sentence, *next_commands, everything=True, as_json=as_json)


def _named(withdraw_uuid: str) -> pb.Withdrawal:
    """Returns the withdrawal. Raises Refused WITHDRAWAL_NOT_FOUND."""
    answer = connection.find("withdrawals").Find(find_pb2.FindRequest(text=withdraw_uuid, limit=1))
    merchants = [each.facts["merchant_id"] for each in answer.found if each.id == withdraw_uuid]
    if not merchants:
        raise not_found("WITHDRAWAL_NOT_FOUND", f"No withdrawal has the id {withdraw_uuid}")
    request = pb.GetWithdrawalRequest(merchant_id=merchants[0], withdraw_uuid=withdraw_uuid)
    return connection.withdrawals().GetWithdrawal(request).withdrawal


def _next_steps(withdrawal: pb.Withdrawal) -> list[str]:
    id = output.short(withdrawal.withdraw_uuid)
    if withdrawal.status != pb.WITHDRAWAL_STATUS_PENDING:
        return []
    if withdrawal.substatus == "processing":
        return [f"fiatgate withdrawals complete {id} --tx HASH"]
    return [f"fiatgate withdrawals process {id}"]


@app.command("process", epilog="Example: fiatgate withdrawals process 0197… 0198…")
def process(
    withdraw_uuids: ids.WithdrawalIds, *, everything: Everything = False, as_json: Json = False
) -> None:
    """Mark withdrawals as being sent: from now on the merchant can't cancel them. Exit code 1 when one failed."""
    several.each(
        withdraw_uuids,
        lambda id: (
            connection.withdrawals()
            .ProcessWithdrawal(pb.ProcessWithdrawalRequest(withdraw_uuid=id))
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
    if not (yes or _HASH(tx)):
        _require_hash(_named(withdraw_uuid), tx, as_json=as_json)
    request = pb.CompleteWithdrawalRequest(withdraw_uuid=withdraw_uuid, external_tx_id=tx)
    done = connection.withdrawals().CompleteWithdrawal(request).withdrawal
    sentence = (
        f"Sent: {done.amount_to_receive} USDT to {done.address} with transaction {done.external_tx_id}."
    )
    output.outcome(done, sentence, everything=everything, as_json=as_json)


def _require_hash(withdrawal: pb.Withdrawal, tx: str, *, as_json: bool) -> None:
    """Ends the command unless the text is a hash of the withdrawal's network, or the operator agrees. A withdrawal that
    has ended is left to the service's answer.
    """
    methods = connection.withdrawals().ListWithdrawalMethods(pb.ListWithdrawalMethodsRequest()).methods
    network = next(each.network for each in methods if each.method_id == withdrawal.withdrawal_method_id)
    if withdrawal.status != pb.WITHDRAWAL_STATUS_PENDING or is_hash(network, tx):
        return
    message = f"{tx!r} is no hash of a transaction on {network}"
    if as_json or not sys.stdin.isatty():
        nothing = "Nothing was changed. If it is a mark of your own: --yes"
        output.refusal("NOT_A_HASH", f"{message}. {nothing}", {"external_tx_id": tx})
        raise typer.Exit(1)
    output.lead(f"{message}. {withdrawal.amount_to_receive} USDT go to {withdrawal.address}.")
    typer.confirm("Mark it as sent all the same?", abort=True, err=True)


def is_hash(network: str, text: str) -> bool:
    """Returns whether the service reads the text as a hash, not as an operator's own mark."""
    return bool(_HASH(text) or (network == "TON" and _HASH_OF_TON(text)))


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

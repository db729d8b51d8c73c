"""`fiatgate withdrawals …`"""

from typing import Annotated

import typer

from cli import connection, output
from cli.output import INT32_MOST, Json
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from kit.rpc.values import LIST_MOST_ROWS, LIST_ROWS

NAME = "withdrawals"
app = typer.Typer(
    help="Withdrawals and their methods: create, process, complete, fail, cancel.", no_args_is_help=True
)
Id = Annotated[str, typer.Argument(metavar="ID", help="The withdrawal's UUID.")]


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
    merchant_id: Annotated[str, typer.Argument(metavar="MERCHANT")],
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
    output.record(made, as_json=as_json)


@app.command("list", epilog="Example: fiatgate withdrawals list --status pending")
def list_all(
    *,
    merchant: Annotated[str, typer.Option(metavar="ID", help="Only withdrawals of this merchant.")] = "",
    status: Annotated[
        str | None, typer.Option(metavar="S", help="pending, success, failed, cancelled.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=LIST_MOST_ROWS)] = LIST_ROWS,
    as_json: Json = False,
) -> None:
    """List withdrawals, newest first."""
    request = pb.ListAllWithdrawalsRequest(merchant_id=merchant, limit=limit)
    request.status = output.enum_number(pb.WithdrawalStatus.DESCRIPTOR, status)  # type: ignore[assignment]  # see deals
    answer = connection.withdrawals().ListAllWithdrawals(request)
    columns = ("withdraw_uuid", "merchant_id", "amount", "status", "substatus", "address")
    output.records(answer.withdrawals, columns, as_json=as_json, empty="No such withdrawals")


@app.command("process", epilog="Example: fiatgate withdrawals process 0197…")
def process(withdraw_uuid: Id, *, as_json: Json = False) -> None:
    """Mark it as being sent: from now on the merchant can't cancel it."""
    request = pb.ProcessWithdrawalRequest(withdraw_uuid=withdraw_uuid)
    output.record(connection.withdrawals().ProcessWithdrawal(request).withdrawal, as_json=as_json)


@app.command("complete", epilog="Example: fiatgate withdrawals complete 0197… --tx 9f2c…")
def complete(
    withdraw_uuid: Id,
    *,
    tx: Annotated[str, typer.Option(metavar="H", help="Transaction hash.")],
    as_json: Json = False,
) -> None:
    """Mark it as sent."""
    request = pb.CompleteWithdrawalRequest(withdraw_uuid=withdraw_uuid, external_tx_id=tx)
    output.record(connection.withdrawals().CompleteWithdrawal(request).withdrawal, as_json=as_json)


@app.command("fail", epilog="Example: fiatgate withdrawals fail 0197… --substatus invalid_address")
def fail(
    withdraw_uuid: Id,
    *,
    substatus: Annotated[
        str, typer.Option(metavar="S", help="failed, invalid_address or unknown.")
    ] = "failed",
    as_json: Json = False,
) -> None:
    """Mark it as failed: the amount is available again."""
    request = pb.FailWithdrawalRequest(withdraw_uuid=withdraw_uuid, substatus=substatus)
    output.record(connection.withdrawals().FailWithdrawal(request).withdrawal, as_json=as_json)


@app.command("cancel", epilog="Example: fiatgate withdrawals cancel 0197… --by-user")
def cancel(
    withdraw_uuid: Id,
    *,
    by_user: Annotated[bool, typer.Option("--by-user", help="The merchant requested it.")] = False,
    as_json: Json = False,
) -> None:
    """Cancel it: the amount is available again."""
    request = pb.CancelWithdrawalRequest(withdraw_uuid=withdraw_uuid, by_user=by_user)
    output.record(connection.withdrawals().CancelWithdrawal(request).withdrawal, as_json=as_json)

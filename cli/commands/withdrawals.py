"""`fiatgate withdrawals …`"""

import re
import sys
from collections.abc import Callable
from typing import Annotated, Final

import typer

from cli import connection, ids, listing, output, pending, several, stories
from cli.command import argument, command, group, option, period
from cli.listing import Table
from console.words.states import words_of
from console.words.withdrawals import history
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from kit.base.money import amount_text, money_text
from kit.rpc.errors import Refused

app = group("withdrawals", "Withdrawals and their methods: create, process, complete, fail, cancel.")
METHODS: Final = Table(
    columns="method_id | code | network | name | network_fee | min_amount | memo_allowed | enabled",
    empty="No withdrawal methods",
)
TABLE: Final = Table(
    columns="withdraw_uuid: withdrawal | state | age | amount: USDT | amount_to_receive: to send | address"
    " | external_tx_id: transaction | merchant",
    stacks="withdraw_uuid state | age | amount amount_to_receive | address external_tx_id | merchant",
    empty="No such withdrawals",
    noun="withdrawal",
    ids=("withdraw_uuid",),
    csv="withdraw_uuid | created_at | merchant_id | merchant | status | substatus | amount | network_fee"
    " | amount_to_receive | withdrawal_method_id | address | address_memo | external_tx_id | processed_at",
)
ONE: Final = ids.one("withdrawal", field="withdraw_uuid")


@command(app, "methods", "", pb.ListWithdrawalMethodsRequest)
def methods(request: pb.ListWithdrawalMethodsRequest) -> None:
    """List the withdrawal methods: network, fee and minimum."""
    METHODS.show_all(connection.withdrawals().ListWithdrawalMethods(request).methods)


@command(
    *(app, "set-method", 'USDT-TRC20 --network TRC20 --name "USDT on Tron" --fee 1 --min 5'),
    pb.WithdrawalMethod,
    argument("code", "CODE"),
    option("network", "N", "TRC20, ERC20, BEP20, POLYGON or TON; a method keeps it.", required=True),
    option("name", "N", "Shown to operators.", required=True),
    option("network_fee", "A", "USDT taken off each amount.", "--fee", required=True),
    option("min_amount", "A", "Least amount, the fee included.", "--min", required=True),
    option("memo_allowed", None, "Whether a memo may be given.", "--memo/--no-memo", default=False),
    option("enabled", None, "Whether new withdrawals may use it.", "--enabled/--disabled", default=True),
)
def set_method(request: pb.WithdrawalMethod) -> None:
    """Create a withdrawal method or replace its options."""
    answer = connection.withdrawals().SetWithdrawalMethod(pb.SetWithdrawalMethodRequest(method=request))
    output.record(answer.method)


@command(
    *(app, "create", "0197… --method 1 --address T… --amount 50", pb.CreateWithdrawalRequest),
    ids.one("merchant", "MERCHANT"),
    option(
        *("withdrawal_method_id", "ID", "See `fiatgate withdrawals methods`.", "--method"),
        required=True,
        min=1,
    ),
    option("address", "A", "Wallet address on the method's network.", required=True),
    option("address_memo", "M", "Memo or tag, where the network uses one.", "--memo"),
    option("amount", "A", "USDT, the fee included.", required=True),
    option("reason", "TEXT", "Why; the merchant reads it."),
    option("request_key", "UUID", "A repeated call with the same key creates nothing twice."),
    modes="all",
)
def create(request: pb.CreateWithdrawalRequest) -> None:
    """Reserve an amount of a merchant's balance for sending."""
    request.request_key = request.request_key or str(new_id())
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
        f"Reserved: {money_text(made.amount, 'USDT')}, of which {amount_text(made.amount_to_receive)} go to "
        f"{made.address}.",
        f"fiatgate withdrawals process {output.short(made.withdraw_uuid)}",
    )


@command(
    *(app, "list", "--stage requested --oldest-first", pb.ListAllWithdrawalsRequest),
    ids.of_merchant(),
    option("status", "S", "pending, success (sent), failed, cancelled."),
    option("stage", "S", "requested, processing, done."),
    option("withdrawal_method_id", "ID", "Only of this method.", "--method", default=0),
    option("address", "A", "Only to this address."),
    option("external_tx_id", "H", "Only with this transaction, in any spelling.", "--tx"),
    option("amount_from", "A", "Only this amount or more."),
    option("amount_to", "A", "Only this amount or less."),
    *period(),
    option("oldest_first", None, "In the order of time.", default=False),
    ids.after("withdrawal", "after_withdraw_uuid"),
    modes="csv",
)
def list_all(request: pb.ListAllWithdrawalsRequest, *, limit: listing.Limit = listing.ROWS) -> None:
    """List withdrawals, newest first."""
    next_commands = ("fiatgate withdrawals show ID", "fiatgate withdrawals process ID …")
    call = connection.withdrawals().ListAllWithdrawals
    listing.show_page(
        *(TABLE, request, call, "withdrawals", "withdraw_uuid", *next_commands),
        limit=limit,
        for_people=lambda row: {"state": words_of(row["substatus"] or row["status"], "withdrawal")},
    )


@command(app, "show", "0197…", pb.GetWithdrawalStoryRequest, ONE)
def show(request: pb.GetWithdrawalStoryRequest) -> None:
    """Show a withdrawal with its history."""
    story = connection.withdrawals().GetWithdrawalStory(request)
    withdrawal = story.withdrawal
    moments = history(story)
    if output.mode.json:
        transfers = [output.plain(each) for each in story.transfers]
        waiting = story.pending_approval_id or None
        more = {"timeline": stories.as_json(moments), "transfers": transfers, "pending_approval_id": waiting}
        output.print_json(output.plain(withdrawal) | more)
        return
    state = withdrawal.substatus or output.enum_word(pb.WithdrawalStatus.DESCRIPTOR, withdrawal.status)
    to_send = f"{amount_text(withdrawal.amount_to_receive)} to {withdrawal.address}"
    sentence = f"{money_text(withdrawal.amount, 'USDT')}, {words_of(state, 'withdrawal')}: {to_send}."
    output.outcome(withdrawal, sentence, *_next_steps(story), whole=True)
    stories.print_timeline(moments)


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


@command(app, "process", "0197… 0198…", modes="all")
def process(withdraw_uuids: ids.WithdrawalIds) -> None:
    """Mark withdrawals as being sent: from now on the merchant can't cancel them.

    One that is being sent already is refused, because a second person may send it. Exit code 1 when one was refused.
    """
    call = connection.withdrawals().ProcessWithdrawal
    several.each(
        withdraw_uuids,
        lambda id: call(pb.ProcessWithdrawalRequest(withdraw_uuid=id, expected_stage="requested")).withdrawal,
        lambda each: (
            f"Being sent: send {money_text(each.amount_to_receive, 'USDT')} to {each.address}{_memo(each)}."
        ),
        "fiatgate withdrawals complete {id} --tx HASH",
    )


def _memo(withdrawal: pb.Withdrawal) -> str:
    return f", memo {withdrawal.address_memo}" if withdrawal.HasField("address_memo") else ""


@command(
    *(app, "complete", "0197… --tx 9f2c…", pb.CompleteWithdrawalRequest),
    ONE,
    option("external_tx_id", "H", "Transaction hash, or a mark of your own.", "--tx", required=True),
    modes="all",
)
def complete(
    request: pb.CompleteWithdrawalRequest,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Take a mark without a question.")] = False,
) -> None:
    """Mark it as sent. A text that is no hash of the network is taken when you agree."""
    if not yes:
        story = pb.GetWithdrawalStoryRequest(withdraw_uuid=request.withdraw_uuid)
        _require_hash(connection.withdrawals().GetWithdrawalStory(story), request.external_tx_id)
    done = connection.withdrawals().CompleteWithdrawal(request).withdrawal
    sent = money_text(done.amount_to_receive, "USDT")
    output.outcome(done, f"Sent: {sent} to {done.address} with transaction {done.external_tx_id}.")


def _require_hash(story: pb.GetWithdrawalStoryResponse, tx: str) -> None:
    """Ends the command unless the text is a hash of the withdrawal's network, or the operator agrees. A withdrawal that
    has ended is left to the service's answer.
    """
    withdrawal, method = story.withdrawal, story.method
    if withdrawal.status != pb.WITHDRAWAL_STATUS_PENDING or re.fullmatch(method.transaction_pattern, tx):
        return
    message = f"{tx!r} is no hash of a transaction on {method.network}"
    if output.mode.json or not sys.stdin.isatty():
        nothing = "Nothing was changed. If it is a mark of your own: --yes"
        output.refusal("NOT_A_HASH", f"{message}. {nothing}", {"external_tx_id": tx})
        raise typer.Exit(1)
    output.lead(f"{message}. {money_text(withdrawal.amount_to_receive, 'USDT')} go to {withdrawal.address}.")
    typer.confirm("Mark it as sent all the same?", abort=True, err=True)


@command(app, "fail", "0197… --substatus invalid_address", modes="all")
def fail(
    withdraw_uuids: ids.WithdrawalIds,
    *,
    substatus: Annotated[
        str, typer.Option(metavar="S", help="failed, invalid_address or unknown.")
    ] = "failed",
) -> None:
    """Mark withdrawals as failed: the amounts are available again. Exit code 1 when one was not marked."""
    call = connection.withdrawals().FailWithdrawal
    several.each(
        withdraw_uuids,
        lambda id: _ended(id, lambda: call(pb.FailWithdrawalRequest(withdraw_uuid=id, substatus=substatus))),
        lambda each: (
            f"Failed: {money_text(each.amount, 'USDT')} are the merchant's again; a debt is paid first."
        ),
    )


@command(app, "cancel", "0197… --by-user", modes="all")
def cancel(
    withdraw_uuids: ids.WithdrawalIds,
    *,
    by_user: Annotated[bool, typer.Option("--by-user", help="The merchant requested it.")] = False,
) -> None:
    """Cancel withdrawals: the amounts are available again. Exit code 1 when one was not canceled."""
    call = connection.withdrawals().CancelWithdrawal
    several.each(
        withdraw_uuids,
        lambda id: _ended(id, lambda: call(pb.CancelWithdrawalRequest(withdraw_uuid=id, by_user=by_user))),
        lambda each: (
            f"Canceled: {money_text(each.amount, 'USDT')} are the merchant's again; a debt is paid first."
        ),
    )


def _ended(
    id: str, call: Callable[[], pb.FailWithdrawalResponse | pb.CancelWithdrawalResponse]
) -> pb.Withdrawal:
    return pending.reporting_rejected("withdrawals", f"withdrawal:{id}", lambda: call().withdrawal)

"""`fiatgate balance MERCHANT`"""

from typing import Annotated

import typer

from cli import connection, output
from cli.output import Json
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb


def balance(
    merchant_id: Annotated[str, typer.Argument(metavar="MERCHANT", help="The merchant's UUID.")],
    *,
    as_json: Json = False,
) -> None:
    """Show a merchant's USDT: available, reserved, credited and withdrawn."""
    answer = connection.withdrawals().GetBalance(pb.GetBalanceRequest(merchant_id=merchant_id))
    output.record(answer, as_json=as_json)

"""`fiatgate balance MERCHANT`"""

from cli import connection, ids, output
from cli.output import Json
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb


def balance(
    merchant_id: ids.MerchantId,
    *,
    as_json: Json = False,
) -> None:
    """Show a merchant's USDT: available, reserved, credited and withdrawn."""
    answer = connection.withdrawals().GetBalance(pb.GetBalanceRequest(merchant_id=merchant_id))
    sentence = f"{answer.available} USDT can be withdrawn."
    output.outcome(answer, sentence, everything=True, as_json=as_json)

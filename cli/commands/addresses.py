"""`fiatgate addresses MERCHANT`"""

from typing import Final

from cli import connection, ids, output
from cli.output import Json
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb

EXAMPLE: Final = "fiatgate addresses 0197…"
COLUMNS: Final = {
    "name": "name",
    "state": "state",
    "network": "network",
    "address": "address",
    "address_memo": "memo",
    "age": "age",
    "added_by": "added by",
    "usable_at": "usable from",
}
STACKS: Final = (
    ("name", "state"),
    ("network", "age"),
    ("address", "address_memo"),
    ("added_by", "usable_at"),
)


def addresses(merchant_id: ids.MerchantId, *, as_json: Json = False) -> None:
    """List a merchant's address book, newest first: the addresses that its members may withdraw to."""
    request = pb.ListAddressesRequest(merchant_id=merchant_id)
    rows = [output.plain(each) for each in connection.withdrawals().ListAddresses(request).addresses]
    if as_json:
        output.print_json(rows)
        return
    noun = "address" if len(rows) == 1 else "addresses"
    output.overview(f"The book has {len(rows)} {noun}." if rows else "")
    shown = [
        row | {"age": output.age(row["created_at"]), "state": "waits" if row["waits"] else "usable"}
        for row in rows
    ]
    output.rows(
        shown, COLUMNS, as_json=False, empty="No addresses: members can withdraw nothing", stacks=STACKS
    )

"""`fiatgate addresses MERCHANT`"""

from typing import Final

from cli import connection, ids, output
from cli.command import shaped
from cli.listing import Table
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb

EXAMPLE: Final = "fiatgate addresses 0197…"
TABLE: Final = Table(
    columns="name | state | network | address | address_memo: memo | age | added_by | usable_at: usable from",
    stacks="name state | network age | address address_memo | added_by usable_at",
    empty="No addresses: members can withdraw nothing",
)


@shaped(pb.ListAddressesRequest, ids.one("merchant", "MERCHANT"))
def addresses(request: pb.ListAddressesRequest) -> None:
    """List a merchant's address book, newest first: the addresses that its members may withdraw to."""
    rows = [output.plain(each) for each in connection.withdrawals().ListAddresses(request).addresses]
    noun = "address" if len(rows) == 1 else "addresses"
    above = f"The book has {len(rows)} {noun}." if rows else ""
    if not output.mode.json:
        rows = [row | {"state": "waits" if row["waits"] else "usable"} for row in rows]
    TABLE.show(rows, above=above)

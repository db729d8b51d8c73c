"""Names of merchants for lists of things that belong to them."""

from collections.abc import Iterable

from cli import connection, output
from cli.stack import NoAddress
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.rpc.errors import Refused


def of_merchants(merchant_ids: Iterable[str]) -> dict[str, str]:
    """Returns a name for each of these merchants; the short id where identity has none or does not answer."""
    ids = sorted(set(merchant_ids))
    try:
        known = (
            connection.merchants().NameMerchants(pb.NameMerchantsRequest(merchant_ids=ids)).names
            if ids
            else {}
        )
    except (Refused, NoAddress):
        known = {}
    return {id: known.get(id) or output.short(id) for id in ids}

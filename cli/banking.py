"""Steps with bank lines that a command and `fiatgate demo` have in common."""

from typing import Final

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cli import connection
from demo import bank as demo_bank
from demo import seeding
from fiatgate.bank.v1 import bank_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2, lines_pb2
from kit.base.clock import SystemClock
from kit.rpc.errors import Refused, is_away, not_found

READ_SECONDS: Final = 60


def imported(request: pb.ImportFileRequest) -> pb.Import:
    """Returns the import once the worker has read the file; after `READ_SECONDS` as it is."""
    id = connection.bank().ImportFile(request).file.import_id

    def look() -> pb.Import:
        return connection.bank().GetImport(pb.GetImportRequest(import_id=id)).file

    attempts = Retrying(
        retry=retry_if_result(lambda found: found.state == pb.IMPORT_STATE_WAITING),
        stop=stop_after_delay(READ_SECONDS),
        wait=wait_fixed(0.2),
        retry_error_callback=lambda state: look(),
    )
    return attempts(look)


def demo_statement() -> pb.Import:
    """Imports a statement of the invented bank for the newest deals of the demo merchant, and of nobody else."""
    merchant = seeding.demo_merchant(connection.merchants())
    if merchant is None:
        raise not_found("MERCHANT_NOT_FOUND", "There is no demo merchant here: the bank is invented as well")
    asked = invoices_pb2.ListDealsRequest(merchant_id=merchant.merchant_id, limit=demo_bank.DEALS_MOST)
    deals = connection.desk().ListDeals(asked).deals
    requisites = connection.desk().ListRequisites(invoices_pb2.ListRequisitesRequest()).requisites
    now = SystemClock().now()
    content = demo_bank.statement(deals, requisites, now=now)
    return imported(pb.ImportFileRequest(content=content, file_name=f"demo-{now.date()}.xml"))


def confirmed(line_id: str) -> pb.Line:
    """Confirms the deal that is proposed for the line, or links it to one that was confirmed before."""
    claimed = connection.bank().ClaimLine(pb.ClaimLineRequest(line_id=line_id, anew=True))
    line, release = claimed.line, pb.ReleaseLineRequest(line_id=line_id, claimed_at=claimed.claimed_at)
    part = lines_pb2.LinePart(line_id=line.line_id, amount=line.left, line_amount=line.amount)
    try:
        if line.tier == pb.TIER_CONFIRMED:
            connection.line_payments().LinkDeal(lines_pb2.LinkDealRequest(deal_id=line.deal_id, lines=[part]))
        else:
            connection.desk().ConfirmDeal(invoices_pb2.ConfirmDealRequest(deal_id=line.deal_id, lines=[part]))
    except Refused as refused:
        if not is_away(refused):  # else it may be confirmed: the claim ends by itself
            connection.bank().ReleaseLine(release)
        raise
    connection.bank().ReleaseLine(release)
    return line

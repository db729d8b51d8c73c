"""The verification of bank lines: compares the payments that invoices has recorded with the lines of bank."""

from collections.abc import Iterator
from datetime import datetime

from cli import connection
from cli.verifying import CALL_SECONDS, Findings, every
from fiatgate.bank.v1 import bank_pb2 as pb
from fiatgate.invoices.v1 import lines_pb2
from kit.base.proto import datetime_from
from kit.rpc.values import LIST_MOST_ROWS

CHECK = "payments by bank lines"


def check_lines(findings: Findings, *, settled_before: datetime) -> None:
    """Checks that each payment is by a line that bank has with this amount, that bank knows the payment, and that bank
    knows no other one. A payment after `settled_before` may not have reached bank yet.
    """
    # bank is read first: what it knows by then, invoices has recorded before.
    unrecorded = {
        (line.line_id, match.deal_id, match.amount)
        for line in every(pb.ListLinesRequest(), connection.bank().ListLines, "lines", "line_id")
        for match in line.matches
    }
    for payments in _pages():
        lines = _lines({each.line_id for each in payments})
        for each in payments:
            findings.advance(1)
            unrecorded.discard((each.line_id, each.deal_id, each.amount))
            line, subject = lines.get(each.line_id), f"deal {each.deal_id}: bank line {each.line_id}"
            if line is None:
                findings.wrong(CHECK, f"{subject} is recorded by invoices, and bank has no such line")
                continue
            if line.amount != each.line_amount:
                findings.wrong(
                    CHECK, f"{subject} has {line.amount} at bank, invoices recorded {each.line_amount}"
                )
            known = any(
                (match.deal_id, match.amount) == (each.deal_id, each.amount) for match in line.matches
            )
            if not known and datetime_from(each.paid_at) < settled_before:
                findings.wrong(CHECK, f"{subject} paid {each.amount}, and bank does not know it")
    for line_id, deal_id, _ in sorted(unrecorded):
        findings.wrong(CHECK, f"bank line {line_id} paid deal {deal_id} for bank, not for invoices")


def _pages() -> Iterator[list[lines_pb2.LinePayment]]:
    after = 0
    while True:
        request = lines_pb2.ListLinePaymentsRequest(after=after, limit=LIST_MOST_ROWS)
        found = list(connection.line_payments().ListLinePayments(request, timeout=CALL_SECONDS).payments)
        if not found:
            return
        yield found
        after = found[-1].number


def _lines(ids: set[str]) -> dict[str, pb.Line]:
    request = pb.ListLinesRequest(line_ids=sorted(ids), limit=len(ids))
    return {line.line_id: line for line in connection.bank().ListLines(request, timeout=CALL_SECONDS).lines}

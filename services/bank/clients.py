"""The calls of bank: invoices has the deals, and records which lines have paid them."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

from fiatgate.invoices.v1 import lines_pb2, lines_pb2_grpc
from kit.base.proto import datetime_from
from kit.base.tls import Identity
from kit.rpc.breaker import Breaker
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from kit.work.worker import Outage
from services.bank.domain.proposals import Deal
from services.bank.store.views import LineView, MatchView

SECONDS = 5.0
T = TypeVar("T")


class InvoicesClient:
    """Connects on first use. Each call raises `Outage` when invoices does not answer: bank does its other work."""

    def __init__(self, address: str, *, identity: Identity | None = None) -> None:
        opened = channel(address, name="invoices", identity=identity)
        self._stub = lines_pb2_grpc.LinePaymentsServiceStub(opened)
        self._calls = Breaker("invoices", calls="lines", seconds=SECONDS)

    def deals_of_lines(
        self, *, accounts: Sequence[str], references: Sequence[str], amounts: Sequence[Decimal]
    ) -> Sequence[Deal]:
        """Returns deals on the accounts that have one of the references, and open ones of one of the amounts."""
        request = lines_pb2.FindDealsOfLinesRequest(
            accounts=accounts, references=references, amounts=[f"{amount:f}" for amount in amounts]
        )
        found = self._answer(self._stub.FindDealsOfLines, request).deals
        return [_deal_from_message(each) for each in found]

    def payments_after(self, number: int, *, most: int) -> Sequence[MatchView]:
        """Returns payments by lines in the order of their commits."""
        request = lines_pb2.ListLinePaymentsRequest(after=number, limit=most)
        found = self._answer(self._stub.ListLinePayments, request).payments
        return [
            MatchView(
                number=each.number,
                line_id=UUID(each.line_id),
                deal_id=UUID(each.deal_id),
                invoice_id=UUID(each.invoice_id),
                amount=Decimal(each.amount),
                paid_at=datetime_from(each.paid_at),
            )
            for each in found
        ]

    def confirm_by_line(self, line: LineView, deal_id: UUID) -> str:
        """Confirms the deal by all that is left of the line. Returns why a person has to do it, "" when it is done."""
        part = lines_pb2.LinePart(
            line_id=str(line.id), amount=f"{line.left:f}", line_amount=f"{line.amount:f}"
        )
        request = lines_pb2.ConfirmByLineRequest(deal_id=str(deal_id), line=part)
        return self._answer(self._stub.ConfirmByLine, request).held

    def _answer(self, method: Callable[..., T], request: Any) -> T:
        try:
            return self._calls.call(method, request)
        except Refused as refused:
            if refused.reason == "DB_UNAVAILABLE":
                raise Outage(f"invoices: {refused.message}") from refused
            raise


def _deal_from_message(deal: lines_pb2.DealOfLine) -> Deal:
    return Deal(
        id=UUID(deal.deal_id),
        invoice_id=UUID(deal.invoice_id),
        reference=deal.reference,
        account=deal.account,
        currency_code=deal.currency_code,
        amount=Decimal(deal.amount_fiat),
        is_open=deal.is_open,
        is_paid=deal.is_paid,
        is_linked=deal.is_linked,
        sender_name=deal.sender_name,
        created_at=datetime_from(deal.created_at),
        is_automatic=deal.is_automatic,
    )

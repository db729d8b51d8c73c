"""A shop, and the transfers of its customers."""

from dataclasses import dataclass
from typing import Any

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.withdrawals.v1 import refunds_pb2
from tests.gateway.desk import Desk, Shop
from tests.support.pictures import PNG


@dataclass(frozen=True)
class Till:
    desk: Desk
    shop: Shop
    method: str

    def chosen(self, **changes: Any) -> pb.Deal:
        return self.desk.choose(self.shop.create(**changes)["invoice_id"], self.method)

    def marked(self, *, sender: str = "", **changes: Any) -> pb.Deal:
        invoice = self.shop.create(**changes)["invoice_id"]
        return self.desk.mark_paid(invoice, self.method, sender_name=sender)

    def paid(self, **changes: Any) -> pb.Deal:
        deal = self.marked(**changes)
        self.desk.deals.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal.deal_id))
        return deal

    def appealed(self, *, picture: bytes | None = None, **changes: Any) -> pb.Deal:
        deal = self.marked(**changes)
        request = pb.OpenCustomerAppealRequest(
            invoice_id=deal.invoice_id, note="Paid <b>at</b> noon", picture=picture
        )
        self.desk.checkout.OpenCustomerAppeal(request)
        return deal

    def late(self, note: str) -> int:
        """The number of a case of a new invoice, which its customer canceled."""
        deal = self.chosen()
        self.desk.checkout.CancelCheckout(pb.CancelCheckoutRequest(invoice_id=deal.invoice_id))
        request = pb.OpenCaseRequest(invoice_id=deal.invoice_id, note=note, picture=PNG)
        return self.desk.checkout.OpenCase(request).case.number

    def returned(self, number: int, *, key: str = "case") -> None:
        """Requests that the money of the case goes back to its customer."""
        case = self.desk.deals.GetCase(pb.GetCaseRequest(number=number)).case
        request = refunds_pb2.RequestRefundRequest(
            invoice_id=case.invoice_id,
            external_id=f"{key}-{number}",
            origin=refunds_pb2.REFUND_ORIGIN_LATE,
            refund_amount="90.00",
            case_number=number,
        )
        self.desk.refunds.RequestRefund(request)

    def state(self, deal: pb.Deal) -> str:
        return self.desk.deals.GetDeal(pb.GetDealRequest(deal_id=deal.deal_id)).deal.sub_status

    def list(self, state: str = "marked", **query: str) -> str:
        rest = "".join(f"&{name}={value}" for name, value in query.items())
        return f"/deals?state={state}&merchant={self.shop.merchant_id}{rest}"

    def clear(self) -> None:
        """Rejects what waits in the shop's queues, and answers its cases."""
        open_cases = pb.ListCasesRequest(open_only=True, merchant_id=self.shop.merchant_id, limit=1000)
        for case in self.desk.deals.ListCases(open_cases).cases:
            self.desk.deals.ResolveCase(
                pb.ResolveCaseRequest(number=case.number, outcome="Over.", ended_as="answer_only")
            )
        for status in (pb.DEAL_STATUS_PENDING, pb.DEAL_STATUS_APPEAL):
            request = pb.ListDealsRequest(status=status, merchant_id=self.shop.merchant_id, limit=1000)
            for deal in self.desk.deals.ListDeals(request).deals:
                if status == pb.DEAL_STATUS_PENDING:
                    self.desk.deals.RejectDeal(pb.RejectDealRequest(deal_id=deal.deal_id))
                else:
                    self.desk.deals.ResolveAppeal(
                        pb.ResolveAppealRequest(deal_id=deal.deal_id, rejected=True)
                    )

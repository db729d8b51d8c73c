"""A purchase without a page: what customers and operators do, over gRPC and past the proxies."""

from __future__ import annotations

from typing import Self

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceStub, DealDeskServiceStub
from kit.rpc.client import channel
from tests.e2e.market import METHOD, Invoice, Shop
from tests.faults.arena import Arena


class Trade:
    """Use as a context manager."""

    def __init__(self, arena: Arena, shop: Shop) -> None:
        self.shop = shop
        self._channel = channel(arena.services["invoices"], name="invoices", identity=arena.stack.identity)
        self._checkout = CheckoutServiceStub(self._channel)
        self._desk = DealDeskServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def sell(self, callback: str) -> Invoice:
        """Up to the operator's confirmation: its webhook and its credit are on their way."""
        invoice = self.shop.create(callback)
        choice = pb.SelectPaymentMethodRequest(invoice_id=invoice.id, method_code=METHOD)
        deal_id = self._checkout.SelectPaymentMethod(choice).invoice.deal.deal_id
        self._checkout.MarkPaid(pb.MarkPaidRequest(invoice_id=invoice.id, deal_id=deal_id))
        self._desk.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal_id))
        return invoice

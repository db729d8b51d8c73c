"""The gRPC face of the service: message -> operation -> message. Errors are the interceptor's matter.

- `merchants`: what merchants do with invoices
- `customers`: the hosted page
- `desk`: the operator's desk
- `converters`: rows and values to messages, and back
"""

from typing import Final

import grpc

from fiatgate.invoices.v1 import invoices_pb2_grpc as pb_grpc
from kit.rpc.callers import ALL, Callers
from services.invoices.rpc.customers import CheckoutServicer
from services.invoices.rpc.desk import DealDeskServicer
from services.invoices.rpc.merchants import InvoicesServicer
from services.invoices.wiring import Deps

CALLERS: Final[Callers] = {
    "cli": frozenset({ALL}),
    "gateway": frozenset(
        {
            "InvoicesService/CreateInvoice",
            "InvoicesService/GetInvoice",
            "InvoicesService/ListInvoices",
            "CheckoutService/CancelCheckout",
            "CheckoutService/GetCheckout",
            "CheckoutService/MarkPaid",
            "CheckoutService/OpenCase",
            "CheckoutService/OpenCustomerAppeal",
            "CheckoutService/SelectPaymentMethod",
        }
    ),
}


def add_to(server: grpc.Server, deps: Deps) -> None:
    """Register all that this service offers."""
    pb_grpc.add_InvoicesServiceServicer_to_server(InvoicesServicer(deps), server)
    pb_grpc.add_CheckoutServiceServicer_to_server(CheckoutServicer(deps), server)
    pb_grpc.add_DealDeskServiceServicer_to_server(DealDeskServicer(deps), server)

"""The calls of withdrawals: identity tells owners by e-mail, and has who is banned; invoices has the money of deals."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from google.protobuf.message import Message

from fiatgate.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from fiatgate.invoices.v1 import invoices_pb2, invoices_pb2_grpc
from fiatgate.merchants.v1 import merchants_pb2, merchants_pb2_grpc
from kit.base.proto import optional, timestamp_from
from kit.base.tls import Identity
from kit.rpc.breaker import Breaker
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from services.withdrawals import errors
from services.withdrawals.store.views import AddressView

SECONDS_PER_CALL = 5.0
MERCHANT_SECONDS = 2.0
"""The time-out of a call to identity that a person waits for."""

MONEY_SECONDS = 3.0
"""The time-out of a call to invoices, which itself calls identity."""


class IdentityClient:
    """Connects on first use."""

    def __init__(self, address: str, *, identity: Identity | None = None) -> None:
        opened = channel(address, name="identity", identity=identity)
        self._notices = accounts_pb2_grpc.NoticesServiceStub(opened)
        self._merchants = merchants_pb2_grpc.MerchantsServiceStub(opened)
        self._calls = Breaker("identity", calls="members", seconds=MERCHANT_SECONDS)

    def tell_owners(self, address: AddressView) -> None:
        """Lets the merchant's owners be told of a new address. Raises `Refused`."""
        request = accounts_pb2.TellOwnersRequest(
            notice_id=str(address.id),
            merchant_id=str(address.merchant_id),
            network=address.network,
            address=address.address,
            added_by=address.added_by,
            usable_at=timestamp_from(address.usable_at),
        )
        self._notices.TellOwners(request, timeout=SECONDS_PER_CALL)

    def refusal_of(self, merchant_id: UUID) -> Refused | None:
        """Returns why the merchant may start nothing now: MERCHANT_NOT_FOUND, OWNER_BLOCKED or MERCHANT_BLOCKED; None
        when it may. Raises `Refused` when identity does not answer.
        """
        request = merchants_pb2.GetMerchantRequest(merchant_id=str(merchant_id))
        try:
            merchant = self._calls.call(self._merchants.GetMerchant, request).merchant
        except Refused as refused:
            if refused.reason != "MERCHANT_NOT_FOUND":
                raise
            return refused
        if merchant.owner_blocked:
            return errors.owner_blocked()
        return errors.merchant_blocked() if merchant.status == merchants_pb2.MERCHANT_STATUS_BANNED else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedMoney:
    """The equivalents of an amount: `order_amount` in fiat, `credit_usdt` in USDT."""

    order_amount: Decimal
    credit_usdt: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class DealMoney:
    """An invoice's newest deal, proven by invoices (GetDealMoneyResponse). Statuses are as the API writes them.

    paid_amount, merchant_usdt  None unless the deal is completed
    received                    None when no amount was given
    case_number                 the case of late money; 0 for none
    case_decided                "credit" or "return", as the case ended or the merchant has answered; empty for neither
    """

    invoice_id: UUID
    deal_id: UUID
    merchant_id: UUID
    invoice_status: str
    status: str
    sub_status: str
    currency_code: str
    currency_decimals: int
    conversion_rate: Decimal
    client_percent: Decimal
    merchant_percent: Decimal
    amount_to_send: Decimal
    paid_amount: Decimal | None
    merchant_usdt: Decimal | None
    refunds_return_commission: bool
    received: ReceivedMoney | None
    case_number: int
    case_decided: str


class InvoicesClient:
    """Connects on first use."""

    def __init__(self, address: str, *, identity: Identity | None = None) -> None:
        opened = channel(address, name="invoices", identity=identity)
        self._stub = invoices_pb2_grpc.InvoicesServiceStub(opened)
        self._calls = Breaker("invoices", calls="money", seconds=MONEY_SECONDS)

    def deal_money(
        self,
        *,
        invoice_id: UUID | None = None,
        deal_id: UUID | None = None,
        received_amount: Decimal | None = None,
        conversion_rate: Decimal | None = None,
    ) -> DealMoney:
        """Returns the money of an invoice's newest deal, which one of the two ids names.

        Raises `Refused`: INVOICE_NOT_FOUND, DEAL_NOT_FOUND, VALIDATION_ERROR with the field, NOT_DECIDED,
        MERCHANT_NOT_FOUND, DB_UNAVAILABLE.
        """
        request = invoices_pb2.GetDealMoneyRequest(
            invoice_id=None if invoice_id is None else str(invoice_id),
            deal_id=None if deal_id is None else str(deal_id),
            received_amount=None if received_amount is None else f"{received_amount:f}",
            conversion_rate=None if conversion_rate is None else f"{conversion_rate:f}",
        )
        return _money_from_message(self._calls.call(self._stub.GetDealMoney, request))


def _money_from_message(answer: invoices_pb2.GetDealMoneyResponse) -> DealMoney:
    return DealMoney(
        invoice_id=UUID(answer.invoice_id),
        deal_id=UUID(answer.deal_id),
        merchant_id=UUID(answer.merchant_id),
        invoice_status=_word(invoices_pb2.InvoiceStatus.Name(answer.invoice_status), "INVOICE_STATUS_"),
        status=_word(invoices_pb2.DealStatus.Name(answer.status), "DEAL_STATUS_"),
        sub_status=answer.sub_status,
        currency_code=answer.currency_code,
        currency_decimals=answer.currency_decimals,
        conversion_rate=Decimal(answer.conversion_rate),
        client_percent=Decimal(answer.client_percent),
        merchant_percent=Decimal(answer.merchant_percent),
        amount_to_send=Decimal(answer.amount_to_send),
        paid_amount=_number(answer, "paid_amount"),
        merchant_usdt=_number(answer, "merchant_usdt"),
        refunds_return_commission=answer.refunds_return_commission,
        received=_received_from_message(answer.received) if answer.HasField("received") else None,
        case_number=answer.case_number,
        case_decided=answer.case_decided,
    )


def _received_from_message(received: invoices_pb2.ReceivedMoney) -> ReceivedMoney:
    return ReceivedMoney(
        order_amount=Decimal(received.order_amount),
        credit_usdt=Decimal(received.credit_usdt),
    )


def _number(message: Message, name: str) -> Decimal | None:
    text = optional(message, name)
    return None if text is None else Decimal(text)


def _word(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).lower()

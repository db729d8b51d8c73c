"""A member of a merchant reaches nothing of another one: every method that is open to members, by its own service.

The methods are those that the protos open to members, so a new one is tried here, and one that loads an object by its
id needs a row in `FOREIGN`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import pytest
from google.protobuf.message_factory import GetMessageClass

from fiatgate.accounts.v1 import accounts_pb2
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceStub
from fiatgate.rpc.v1 import access_pb2
from fiatgate.withdrawals.v1 import corrections_pb2, refunds_pb2, withdrawals_pb2
from kit.base.ids import new_id
from kit.base.services import SERVICES
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from tests.e2e.market import Customer, Operator, Shop, settled
from tests.e2e.people import House, Person, named, refusal
from tests.support.contracts import permissions_of
from tests.support.receiver import Receiver
from tests.support.stack import Stack
from tests.test_permissions import method_of

ACCOUNT: Final = refunds_pb2.RefundAccount(kind="free", account="4711", holder="Mia Muster")
TRON_ADDRESS: Final = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"

OPEN_TO_MEMBERS: Final = {
    (service, method): row.merchant == access_pb2.MERCHANT_OF_OBJECT
    for service in SERVICES
    for method, row in permissions_of(service).items()
    if row.members and row.merchant != access_pb2.MERCHANT_OF_NONE
}


@dataclass(frozen=True)
class Other:
    """Another merchant than the caller's, its owner, and one object of each kind."""

    merchant_id: str
    owner: Person
    key_id: str
    invoice_id: str
    open_invoice_id: str
    case_number: int
    link_id: str
    event_id: int
    withdraw_uuid: str
    transfer_id: str
    address_id: str
    refund_id: str
    correction_id: str
    person_id: str
    invitation_id: str


@dataclass(frozen=True)
class Newcomer:
    """A merchant that has sold nothing yet."""

    merchant_id: str
    owner: Person


FOREIGN: Final[dict[str, Callable[[Other], dict[str, Any]]]] = {
    "DealDeskService/AnswerCase": lambda other: {"number": other.case_number, "answer": "credit"},
    "DealDeskService/GetCase": lambda other: {"number": other.case_number},
    "DealDeskService/GetInvoiceStory": lambda other: {"invoice_id": other.invoice_id},
    "InvoicesService/CancelInvoice": lambda other: {"invoice_id": other.open_invoice_id},
    "InvoicesService/CancelLink": lambda other: {"link_id": other.link_id},
    "MerchantsService/DeactivateApiKey": lambda other: {"key_id": other.key_id},
    "PeopleService/GetPerson": lambda other: {"person": other.person_id},
    "PeopleService/WithdrawInvitation": lambda other: {"invitation_id": other.invitation_id},
    "RefundsService/GetRefund": lambda other: {"refund_id": other.refund_id},
    "RefundsService/SetRefundAccount": lambda other: {"refund_id": other.refund_id, "account": ACCOUNT},
    "RefundsService/CancelRefund": lambda other: {"refund_id": other.refund_id},
    "WebhooksService/GetEvent": lambda other: {"event_id": other.event_id},
    "WithdrawalsService/GetWithdrawalStory": lambda other: {"withdraw_uuid": other.withdraw_uuid},
    "WithdrawalsService/RemoveAddress": lambda other: {"address_id": other.address_id},
    "WithdrawalsService/CancelWithdrawal": lambda other: {"withdraw_uuid": other.withdraw_uuid},
}
"""The request that names the object, for each method that loads one by its id."""

PLACES: Final[dict[str, Callable[[Other], Any]]] = {
    "after_correction_id": lambda other: other.correction_id,
    "after_event_id": lambda other: other.event_id,
    "after_invoice_id": lambda other: other.invoice_id,
    "after_link_id": lambda other: other.link_id,
    "after_refund_id": lambda other: other.refund_id,
    "after_transfer_id": lambda other: other.transfer_id,
    "after_withdraw_uuid": lambda other: other.withdraw_uuid,
}
"""The object after which a page of a list begins, by the field that names it."""

LISTS: Final = [
    (service, method, place)
    for service, method in OPEN_TO_MEMBERS
    for place in PLACES
    if place in method_of(service, method).input_type.fields_by_name
]


class Services:
    """Every method of every service, as `Service/Method`."""

    def __init__(self, stack: Stack, opened: ExitStack) -> None:
        self._channels = {
            service: opened.enter_context(channel(address, name=service))
            for service, address in stack.addresses.items()
        }

    def call(self, service: str, method: str, /, **fields: Any) -> Any:
        found = method_of(service, method)
        do = self._channels[service].unary_unary(
            f"/{found.containing_service.full_name}/{found.name}",
            request_serializer=GetMessageClass(found.input_type).SerializeToString,
            response_deserializer=GetMessageClass(found.output_type).FromString,
        )
        return do(GetMessageClass(found.input_type)(**fields))


@pytest.fixture(scope="module")
def house(stack: Stack) -> Iterator[House]:
    with ExitStack() as opened:
        yield House(stack, opened)


@pytest.fixture(scope="module")
def services(stack: Stack) -> Iterator[Services]:
    with ExitStack() as opened:
        yield Services(stack, opened)


@pytest.fixture(scope="module")
def caller(house: House, shop: Shop) -> Person:
    return house.member(shop.merchant_id, "owner")


@pytest.fixture(scope="module")
def newcomer(stack: Stack, house: House) -> Newcomer:
    merchant_id = Shop.opened(stack).merchant_id
    return Newcomer(merchant_id, house.member(merchant_id, "owner"))


def case_of(stack: Stack, invoice_id: str) -> int:
    """The number of a new case about the invoice, which its customer canceled."""
    with channel(stack.addresses["invoices"], name="invoices") as invoices:
        checkout = CheckoutServiceStub(invoices)
        checkout.CancelCheckout(invoices_pb2.CancelCheckoutRequest(invoice_id=invoice_id))
        return int(checkout.OpenCase(invoices_pb2.OpenCaseRequest(invoice_id=invoice_id)).case.number)


@pytest.fixture(scope="module")
def other(stack: Stack, house: House, services: Services, operator: Operator) -> Iterator[Other]:
    theirs = Shop.opened(stack)
    with Receiver() as receiver:
        invoice = theirs.create(receiver.url())
        Customer(invoice.created["payment_link"]).choose_and_pay()
        operator.confirm(invoice)
        event_id = invoice.wait_for_delivery()["event_id"]
        waiting = theirs.create(receiver.url())
        late = theirs.create(receiver.url())
        Customer(late.created["payment_link"]).choose()
        number = case_of(stack, late.id)
    settled(lambda: operator.available(theirs) > 30, "the credit")
    withdrawal = stack.cli(
        *("withdrawals", "create", theirs.merchant_id, "--method", "1"),
        *("--address", TRON_ADDRESS, "--amount", "25"),
    )
    address = house.withdrawals.AddAddress(
        withdrawals_pb2.AddAddressRequest(
            merchant_id=theirs.merchant_id, withdrawal_method_id=1, address=TRON_ADDRESS, name="exchange"
        )
    ).address
    (transfer,) = house.withdrawals.ListTransfers(
        withdrawals_pb2.ListTransfersRequest(merchant_id=theirs.merchant_id, limit=1)
    ).transfers
    link = stack.cli("links", "create", theirs.merchant_id, "--amount", "49.90", "--currency", "EUR")
    owner = house.member(theirs.merchant_id, "owner")
    listed = house.people.ListPeople(accounts_pb2.ListPeopleRequest(merchant_id=theirs.merchant_id)).people
    invited = house.people.InvitePerson(
        accounts_pb2.InvitePersonRequest(
            email=f"p{new_id().hex}@example.com",
            name="Mia",
            merchant_id=theirs.merchant_id,
            member_roles=["viewer"],
        )
    )
    (key,) = stack.cli("keys", "list", theirs.merchant_id)
    asked = {"external_id": new_id().hex, "amount": "0.10"}
    refund = theirs.request("POST", f"/api/v1/invoices/{invoice.id}/refunds", json=asked).json()["data"]
    correction = services.call(
        *("withdrawals", "CorrectionsService/MakeCorrection"),
        kind=corrections_pb2.CORRECTION_KIND_SURPLUS,
        invoice_id=invoice.id,
        received_amount="5.00",
        reason="more came",
        evidence="BR-1",
        request_key=str(new_id()),
    ).correction
    yield Other(
        merchant_id=theirs.merchant_id,
        owner=owner,
        key_id=key["key_id"],
        invoice_id=invoice.id,
        open_invoice_id=waiting.id,
        case_number=number,
        link_id=link["link_id"],
        event_id=event_id,
        withdraw_uuid=withdrawal["withdraw_uuid"],
        transfer_id=transfer.transfer_id,
        address_id=address.address_id,
        refund_id=refund["refund_id"],
        correction_id=correction.correction_id,
        person_id=next(each.person_id for each in listed if each.email == owner.email),
        invitation_id=invited.invitation.invitation_id,
    )


@pytest.mark.parametrize(("service", "method", "place"), LISTS)
def test_a_page_after_another_merchants_object_is_that_after_nothing(
    services: Services,
    newcomer: Newcomer,
    other: Other,
    service: str,
    method: str,
    place: str,
) -> None:
    """A merchant whose own lists are empty learns nothing of what others have."""

    def page_after(value: object) -> object:
        request = {"merchant_id": newcomer.merchant_id, place: value}
        try:
            return named(newcomer.owner.token(), lambda: services.call(service, method, **request))
        except Refused as refused:
            return refused.reason, dict(refused.metadata)

    theirs = PLACES[place](other)
    assert page_after(theirs) == page_after(2**40 if isinstance(theirs, int) else str(new_id()))


def test_each_method_that_loads_an_object_is_tried_here() -> None:
    assert {method for (_, method), of_object in OPEN_TO_MEMBERS.items() if of_object} == FOREIGN.keys()


@pytest.mark.parametrize(
    ("service", "method"), [called for called, of_object in OPEN_TO_MEMBERS.items() if not of_object]
)
def test_a_member_who_names_another_merchant_finds_none(
    services: Services, caller: Person, other: Other, service: str, method: str
) -> None:
    def refused_of(merchant_id: str) -> tuple[str, dict[str, str]]:
        return refusal(caller.token(), lambda: services.call(service, method, merchant_id=merchant_id))

    assert refused_of(other.merchant_id) == ("MERCHANT_NOT_FOUND", {})
    assert refused_of(str(new_id())) == ("MERCHANT_NOT_FOUND", {}), "as one that does not exist"


@pytest.mark.parametrize(
    ("service", "method"), [called for called, of_object in OPEN_TO_MEMBERS.items() if of_object]
)
def test_a_member_finds_no_object_of_another_merchant(
    services: Services, caller: Person, other: Other, service: str, method: str
) -> None:
    theirs = FOREIGN[method](other)
    unknown = {name: 2**40 if isinstance(value, int) else str(new_id()) for name, value in theirs.items()}
    unknown |= {name: value for name, value in theirs.items() if name in ("account", "answer")}
    found = refusal(caller.token(), lambda: services.call(service, method, **theirs))
    assert found == refusal(caller.token(), lambda: services.call(service, method, **unknown))
    assert found[0].endswith("_NOT_FOUND")
    # The object's own merchant reaches it still: it is there, and the refused call changed nothing.
    named(other.owner.token(), lambda: services.call(service, method, **theirs))

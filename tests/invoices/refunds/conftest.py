"""A merchant with paid invoices of real deals, and the service that refunds them."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pytest

from kit.base.actors import Actor
from kit.base.ids import new_id
from kit.rpc.approvals import ApprovalsServicer
from services.invoices import rpc as invoices_rpc
from services.invoices.operations import cases, checkout, desk
from services.withdrawals.clients import InvoicesClient
from services.withdrawals.config import WithdrawalsSettings
from services.withdrawals.domain import CorrectionKind, RefundOrigin, RefundStatus
from services.withdrawals.operations import corrections, fields, refund_steps, refunds
from services.withdrawals.operations.corrections import Asked as Correcting
from services.withdrawals.operations.refunds import Asked
from services.withdrawals.rpc import APPROVABLE, add_to
from services.withdrawals.store.views import RefundView
from services.withdrawals.wiring import wire
from tests.invoices.conftest import Surroundings, World, make_merchant
from tests.support.acting import ANN, BEN, CID, Approvals, acting, requested
from tests.support.clock import ManualClock
from tests.support.servers import PostgresServer
from tests.support.serving import connected, serving
from tests.support.signing import PUBLIC_KEYS, SEAL_KEY
from tests.withdrawals.conftest import POOL_SIZE, House

IBAN: Final = "DE89370400440532013000"
ACCOUNT: Final = fields.account(kind="iban", account=IBAN, holder="Mia Muster", bank="")
PROGRAM: Final = Actor(kind="api", name="gateway", surface="api")
PAGE: Final = Actor(kind="process", name="gateway")
WAITING, READY, SENT, SUCCEEDED, FAILED, CANCELED = RefundStatus


@dataclass(frozen=True)
class Till:
    """A merchant with 1000 USDT and paid invoices of 200.00 EUR, for each of which a customer sent 205.00 EUR."""

    world: World
    house: House
    merchant: Any
    key_id: str

    @property
    def merchant_id(self) -> str:
        return str(self.merchant.merchant_id)

    def member(self, merchant_id: str = "") -> Actor:
        return Actor(
            kind="person",
            name="mia@example.com",
            surface="dashboard",
            person_id=uuid.uuid4(),
            roles=frozenset({"finance"}),
            merchant_id=uuid.UUID(merchant_id or self.merchant_id),
        )

    def invoice(self, *, paid: bool = True) -> str:
        """A new invoice: paid and credited, or canceled after a method was chosen."""
        deal = self.world.with_deal(merchant=self.merchant, key_id=self.key_id, amount="200.00")
        if paid:
            desk.confirm_deal(self.world.deps, deal_id=str(deal.id))
            self.house.credit("211.956521", self.merchant_id, deal.invoice_id)
        else:
            checkout.cancel_checkout(self.world.deps, invoice_id=str(deal.invoice_id))
        return str(deal.invoice_id)

    def case(self, invoice_id: str) -> int:
        """The number of the invoice's case of late money."""
        return cases.open_case(self.world.deps, invoice_id=invoice_id, note="", picture=None).number

    def asking(self, invoice_id: str, amount: str = "", **changes: Any) -> Callable[[], RefundView]:
        of_money: dict[str, Any] = {
            "merchant_id": self.merchant_id,
            "origin": RefundOrigin.CREDITED,
            "case_number": 0,
        }
        given: dict[str, Any] = {
            "external_id": new_id().hex,
            "account": ACCOUNT,
            "reason": "",
            "expected_amount": "",
        }
        money = {name: changes.pop(name, value) for name, value in of_money.items()}
        asked = Asked(invoice_id=invoice_id, refund_amount=amount, **money)
        return partial(refunds.request_refund, self.house.deps, asked, **(given | changes))

    def ask(self, invoice_id: str, amount: str = "", **changes: Any) -> RefundView:
        return acting(PROGRAM, self.asking(invoice_id, amount, **changes))

    def step(self, target: RefundStatus, refund: RefundView, **changes: Any) -> Callable[[], RefundView]:
        steps: dict[RefundStatus, tuple[Callable[..., RefundView], dict[str, Any]]] = {
            READY: (refund_steps.set_refund_account, {"account": ACCOUNT}),
            SENT: (refund_steps.send_refund, {"bank_reference": f"BR-{refund.id}"}),
            SUCCEEDED: (refund_steps.complete_refund, {"bank_reference": f"BR-{refund.id}"}),
            FAILED: (refund_steps.fail_refund, {"failure": "The account is closed"}),
            CANCELED: (refund_steps.cancel_refund, {}),
        }
        operation, given = steps[target]
        return partial(operation, self.house.deps, refund_id=str(refund.id), **(given | changes))

    def reached(self, status: RefundStatus) -> RefundView:
        """A refund of 20.00 EUR in this status."""
        made = self.ask(self.invoice(), "20.00", account=None if status is WAITING else ACCOUNT)
        for each in {SUCCEEDED: (SENT, SUCCEEDED), WAITING: (), READY: ()}.get(status, (status,)):
            made = acting(CID, self.step(each, made))
        return made

    def money(self) -> tuple[str, str]:
        """available, reserved"""
        return self.house.balance(self.merchant_id)[:2]

    def approvals(self) -> Approvals:
        return Approvals(ApprovalsServicer("withdrawals", self.house.deps, APPROVABLE))

    def reversing(self, invoice_id: str, amount: str) -> Callable[[], object]:
        asked = Correcting(
            kind=CorrectionKind.REVERSAL,
            merchant_id="",
            invoice_id=invoice_id,
            amount=amount,
            received_amount="",
            conversion_rate="",
            case_number=0,
        )
        texts = {
            "reason": "recalled",
            "evidence": "BR-7",
            "request_key": str(new_id()),
            "expected_amount": "",
        }
        return partial(corrections.make_correction, self.house.deps, asked, **texts)

    def reverse(self, invoice_id: str, amount: str) -> None:
        make = self.reversing(invoice_id, amount)
        self.approvals().approve(BEN, requested(ANN, make))


@pytest.fixture(scope="module")
def house(
    module_world: World, database_url: Callable[[str], str], postgres: PostgresServer
) -> Iterator[House]:
    url = database_url("withdrawals")
    settings = WithdrawalsSettings(
        seal_keys=(SEAL_KEY,),
        database_url=url,
        bind="127.0.0.1:0",
        threads=POOL_SIZE,
        pool_size=POOL_SIZE,
        fact_public_keys=PUBLIC_KEYS,
    )
    clock = ManualClock()
    with serving(invoices_rpc.add_to, module_world.deps, threads=POOL_SIZE) as invoices:
        deps = replace(wire(settings, clock=clock), invoices=InvoicesClient(invoices))
        admin_url = f"{postgres.admin_url.rpartition('/')[0]}/{url.rpartition('/')[2]}"
        with serving(add_to, deps, threads=POOL_SIZE) as address, connected(address) as channel:
            from fiatgate.withdrawals.v1.withdrawals_pb2_grpc import WithdrawalsServiceStub

            yield House(deps, WithdrawalsServiceStub(channel), clock, admin_url)
        deps.db.dispose()


@pytest.fixture
def till(world: World, house: House, surroundings: Surroundings) -> Till:
    merchant, key_id = make_merchant(surroundings.merchants)
    house.credit("1000", merchant.merchant_id)
    return Till(world, house, merchant, key_id)

"""The load: merchants, customers and operators who go through purchases of every kind and never give up a step.

A step that is answered with "later", or not at all, is done again: nobody knows whether it was done.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, Final, Self, TypeVar

import requests

from fiatgate.bank.v1 import bank_pb2
from fiatgate.bank.v1.bank_pb2_grpc import BankServiceStub
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1 import lines_pb2
from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceStub, DealDeskServiceStub
from fiatgate.withdrawals.v1 import corrections_pb2, refunds_pb2
from fiatgate.withdrawals.v1.corrections_pb2_grpc import CorrectionsServiceStub
from fiatgate.withdrawals.v1.refunds_pb2_grpc import RefundsServiceStub
from kit.base.clock import monotonic_seconds
from kit.base.ids import new_id
from kit.base.tls import Identity
from kit.rpc.client import channel
from kit.rpc.errors import Refused, not_found
from tests.bank.shapes import camt, entry, ustrd
from tests.e2e.market import Shop
from tests.faults.journal import Journal
from tests.support.acting import second_person

T = TypeVar("T")

HTTP_SECONDS: Final = 20
STEP_SECONDS: Final = 60
AGAIN_SECONDS: Final = 0.2
PAUSE_SECONDS: Final = 0.1
IMPATIENT: Final = 0.1
METHODS: Final = ("eur-card", "sepa")
LATER: Final = ("DB_UNAVAILABLE", "INTERNAL_ERROR", "RATES_UNAVAILABLE")
# A step that was done though nobody said so, or that time was quicker than.
OVERTAKEN: Final = (
    "DEAL_STATE_CONFLICT",
    "BANK_LINE_CONFLICT",
    "REFUND_STATE_CONFLICT",
    "INVOICE_FINISHED",
    "NO_AVAILABLE_REQUISITES",
)
STORIES: Final = {
    "confirm": 6,
    "confirm by line": 3,
    "confirm, take back": 2,
    "confirm, refund": 2,
    "confirm and reject at once": 2,
    "forget": 3,
    "cancel": 2,
    "cancel a deal": 2,
    "reject": 2,
    "appeal, paid": 1,
    "appeal, less": 2,
    "appeal, rejected": 1,
    "another method, confirm": 2,
}


class GaveUp(Exception):
    """A step that nobody answered for a minute."""


class Shoppers:
    """Threads that buy until the block ends, each from its own part of the seed. Use as a context manager."""

    def __init__(
        self,
        shops: Sequence[Shop],
        *,
        services: dict[str, str],
        identity: Identity | None = None,
        callback: str,
        journal: Journal,
        steps: Journal | None = None,
        again_seconds: float = AGAIN_SECONDS,
        stories: Mapping[str, int] = STORIES,
    ) -> None:
        """`stories` are those of STORIES with their weights.

        `steps` gets a line for each call of customer or operator: `what`, `phase`, `id`, `began`, `ended`, and
        `refused`, the reason or null.
        """
        self._steps = steps
        self._again_seconds = again_seconds
        self._stories = stories
        self._shops = shops
        self._callback = callback
        self._journal = journal
        self._opened = ExitStack()
        invoices = self._opened.enter_context(
            channel(services["invoices"], name="invoices", identity=identity)
        )
        self._checkout = CheckoutServiceStub(invoices)
        self._desk = DealDeskServiceStub(invoices)
        self._by_two = self._opened.enter_context(
            second_person(services["invoices"], service="invoices", identity=identity)
        )
        withdrawals = self._opened.enter_context(
            channel(services["withdrawals"], name="withdrawals", identity=identity)
        )
        self._corrections = CorrectionsServiceStub(withdrawals)
        self._refunds = RefundsServiceStub(withdrawals)
        self._money_by_two = self._opened.enter_context(
            second_person(services["withdrawals"], service="withdrawals", identity=identity)
        )
        bank = self._opened.enter_context(channel(services["bank"], name="bank", identity=identity))
        self._bank = BankServiceStub(bank)
        self._used: list[lines_pb2.LinePart] = []
        self._closing = threading.Event()
        self._seen_terminal: list[tuple[Shop, str]] = []
        self.phase = "faults"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._opened.close()

    def shop_until(self, stop: threading.Event, *, seed: int, count: int) -> list[threading.Thread]:
        """Start so many shoppers; each finishes its purchase after the stop."""

        def shop(chance: random.Random) -> None:
            while not stop.is_set():
                self.noted_purchase(chance)
                stop.wait(chance.uniform(0, 2 * PAUSE_SECONDS))

        threads = [
            threading.Thread(target=shop, args=(random.Random(f"{seed}/{number}"),), daemon=True)
            for number in range(count)
        ]
        for thread in threads:
            thread.start()
        return threads

    def noted_purchase(self, chance: random.Random) -> None:
        """One purchase; what should not have been is in the journal."""
        try:
            self.purchase(chance)
        except GaveUp:
            self._journal.note(what="gave up")
        except Exception as error:  # noqa: BLE001  the checker tells of it
            self._journal.note(what="broke", error=repr(error))

    def purchase(self, chance: random.Random) -> str:
        """One purchase from its creation to wherever its story ends; the invoice's id."""
        shop = chance.choice(self._shops)
        story = chance.choices(list(self._stories), list(self._stories.values()))[0]
        invoice_id = self._create(shop, chance)
        self._tell(story, invoice_id, chance.choice(METHODS), chance)
        self.read(shop, invoice_id)
        if self._seen_terminal:
            self.read(*chance.choice(self._seen_terminal))
        return invoice_id

    def read(self, shop: Shop, invoice_id: str) -> str:
        """Its status, as its shop sees it now."""
        answer = self._http("read", shop, "GET", f"/api/v1/invoices/{invoice_id}", invoice_id=invoice_id)
        status: str = answer["data"]["status"]
        if status != "pending":
            self._seen_terminal.append((shop, invoice_id))
        return status

    def _create(self, shop: Shop, chance: random.Random) -> str:
        body = shop.body(callback_url=self._callback)

        def create() -> str:
            created = self._http("create", shop, "POST", "/api/v1/create-invoice", json=body, sent=body)
            # When the first answer was lost, the second names the invoice that exists (docs/api.md#create-invoice).
            found: str = created.get("invoice_id") or created["error"]["details"]["invoice_id"]
            return found

        # An impatient shop asks twice at once; both are told of the same invoice, or the checker tells of it.
        return _at_once(create, create)[0] if chance.random() < IMPATIENT else create()

    def _http(self, what: str, shop: Shop, method: str, path: str, **rest: Any) -> dict[str, Any]:
        """Asked until there is an answer that is not "later"; every answer is noted."""
        noted = {name: value for name, value in rest.items() if name != "json"}
        sending = {name: value for name, value in rest.items() if name == "json"}
        until = monotonic_seconds() + STEP_SECONDS
        while monotonic_seconds() < until and not self._closing.is_set():
            fields = {"what": what, "phase": self.phase, "merchant_id": shop.merchant_id, **noted}
            began = monotonic_seconds()
            try:
                answer = requests.request(
                    method,
                    shop.url + path,
                    headers={"X-Api-Key": shop.api_key},
                    timeout=HTTP_SECONDS,
                    **sending,
                )
            except requests.RequestException as error:
                self._journal.note(
                    **fields,
                    http=None,
                    error=type(error).__name__,
                    began=began,
                    ended=monotonic_seconds(),
                )
            else:
                self._journal.note(
                    **fields,
                    http=answer.status_code,
                    body=answer.text,
                    began=began,
                    ended=monotonic_seconds(),
                )
                if answer.status_code < 500:
                    value: dict[str, Any] = answer.json()
                    return value
            self._closing.wait(self._again_seconds)
        raise GaveUp

    def _tell(self, story: str, invoice_id: str, method: str, chance: random.Random) -> None:
        checkout, desk = self._checkout, self._desk
        canceling = pb.CancelCheckoutRequest(invoice_id=invoice_id)
        if story == "forget":
            return
        if story == "cancel":
            self._step("cancel", invoice_id, lambda: checkout.CancelCheckout(canceling))
            return
        deal_id = self._choose(invoice_id, method)
        if story == "another method, confirm":
            other = next(each for each in METHODS if each != method)
            deal_id = self._choose(invoice_id, other) or deal_id
        if not deal_id:
            return  # expired before anybody could choose
        if story == "cancel a deal":
            self._step("cancel", invoice_id, lambda: checkout.CancelCheckout(canceling))
            return
        marking = pb.MarkPaidRequest(invoice_id=invoice_id)
        self._step("mark", invoice_id, lambda: checkout.MarkPaid(marking))
        confirm, reject = pb.ConfirmDealRequest(deal_id=deal_id), pb.RejectDealRequest(deal_id=deal_id)
        if story == "reject":
            self._step("reject", deal_id, lambda: desk.RejectDeal(reject))
        elif story == "confirm by line":
            self._confirm_by_line(deal_id)
        elif story == "confirm and reject at once":
            _at_once(
                lambda: self._step("confirm", deal_id, lambda: desk.ConfirmDeal(confirm)),
                lambda: self._step("reject", deal_id, lambda: desk.RejectDeal(reject)),
            )
        elif story.startswith("appeal"):
            appealing = pb.OpenAppealRequest(deal_id=deal_id)
            self._step("appeal", deal_id, lambda: desk.OpenAppeal(appealing))
            outcomes: dict[str, dict[str, Any]] = {
                "appeal, paid": {"paid": True},
                "appeal, less": {"adjusted_amount": f"{chance.randint(1, 99)}.50"},
                "appeal, rejected": {"rejected": True},
            }
            request = pb.ResolveAppealRequest(deal_id=deal_id, **outcomes[story])
            self._step("resolve", deal_id, lambda: self._by_two(lambda: desk.ResolveAppeal(request)))
        else:
            confirmed = self._step("confirm", deal_id, lambda: desk.ConfirmDeal(confirm))
            if confirmed is not None and story == "confirm, take back":
                self._take_back(invoice_id)
            if confirmed is not None and story == "confirm, refund":
                self._refund(invoice_id, chance)

    def _confirm_by_line(self, deal_id: str) -> None:
        """The customer has paid twice: three operators confirm at once, by each of these lines and by one that has paid
        another deal.
        """
        asking = pb.GetDealRequest(deal_id=deal_id)
        found = self._step("look", deal_id, lambda: self._desk.GetDeal(asking))
        assert found is not None
        account = "".join(filter(str.isalnum, found.requisite.account))
        came = entry(found.deal.amount_fiat, ustrd(found.deal.reference))
        content = camt(came, came, account=f"<Othr><Id>{account}</Id></Othr>").encode()
        importing = bank_pb2.ImportFileRequest(content=content, file_name=deal_id)
        self._step("import", deal_id, lambda: self._bank.ImportFile(importing))
        parts = (
            self._step("find lines", deal_id, lambda: self._lines_of(deal_id), "BANK_LINE_NOT_FOUND") or []
        )
        requests = [
            pb.ConfirmDealRequest(deal_id=deal_id, lines=[each]) for each in (*parts, *self._used[-1:])
        ]
        self._used += parts[:1]
        confirm = self._desk.ConfirmDeal
        _at_once(
            *(partial(self._step, "confirm", deal_id, partial(confirm, request)) for request in requests)
        )

    def _lines_of(self, deal_id: str) -> list[lines_pb2.LinePart]:
        """Both lines with the reference of the deal, once they are proposed for it."""
        found = self._bank.ListLines(bank_pb2.ListLinesRequest(deal_id=deal_id)).lines
        if len(found) < 2:
            raise not_found("BANK_LINE_NOT_FOUND", "not read or not proposed yet")
        return [
            lines_pb2.LinePart(line_id=each.line_id, amount=each.amount, line_amount=each.amount)
            for each in found
        ]

    def _refund(self, invoice_id: str, chance: random.Random) -> None:
        """Refunds a part, once its credit is there: sent and completed, failed, or canceled."""
        asking = refunds_pb2.RequestRefundRequest(
            invoice_id=invoice_id,
            external_id=str(new_id()),
            origin=refunds_pb2.REFUND_ORIGIN_CREDITED,
            refund_amount="1.00",
            account=refunds_pb2.RefundAccount(kind="free", account="12345", holder="Ann Buyer"),
        )
        # While a refund of the merchant waits for the database, its next one is told to come again.
        calls, waits = self._refunds, ("INSUFFICIENT_BALANCE", "RATE_LIMITED")
        made = self._step("refund", invoice_id, lambda: calls.RequestRefund(asking), *waits)
        if made is None:
            return
        id, end = made.refund.refund_id, chance.choice(("complete", "fail", "cancel"))
        if end == "cancel":
            self._step(
                "cancel refund", id, lambda: calls.CancelRefund(refunds_pb2.CancelRefundRequest(refund_id=id))
            )
            return
        sending = refunds_pb2.SendRefundRequest(refund_id=id, bank_reference=f"BR-{id}")
        self._step("send refund", id, lambda: self._money_by_two(lambda: calls.SendRefund(sending)))
        if end == "fail":
            failing = refunds_pb2.FailRefundRequest(refund_id=id, failure="Refused")
            self._step("fail refund", id, lambda: calls.FailRefund(failing))
        else:
            completing = refunds_pb2.CompleteRefundRequest(refund_id=id)
            self._step("complete refund", id, lambda: calls.CompleteRefund(completing))

    def _take_back(self, invoice_id: str) -> None:
        """Takes a part of the credit back, once it is there."""
        request = corrections_pb2.MakeCorrectionRequest(
            kind=corrections_pb2.CORRECTION_KIND_REVERSAL,
            invoice_id=invoice_id,
            amount="0.25",
            reason="The bank took it back",
            evidence="BR-77",
            request_key=str(new_id()),
        )
        make = self._corrections.MakeCorrection
        waits = ("CORRECTION_INVALID", "APPROVAL_STATE_CONFLICT")
        self._step("take back", invoice_id, lambda: self._money_by_two(lambda: make(request)), *waits)

    def _choose(self, invoice_id: str, method: str) -> str:
        """The open deal's id; empty when it was too late for one."""
        request = pb.SelectPaymentMethodRequest(invoice_id=invoice_id, method_code=method)
        chosen = self._step("choose", invoice_id, lambda: self._checkout.SelectPaymentMethod(request))
        return "" if chosen is None else chosen.invoice.deal.deal_id

    def _step(self, what: str, id: str, call: Callable[[], T], *later: str) -> T | None:
        """Its answer; None when it was overtaken. It is done again for the reasons of LATER, and for `later`."""
        until = monotonic_seconds() + STEP_SECONDS
        while monotonic_seconds() < until and not self._closing.is_set():
            began = monotonic_seconds()
            try:
                answer = call()
            except Refused as refused:
                self._note(what, id, began, refused.reason)
                if refused.reason in OVERTAKEN:
                    return None
                if refused.reason not in (*LATER, *later):
                    raise
            else:
                self._note(what, id, began, None)
                return answer
            self._closing.wait(self._again_seconds)
        raise GaveUp

    def _note(self, what: str, id: str, began: float, refused: str | None) -> None:
        if self._steps is not None:
            self._steps.note(
                what=what,
                phase=self.phase,
                id=id,
                began=began,
                ended=monotonic_seconds(),
                refused=refused,
            )


def _at_once(*calls: Callable[[], T]) -> list[T]:
    """What they return, in their order; raises what the first of them raised."""
    with ThreadPoolExecutor(len(calls)) as threads:
        return [each.result() for each in [threads.submit(call) for call in calls]]

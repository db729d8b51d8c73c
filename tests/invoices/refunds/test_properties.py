"""Random sequences of refunds beside reversals, corrections and withdrawals, one after the other and at once."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.rpc.errors import Refused
from services.withdrawals.store.views import RefundView
from tests.invoices.refunds.conftest import CANCELED, FAILED, SENT, SUCCEEDED, Till
from tests.support.acting import ANN, BEN, CID, acting
from tests.withdrawals.test_checks import problems
from tests.withdrawals.test_corrections import TAKE, call, money
from tests.withdrawals.test_money_properties import require_continuous

KINDS = ("invoice", "refund", "refund", "cancel", "fail", "send", "reverse", "take", "withdraw")
CREDIT = Decimal("211.956521")
Step = tuple[str, int]


@dataclass
class Model:
    """The money that one thread of steps moved: `net` is what would be available without a debt."""

    till: Till
    invoices: list[str] = field(default_factory=list)
    pending: list[RefundView] = field(default_factory=list)
    net: Decimal = Decimal(0)
    reserved: Decimal = Decimal(0)

    def take(self, step: Step) -> None:
        try:
            getattr(self, f"_{step[0]}")(step[1])
        except Refused as refused:
            assert refused.reason in {
                *("REFUND_INVALID", "INSUFFICIENT_BALANCE", "CORRECTION_INVALID", "APPROVAL_STATE_CONFLICT"),
                "NO_AVAILABLE_REQUISITES",  # so many customers choose a method at once
            }

    def _invoice(self, _: int) -> None:
        self.invoices.append(self.till.invoice())
        self.net += CREDIT

    def _refund(self, amount: int) -> None:
        if self.invoices:
            made = self.till.ask(self.invoices[amount % len(self.invoices)], f"{amount}.00")
            self.pending.append(made)
            self.net -= made.amount
            self.reserved += made.amount

    def _cancel(self, _: int) -> None:
        self._end(CANCELED, back=True)

    def _fail(self, _: int) -> None:
        self._end(FAILED, back=True)

    def _send(self, _: int) -> None:
        if self.pending:
            acting(CID, self.till.step(SENT, self.pending[-1]))
            self._end(SUCCEEDED, back=False)

    def _end(self, status: object, *, back: bool) -> None:
        if self.pending:
            made = self.pending.pop()
            acting(CID, self.till.step(status, made))  # type: ignore[arg-type]
            self.reserved -= made.amount
            self.net += made.amount if back else 0

    def _reverse(self, amount: int) -> None:
        if self.invoices:
            self._by_two(self.till.reversing(self.invoices[amount % len(self.invoices)], str(amount)))
            self.net -= amount

    def _take(self, amount: int) -> None:
        self._by_two(call(self.till.house, TAKE, str(amount), merchant=self.till.merchant_id))
        self.net -= amount

    def _withdraw(self, amount: int) -> None:
        self.till.house.withdraw(self.till.merchant_id, str(amount))
        self.net -= amount
        self.reserved += amount

    def _by_two(self, wanted: object) -> None:
        try:
            acting(ANN, wanted)  # type: ignore[arg-type]
        except Refused as refused:
            if refused.reason != "APPROVAL_REQUIRED":
                raise
            self.till.approvals().approve(BEN, refused.metadata["approval_id"])


def held(till: Till) -> tuple[Decimal, ...]:
    available, reserved, owed = map(Decimal, money(till.house, till.merchant_id))
    return available - owed, reserved, min(available, owed)


STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(5, 150)), min_size=4, max_size=12)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_any_sequence_with_refunds_leaves_the_books_right(till: Till, steps: Sequence[Step]) -> None:
    before, model = held(till), Model(till)
    for step in [("invoice", 0), *steps]:
        model.take(step)
    assert held(till) == (before[0] + model.net, before[1] + model.reserved, Decimal(0))
    require_continuous(till.house, till.merchant_id)


def test_sequences_at_once_with_refunds_leave_the_books_right(till: Till) -> None:
    chance, models = random.Random(11), [Model(till) for _ in range(6)]
    before = held(till)
    steps = [
        [("invoice", 0), *((chance.choice(KINDS), chance.randint(5, 150)) for _ in range(9))] for _ in models
    ]

    def run(model: Model, own: Sequence[Step]) -> None:
        for each in own:
            model.take(each)

    with ThreadPoolExecutor(len(models)) as threads:
        list(threads.map(run, models, steps))
    net, reserved = sum(each.net for each in models), sum(each.reserved for each in models)
    assert held(till) == (before[0] + net, before[1] + reserved, Decimal(0))
    require_continuous(till.house, till.merchant_id, at_once=True)
    assert problems(till.house) == []

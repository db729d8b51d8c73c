"""Random sequences of credits, corrections and withdrawals: no balance is negative, the debt is what is unpaid, and
each statement is continuous.
"""

import random
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.rpc.errors import Refused
from services.withdrawals.operations import statements
from tests.support.acting import ANN, BEN, acting
from tests.withdrawals.conftest import House
from tests.withdrawals.test_checks import problems
from tests.withdrawals.test_corrections import GIVE, REVERSAL, TAKE, approvals_of, call, credited, money

KINDS = ("credit", "reverse", "give", "take", "withdraw", "fail", "complete")
Step = tuple[str, int]


def _by_two(house: House, wanted: Callable[[], object]) -> None:
    """Makes a correction by two people. Raises Refused for one that can't be made."""
    try:
        acting(ANN, wanted)
    except Refused as refused:
        if refused.reason != "APPROVAL_REQUIRED":
            raise
        approvals_of(house).approve(BEN, refused.metadata["approval_id"])


@dataclass
class Model:
    """The money of one merchant as sums alone: what would be available without a debt is `net`."""

    house: House
    merchant: str
    invoices: list[tuple[uuid.UUID, int]] = field(default_factory=list)
    pending: list[tuple[pb.Withdrawal, int]] = field(default_factory=list)
    net: int = 0
    reserved: int = 0

    def take(self, step: Step) -> None:
        """Does the step, and counts it unless it was refused."""
        kind, amount = step
        with suppress(Refused):
            getattr(self, f"_{kind}")(amount)

    def _credit(self, amount: int) -> None:
        _, invoice = credited(self.house, str(amount), self.merchant)
        self.invoices.append((invoice, amount))
        self.net += amount

    def _reverse(self, amount: int) -> None:
        invoice, _ = self.invoices[amount % len(self.invoices)] if self.invoices else (uuid.uuid4(), 0)
        _by_two(self.house, call(self.house, REVERSAL, str(amount), invoice=invoice))
        self.net -= amount

    def _give(self, amount: int) -> None:
        _by_two(self.house, call(self.house, GIVE, str(amount), merchant=self.merchant))
        self.net += amount

    def _take(self, amount: int) -> None:
        _by_two(self.house, call(self.house, TAKE, str(amount), merchant=self.merchant))
        self.net -= amount

    def _withdraw(self, amount: int) -> None:
        self.pending.append((self.house.withdraw(self.merchant, str(amount)), amount))
        self.net -= amount
        self.reserved += amount

    def _fail(self, _: int) -> None:
        if self.pending:
            made, amount = self.pending.pop()
            self.house.fail(made)
            self.net += amount
            self.reserved -= amount

    def _complete(self, _: int) -> None:
        if self.pending:
            made, amount = self.pending.pop()
            self.house.complete(made)
            self.reserved -= amount


def require_continuous(house: House, merchant: str, *, at_once: bool = False) -> None:
    """Each line of the statement follows from the one before, nothing is below zero, and the end is the balance.

    at_once  transfers of the same moment stand in the order of their ids, not of their commits: a line between them may
             be below zero
    """
    entries = statements.list_transfers(
        house.deps,
        merchant_id=merchant,
        invoice_id="",
        withdraw_uuid="",
        created_from=None,
        created_before=None,
        after_transfer_id="",
        limit=1000,
        with_balances=True,
        after_balance=None,
    )
    for before, after in pairwise(entries):
        assert before.after is not None
        assert before.after.after(after.transfer.kind, after.transfer.amount) == after.after
    for each in entries:
        assert each.after is not None
        assert at_once or min(each.after.available, each.after.reserved, each.after.owed) >= 0
    if entries and (last := entries[-1].after):
        assert tuple(map(Decimal, money(house, merchant))) == (last.available, last.reserved, last.owed)


STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(5, 60)), min_size=4, max_size=14)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_any_sequence_leaves_the_books_right(house: House, steps: Sequence[Step]) -> None:
    model = Model(house, house.credit("20"), net=20)
    for step in steps:
        model.take(step)
    assert money(house, model.merchant) == (
        f"{max(model.net, 0)}",
        f"{model.reserved}",
        f"{max(-model.net, 0)}",
    )
    require_continuous(house, model.merchant)


def test_sequences_at_once_on_one_merchant_leave_the_books_right(house: House) -> None:
    chance, merchant = random.Random(7), house.credit("100")
    models = [Model(house, merchant) for _ in range(8)]
    steps = [[(chance.choice(KINDS), chance.randint(5, 60)) for _ in range(12)] for _ in models]

    def run(model: Model, own: Sequence[Step]) -> None:
        for each in own:
            model.take(each)

    with ThreadPoolExecutor(len(models)) as threads:
        list(threads.map(run, models, steps))
    net = 100 + sum(each.net for each in models)
    reserved = sum(each.reserved for each in models)
    assert money(house, merchant) == (f"{max(net, 0)}", f"{reserved}", f"{max(-net, 0)}")
    require_continuous(house, merchant, at_once=True)
    assert problems(house) == []

"""Bank's workers confirm deals by lines that certainly fit, where the rule of the method lets them."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from uuid import uuid4

import pytest
from sqlalchemy import text

from kit.base.account_forms import account_key
from kit.rpc import deadline
from kit.rpc.permissions import Checks
from services.bank import wiring as bank_wiring
from services.bank.config import BankSettings
from services.bank.domain.lines import Direction, Line, Status
from services.bank.domain.proposals import LineState
from services.bank.operations import confirming, connectors, feed, proposing
from services.bank.operations import lines as bank_lines
from services.bank.store.views import TRY_LASTS, LineView
from services.invoices import rpc
from services.invoices.operations import desk, lines
from services.invoices.store.lines import Part
from services.invoices.store.views import DealView
from tests.invoices.conftest import World
from tests.invoices.test_line_rules import switch_off, switch_on
from tests.invoices.test_references import chosen, sharing
from tests.support.acting import refusal
from tests.support.serving import serving
from tests.support.signing import SEAL_KEY

__all__ = ["sharing"]
WORKERS = 2


@dataclass(frozen=True)
class Bank:
    """Bank beside invoices, with the lines that one connector posts."""

    world: World
    deps: bank_wiring.Deps
    connector_id: str
    account: str

    def came(self, deal: DealView, **changes: object) -> str:
        """The id of a line with the deal's reference and amount."""
        usual = Line(
            account=self.account,
            direction=Direction.CREDIT,
            amount=deal.amount_fiat,
            currency="EUR",
            status=Status.BOOKED,
            booked_on=date(2026, 1, 15),
            valued_on=None,
            position="lines.0",
            source_id=str(uuid4()),
            counterparty_name="Eva Example",
            text="",
            references=(deal.reference or "",),
        )
        line = replace(usual, **changes)  # type: ignore[arg-type]  # the values of a line
        (posted,) = feed.post_lines(self.deps, connector_id=self.connector_id, lines=[line])
        return str(posted.line_id)

    def look(self) -> None:
        """Lets the workers work until nothing is new."""
        while proposing.propose_new(self.deps):
            pass
        proposing.Again().step(self.deps)
        proposing.follow_step(self.deps)

    def line(self, id: str) -> LineView:
        return bank_lines.get_line(self.deps, line_id=id)


@pytest.fixture
def bank(sharing: World, database_url: Callable[[str], str]) -> Iterator[Bank]:
    with (
        serving(rpc.add_to, sharing.deps, service="invoices", checks=Checks()) as address,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("kit.rpc.actors._carried_by_process", ())  # bank's calls name no operator
        settings = BankSettings(
            seal_keys=(SEAL_KEY,),
            database_url=database_url("bank"),
            bind="127.0.0.1:0",
            invoices_address=address,
            pool_size=12,
        )
        deps = bank_wiring.wire(settings, clock=sharing.clock)
        # Invoices has forgotten the payments of the test before, whose numbers come again.
        proposing.replace_payments(deps, after=0)
        account = account_key("4000 0000 0000 0001")
        key = connectors.create_connector(
            deps, name=f"till-{uuid4()}", accounts=[f"{account}:EUR", "OTHER:EUR"], silence_seconds=0
        )
        yield Bank(sharing, deps, str(key.connector_id), account)
        deps.db.dispose()


def deal_here(bank: Bank, amount: str = "50.00") -> DealView:
    """A deal on the account of the lines."""
    while True:
        deal = chosen(bank.world, amount=amount)
        requisite = desk.get_deal(bank.world.deps, deal_id=str(deal.id)).requisite
        if requisite is not None and account_key(requisite.account) == bank.account:
            return deal


def status(bank: Bank, deal: DealView) -> str:
    return desk.get_deal(bank.world.deps, deal_id=str(deal.id)).deal.status


def test_a_line_that_certainly_fits_confirms_its_deal_once_the_rule_is_on(bank: Bank) -> None:
    deal = deal_here(bank)
    id = bank.came(deal)
    bank.look()
    assert (status(bank, deal), bank.line(id).state) == ("pending", LineState.PROPOSED), "off by default"
    switch_on(bank.world, "100", "1000")
    before = confirming.CONFIRMED._value.get()
    bank.look()
    assert (status(bank, deal), bank.line(id).state) == ("completed", LineState.MATCHED)
    assert confirming.CONFIRMED._value.get() == before + 1
    step = desk.get_deal(bank.world.deps, deal_id=str(deal.id)).history[-1]
    assert (step.actor, step.note) == ("process:bank matcher", f"Bank line {id}")
    switch_off(bank.world)
    other = deal_here(bank)
    bank.came(other)
    bank.look()
    assert status(bank, other) == "pending"


def test_what_is_not_certain_or_not_booked_waits_for_people(bank: Bank) -> None:
    switch_on(bank.world, "100", "1000")
    deal = deal_here(bank)
    for changes in (
        {"status": Status.PENDING},
        {"amount": deal.amount_fiat - 1},
        {"amount": deal.amount_fiat + 1},
        {"references": ("nothing",)},
        {"account": "OTHER"},
        {"direction": Direction.DEBIT},
    ):
        bank.came(deal, **changes)
    appealed = deal_here(bank)
    desk.open_appeal(bank.world.deps, deal_id=str(appealed.id), note="")
    bank.came(appealed)
    bank.look()
    assert (status(bank, deal), status(bank, appealed)) == ("pending", "appeal")


def test_what_a_limit_holds_is_left_to_people_for_good(bank: Bank) -> None:
    switch_on(bank.world, "49.99", "1000")
    deal = deal_here(bank)
    id = bank.came(deal)
    before = confirming.HELD._value.get()
    bank.look()
    bank.look()
    line = bank.line(id)
    assert (line.held, line.state, line.is_payable) == ("deal_limit", LineState.PROPOSED, True)
    assert confirming.HELD._value.get() == before + 1
    switch_on(bank.world, "100", "1000")
    bank.look()
    assert status(bank, deal) == "pending"
    bank_lines.use_line(bank.deps, line_id=id, left=f"{line.left:f}", used_for=f"refund:{uuid4()}")


def test_a_line_can_not_be_ignored_while_it_may_be_confirming(bank: Bank) -> None:
    deal = deal_here(bank)
    id = bank.came(deal)
    bank.look()
    line = bank.line(id)
    (found,) = bank.deps.invoices.deals_of_lines(  # type: ignore[union-attr]  # there is one
        accounts=[bank.account], references=[deal.reference or ""], amounts=[]
    )
    assert confirming._taken(bank.deps, line.id, found) is not None
    assert confirming._taken(bank.deps, line.id, found) is None, "by one worker alone"
    ignore = partial(bank_lines.ignore_line, bank.deps, line_id=id, reason="returned")
    assert refusal(ignore).reason == "BANK_LINE_CONFLICT"
    bank.world.clock.advance(seconds=TRY_LASTS / timedelta(seconds=1))
    switch_on(bank.world, "100", "1000")
    bank.look()
    assert status(bank, deal) == "completed", "a worker that ended in between does not keep the line"


@pytest.mark.parametrize("is_ignored", [True, False])
def test_a_line_that_sql_put_back_confirms_nothing(bank: Bank, is_ignored: bool) -> None:
    switch_on(bank.world, "100", "1000")
    deal = deal_here(bank)
    source_id = str(uuid4())
    id = bank.came(deal, source_id=source_id)
    was = {"id": id, "seal": bank.line(id).seal}
    if is_ignored:
        bank_lines.ignore_line(bank.deps, line_id=id, reason="returned")
    else:
        bank.came(deal, source_id=source_id, status=Status.REVERSED)
    back = "UPDATE lines SET state = 'waiting', reason = NULL, status = 'booked', seal = :seal WHERE id = :id"
    with bank.deps.db.transaction() as tx:
        tx.execute(text(back), was)
    bank.look()
    assert (status(bank, deal), bank.line(id).state) == ("pending", LineState.PROPOSED)
    claim = partial(bank_lines.claim_line, bank.deps, line_id=id, anew=True)
    assert refusal(claim).reason == "NOT_DECIDED", "nor does a person confirm by it"


def test_a_line_is_used_once_between_a_person_who_links_it_and_a_form_that_credits_it(bank: Bank) -> None:
    deal = deal_here(bank)
    id, left = bank.came(deal), f"{deal.amount_fiat:f}"
    bank.look()
    use = partial(bank_lines.use_line, bank.deps, line_id=id, left=left, used_for=f"correction:{uuid4()}")
    claim = partial(bank_lines.claim_line, bank.deps, line_id=id, anew=True)
    claimed = claim()
    assert {refusal(use).reason, refusal(claim).reason} == {"BANK_LINE_CONFLICT"}
    part = Part(line_id=claimed.id, amount=claimed.left, line_amount=claimed.amount)
    with deadline.within(0):
        late = refusal(desk.confirm_deal, bank.world.deps, deal_id=str(deal.id), lines=[part])
    assert (late.reason, status(bank, deal)) == ("DB_UNAVAILABLE", "pending"), "its claim may have ended"
    desk.confirm_deal(bank.world.deps, deal_id=str(deal.id), lines=[part])
    bank_lines.release_line(bank.deps, line_id=id, claimed_at=claimed.tried_at)
    assert (bank.line(id).state, bank.line(id).left) == (LineState.MATCHED, Decimal(0)), (
        "its payment is fetched before"
    )
    assert refusal(use).message == "The line is matched, and 0.00 of it is left"

    other = bank.came(deal_here(bank))
    bank.look()
    use = partial(use, line_id=other)
    assert use() is not None
    assert refusal(claim, line_id=other).reason == "BANK_LINE_CONFLICT"
    bank.world.clock.advance(seconds=TRY_LASTS / timedelta(seconds=1))
    switch_on(bank.world, "100", "1000")
    bank.look()
    assert refusal(claim, line_id=other).reason == "BANK_LINE_CONFLICT", "nor later, nor by the rule"


def test_a_try_that_failed_is_made_again(bank: Bank) -> None:
    switch_on(bank.world, "100", "1000")
    deal = deal_here(bank)
    id = bank.came(deal)
    with bank.world.deps.db.transaction() as tx:
        tx.execute(text("UPDATE line_rules SET deal_most = 900"))
    bank.look()
    assert (status(bank, deal), bank.line(id).held) == ("pending", None)
    with bank.world.deps.db.transaction() as tx:
        tx.execute(text("UPDATE line_rules SET deal_most = 100"))
    bank.world.clock.advance(seconds=TRY_LASTS / timedelta(seconds=1))
    bank.look()
    assert status(bank, deal) == "completed"


def test_two_workers_never_pass_the_limit_and_pay_nothing_twice(bank: Bank) -> None:
    switch_on(bank.world, "100", "380")
    deals = [deal_here(bank) for _ in range(10)]
    ids = [bank.came(deal) for deal in deals] + [bank.came(deal) for deal in deals]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda _: bank.look(), range(WORKERS)))
    bank.look()
    paid = [
        each
        for deal in deals
        for each in lines.list_line_payments(bank.world.deps, after=0, limit=0, deal_id=str(deal.id))
    ]
    amount = deals[0].amount_fiat
    assert sum(each.amount for each in paid) == amount * int(Decimal(380) / amount)
    assert len({each.deal_id for each in paid}) == len({each.line_id for each in paid}) == len(paid)
    states = [bank.line(id).state for id in ids]
    assert states.count(LineState.MATCHED) == len(paid)

"""Bank lines confirm deals without a person: off by default, within limits, switched on by two people."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal
from functools import partial
from typing import Any

import psycopg2
import pytest
from sqlalchemy import text

from kit.base.actors import Actor
from kit.rpc import callers
from kit.rpc.errors import Refused
from services.invoices.models import Deal
from services.invoices.operations import desk, line_rules, lines, reading
from services.invoices.store.line_rules import RuleView
from services.invoices.store.lines import Part
from tests.invoices.conftest import World
from tests.invoices.test_books import checked
from tests.invoices.test_line_payments import part
from tests.support.acting import ANN, BEN, acting, refusal, requested
from tests.support.databases import past_all_rules

METHOD = "card_eur"
BANK = Actor(kind="process", name="bank")
WORKERS = 4


def setting(world: World, deal_most: str, day_most: str) -> Callable[[], RuleView]:
    given = {"method_code": METHOD, "deal_most": deal_most, "day_most": day_most}
    return partial(line_rules.set_line_rule, world.deps, enabled=True, **given)


def switch_on(world: World, deal_most: str, day_most: str) -> None:
    world.approvals.approve(BEN, requested(ANN, setting(world, deal_most, day_most)))


def switch_off(world: World) -> RuleView:
    return acting(ANN, partial(line_rules.set_line_rule, world.deps, method_code=METHOD, enabled=False))


def confirm(world: World, deal: Deal, line: Part | None = None) -> str:
    given: dict[str, Any] = {"deal_id": str(deal.id), "part": line or part(deal.amount_fiat)}
    return acting(BANK, lambda: line_rules.confirm_by_line(world.deps, **given))


def status(world: World, deal: Deal) -> str:
    return desk.get_deal(world.deps, deal_id=str(deal.id)).deal.status


def test_without_a_rule_nothing_is_confirmed(world: World) -> None:
    deal = world.with_deal()
    assert line_rules.list_line_rules(world.deps) == []
    assert confirm(world, deal) == "rule_off"
    assert status(world, deal) == "pending"


def test_two_people_switch_it_on_and_one_switches_it_off(world: World) -> None:
    asked = requested(ANN, setting(world, "500", "1000.5"))
    (listed,) = world.approvals.of(f"line-rule:{METHOD}")
    assert "at most 500.00 EUR a deal and 1000.50 EUR a day. The rule is off" in listed.summary
    assert confirm(world, world.with_deal()) == "rule_off"
    assert refusal(lambda: world.approvals.approve(ANN, asked)).reason == "OTHER_PERSON_REQUIRED"
    world.approvals.approve(BEN, asked)
    (rule,) = line_rules.list_line_rules(world.deps)
    assert (rule.enabled, rule.deal_most, rule.actor) == (True, Decimal(500), "ben@example.com")
    deal = world.with_deal(amount="210.00")
    assert confirm(world, deal) == ""
    assert acting(ANN, setting(world, "400", "1000")).deal_most == 400, "one person lowers a limit"
    raised = requested(ANN, setting(world, "400", "1000.01"))
    assert switch_off(world).enabled is False
    assert refusal(lambda: world.approvals.approve(BEN, raised)).reason == "APPROVAL_STATE_CONFLICT"
    assert confirm(world, world.with_deal()) == "rule_off"
    assert [each for page in checked(world.deps.db, "rules of bank lines") for each in page.problems] == []


def test_the_author_is_the_matcher_and_the_act_names_the_line(world: World) -> None:
    deal = world.with_deal(amount="211.00")
    switch_on(world, "500", "1000")
    line = part(deal.amount_fiat)
    assert confirm(world, deal, line) == ""
    step = desk.get_deal(world.deps, deal_id=str(deal.id)).history[-1]
    assert (step.actor, step.note) == ("process:bank matcher", f"Bank line {line.line_id}")
    acts = reading.get_invoice_story(world.deps, invoice_id=str(deal.invoice_id)).acts
    (act,) = (each for each in acts if each.act == "deal.confirm")
    assert (act.actor_name, act.note) == ("bank matcher", f"Bank line {line.line_id}")
    assert confirm_again(world, deal, line) == "DEAL_STATE_CONFLICT"
    other = world.with_deal(amount=str(deal.invoice_amount))
    assert confirm_again(world, other, line) == "BANK_LINE_CONFLICT", "a line pays once"
    for each in ("payments by bank lines", "deals"):
        assert [found for page in checked(world.deps.db, each) for found in page.problems] == []


def confirm_again(world: World, deal: Deal, line: Part) -> str:
    return refusal(confirm, world, deal, line).reason


def test_limits_hold_and_reaching_them_passes(world: World) -> None:
    first, second, third = (world.with_deal(amount=f"{amount}.00") for amount in (200, 201, 202))
    day = first.amount_fiat + second.amount_fiat
    switch_on(world, f"{first.amount_fiat - Decimal('0.01'):f}", f"{day:f}")
    assert confirm(world, first) == "deal_limit"
    switch_on(world, f"{third.amount_fiat:f}", f"{day:f}")
    assert [confirm(world, each) for each in (first, second, third)] == ["", "", "day_limit"]
    assert status(world, third) == "pending"
    (rule,) = line_rules.list_line_rules(world.deps)
    assert rule.day_sum == day
    desk.confirm_deal(world.deps, deal_id=str(third.id), lines=[part(third.amount_fiat)])
    assert line_rules.list_line_rules(world.deps)[0].day_sum == day, "people's do not count"
    world.clock.advance(days=1)
    assert confirm(world, world.with_deal(amount="202.00")) == ""


def test_a_deal_in_appeal_and_another_amount_are_left_to_people(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deal, other = world.with_deal(amount="212.00"), world.with_deal(amount="213.00")
    switch_on(world, "900", "1000")
    desk.open_appeal(world.deps, deal_id=str(deal.id), note="")
    assert confirm_again(world, deal, part(deal.amount_fiat)) == "DEAL_STATE_CONFLICT"
    assert confirm_again(world, other, part(other.amount_fiat - 1)) == "BANK_LINE_CONFLICT"
    given = {"deal_id": str(other.id), "part": part(other.amount_fiat)}
    refused = acting(ANN, lambda: refusal(line_rules.confirm_by_line, world.deps, **given))
    assert refused.reason == "ACTOR_INVALID"
    monkeypatch.setattr(callers, "current", lambda: "cli")
    assert refusal(confirm, world, other).reason == "ACTOR_INVALID", "a command without a person is no bank"
    assert (status(world, deal), status(world, other)) == ("appeal", "pending")


def test_a_rule_that_sql_wrote_confirms_nothing(world: World) -> None:
    deal = world.with_deal()
    switch_on(world, "10", "1000")
    with world.deps.db.transaction() as tx:
        tx.execute(text("UPDATE line_rules SET deal_most = 900"))
    assert refusal(confirm, world, deal).reason == "NOT_DECIDED"
    assert requested(ANN, setting(world, "800", "900")), "it does not count as a limit that falls"
    found = [each for page in checked(world.deps.db, "rules of bank lines") for each in page.problems]
    assert [each.field for each in found] == ["deal_most"]
    assert switch_off(world).deal_most == 10, "as its acts say"


def test_a_payment_that_sql_moved_to_another_day_is_named(world: World) -> None:
    switch_on(world, "500", "800")
    assert confirm(world, world.with_deal(amount="140.01")) == ""
    with closing(psycopg2.connect(past_all_rules(world.deps.settings.database_url))) as owner, owner:
        owner.cursor().execute("UPDATE line_payments SET paid_at = paid_at - interval '1 day'")
    assert {
        each.field for page in checked(world.deps.db, "payments by bank lines") for each in page.problems
    } == {"paid_at"}


def test_workers_never_pass_the_limit_of_a_day(world: World) -> None:
    deals = [world.with_deal(amount=f"{150 + number}.00") for number in range(20)]
    switch_on(world, "300", "1000")
    each_line = [part(deal.amount_fiat) for deal in deals]

    def outcome(call: tuple[Deal, Part]) -> str:
        try:
            return confirm(world, *call)
        except Refused as refused:
            return refused.reason

    with ThreadPoolExecutor(WORKERS) as pool:  # two workers find each line
        found = list(pool.map(outcome, [*zip(deals, each_line, strict=True)] * 2))
    assert set(found) <= {"", "day_limit", "DEAL_STATE_CONFLICT"}
    paid: list[Any] = [
        payment
        for deal in deals
        for payment in lines.list_line_payments(world.deps, after=0, limit=0, deal_id=str(deal.id))
    ]
    total = sum(each.amount for each in paid)
    left = [deal.amount_fiat for deal in deals if status(world, deal) == "pending"]
    assert len({each.line_id for each in paid}) == len(paid) == found.count("") == len(deals) - len(left)
    assert total <= 1000 < total + min(left), "no more than the limit, and all that it lets pass"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"method_code": "none_such"}, "method_code"),
        ({"deal_most": "0"}, "deal_most"),
        ({"deal_most": "1.001"}, "deal_most"),
        ({"day_most": "99.99"}, "day_most"),
        ({"day_most": ""}, "day_most"),
    ],
)
def test_wrong_limits_are_refused(world: World, given: dict[str, str], field: str) -> None:
    values: dict[str, Any] = {"method_code": METHOD, "enabled": True, "deal_most": "100", "day_most": "100"}
    refused = refusal(line_rules.set_line_rule, world.deps, **(values | given))
    assert (refused.reason, refused.metadata["field"]) == ("VALIDATION_ERROR", field)

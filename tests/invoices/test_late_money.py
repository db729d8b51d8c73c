"""Late money: the merchant's choice, its answer, and what the operator did with the money."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

import psycopg2
import pytest

from deploy.local.ports import free_ports
from fiatgate.merchants.v1 import merchants_pb2
from kit.base.actors import Actor
from kit.db.books import check_page
from services.invoices import rpc
from services.invoices.clients import IdentityClient
from services.invoices.operations import cases, checkout, reading
from services.invoices.store.books import PARTS
from services.invoices.store.views import CaseView
from tests.invoices.conftest import World, make_merchant
from tests.support.acting import ANN, acting, refusal
from tests.support.databases import past_all_rules


def late(world: World, policy: str = "ask_credit") -> CaseView:
    """A new case of a merchant with this policy."""
    merchant, key_id = make_merchant(world.merchants)
    world.merchants.ConfigureMerchant(
        merchants_pb2.ConfigureMerchantRequest(merchant_id=merchant.merchant_id, late_money=policy)
    )
    deal = world.with_deal(merchant=merchant, key_id=key_id)
    checkout.cancel_checkout(world.deps, invoice_id=str(deal.invoice_id))
    return cases.open_case(world.deps, invoice_id=str(deal.invoice_id), note="at noon", picture=None)


def test_a_customers_report_does_not_wait_for_identity(world: World) -> None:
    away = replace(world.deps, identity=IdentityClient(f"127.0.0.1:{free_ports(1)[0]}"))
    earlier, deal = late(world, "return"), world.with_deal()
    checkout.cancel_checkout(world.deps, invoice_id=str(deal.invoice_id))

    def report(invoice_id: UUID) -> CaseView:
        return cases.open_case(away, invoice_id=str(invoice_id), note="again", picture=None)

    assert report(earlier.invoice_id) == earlier
    opened = report(deal.invoice_id)
    assert (opened.policy, opened.answer_by is not None) == ("ask_credit", True)
    assert report(deal.invoice_id) == opened


def test_an_operator_opens_the_case_of_a_bank_line_which_the_customers_report_joins(world: World) -> None:
    customers, deal, line = late(world), world.with_deal(), str(uuid4())
    invoice = str(deal.invoice_id)
    opens = partial(cases.open_late_case, world.deps, line_id=line, note="7.00 EUR came")
    call = partial(opens, invoice_id=invoice)
    assert refusal(lambda: acting(ANN, call)).reason == "DEAL_STATE_CONFLICT", "the deal is open"
    checkout.cancel_checkout(world.deps, invoice_id=str(deal.invoice_id))
    opened = acting(ANN, call)
    assert (str(opened.line_id), opened.note) == (line, "7.00 EUR came")
    assert acting(ANN, call) == opened
    report = partial(cases.open_case, world.deps, invoice_id=str(deal.invoice_id))
    assert report(note="at noon", picture=None) == opened
    assert acting(ANN, partial(opens, invoice_id=str(customers.invoice_id))) == customers
    acts = reading.get_invoice_story(world.deps, invoice_id=invoice).acts
    assert [act.act for act in acts] == ["case.open"]
    acting(
        ANN, partial(cases.resolve_case, world.deps, number=opened.number, outcome="Yes", ended_as="credit")
    )


def member(merchant_id: UUID) -> Actor:
    return Actor(
        kind="person",
        name="mia@example.com",
        surface="dashboard",
        person_id=uuid4(),
        roles=frozenset({"finance"}),
        merchant_id=merchant_id,
    )


def answer(world: World, case: CaseView, word: str, text: str = "") -> CaseView:
    call = partial(cases.answer_case, world.deps, number=case.number, answer=word, text=text)
    return acting(member(case.merchant_id), call)


def due(world: World, case: CaseView) -> str:
    story = cases.get_case(world.deps, number=case.number)
    return story.case.due(story.at)


@pytest.mark.parametrize(
    ("policy", "at_first", "after"),
    [
        ("credit", "credit", "credit"),
        ("return", "return", "return"),
        ("ask_credit", "undecided", "credit"),
        ("ask_return", "undecided", "return"),
    ],
)
def test_what_the_merchant_chose_holds_once_its_time_to_answer_is_over(
    world: World, policy: str, at_first: str, after: str
) -> None:
    case = late(world, policy)
    asked = timedelta(hours=world.deps.settings.late_money_answer_hours)
    assert case.answer_by == (case.opened_at + asked if policy.startswith("ask_") else None)
    assert due(world, case) == at_first
    world.merchants.ConfigureMerchant(
        merchants_pb2.ConfigureMerchantRequest(merchant_id=str(case.merchant_id), late_money="return")
    )
    world.clock.advance(seconds=asked.total_seconds())
    assert due(world, case) == after, "a later choice is for later cases"
    assert not cases.list_cases(world.deps, open_only=False, undecided=True, limit=10).rows


def test_the_merchant_answers_once_and_its_answer_holds(world: World) -> None:
    case = late(world)
    own = str(case.merchant_id)
    waiting = partial(cases.list_cases, world.deps, open_only=True, undecided=True, limit=10, merchant_id=own)
    assert [row.case.number for row in waiting().rows] == [case.number]
    answered = answer(world, case, "return", " he wants it back ")
    assert (answered.merchant_answer, answered.merchant_text, answered.answered_by) == (
        "return",
        "he wants it back",
        "mia@example.com",
    )
    assert (due(world, case), waiting().rows) == ("return", [])
    again = refusal(answer, world, case, "credit")
    assert (again.reason, again.message) == ("CASE_STATE_CONFLICT", "The merchant has answered already")
    wrong = refusal(answer, world, late(world), "answer_only")
    assert (wrong.reason, wrong.metadata["field"]) == ("VALIDATION_ERROR", "answer")


def test_a_closed_case_takes_no_answer_and_an_end_is_one_of_three(world: World) -> None:
    case = late(world)
    resolve = partial(cases.resolve_case, world.deps, number=case.number, outcome="Done")
    refused = refusal(resolve, ended_as="")
    assert (refused.reason, refused.metadata["field"]) == ("VALIDATION_ERROR", "ended_as")
    assert resolve(ended_as="credit").ended_as == "credit"
    assert refusal(answer, world, case, "credit").reason == "CASE_STATE_CONFLICT"
    world.clock.advance(seconds=30 * 86_400)
    assert due(world, case) == "undecided", "as it was when it was closed"


def test_members_see_the_case_of_their_merchant_without_what_is_for_operators(world: World) -> None:
    case, other = late(world), late(world)
    acting(ANN, lambda: cases.resolve_case(world.deps, number=case.number, outcome="Done", ended_as="credit"))
    mia = member(case.merchant_id)
    get = partial(cases.get_case, world.deps)
    for number in (other.number, 999_999):
        refused = refusal(lambda number=number: acting(mia, lambda: get(number=number)))
        assert refused.reason == "CASE_NOT_FOUND"
        refused = refusal(
            lambda number=number: acting(
                mia, lambda: cases.answer_case(world.deps, number=number, answer="credit", text="")
            )
        )
        assert refused.reason == "CASE_NOT_FOUND"
    seen = acting(mia, lambda: rpc.desk._case_story(get(number=case.number)))
    assert (seen["case"].actor, seen["case"].outcome, seen["case"].note) == (
        "the operator",
        "Done",
        "at noon",
    )
    assert not seen["invoice"].deal.requisite_id
    assert seen.keys() == {"case", "invoice"}
    own = str(case.merchant_id)
    listed = partial(cases.list_cases, world.deps, open_only=False, limit=10, merchant_id=own)
    rows = acting(mia, lambda: rpc.desk._cases(listed()))
    assert [each.actor for each in rows["cases"]] == ["the operator"]
    assert [(each.account, each.holder) for each in rows["contexts"]] == [("", "")]


@pytest.mark.parametrize(
    ("prepare", "change", "field"),
    [
        (None, "policy = 'credit'", "terms"),
        (None, "answer_by = now()", "terms"),
        (None, "note = 'credit me'", "terms"),
        (answer, "merchant_answer = 'credit'", "merchant_answer"),
        (answer, "merchant_text = 'x'", "merchant_text"),
        (answer, "answered_by = 'eve'", "answered_by"),
    ],
)
def test_what_sql_wrote_is_named_and_decides_nothing(
    world: World, prepare: Callable[..., object] | None, change: str, field: str
) -> None:
    case = late(world)
    if prepare:
        prepare(world, case, "return")
    url = past_all_rules(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as owner, owner, owner.cursor() as cursor:
        cursor.execute(f"UPDATE cases SET {change} WHERE number = %s", (case.number,))
        assert cursor.rowcount == 1
    (part,) = (each for each in PARTS if each.name == "cases")
    found = check_page(world.deps.db, part, after="", limit=100).problems
    assert [(each.subject, each.field) for each in found] == [(f"case {case.number}", field)]
    resolve = partial(cases.resolve_case, world.deps, number=case.number, outcome="Done", ended_as="credit")
    if field != "answered_by":
        assert refusal(resolve).reason == "NOT_DECIDED"


def test_the_end_of_a_case_follows_its_act(world: World) -> None:
    case = late(world)
    answer(world, case, "return")
    cases.resolve_case(world.deps, number=case.number, outcome="Done", ended_as="return")
    (part,) = (each for each in PARTS if each.name == "cases")
    assert not check_page(world.deps.db, part, after="", limit=100).problems
    url = past_all_rules(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as owner, owner, owner.cursor() as cursor:
        cursor.execute("UPDATE cases SET ended_as = 'credit' WHERE number = %s", (case.number,))
    found = check_page(world.deps.db, part, after="", limit=100).problems
    assert [(each.field, each.found) for each in found] == [("ended_as", "credit")]

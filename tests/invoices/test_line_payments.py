"""Bank lines pay deals once: by ConfirmDeal, and afterwards by LinkDeal."""

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from decimal import Decimal

from sqlalchemy import text

from kit.base.account_forms import account_key
from kit.rpc.errors import Refused
from services.invoices.models import Deal
from services.invoices.operations import desk, lines
from services.invoices.store.books import PARTS
from services.invoices.store.lines import Part
from tests.invoices.conftest import World
from tests.support.acting import refusal

CALLERS = 20


def part(amount: Decimal | str | int, whole: Decimal | str | int = "", line: uuid.UUID | None = None) -> Part:
    return Part(line_id=line or uuid.uuid4(), amount=Decimal(amount), line_amount=Decimal(whole or amount))


def paid(world: World, deal: Deal) -> list[Decimal]:
    return [
        each.amount for each in lines.list_line_payments(world.deps, after=0, limit=0, deal_id=str(deal.id))
    ]


def outcomes(*calls: Callable[[], object]) -> list[str]:
    """The reason of each call that was refused, "" for the others; all begin together."""

    def outcome(call: Callable[[], object]) -> str:
        try:
            call()
        except Refused as refused:
            return refused.reason
        return ""

    with ThreadPoolExecutor(len(calls)) as pool:
        return sorted(pool.map(outcome, calls))


def test_a_deal_is_confirmed_with_the_line_that_paid_it(world: World) -> None:
    deal = world.with_deal()
    line = part(deal.amount_fiat)
    assert desk.confirm_deal(world.deps, deal_id=str(deal.id), lines=[line]).status == "completed"
    (payment,) = lines.list_line_payments(world.deps, after=0, limit=0, deal_id=str(deal.id))
    assert (payment.line_id, payment.invoice_id) == (line.line_id, deal.invoice_id)


def test_a_line_ends_the_appeal_of_the_deal_that_it_paid(world: World) -> None:
    deal = world.with_deal()
    desk.open_appeal(world.deps, deal_id=str(deal.id), note="where is it?")
    assert refusal(desk.confirm_deal, world.deps, deal_id=str(deal.id)).reason == "DEAL_STATE_CONFLICT"
    confirmed = desk.confirm_deal(world.deps, deal_id=str(deal.id), lines=[part(deal.amount_fiat)])
    assert (confirmed.status, confirmed.sub_status) == ("completed", "successfully_paid")
    assert paid(world, deal) == [deal.amount_fiat]


def test_lines_that_do_not_come_to_the_amount_confirm_nothing(world: World) -> None:
    deal = world.with_deal()
    for amount in (deal.amount_fiat - Decimal("0.01"), deal.amount_fiat + Decimal("0.01")):
        refused = refusal(desk.confirm_deal, world.deps, deal_id=str(deal.id), lines=[part(amount)])
        assert (refused.reason, refused.metadata["due"]) == ("BANK_LINE_CONFLICT", f"{deal.amount_fiat:.2f}")
    assert desk.get_deal(world.deps, deal_id=str(deal.id)).deal.status == "pending"
    assert paid(world, deal) == []


def test_two_lines_pay_one_deal_and_one_line_pays_two(world: World) -> None:
    first, second = world.with_deal(), world.with_deal()
    whole, line = first.amount_fiat + second.amount_fiat - Decimal(10), uuid.uuid4()
    desk.confirm_deal(
        world.deps, deal_id=str(first.id), lines=[part(10), part(first.amount_fiat - 10, whole, line)]
    )
    desk.confirm_deal(world.deps, deal_id=str(second.id), lines=[part(second.amount_fiat, whole, line)])
    assert paid(world, first) == [Decimal(10), first.amount_fiat - 10]
    assert paid(world, second) == [second.amount_fiat]


def test_twenty_operators_confirm_two_deals_with_one_line_and_one_succeeds(world: World) -> None:
    deals = [world.with_deal(), world.with_deal()]
    line, whole = uuid.uuid4(), max(deal.amount_fiat for deal in deals)
    calls = [
        lambda deal=deal: desk.confirm_deal(
            world.deps, deal_id=str(deal.id), lines=[part(deal.amount_fiat, whole, line)]
        )
        for deal in deals * (CALLERS // 2)
    ]
    found = outcomes(*calls)
    assert found.count("") == 1
    assert set(found) <= {"", "BANK_LINE_CONFLICT", "DEAL_STATE_CONFLICT"}
    assert sum(len(paid(world, deal)) for deal in deals) == 1


def test_a_deal_that_was_confirmed_by_hand_is_linked_once(world: World) -> None:
    deal = world.with_deal()
    early = refusal(lines.link_deal, world.deps, deal_id=str(deal.id), lines=[part(deal.amount_fiat)])
    assert early.reason == "DEAL_STATE_CONFLICT"
    desk.confirm_deal(world.deps, deal_id=str(deal.id))
    calls = [
        lambda: lines.link_deal(world.deps, deal_id=str(deal.id), lines=[part(deal.amount_fiat)])
        for _ in range(CALLERS)
    ]
    assert outcomes(*calls) == [""] + ["BANK_LINE_CONFLICT"] * (CALLERS - 1)
    assert paid(world, deal) == [deal.amount_fiat]


def test_a_line_has_one_amount(world: World) -> None:
    first, second, line = world.with_deal(), world.with_deal(), uuid.uuid4()
    desk.confirm_deal(world.deps, deal_id=str(first.id), lines=[part(first.amount_fiat, 5000, line)])
    grown = [part(second.amount_fiat, 9000, line)]
    assert (
        refusal(desk.confirm_deal, world.deps, deal_id=str(second.id), lines=grown).reason
        == "BANK_LINE_CONFLICT"
    )


def test_a_payment_that_sql_wrote_is_named_and_no_other(world: World) -> None:
    deal, right = world.with_deal(), world.with_deal()
    desk.confirm_deal(world.deps, deal_id=str(right.id), lines=[part(right.amount_fiat, "7000.10")])
    with world.deps.db.transaction() as tx:
        forged = tx.execute(
            text(
                "INSERT INTO line_payments (line_id, deal_id, amount, line_amount, paid_at)"
                " VALUES (:line, :deal, 5, 5, now()) RETURNING number"
            ),
            {"line": uuid.uuid4(), "deal": deal.id},
        ).scalar_one()
        (follows,) = next(each for each in PARTS if each.table == "line_payments").follows
        assert callable(follows)
        found = {(str(number), field) for number, field, _, _ in follows(tx, "0", str(2**62))}
    assert found == {(str(forged), "act")}


def test_deals_are_found_by_reference_and_open_ones_by_amount(world: World) -> None:
    open_deal, ended = world.with_deal(), world.with_deal()
    desk.reject_deal(world.deps, deal_id=str(ended.id), note="")
    accounts = [f"4000000000000{n:03}" for n in range(3)]

    def found(**given: list[str]) -> set[tuple[uuid.UUID, bool]]:
        wanted: dict[str, list[str]] = {"accounts": accounts, "references": [], "amounts": []} | given
        rows = lines.find_deals_of_lines(world.deps, **wanted)
        return {(row.deal_id, row.is_open) for row in rows} & {(open_deal.id, True), (ended.id, False)}

    amounts = [f"{open_deal.amount_fiat}", f"{ended.amount_fiat}"]
    assert found(amounts=amounts) == {(open_deal.id, True)}
    assert found(amounts=amounts, accounts=["DE00"]) == set()


def test_confirmed_deals_without_a_line_are_listed_of_accounts_whose_lines_are_imported(world: World) -> None:
    linked, by_hand, still_open = world.with_deal(), world.with_deal(), world.with_deal()
    desk.confirm_deal(world.deps, deal_id=str(linked.id), lines=[part(linked.amount_fiat)])
    desk.confirm_deal(world.deps, deal_id=str(by_hand.id))
    stories = [desk.get_deal(world.deps, deal_id=str(deal.id)) for deal in (linked, by_hand, still_open)]
    accounts = {account_key(each.requisite.account) for each in stories if each.requisite}
    today = world.deps.clock.now().date()

    def since(first: date) -> list[tuple[str, date]]:
        return [(each, first) for each in accounts]

    def unlinked(
        imported: Sequence[tuple[str, date]], *, after: str = "", day: date = today
    ) -> list[uuid.UUID]:
        span = {"first_day": f"{day}", "last_day": f"{day}"}
        found = lines.list_unlinked_deals(world.deps, **span, accounts=imported, after_deal_id=after, limit=0)
        return [each.deal_id for each in found if each.deal_id in (linked.id, by_hand.id, still_open.id)]

    assert unlinked(since(today)) == [by_hand.id]
    assert unlinked(since(today), after=str(by_hand.id)) == []
    assert unlinked(since(today + timedelta(days=1))) == [], "before its lines were imported"
    assert unlinked(since(today), day=today - timedelta(days=1)) == []
    assert unlinked([("ANOTHER", today)]) == unlinked([]) == []

"""Requisites at the desk: lists with their use, the deals and days of one, and several added at once."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

import psycopg2
import pytest
from sqlalchemy import text

from kit.base.account_forms import AccountKind, same_account
from kit.rpc.errors import Refused
from kit.work.recent import Recent
from services.invoices.domain.states import DealStatus
from services.invoices.operations import desk, requisites
from services.invoices.operations.requisites import NewRequisite
from services.invoices.store import requisites as store
from services.invoices.store.deal_lists import ListedDeal
from services.invoices.store.requisites import DealsOfRequisite
from services.invoices.store.views import RequisiteView
from services.invoices.wiring import USES_KEPT
from tests.invoices.conftest import World
from tests.support.acting import ANN, BEN, acting
from tests.support.databases import owner_url

DAY: Final = timedelta(days=1)


def new(account: str, holder: str = "A. Holder", **values: Any) -> NewRequisite:
    return NewRequisite(**({"holder": holder, "account": account, "bank": None, "max_deals": 0} | values))


def added(world: World, *accounts: str) -> list[RequisiteView]:
    given = [new(each) for each in accounts]
    return list(
        acting(ANN, lambda: requisites.add_requisites(world.deps, method_code="card_eur", given=given))
    )


SWAP: Final = """
CREATE FUNCTION swap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.account := '4111111111111111'; RETURN NEW; END $$;
CREATE TRIGGER swap BEFORE INSERT ON requisites FOR EACH ROW EXECUTE FUNCTION swap()
"""


def test_the_act_of_an_account_has_what_was_asked_for_and_not_what_a_trigger_stored(world: World) -> None:
    url = owner_url(world.deps.settings.database_url)
    with closing(psycopg2.connect(url)) as owner, owner, owner.cursor() as cursor:
        cursor.execute(SWAP)
    try:
        (swapped,) = added(world, "5555555555554444")
    finally:
        with closing(psycopg2.connect(url)) as owner, owner, owner.cursor() as cursor:
            cursor.execute("DROP TRIGGER swap ON requisites; DROP FUNCTION swap()")
    assert swapped.account == "4111111111111111"
    with world.deps.db.autocommit() as connection:
        changes = connection.execute(
            text("SELECT changes FROM acts WHERE object = :object"), {"object": f"requisite:{swapped.id}"}
        ).scalar_one()
    assert ["account", "", "5555555555554444"] in changes


def only(world: World, requisite: RequisiteView) -> None:
    """Leaves new deals no other account of the method."""
    for each in requisites.list_requisites(world.deps, method_code="card_eur"):
        change = requisites.enable_requisite if each.id == requisite.id else requisites.disable_requisite
        acting(ANN, partial(change, world.deps, requisite_id=str(each.id)))


def use(world: World, requisite: RequisiteView) -> requisites.UseToday:
    """Returns the account's use of today, counted anew: a process keeps a count for some seconds."""
    deps = replace(world.deps, uses=Recent(DAY, world.clock))
    return requisites.use_today(deps, [requisite])[0][requisite.id]


def test_the_use_of_an_account_is_counted_by_the_day_on_which_its_deals_were_opened(world: World) -> None:
    first, second = requisites.list_requisites(world.deps, method_code="card_eur")[:2]
    only(world, first)
    world.clock.set(world.clock.now().replace(hour=23, minute=50))
    yesterday = world.with_deal(amount="100.00")
    world.clock.advance(minutes=20)
    today = world.with_deal(amount="200.00")
    world.with_deal(amount="300.00")
    for deal in (yesterday, today):
        desk.confirm_deal(world.deps, deal_id=str(deal.id))
    counted = use(world, first)
    assert (counted.opened, counted.completed, counted.amount) == (2, 1, today.amount_fiat)
    assert counted.last_used_at == world.clock.now()
    assert (use(world, second).opened, use(world, second).last_used_at) == (0, None)

    story = requisites.get_requisite(world.deps, requisite_id=str(first.id), days=0)
    days = [(each.opened, each.completed, each.amount) for each in story.days]
    assert days == [(2, 1, today.amount_fiat), (1, 1, yesterday.amount_fiat)]
    assert story.days[0].day - story.days[1].day == DAY
    assert story.since == (world.clock.now() - 13 * DAY).replace(hour=0, minute=0, second=0, microsecond=0)


def test_the_use_of_today_is_counted_once_for_the_calls_of_some_seconds(world: World) -> None:
    first, second = requisites.list_requisites(world.deps, method_code="card_eur")[:2]
    deps = replace(world.deps, uses=Recent(USES_KEPT, world.clock))

    def opened(of: RequisiteView) -> int:
        return requisites.use_today(deps, [of])[0][of.id].opened

    only(world, first)
    world.with_deal()
    assert opened(first) == 1
    with ThreadPoolExecutor(4) as threads:
        only(world, second)
        world.with_deal()
        assert list(threads.map(opened, [first, second] * 4)) == [1, 0] * 4
    world.clock.advance(seconds=USES_KEPT.total_seconds())
    assert (opened(first), opened(second)) == (1, 1)


def test_the_story_of_an_account_names_the_authors_of_its_changes(world: World) -> None:
    (mine,) = added(world, "by Ann")
    acting(BEN, lambda: requisites.disable_requisite(world.deps, requisite_id=str(mine.id)))
    acting(ANN, lambda: requisites.enable_requisite(world.deps, requisite_id=str(mine.id)))
    story = requisites.get_requisite(world.deps, requisite_id=str(mine.id), days=1)
    assert [(each.act, each.actor_name) for each in story.acts] == [
        ("requisite.enable", ANN.name),
        ("requisite.disable", BEN.name),
        ("requisite.add", ANN.name),
    ]


def test_a_count_that_would_read_too_many_deals_says_since_when_it_is_complete(world: World) -> None:
    first = requisites.list_requisites(world.deps, method_code="card_eur")[0]
    only(world, first)
    opened = []
    for _ in range(3):
        world.clock.advance(minutes=1)
        opened.append(world.with_deal())
    with world.deps.db.autocommit() as connection:
        found = store.use_since(connection, [first.id], world.clock.now() - DAY, most=2)
        assert ([each.opened for each in found.days], found.since) == ([2], opened[1].created_at)
        found = store.use_since(connection, [first.id], world.clock.now() - DAY, most=4)
        assert ([each.opened for each in found.days], found.since) == ([3], world.clock.now() - DAY)


def of(world: World, requisite: RequisiteView, **wanted: Any) -> list[str]:
    values: dict[str, Any] = {
        "status": None,
        "created_from": None,
        "created_before": None,
        "after_deal_id": "",
    }
    found = requisites.list_requisite_deals(
        world.deps, requisite_id=str(requisite.id), **({"limit": 0} | values | wanted)
    )
    return [str(each.deal.id) for each in found.deals]


def test_the_deals_of_an_account_are_found_by_status_days_and_page(world: World) -> None:
    mine, other = requisites.list_requisites(world.deps, method_code="card_eur")[:2]
    opened: list[Any] = []
    for account in (mine, other, mine, other, mine):
        only(world, account)
        world.clock.advance(hours=1)
        opened.append(world.with_deal())
    newest, middle, oldest = (str(opened[number].id) for number in (4, 2, 0))
    desk.confirm_deal(world.deps, deal_id=middle)
    assert of(world, mine) == [newest, middle, oldest]
    assert of(world, mine, limit=2) == [newest, middle]
    assert of(world, mine, limit=2, after_deal_id=middle) == [oldest]
    assert of(world, mine, status=DealStatus.COMPLETED) == [middle]
    assert of(world, mine, status=DealStatus.PENDING) == [newest, oldest]
    assert of(world, mine, status=DealStatus.PENDING, limit=1, after_deal_id=newest) == [oldest]
    assert of(world, mine, created_from=opened[1].created_at) == [newest, middle]
    assert of(world, mine, created_before=opened[2].created_at) == [oldest]
    unused = requisites.list_requisites(world.deps, method_code="card_eur")[2]
    assert of(world, unused) == []


def test_a_page_of_an_accounts_deals_reads_so_many_deals_and_says_where_it_stopped(world: World) -> None:
    mine, other = requisites.list_requisites(world.deps, method_code="card_eur")[:2]
    opened = []
    for account in (mine, other, other, mine):
        only(world, account)
        world.clock.advance(minutes=1)
        opened.append(world.with_deal())

    def page(**after: Any) -> tuple[list[ListedDeal], Any]:
        with world.deps.db.autocommit() as connection:
            wanted = DealsOfRequisite(requisite_id=mine.id, **after)
            found = store.deals_of_requisite(connection, wanted, 10, most=3)
        return list(found.deals), found.reached

    first, reached = page()
    assert ([each.deal.id for each in first], reached) == (
        [opened[3].id],
        (opened[1].created_at, opened[1].id),
    )
    rest, reached = page(after=reached)
    assert ([each.deal.id for each in rest], reached) == ([opened[0].id], None)


def test_requisites_are_found_by_state_text_and_free_places(world: World) -> None:
    iban, card = added(world, "DE02 1203 0000 0000 2020 51", "4111-1111-1111-1111")
    acting(ANN, lambda: requisites.disable_requisite(world.deps, requisite_id=str(card.id)))

    def found(**wanted: Any) -> set[Any]:
        return {each.id for each in requisites.list_requisites(world.deps, **wanted)}

    assert found(text="de021203") == {iban.id}
    assert found(text="1111 1111 1111") == {card.id}
    assert {iban.id, card.id} <= found(text="a. hold")
    assert found(text="%") == set()
    assert card.id in found(enabled=False)
    assert iban.id not in found(enabled=False)
    assert found(full=True) == set()
    only(world, iban)
    small = requisites.add_requisite(
        world.deps, method_code="card_eur", holder="H", account="small", bank=None, max_deals=1
    )
    only(world, small)
    world.with_deal()
    assert found(full=True) == {small.id}
    places = {each.method_code: each for each in requisites.list_method_places(world.deps)}["card_eur"]
    assert (places.enabled_accounts, places.places, places.taken, places.open_deals) == (1, 1, 1, 1)
    everything = requisites.list_requisites(world.deps)
    assert [
        *everything[:2],
        *requisites.list_requisites(world.deps, after_requisite_id=str(everything[1].id)),
    ] == [*everything]
    assert list(requisites.list_requisites(world.deps, rows=2)) == list(everything[:2])


def refusal(call: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(Refused) as refused:
        call()
    return refused.value.metadata["field"], refused.value.message


def test_several_accounts_are_added_all_or_none(world: World) -> None:
    before = requisites.list_requisites(world.deps)
    given = [new("11"), new("12", holder=""), new("1 1"), new("14", max_deals=10_001)]
    checked = requisites.check_requisites(world.deps, method_code="card_eur", given=given)
    assert [each.field for each in checked] == ["", "holder", "account", "max_deals"]
    assert checked[2].problem == "This account stands above already"
    assert refusal(lambda: requisites.add_requisites(world.deps, method_code="card_eur", given=given)) == (
        "requisites[1].holder",
        "Holder has 1 to 128 characters",
    )
    assert requisites.list_requisites(world.deps) == before

    assert [each.account for each in added(world, "11", "13")] == ["11", "13"]
    again = requisites.check_requisites(world.deps, method_code="card_eur", given=[new("1-3"), new("15")])
    assert [(each.field, each.problem.partition(":")[0]) for each in again] == [
        ("account", "The method has this account already"),
        ("", ""),
    ]
    field, _ = refusal(lambda: added(world, "15", "13"))
    assert field == "requisites[1].account"
    for wrong in ([], [new(str(number)) for number in range(201)]):
        call = partial(requisites.add_requisites, world.deps, method_code="card_eur", given=wrong)
        assert refusal(call)[0] == "requisites"


def test_an_account_is_added_once_however_it_is_typed(world: World) -> None:
    add = partial(requisites.add_requisite, world.deps, method_code="card_eur", holder="H", max_deals=1)
    first = add(account="7777 8888", bank="First Bank")
    for again in ("7777 8888", "7777-8888", "\uff17\uff17\uff17\uff17\u30008888"):
        for bank in ("First Bank", " first  bank", None):
            assert refusal(partial(add, account=again, bank=bank)) == (
                "account",
                f"The method has this account already: requisite {first.id}",
            )
    other = add(account="7777 8888", bank="Other Bank")
    assert requisites.add_requisite(
        world.deps, method_code="sepa_eur", holder="H", account="7777 8888", bank=None, max_deals=1
    )
    with ThreadPoolExecutor(4) as threads:
        outcomes = Counter(threads.map(lambda _: outcome(partial(add, account="99", bank=None)), range(4)))
    assert outcomes == {"done": 1, "VALIDATION_ERROR": 3}

    # A disabled one makes way, for a holder that is spelt right, and does not come back beside it.
    requisites.disable_requisite(world.deps, requisite_id=str(first.id))
    second = add(account="7777 8888", bank="First Bank")
    enable = partial(requisites.enable_requisite, world.deps, requisite_id=str(first.id))
    assert refusal(enable) == ("requisite_id", f"Requisite {second.id} of the method has the same account")
    for each in (second, other):
        requisites.disable_requisite(world.deps, requisite_id=str(each.id))
    assert enable().enabled


def outcome(call: Callable[[], object]) -> str:
    try:
        call()
    except Refused as refused:
        return refused.reason
    return "done"


def test_a_disabled_account_with_an_open_deal_makes_no_way(world: World) -> None:
    first = requisites.list_requisites(world.deps, method_code="card_eur")[0]
    only(world, first)
    world.with_deal()
    requisites.disable_requisite(world.deps, requisite_id=str(first.id))
    add = partial(requisites.add_requisite, world.deps, method_code="card_eur", holder="H", max_deals=1)
    assert refusal(partial(add, account=first.account, bank=None))[0] == "account"


@pytest.mark.parametrize(
    ("kind", "one", "other", "same"),
    [
        ("iban", ("DE02 1203", "First"), ("de021203", "Other"), True),
        ("upi", ("j.doe@bank", None), ("jdoe@bank", None), False),
        ("upi", ("J.Doe@bank", "First"), ("j.doe@bank", "Other"), True),
        ("phone", ("+447700900123", "First"), ("+44 7700 900123", "first"), True),
        ("phone", ("+447700900123", "First"), ("+447700900123", "Other"), False),
        ("free", ("**", None), ("**", None), False),
    ],
)
def test_two_accounts_are_one_if_money_to_one_is_money_to_the_other(
    kind: str, one: tuple[str, str | None], other: tuple[str, str | None], same: bool
) -> None:
    assert same_account(AccountKind(kind), one, other) is same


def test_the_deals_of_an_account_end_with_the_newest_whichever_clock_wrote_last(world: World) -> None:
    account = requisites.list_requisites(world.deps, method_code="card_eur")[0]
    only(world, account)
    world.clock.advance(minutes=2)
    ahead = world.with_deal(amount="100.00")
    world.clock.advance(minutes=-2)
    behind = world.with_deal(amount="200.00")
    assert of(world, account) == [str(ahead.id), str(behind.id)]


def test_accounts_of_a_kind_are_checked_and_shown_as_they_will_be_stored(world: World) -> None:
    seen = requisites._checked_alone(
        new("de02 1203 0000 0000 2020 51"), "any", AccountKind.IBAN, world.clock.now()
    )
    wrong = requisites._checked_alone(new("DE00 1"), "any", AccountKind.IBAN, world.clock.now())
    assert (seen.account, seen.field) == ("DE02120300000000202051", "")
    assert (wrong.account, wrong.field) == ("DE00 1", "account")
    assert wrong.problem == "This is no IBAN: its length or its check digits are wrong for its country"

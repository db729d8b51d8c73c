"""Late money and pictures as proof: recorded, answered, and nothing else changed by it."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from kit.db.queues import Waiting, waiting
from services.invoices.domain.late import PictureKind
from services.invoices.models import PICTURE_MAX_BYTES, Deal
from services.invoices.operations import cases, checkout, desk
from services.invoices.store.queues import QUEUES
from tests.invoices.conftest import World
from tests.invoices.test_deals import mark, status_of
from tests.support.acting import refusal
from tests.support.pictures import JPEG, PLACE, PNG, photo


def ended(world: World) -> Deal:
    deal = world.with_deal()
    checkout.cancel_checkout(world.deps, invoice_id=str(deal.invoice_id))
    return deal


def opened(world: World, deal: Deal, *, note: str = "", picture: bytes | None = None) -> int:
    row = cases.open_case(world.deps, invoice_id=str(deal.invoice_id), note=note, picture=picture)
    number: int = row.number
    return number


def test_a_case_leaves_its_invoice_as_it_is(world: World) -> None:
    deal = ended(world)
    before, facts = status_of(world, deal), world.announced(deal.invoice_id)
    number = opened(world, deal, note="at noon", picture=PNG)
    cases.resolve_case(world.deps, number=number, outcome=" Sent back ", ended_as="return")
    assert (status_of(world, deal), world.announced(deal.invoice_id)) == (before, facts)
    story = cases.get_case(world.deps, number=number)
    assert (story.case.outcome, story.case.actor, story.case.note) == (
        "Sent back",
        "cli:tests@harness",
        "at noon",
    )
    assert story.picture is not None
    assert story.picture.size == len(PNG)


def test_an_invoice_has_one_case_whoever_is_quicker(world: World) -> None:
    deal = ended(world)
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda n: opened(world, deal, note=str(n), picture=PNG), range(8)))
    assert len(set(numbers)) == 1
    assert [row.case.number for row in cases.list_cases(world.deps, open_only=True, limit=0).rows] == numbers[
        :1
    ]


def test_what_time_has_ended_meanwhile_has_its_case_at_once(world: World) -> None:
    deal = world.with_deal()
    world.clock.set(deal.expires_at)
    opened(world, deal)
    assert status_of(world, deal)[0] == "expired"


def test_where_nothing_is_late_there_is_no_case(world: World) -> None:
    deal = world.with_deal()
    assert refusal(lambda: opened(world, deal)).reason == "DEAL_STATE_CONFLICT"
    desk.confirm_deal(world.deps, deal_id=str(deal.id))
    assert refusal(lambda: opened(world, deal)).reason == "INVOICE_FINISHED"
    never_chosen = world.create()
    checkout.cancel_checkout(world.deps, invoice_id=str(never_chosen.id))
    id = str(never_chosen.id)
    refused = refusal(cases.open_case, world.deps, invoice_id=id, note="", picture=None)
    assert refused.reason == "INVOICE_FINISHED"


def test_a_case_is_answered_once(world: World) -> None:
    number = opened(world, ended(world))
    cases.resolve_case(world.deps, number=number, outcome="Sent back", ended_as="return")
    again = refusal(lambda: cases.resolve_case(world.deps, number=number, outcome="No", ended_as="return"))
    assert again.reason == "CASE_STATE_CONFLICT"
    assert not cases.list_cases(world.deps, open_only=True, limit=10).rows
    assert [row.case.outcome for row in cases.list_cases(world.deps, open_only=False, limit=10).rows] == [
        "Sent back"
    ]


def queues(world: World) -> dict[str, Waiting]:
    with world.deps.db.autocommit() as connection:
        return {each.name: each for each in waiting(connection, QUEUES, now=world.clock.now())}


def test_marked_deals_appeals_and_cases_wait_for_the_operator_until_they_are_decided(world: World) -> None:
    first, second, late = world.with_deal(), world.with_deal(), ended(world)
    opened(world, late)
    mark(world, first)
    begun = world.clock.now()
    world.clock.advance(seconds=30)
    mark(world, second)
    marked = queues(world)["deals_marked"]
    assert (marked.count, marked.oldest_at, marked.newest_at) == (2, begun, world.clock.now())
    desk.open_appeal(world.deps, deal_id=str(second.id), note="")
    assert {name: each.count for name, each in queues(world).items()} == {
        "deals_marked": 1,
        "appeals": 1,
        "cases": 1,
        "methods_full": 0,
        "approvals": 0,
    }
    desk.confirm_deal(world.deps, deal_id=str(first.id))
    assert queues(world)["deals_marked"] == Waiting("deals_marked", 0, None, None)


def test_an_appeal_keeps_its_picture_and_a_second_one_changes_nothing(world: World) -> None:
    deal = world.with_deal()
    mark(world, deal)
    for picture in (PNG, JPEG):
        checkout.open_customer_appeal(world.deps, invoice_id=str(deal.invoice_id), note="", picture=picture)
    kept = cases.get_picture(world.deps, deal_id=str(deal.id), kind=PictureKind.APPEAL)
    assert (kept.content, kept.content_type) == (PNG, "image/png")
    missing = refusal(lambda: cases.get_picture(world.deps, deal_id=str(deal.id), kind=PictureKind.CASE))
    assert missing.reason == "PROOF_NOT_FOUND"


@pytest.mark.parametrize(
    "picture",
    [b"<svg/>", b"MZ", PNG[:-1], PNG + bytes(PICTURE_MAX_BYTES)],
    ids=["svg", "exe", "broken", "large"],
)
def test_with_what_is_no_picture_nothing_is_done(world: World, picture: bytes) -> None:
    deal = ended(world)
    refused = refusal(lambda: opened(world, deal, picture=picture))
    assert (refused.reason, refused.metadata["field"]) == ("VALIDATION_ERROR", "picture")
    assert not cases.list_cases(world.deps, open_only=False, limit=10).rows


def test_where_and_with_what_a_picture_was_taken_is_not_kept(world: World) -> None:
    number = opened(world, ended(world), picture=photo())
    picture = cases.get_case(world.deps, number=number).picture
    assert picture is not None
    kept = cases.get_picture(world.deps, deal_id=str(picture.deal_id), kind=PictureKind.CASE)
    assert PLACE in photo()
    assert PLACE not in kept.content

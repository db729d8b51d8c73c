"""Bounds and turns between destinations and merchants."""

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from kit.base.ids import new_id
from services.webhooks.delivery.lanes import LANE, MERCHANT, Lanes
from services.webhooks.domain import EventStatus, EventTerms, Trigger
from services.webhooks.store.stages import Answer, Claimed, LaneKey, Outcome, Shipment
from tests.support.clock import START

MERCHANT_ID, OTHER_ID = UUID(int=1), UUID(int=2)
A = LaneKey(MERCHANT_ID, "a")


def _lanes(*, most_sending: int = 512, most_claimed: int = 2000) -> Lanes:
    return Lanes(most_sending=most_sending, most_claimed=most_claimed)


def _shipment(destination: str, number: int = 0, *, merchant_id: UUID = MERCHANT_ID) -> Shipment:
    claimed = Claimed(
        event_id=number,
        lease_token=new_id(),
        lease_until=START + timedelta(seconds=60),
        trigger=Trigger.AUTO,
        terms=EventTerms(
            payload_event_id=new_id(),
            invoice_id=new_id(),
            merchant_id=merchant_id,
            key_id=new_id(),
            event_type="invoice.success",
            callback_url="https://shop.example.com/",
            destination=destination,
            payload=b"{}",
        ),
        status=EventStatus.PENDING,
        next_retry_at=START,
        auto_attempts=0,
        seal="",
    )
    return Shipment(claimed, "secret")


def _outcome(
    shipment: Shipment, *, answered: bool, duration_ms: int, held_ms: int | None = None, status: int = 200
) -> Outcome:
    return Outcome(
        claimed=shipment.claimed,
        started_at=START,
        ended_at=START,
        duration_ms=duration_ms,
        held_ms=duration_ms if held_ms is None else held_ms,
        answer=Answer(status, {}, "") if answered else None,
        error=None if answered else "no answer",
    )


def _rooms(lanes: Lanes, *keys: LaneKey, most: int = 10_000) -> dict[LaneKey, int]:
    """What may be claimed when these have something due."""
    lanes.note_due(keys)
    return lanes.rooms(most).lanes


def _take_all(lanes: Lanes) -> list[Shipment]:
    taken = []
    while (shipment := lanes.take()) is not None:
        taken.append(shipment)
    return taken


def _end(lanes: Lanes, shipments: Iterable[Shipment], *, answered: bool, duration_ms: int) -> list[Shipment]:
    """All of them end alike; what is given back."""
    return [
        back
        for each in shipments
        for back in lanes.finish(each, _outcome(each, answered=answered, duration_ms=duration_ms)).given_back
    ]


def test_a_destination_sends_no_more_than_its_slots_at_a_time() -> None:
    lanes = _lanes()
    lanes.add(_shipment("a", number) for number in range(100))
    assert len(_take_all(lanes)) == LANE.first


def test_destinations_take_turns() -> None:
    lanes = _lanes()
    lanes.add(_shipment("a") for _ in range(3))
    lanes.add(_shipment("b") for _ in range(2))
    assert [each.claimed.terms.destination for each in _take_all(lanes)] == ["a", "b", "a", "b", "a"]


def test_merchants_take_turns_however_many_destinations_one_has() -> None:
    lanes = _lanes(most_sending=6)
    lanes.add(_shipment(str(number)) for number in range(20))
    lanes.add(_shipment("b", merchant_id=OTHER_ID) for _ in range(3))
    assert [each.claimed.terms.destination for each in _take_all(lanes)] == ["0", "b", "1", "b", "2", "b"]


def test_a_merchant_sends_no_more_than_its_slots_at_a_time_to_all_its_destinations() -> None:
    lanes = _lanes()
    lanes.add(_shipment(str(number)) for number in range(300))
    first = _take_all(lanes)
    assert len(first) == MERCHANT.first
    assert _rooms(lanes, LaneKey(MERCHANT_ID, "another"), LaneKey(OTHER_ID, "a")) == {
        LaneKey(OTHER_ID, "a"): LANE.first
    }
    _end(lanes, first, answered=False, duration_ms=15_000)
    assert len(_take_all(lanes)) == MERCHANT.fewest
    lanes.add([_shipment("b", merchant_id=OTHER_ID)])
    assert [each.claimed.terms.destination for each in _take_all(lanes)] == ["b"]


def test_merchants_that_share_a_host_share_no_slots() -> None:
    lanes = _lanes()
    lanes.add(_shipment("a") for _ in range(100))
    lanes.add(_shipment("a", merchant_id=OTHER_ID) for _ in range(5))
    taken = _take_all(lanes)
    assert [each.claimed.terms.merchant_id for each in taken].count(OTHER_ID) == 5


def test_all_together_send_no_more_than_the_total() -> None:
    lanes = _lanes(most_sending=20)
    for destination in "abcdef":
        lanes.add(_shipment(destination) for _ in range(10))
    assert len(_take_all(lanes)) == 20


def test_quick_answers_earn_slots_up_to_the_most() -> None:
    lanes = _lanes()
    for _ in range(200):
        lanes.add([_shipment("a")])
        _end(lanes, _take_all(lanes), answered=True, duration_ms=5)
    lanes.add(_shipment("a") for _ in range(300))
    assert len(_take_all(lanes)) == LANE.most


def test_silence_costs_slots_down_to_the_fewest_and_claims_with_them() -> None:
    lanes = _lanes()
    lanes.add(_shipment("a") for _ in range(LANE.first))
    _end(lanes, _take_all(lanes), answered=False, duration_ms=15_000)
    assert _rooms(lanes, A) == {A: LANE.fewest}
    lanes.add(_shipment("a") for _ in range(100))
    assert len(_take_all(lanes)) == LANE.fewest


def test_an_answer_that_takes_as_long_as_silence_costs_as_much() -> None:
    lanes = _lanes()
    lanes.add(_shipment("a") for _ in range(LANE.first))
    _end(lanes, _take_all(lanes), answered=True, duration_ms=14_000)
    assert _rooms(lanes, A) == {A: LANE.fewest}


def test_a_slow_answer_is_an_answer_and_a_refused_connection_holds_no_slot() -> None:
    lanes = _lanes()
    for answered, duration_ms in ((True, 3000), (False, 3)):
        lanes.add([_shipment("a")])
        _end(lanes, _take_all(lanes), answered=answered, duration_ms=duration_ms)
    assert _rooms(lanes, A) == {A: LANE.first}


def test_failures_however_quick_earn_nothing_and_cost_what_was_earned() -> None:
    lanes = _lanes()
    held = []
    for status in (500, 200, 500):
        for _ in range(200):
            lanes.add([_shipment("a")])
            for shipment in _take_all(lanes):
                lanes.finish(shipment, _outcome(shipment, answered=True, duration_ms=5, status=status))
        lanes.add(_shipment("a") for _ in range(300))
        begun = _take_all(lanes)
        held.append(len(begun))
        lanes.drain()
        for shipment in begun:
            lanes.finish(shipment, None)
    assert held == [LANE.first, LANE.most, LANE.first]


def test_an_answer_whose_body_drips_earns_no_slots() -> None:
    lanes = _lanes()
    for _ in range(200):
        lanes.add([_shipment("a")])
        for shipment in _take_all(lanes):
            lanes.finish(shipment, _outcome(shipment, answered=True, duration_ms=5, held_ms=2005))
    lanes.add(_shipment("a") for _ in range(300))
    assert len(_take_all(lanes)) == LANE.first


def test_what_was_claimed_for_a_quick_destination_is_given_back_when_it_falls_silent() -> None:
    lanes = _lanes()
    for _ in range(200):
        lanes.add([_shipment("a")])
        _end(lanes, _take_all(lanes), answered=True, duration_ms=5)
    lanes.add(_shipment("a", number) for number in range(200))
    begun = _take_all(lanes)
    given_back = _end(lanes, begun, answered=False, duration_ms=15_000)
    assert {each.claimed.event_id for each in [*begun, *given_back]} == set(range(200))
    assert lanes.claimed == 0
    assert _rooms(lanes, A) == {A: LANE.fewest}


def test_silent_destinations_together_hold_half_of_all_slots_at_most() -> None:
    lanes = _lanes(most_sending=40)
    merchants = [UUID(int=number) for number in range(10, 30)]
    for merchant_id in merchants:
        lanes.add(_shipment("a", merchant_id=merchant_id) for _ in range(LANE.first))
        while taken := _take_all(lanes):
            _end(lanes, taken, answered=False, duration_ms=15_000)
    rooms = _rooms(lanes, *(LaneKey(merchant_id, "a") for merchant_id in merchants))
    assert sum(rooms.values()) == 20
    lanes.add(_shipment("a", merchant_id=key.merchant_id) for key, room in rooms.items() for _ in range(room))
    assert lanes.rooms(10_000).lanes == {}
    assert len(_take_all(lanes)) == 20


def test_a_destination_with_more_than_half_its_window_in_hand_gets_no_claims() -> None:
    lanes = _lanes()
    lanes.add(_shipment("a") for _ in range(LANE.first))
    assert _rooms(lanes, A) == {}
    opened = [
        lanes.finish(each, _outcome(each, answered=True, duration_ms=2000)).opened
        for each in _take_all(lanes)
    ]
    assert opened.count(True) == 1  # the engine is woken once, not at every answer
    assert lanes.rooms(10_000).lanes == {A: LANE.first}


def test_what_is_in_hand_is_bounded_over_all_destinations() -> None:
    lanes = _lanes(most_claimed=10)
    lanes.add(_shipment(str(number)) for number in range(6))
    assert lanes.rooms(10_000).total == 0
    shipment = lanes.take()
    assert shipment is not None
    assert lanes.finish(shipment, None).opened
    assert lanes.rooms(10_000).total == 5


def test_the_idle_are_forgotten_and_whoever_has_something_in_hand_is_not() -> None:
    lanes = _lanes(most_claimed=10_000)
    lanes.add([_shipment("held", merchant_id=OTHER_ID)])
    [held] = _take_all(lanes)
    for number in range(3000):
        lanes.add([_shipment("a", merchant_id=UUID(int=100 + number))])
        _end(lanes, _take_all(lanes), answered=False, duration_ms=15_000)
    rooms = _rooms(lanes, *(LaneKey(UUID(int=100 + number), "a") for number in range(3000)))
    # At most 1000 are remembered as silent; the others are strangers again.
    assert list(rooms.values()).count(LANE.fewest) <= 1000
    _end(lanes, [held], answered=True, duration_ms=5)
    assert lanes.claimed == lanes.sending == 0


def test_drained_lanes_hand_everything_back_that_was_not_begun() -> None:
    lanes = _lanes(most_sending=2)
    lanes.add(_shipment("a", number) for number in range(5))
    begun = _take_all(lanes)
    assert [each.claimed.event_id for each in lanes.drain()] == [2, 3, 4]
    assert lanes.take() is None
    for shipment in begun:
        lanes.finish(shipment, None)
    assert lanes.claimed == 0


def _claimed(key: LaneKey, count: int) -> list[Claimed]:
    return [_shipment(key.destination, merchant_id=key.merchant_id).claimed for _ in range(count)]


B = LaneKey(OTHER_ID, "b")


def test_only_who_has_something_due_gets_room() -> None:
    lanes = _lanes()
    assert lanes.rooms(500).lanes == {}
    assert _rooms(lanes, A) == {A: LANE.first}
    assert lanes.rooms(500).merchants == {MERCHANT_ID: MERCHANT.first}


def test_a_lane_that_left_room_unused_has_nothing_more_due_until_somebody_sees_more() -> None:
    lanes = _lanes()
    lanes.note_due([A, B])
    lanes.note_claimed(lanes.rooms(500), [*_claimed(A, LANE.first), *_claimed(B, 1)])
    assert lanes.rooms(500).lanes == {A: LANE.first}
    lanes.note_due([B])
    assert list(lanes.rooms(500).lanes) == [A, B]


def test_lanes_whose_turn_did_not_come_are_the_first_of_the_next_claim() -> None:
    lanes = _lanes()
    lanes.note_due([A, B])
    lanes.note_claimed(lanes.rooms(10), _claimed(A, 10))
    assert list(lanes.rooms(10).lanes) == [B, A]


def test_a_lane_whose_merchant_had_no_more_room_still_has_something_due() -> None:
    lanes = _lanes()
    keys = [LaneKey(MERCHANT_ID, str(number)) for number in range(5)]
    lanes.note_due(keys)
    taken = [each for key in keys[:4] for each in _claimed(key, LANE.first)]
    assert len(taken) == MERCHANT.first
    lanes.note_claimed(lanes.rooms(500), taken)
    assert list(lanes.rooms(500).lanes) == [keys[4], *keys[:4]]


def test_what_is_given_back_is_due_again() -> None:
    lanes = _lanes()
    lanes.add(_shipment("a", number) for number in range(LANE.first))
    slow, *others = _take_all(lanes)
    lanes.add([_shipment("a")])
    assert lanes.finish(slow, _outcome(slow, answered=False, duration_ms=15_000)).given_back
    _end(lanes, others, answered=False, duration_ms=15_000)
    assert lanes.rooms(500).lanes == {A: LANE.fewest}


class _CountedKey(LaneKey):
    """Counts how often a lane is looked up."""

    lookups = 0

    def __hash__(self) -> int:
        _CountedKey.lookups += 1
        return super().__hash__()


def test_a_claim_looks_at_no_lanes_of_a_merchant_that_has_no_room_and_at_few_of_one_that_has() -> None:
    lanes = _lanes()
    lanes.note_due(_CountedKey(MERCHANT_ID, str(number)) for number in range(5000))
    before = _CountedKey.lookups
    assert len(lanes.rooms(1000).lanes) == MERCHANT.first
    lanes.add(_shipment(str(number)) for number in range(MERCHANT.first))
    lanes.note_due([B])
    assert lanes.rooms(1000).lanes == {B: LANE.first}
    assert _CountedKey.lookups - before < 10 * MERCHANT.first


def test_a_merchant_of_many_destinations_leaves_room_in_a_claim_for_others() -> None:
    lanes = _lanes()
    lanes.note_due(LaneKey(MERCHANT_ID, str(number)) for number in range(5000))
    lanes.note_due([B])
    assert B in lanes.rooms(1000).lanes


# -- new events without a claim


def test_a_new_event_needs_no_claim_while_its_lane_has_room() -> None:
    lanes = _lanes()
    assert [lanes.may_take(A, ahead) for ahead in (0, LANE.first - 1, LANE.first)] == [True, True, False]
    lanes.add(_shipment("a") for _ in range(LANE.first - 1))
    assert [lanes.may_take(A, ahead) for ahead in (0, 1)] == [True, False]


def test_a_new_event_waits_for_a_claim_behind_older_ones_of_its_lane_and_no_other() -> None:
    lanes = _lanes()
    lanes.note_due([A])
    assert not lanes.may_take(A, 0)
    assert lanes.may_take(LaneKey(MERCHANT_ID, "b"), 0)


def test_a_new_event_of_a_silent_lane_or_a_merchant_without_room_waits_for_a_claim() -> None:
    lanes = _lanes()
    lanes.add([_shipment("a")])
    _end(lanes, _take_all(lanes), answered=False, duration_ms=15_000)
    assert not lanes.may_take(A, 0)
    assert lanes.may_take(LaneKey(MERCHANT_ID, "b"), 0)
    for number in range(MERCHANT.first):
        lanes.add([_shipment(f"{number}")])
    assert not lanes.may_take(LaneKey(MERCHANT_ID, "b"), 0)
    assert lanes.may_take(LaneKey(OTHER_ID, "b"), 0)
    assert not _lanes(most_claimed=5).may_take(A, 5)

"""Bounds and turns between destinations."""

from datetime import timedelta

from kit.ids import new_id
from services.webhooks.delivery.lanes import FEWEST_SLOTS, FIRST_SLOTS, MOST_SLOTS, Lanes
from services.webhooks.delivery.stages import Answer, Claimed, Outcome, Shipment
from services.webhooks.domain import EventStatus, Trigger
from tests.support.clock import START


def _shipment(destination: str, number: int = 0) -> Shipment:
    claimed = Claimed(
        event_id=number,
        lease_token=new_id(),
        lease_until=START + timedelta(seconds=60),
        trigger=Trigger.AUTO,
        payload_event_id=new_id(),
        merchant_id=new_id(),
        key_id=new_id(),
        callback_url="https://shop.example.com/",
        destination=destination,
        payload=b"{}",
        status=EventStatus.PENDING,
        next_retry_at=START,
        auto_attempts=0,
    )
    return Shipment(claimed, "secret")


def _outcome(shipment: Shipment, *, answered: bool, duration_ms: int) -> Outcome:
    return Outcome(
        claimed=shipment.claimed,
        started_at=START,
        ended_at=START,
        duration_ms=duration_ms,
        answer=Answer(200, {}, "") if answered else None,
        error=None if answered else "no answer",
    )


def _take_all(lanes: Lanes) -> list[Shipment]:
    taken = []
    while (shipment := lanes.take()) is not None:
        taken.append(shipment)
    return taken


def test_a_destination_sends_no_more_than_its_slots_at_a_time() -> None:
    lanes = Lanes(most_sending=512, most_claimed=2000)
    lanes.add(_shipment("a", number) for number in range(100))
    assert len(_take_all(lanes)) == FIRST_SLOTS


def test_destinations_take_turns() -> None:
    lanes = Lanes(most_sending=512, most_claimed=2000)
    lanes.add(_shipment("a") for _ in range(3))
    lanes.add(_shipment("b") for _ in range(2))
    assert [each.claimed.destination for each in _take_all(lanes)] == ["a", "b", "a", "b", "a"]


def test_all_together_send_no_more_than_the_total() -> None:
    lanes = Lanes(most_sending=20, most_claimed=2000)
    for destination in "abcdef":
        lanes.add(_shipment(destination) for _ in range(10))
    assert len(_take_all(lanes)) == 20


def test_quick_answers_earn_slots_up_to_the_most() -> None:
    lanes = Lanes(most_sending=512, most_claimed=2000)
    for _ in range(200):
        lanes.add([_shipment("a")])
        [shipment] = _take_all(lanes)
        lanes.finish(shipment, _outcome(shipment, answered=True, duration_ms=5))
    lanes.add(_shipment("a") for _ in range(300))
    assert len(_take_all(lanes)) == MOST_SLOTS


def test_silence_costs_slots_down_to_the_fewest_and_claims_with_them() -> None:
    lanes = Lanes(most_sending=512, most_claimed=2000)
    lanes.add(_shipment("a") for _ in range(FIRST_SLOTS))
    for shipment in _take_all(lanes):
        lanes.finish(shipment, _outcome(shipment, answered=False, duration_ms=15_000))
    assert lanes.rooms() == {"a": FEWEST_SLOTS}
    lanes.add(_shipment("a") for _ in range(100))
    assert len(_take_all(lanes)) == FEWEST_SLOTS


def test_a_slow_answer_is_an_answer_and_a_refused_connection_holds_no_slot() -> None:
    lanes = Lanes(most_sending=512, most_claimed=2000)
    for answered, duration_ms in ((True, 9000), (False, 3)):
        lanes.add([_shipment("a")])
        [shipment] = _take_all(lanes)
        lanes.finish(shipment, _outcome(shipment, answered=answered, duration_ms=duration_ms))
    assert lanes.rooms() == {}  # as at the start


def test_a_destination_with_more_than_half_its_window_in_hand_gets_no_claims() -> None:
    lanes = Lanes(most_sending=512, most_claimed=2000)
    lanes.add(_shipment("a") for _ in range(FIRST_SLOTS))
    assert lanes.rooms() == {"a": 0}
    opened = []
    for shipment in _take_all(lanes):
        opened.append(lanes.finish(shipment, _outcome(shipment, answered=True, duration_ms=2000)))
    assert opened.count(True) == 1  # the engine is woken once, not at every answer
    assert lanes.rooms() == {}


def test_what_is_in_hand_is_bounded_over_all_destinations() -> None:
    lanes = Lanes(most_sending=512, most_claimed=10)
    lanes.add(_shipment(str(number)) for number in range(6))
    assert lanes.room == 0
    shipment = lanes.take()
    assert shipment is not None
    assert lanes.finish(shipment, None)
    assert lanes.room == 5


def test_drained_lanes_hand_everything_back_that_was_not_begun() -> None:
    lanes = Lanes(most_sending=2, most_claimed=100)
    lanes.add(_shipment("a", number) for number in range(5))
    begun = _take_all(lanes)
    assert [each.claimed.event_id for each in lanes.drain()] == [2, 3, 4]
    assert lanes.take() is None
    for shipment in begun:
        lanes.finish(shipment, None)
    assert lanes.claimed == 0

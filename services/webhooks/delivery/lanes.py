"""The order of sending: a bound for all, one per merchant, one per destination, and turns. Pure; never waits.

Each destination of a merchant has a lane. Lanes and merchants start with few slots and earn more by quick successes, as
in TCP's slow start. Silence costs half of the slots, and a quick failure takes back some of the earned ones. So an
endpoint that hangs holds a handful of slots at most, whatever its backlog; a merchant with a thousand such endpoints
holds few more; and all hanging endpoints together hold at most half of all slots: the rest is for those that answer
(docs/decisions/0009-a-lane-per-destination.md).

This is the breaker as well: it delays attempts that are due and drops none. While no endpoint hangs, nothing waits.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from services.webhooks.store.stages import Claimed, LaneKey, Outcome, Rooms, Shipment, lane_of

QUICK_MS: Final = 1000
SLOW_MS: Final = 5000
"""An answer slower than this holds a slot like silence does, and costs the same."""

KEPT: Final = 1000
"""Idle lanes and merchants that are remembered, so that an endpoint that hung has few slots when its retries come."""


@dataclass(frozen=True)
class Limits:
    """Slots at the start, the fewest and the most; `most_claimed` events are claimed ahead for a quick receiver, so
    that its slots never wait for the database."""

    fewest: int
    first: int
    most: int
    most_claimed: int


LANE: Final = Limits(fewest=4, first=16, most=64, most_claimed=2000)
MERCHANT: Final = Limits(fewest=16, first=64, most=128, most_claimed=3000)


class Bound:
    """`slots` requests at a time, `window` events claimed at a time; both are adjusted by the results of requests."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.slots = limits.first
        self.window = limits.first
        self.sending = 0
        self.claimed = 0
        self.is_silent = False
        self.waits_for_turn = False

    @property
    def room(self) -> int:
        """The number of events that may be claimed; 0 until half of the window is free, so that claims are batches."""
        return self.window - self.claimed if self.claimed * 2 <= self.window else 0

    def adjust(self, outcome: Outcome) -> None:
        limits, held_ms = self._limits, outcome.held_ms
        if held_ms >= (QUICK_MS if outcome.answer is None else SLOW_MS):
            self.slots = max(limits.fewest, self.slots // 2)
            self.window = self.slots
            self.is_silent = True
        elif held_ms >= QUICK_MS:
            self.window = self.slots  # an event that waits behind a slow one must not outlive its lease
        else:  # step by step to the most, or after a failure to the first value: failures earn nothing
            most, most_claimed = limits.first, limits.first
            if outcome.succeeded:
                most, most_claimed = limits.most, limits.most_claimed
            self.slots, self.window = _one_step(self.slots, most), _one_step(self.window, most_claimed)
            self.is_silent = self.is_silent and outcome.answer is None


def _one_step(value: int, towards: int) -> int:
    return value + (towards > value) - (towards < value)


class Merchant(Bound):
    """All destinations of one merchant; those that may send take turns."""

    def __init__(self) -> None:
        super().__init__(MERCHANT)
        self.turns: deque[Lane] = deque()

    @property
    def may_send(self) -> bool:
        return bool(self.turns) and self.sending < self.slots


class Lane(Bound):
    """One destination of one merchant."""

    def __init__(self, key: LaneKey, merchant: Merchant) -> None:
        super().__init__(LANE)
        self.key = key
        self.merchant = merchant
        self.queue: deque[Shipment] = deque()

    @property
    def may_send(self) -> bool:
        return bool(self.queue) and self.sending < self.slots


@dataclass(frozen=True)
class Finished:
    """The effect of a request's end.

    opened      whether the lane may claim again and could not before
    given_back  events claimed for a destination that has become too slow for them; they are due again
    """

    opened: bool
    given_back: list[Shipment]


class Lanes:
    """The lanes of one process: at most `most_sending` requests at a time, and at most `most_claimed` claimed
    events.
    """

    def __init__(self, *, most_sending: int, most_claimed: int) -> None:
        self._most_sending = most_sending
        self._most_claimed = most_claimed
        # Both have the least recently used first.
        self._lanes: OrderedDict[LaneKey, Lane] = OrderedDict()
        self._merchants: OrderedDict[UUID, Merchant] = OrderedDict()
        self._turns: deque[Merchant] = deque()
        # Lanes with due events, as far as known, by merchant: ordered sets, the next to claim first.
        self._due: OrderedDict[UUID, OrderedDict[LaneKey, None]] = OrderedDict()
        self.sending = 0
        self.claimed = 0

    @property
    def room(self) -> int:
        """The number of events that may be claimed now; 0 until half of the total is free."""
        return self._most_claimed - self.claimed if self.claimed * 2 <= self._most_claimed else 0

    def may_take(self, key: LaneKey, ahead: int) -> bool:
        """Returns whether a new event of this lane may be added without a claim, after `ahead` others: there is room
        for it, and nothing older that is known to be due.

        From any thread. It only reads, so more may be claimed than there is room for, by the events that are being
        written at this moment. The result of `take` keeps all bounds.
        """
        lane, merchant = self._lanes.get(key), self._merchants.get(key.merchant_id)
        return (
            key not in self._due.get(key.merchant_id, ())
            and self.claimed + ahead < self._most_claimed
            and (merchant.claimed + ahead < merchant.window if merchant else ahead < MERCHANT.first)
            and (lane.claimed + ahead < lane.window and not lane.is_silent if lane else ahead < LANE.first)
        )

    def note_due(self, keys: Iterable[LaneKey]) -> None:
        """Records that these lanes have something due."""
        for key in keys:
            self._due.setdefault(key.merchant_id, OrderedDict()).setdefault(key)

    def note_claimed(self, rooms: Rooms, claimed: Sequence[Claimed]) -> None:
        """Records a claim. A lane that did not use its room has nothing more due; one that used all of it goes to the
        end.
        """
        of_lane = Counter(lane_of(each) for each in claimed)
        of_merchant = Counter(each.terms.merchant_id for each in claimed)
        for id, lanes in rooms.by_merchant().items():
            due = self._due[id]
            was_read = len(claimed) < rooms.total and of_merchant[id] < rooms.merchants[id]
            for key, room in lanes.items():
                if was_read and of_lane[key] < room:
                    due.pop(key, None)
                elif of_lane[key]:
                    due.move_to_end(key)
            if not due:
                del self._due[id]
            elif of_merchant[id]:
                self._due.move_to_end(id)

    def rooms(self, most: int) -> Rooms:
        """Returns the room for the next claim in lanes that have something due; those that waited longest come first.

        Silent lanes share half of all slots. A merchant may have any number of lanes, so this checks only as many as
        can be claimed from, and those that have claimed events.
        """
        silent_left = self._most_sending // 2 - sum(
            lane.claimed for lane in self._lanes.values() if lane.is_silent
        )
        rooms = Rooms(min(most, self.room), {}, {})
        for id, due in self._due.items():
            merchant = self._merchants.get(id)
            of_merchant = merchant.room if merchant else MERCHANT.first
            # Each lane has something due, so this many lanes are enough.
            enough = min(rooms.total, len(rooms.lanes) + of_merchant)
            for key in due:
                if len(rooms.lanes) >= enough:
                    break
                lane = self._lanes.get(key)
                room = lane.room if lane else LANE.first
                if lane is not None and lane.is_silent:
                    room = max(0, min(room, silent_left))
                    silent_left -= room
                if room:
                    rooms.lanes[key] = room
                    rooms.merchants[id] = of_merchant
            if len(rooms.lanes) >= rooms.total:
                break
        return rooms

    def add(self, shipments: Iterable[Shipment]) -> None:
        """Queues claimed events."""
        for shipment in shipments:
            lane = self._lane(lane_of(shipment.claimed))
            lane.queue.append(shipment)
            self._count_claimed(lane, 1)
            self._give_turn(lane)

    def take(self) -> Shipment | None:
        """Returns the next event to send; merchants, and their lanes, take turns. None when all that wait are at a
        bound.
        """
        while self._turns and self.sending < self._most_sending:
            merchant = self._turns.popleft()
            merchant.waits_for_turn = False
            if not merchant.may_send:  # it lost slots meanwhile
                continue
            lane = merchant.turns.popleft()
            lane.waits_for_turn = False
            shipment = lane.queue.popleft() if lane.may_send else None
            if shipment is not None:
                self._count_sending(lane, 1)
            self._give_turn(lane)
            if shipment is not None:
                return shipment
        return None

    def finish(self, shipment: Shipment, outcome: Outcome | None) -> Finished:
        """Records that a taken shipment is done, or was not sent at all (None)."""
        lane = self._lanes[lane_of(shipment.claimed)]
        was_open = self._is_open(lane)
        self._count_sending(lane, -1)
        self._count_claimed(lane, -1)
        given_back: list[Shipment] = []
        if outcome is not None:
            lane.adjust(outcome)
            lane.merchant.adjust(outcome)
            while lane.queue and lane.claimed > lane.window:
                given_back.append(lane.queue.pop())
                self._count_claimed(lane, -1)
            if given_back:
                self.note_due([lane.key])
        self._give_turn(lane)
        return Finished(opened=self._is_open(lane) and not was_open, given_back=given_back)

    def drain(self) -> list[Shipment]:
        """Removes and returns all queued events, which the engine gives back."""
        waiting: list[Shipment] = []
        for lane in self._lanes.values():
            waiting += lane.queue
            self._count_claimed(lane, -len(lane.queue))
            lane.queue.clear()
        return waiting

    def _is_open(self, lane: Lane) -> bool:
        return lane.room > 0 and lane.merchant.room > 0 and self.room > 0

    def _lane(self, key: LaneKey) -> Lane:
        merchant = self._merchants.get(key.merchant_id)
        if merchant is None:
            _forget_idle(self._merchants)
            merchant = self._merchants[key.merchant_id] = Merchant()
        lane = self._lanes.get(key)
        if lane is None:
            _forget_idle(self._lanes)
            lane = self._lanes[key] = Lane(key, merchant)
        lane.merchant = merchant  # it differs only after the merchant was idle and forgotten
        self._lanes.move_to_end(key)
        self._merchants.move_to_end(key.merchant_id)
        return lane

    def _give_turn(self, lane: Lane) -> None:
        merchant = lane.merchant
        if lane.may_send and not lane.waits_for_turn:
            lane.waits_for_turn = True
            merchant.turns.append(lane)
        if merchant.may_send and not merchant.waits_for_turn:
            merchant.waits_for_turn = True
            self._turns.append(merchant)

    def _count_claimed(self, lane: Lane, by: int) -> None:
        lane.claimed += by
        lane.merchant.claimed += by
        self.claimed += by

    def _count_sending(self, lane: Lane, by: int) -> None:
        lane.sending += by
        lane.merchant.sending += by
        self.sending += by


K = TypeVar("K", bound=Hashable)
B = TypeVar("B", bound=Bound)


def _forget_idle(bounds: OrderedDict[K, B]) -> None:
    """Forgets an idle lane or merchant when too many are remembered. One with claimed events stays."""
    if len(bounds) >= KEPT:
        idle = next((key for key, each in bounds.items() if not each.claimed), None)
        if idle is not None:
            del bounds[idle]

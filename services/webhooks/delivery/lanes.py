"""Who may send next: a bound in all, a bound per destination, and turns. Pure bookkeeping, no waiting, no network.

Each destination has a lane. A lane starts with few slots and earns more by answering quickly, as TCP's slow start
does; silence costs half of them. So an endpoint that hangs holds a handful of slots at most, whatever its backlog,
and takes nothing from the others (DESIGN section 11: "one failing webhook delays others").
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from services.webhooks.delivery.stages import Outcome, Shipment

QUICK_MS = 1000
FEWEST_SLOTS = 4
FIRST_SLOTS = 16
MOST_SLOTS = 64
MOST_CLAIMED_PER_LANE = 500
"""Claimed ahead for a lane that is quick, so that its slots never wait for the database."""

KEPT_LANES = 1000
"""Idle lanes remembered, so that an endpoint that hung is met with care when its retries come."""


@dataclass
class Lane:
    """One destination: `slots` requests at a time, `window` events claimed at a time."""

    destination: str
    queue: deque[Shipment] = field(default_factory=deque)
    sending: int = 0
    slots: int = FIRST_SLOTS
    window: int = FIRST_SLOTS
    waits_for_turn: bool = False

    @property
    def claimed(self) -> int:
        return len(self.queue) + self.sending

    @property
    def room(self) -> int:
        """How many more may be claimed: none until half of the window is free, so that claims stay batches."""
        return self.window - self.claimed if self.claimed * 2 <= self.window else 0

    @property
    def may_send(self) -> bool:
        return bool(self.queue) and self.sending < self.slots

    def learn(self, outcome: Outcome) -> None:
        if outcome.answer is None and outcome.duration_ms >= QUICK_MS:
            self.slots = max(FEWEST_SLOTS, self.slots // 2)
            self.window = self.slots
        elif outcome.answer is not None and outcome.duration_ms < QUICK_MS:
            self.slots = min(MOST_SLOTS, self.slots + 1)
            self.window = min(MOST_CLAIMED_PER_LANE, self.window + 1)


class Lanes:
    """All destinations together: at most `most_sending` requests at a time, at most `most_claimed` events in hand."""

    def __init__(self, *, most_sending: int, most_claimed: int) -> None:
        self._most_sending = most_sending
        self._most_claimed = most_claimed
        self._lanes: OrderedDict[str, Lane] = OrderedDict()  # the least recently used first
        self._turns: deque[Lane] = deque()
        self.sending = 0
        self.claimed = 0

    @property
    def room(self) -> int:
        """How many events may be claimed now; none until half of all is free."""
        return self._most_claimed - self.claimed if self.claimed * 2 <= self._most_claimed else 0

    def rooms(self) -> dict[str, int]:
        """The room of each destination that has another than `FIRST_SLOTS`."""
        return {lane.destination: lane.room for lane in self._lanes.values() if lane.room != FIRST_SLOTS}

    def add(self, shipments: Iterable[Shipment]) -> None:
        """Queue what was claimed."""
        for shipment in shipments:
            lane = self._lane(shipment.claimed.destination)
            lane.queue.append(shipment)
            self.claimed += 1
            self._give_turn(lane)

    def take(self) -> Shipment | None:
        """The next to send, one lane after the other; None when every lane or all of them are at their bound."""
        if self.sending >= self._most_sending or not self._turns:
            return None
        lane = self._turns.popleft()
        lane.waits_for_turn = False
        shipment = lane.queue.popleft()
        lane.sending += 1
        self.sending += 1
        self._give_turn(lane)
        return shipment

    def finish(self, shipment: Shipment, outcome: Outcome | None) -> bool:
        """A shipment that was taken is done, or was not sent at all (None); true when claiming became possible."""
        lane = self._lanes[shipment.claimed.destination]
        lane_had_room, had_room = lane.room > 0, self.room > 0
        lane.sending -= 1
        self.sending -= 1
        self.claimed -= 1
        if outcome is not None:
            lane.learn(outcome)
        self._give_turn(lane)
        return (lane.room > 0 and not lane_had_room) or (self.room > 0 and not had_room)

    def drain(self) -> list[Shipment]:
        """Everything that waits in a queue, taken out to be given back."""
        waiting = [shipment for lane in self._lanes.values() for shipment in lane.queue]
        for lane in self._lanes.values():
            lane.queue.clear()
            lane.waits_for_turn = False
        self._turns.clear()
        self.claimed -= len(waiting)
        return waiting

    def _lane(self, destination: str) -> Lane:
        lane = self._lanes.get(destination)
        if lane is None:
            self._forget_idle()
            lane = self._lanes[destination] = Lane(destination)
        self._lanes.move_to_end(destination)
        return lane

    def _forget_idle(self) -> None:
        if len(self._lanes) >= KEPT_LANES:
            idle = next((lane.destination for lane in self._lanes.values() if not lane.claimed), None)
            if idle is not None:
                del self._lanes[idle]

    def _give_turn(self, lane: Lane) -> None:
        if lane.may_send and not lane.waits_for_turn:
            lane.waits_for_turn = True
            self._turns.append(lane)

"""Bounds on the bytes of bodies that a worker waits for at a time: in all, from one client, and for one item.

A body is reserved by its announced length before its first byte is read. A body in chunks announces none: its
reservation grows with it. Once all of the body is there the reservation is its real size, and it ends when its request
is answered. So memory is bounded however many clients send, and however slowly; and one client leaves room for all
others. Kinds of bodies with a pool each take no room from each other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from kit.observe import metrics
from kit.rpc.errors import Refused, database_unavailable, exhausted
from kit.web.walls import turned_away

# About the time that a picture takes to arrive.
RETRY_SECONDS: Final = 10

UNDER_WAY: Final = metrics.gauge(
    "upload_bytes", "Bytes of bodies that clients send or that are worked on, by kind", ["kind"]
)


class Pool:
    """The reservations of one worker for one kind of body.

    most             bytes in all
    most_per_client  bytes of one client: its network, or a more exact name of a client with a key
    item             the kind of things that bodies are for, in messages; empty when `reserve` names none
    most_per_item    bodies for one of them
    """

    def __init__(
        self, kind: str, *, most: int, most_per_client: int, item: str = "", most_per_item: int = 0
    ) -> None:
        self._kind = kind
        self._most = most
        self._most_per_client = most_per_client
        self._item = item
        self._most_per_item = most_per_item
        self._bytes: Counter[str] = Counter()  # by client
        self._bodies: Counter[str] = Counter()  # by item
        self._bytes_in_all = 0
        self._under_way = UNDER_WAY.labels(kind)

    def reserve(self, client: str, size: int, *, item: str = "") -> Reservation:
        """Reserves bytes. Raises RATE_LIMITED when this client or item has too much under way, DB_UNAVAILABLE when
        all together have.
        """
        if item and self._bodies[item] >= self._most_per_item:
            raise self._too_much(self._item, f"Too much is being sent for this {self._item} at the moment")
        reservation = Reservation(self, client, item)
        self.add(reservation, size)
        if item:
            self._bodies[item] += 1
        return reservation

    def add(self, reservation: Reservation, size: int) -> None:
        """Adds bytes, or removes them if `size` is negative. Raises as `reserve`."""
        if size > 0 and self._bytes[reservation.client] + size > self._most_per_client:
            raise self._too_much(
                "client", "Too much is being sent by you, or from your network, at the moment"
            )
        if size > 0 and self._bytes_in_all + size > self._most:
            turned_away.count("uploads", self._kind)
            raise database_unavailable()
        reservation.size += size
        _add(self._bytes, reservation.client, size)
        self._bytes_in_all += size
        self._under_way.set(self._bytes_in_all)

    def release(self, reservation: Reservation) -> None:
        self.add(reservation, -reservation.size)
        if reservation.item:
            _add(self._bodies, reservation.item, -1)

    def _too_much(self, of: str, message: str) -> Refused:
        turned_away.count("uploads", f"{self._kind} of one {of}")
        return exhausted("RATE_LIMITED", message, retry_after_seconds=str(RETRY_SECONDS))


@dataclass(eq=False)
class Reservation:
    """Bytes of one body; `release` is called once."""

    pool: Pool
    client: str
    item: str
    size: int = 0

    def resize(self, size: int) -> None:
        """Changes the reserved bytes to `size`. Raises as `Pool.reserve`."""
        if size != self.size:
            self.pool.add(self, size - self.size)

    def release(self) -> None:
        self.pool.release(self)


def _add(counts: Counter[str], name: str, count: int) -> None:
    counts[name] += count
    if not counts[name]:
        del counts[name]

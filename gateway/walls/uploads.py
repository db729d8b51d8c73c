"""Bounds on the bytes of bodies that a worker waits for at a time: in all, from one client, and for one payment.

A body is reserved by its announced length before its first byte is read. A body in chunks announces none: its
reservation grows with it. Once all of the body is there the reservation is its real size, and it ends when its request
is answered. So memory is bounded however many clients send, and however slowly; and one client leaves room for all
others. Pictures, forms and the API have a pool each: strangers can't fill that of merchants.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from gateway.walls import turned_away
from kit.observe import metrics
from kit.rpc.errors import Refused, database_unavailable, exhausted

# About the time that a picture takes to arrive.
RETRY_SECONDS: Final = 10

UNDER_WAY: Final = metrics.gauge(
    "upload_bytes", "Bytes of bodies that clients send or that are worked on, by kind", ["kind"]
)


class Pool:
    """The reservations of one worker for one kind of body.

    most              bytes in all
    most_per_client   bytes of one client's network, or of one merchant
    most_per_payment  bodies for one payment; 0: no payment is named
    """

    def __init__(self, kind: str, *, most: int, most_per_client: int, most_per_payment: int = 0) -> None:
        self._kind = kind
        self._most = most
        self._most_per_client = most_per_client
        self._most_per_payment = most_per_payment
        self._bytes: Counter[str] = Counter()  # by client
        self._bodies: Counter[str] = Counter()  # by payment
        self._bytes_in_all = 0
        UNDER_WAY.labels(kind)

    def reserve(self, client: str, size: int, *, payment: str = "") -> Reservation:
        """Reserves bytes. Raises RATE_LIMITED when this client or payment has too much under way, DB_UNAVAILABLE when
        all together have.
        """
        if payment and self._bodies[payment] >= self._most_per_payment:
            raise self._too_much("payment", "Too much is being sent for this payment at the moment")
        reservation = Reservation(self, client, payment)
        self.add(reservation, size)
        if payment:
            self._bodies[payment] += 1
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
        UNDER_WAY.labels(self._kind).set(self._bytes_in_all)

    def release(self, reservation: Reservation) -> None:
        self.add(reservation, -reservation.size)
        if reservation.payment:
            _add(self._bodies, reservation.payment, -1)

    def _too_much(self, of: str, message: str) -> Refused:
        turned_away.count("uploads", f"{self._kind} of one {of}")
        return exhausted("RATE_LIMITED", message, retry_after_seconds=str(RETRY_SECONDS))


@dataclass(eq=False)
class Reservation:
    """Bytes of one body; `release` is called once."""

    pool: Pool
    client: str
    payment: str
    size: int = 0

    def resize(self, size: int) -> None:
        """Raises as `Pool.reserve`."""
        self.pool.add(self, size - self.size)

    def release(self) -> None:
        self.pool.release(self)


def _add(counts: Counter[str], name: str, count: int) -> None:
    counts[name] += count
    if not counts[name]:
        del counts[name]


# Forms have a few hundred bytes, orders less than 8 KiB: room for thousands.
FORMS_MOST: Final = 8 * 2**20
FORMS_MOST_PER_CLIENT: Final = 2**20
FORMS_MOST_PER_PAYMENT: Final = 4
PICTURES_MOST_PER_PAYMENT: Final = 1
ORDERS_MOST: Final = 16 * 2**20
ORDERS_MOST_PER_CLIENT: Final = 2 * 2**20


class Uploads:
    """The pools of one worker; those of pictures have settings, because the memory of pods differs."""

    def __init__(self, *, pictures_most: int, pictures_most_per_client: int) -> None:
        self.pictures = Pool(
            "pictures",
            most=pictures_most,
            most_per_client=pictures_most_per_client,
            most_per_payment=PICTURES_MOST_PER_PAYMENT,
        )
        self.forms = Pool(
            "forms",
            most=FORMS_MOST,
            most_per_client=FORMS_MOST_PER_CLIENT,
            most_per_payment=FORMS_MOST_PER_PAYMENT,
        )
        self.orders = Pool("orders", most=ORDERS_MOST, most_per_client=ORDERS_MOST_PER_CLIENT)

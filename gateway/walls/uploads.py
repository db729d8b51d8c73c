"""How many bytes of bodies a worker waits for at a time, in all and from one client.

A body is reserved by its announced length before its first byte is read, and until its request is answered. So memory
is bounded however many clients send, and however slowly; and one client leaves room for all others. Pictures, forms
and the API have a pool each: strangers can't fill that of merchants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from gateway.walls import turned_away
from kit.errors import database_unavailable, exhausted

# About as long as a picture takes to arrive.
RETRY_SECONDS: Final = 10


class Pool:
    """The reservations of one worker for one kind of body.

    most             bytes in all
    most_per_client  bytes of one client's network, or of one merchant
    """

    def __init__(self, kind: str, *, most: int, most_per_client: int) -> None:
        self._kind = kind
        self._most = most
        self._most_per_client = most_per_client
        self._taken: Counter[str] = Counter()
        self._taken_in_all = 0

    def reserve(self, client: str, size: int) -> Callable[[], None]:
        """Returns what gives the reservation back, to be called once. Raises RATE_LIMITED when this client has too
        much under way, DB_UNAVAILABLE when all together have.
        """
        if self._taken[client] + size > self._most_per_client:
            turned_away.count("uploads", f"{self._kind} of one client")
            raise exhausted(
                "RATE_LIMITED",
                "Too much is being sent by you, or from your network, at the moment",
                retry_after_seconds=str(RETRY_SECONDS),
            )
        if self._taken_in_all + size > self._most:
            turned_away.count("uploads", self._kind)
            raise database_unavailable()
        self._taken[client] += size
        self._taken_in_all += size

        def give_back() -> None:
            self._taken_in_all -= size
            self._taken[client] -= size
            if not self._taken[client]:
                del self._taken[client]

        return give_back


# Forms have a few hundred bytes, orders less than 8 KiB: room for thousands.
FORMS_MOST: Final = 8 * 2**20
FORMS_MOST_PER_CLIENT: Final = 2**20
ORDERS_MOST: Final = 16 * 2**20
ORDERS_MOST_PER_CLIENT: Final = 2 * 2**20


class Uploads:
    """The pools of one worker; those of pictures are settings, as what a pod's memory allows differs."""

    def __init__(self, *, pictures_most: int, pictures_most_per_client: int) -> None:
        self.pictures = Pool("pictures", most=pictures_most, most_per_client=pictures_most_per_client)
        self.forms = Pool("forms", most=FORMS_MOST, most_per_client=FORMS_MOST_PER_CLIENT)
        self.orders = Pool("orders", most=ORDERS_MOST, most_per_client=ORDERS_MOST_PER_CLIENT)

"""The body of a request: read by the resource that needs it, after every check that needs no body.

Route, method, key, id and request rate are checked first, so a refused request costs no memory, whatever it sends. A
body has to arrive within a time that grows with its bytes, and counts in `walls.uploads` until its request is
answered. The process decides the bounds of a body by its path (`Bounds`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from kit.rpc.errors import Refused, exhausted, invalid
from kit.web.walls import turned_away
from kit.web.walls.uploads import Pool, Reservation

BODY_SECONDS: Final = 10.0
# Reserved first for a body without an announced length.
FIRST_BYTES: Final = 8 * 1024
# After its first BODY_SECONDS a body has one more second per this number of bytes that have arrived: a client that
# stalls is given up after ten seconds, a client on a slow network is not.
LEAST_BYTES_PER_SECOND: Final = 4096

Receive = Callable[[], Any]  # of ASGI


class ClientGone(Exception):
    """The client hung up before its request was complete."""


@dataclass(frozen=True)
class Bounds:
    """pool       the pool of its reservation
    max_bytes  of the whole body
    seconds    longest time for all of it, however steadily it arrives
    """

    pool: Pool
    max_bytes: int
    seconds: float


class ArrivingBody:
    """The body of one request, from a client that may be slow, or send too much, or nothing."""

    def __init__(self, receive: Receive, headers: Iterable[tuple[bytes, bytes]], *, bounds: Bounds) -> None:
        self._receive = receive
        self._bounds = bounds
        self._length = _content_length(headers)
        self._complete = self._length == 0
        self._reservation: Reservation | None = None
        self._begun = False

    def fault(self) -> Refused | None:
        """Returns the refusal when the announced length is too large, else None."""
        if self._length is not None and self._length > self._bounds.max_bytes:
            return _too_large(self._bounds.max_bytes)
        return None

    async def read(self, client: str, *, item: str = "") -> bytes:
        """Reads all of it, reserved for that client and item until `release`. Raises ClientGone, and Refused when it is
        too long, does not arrive in time, or too many bodies are under way.
        """
        if self._complete:
            return b""
        size = FIRST_BYTES if self._length is None else self._length
        self._reservation = self._bounds.pool.reserve(client, size, item=item)
        try:
            return await self._pieces(self._reservation)
        except TimeoutError:
            turned_away.count("uploads", "slow")
            raise invalid("VALIDATION_ERROR", "the body did not arrive in time") from None

    async def after(self) -> Any:
        """Returns an event for Falcon: the end of an empty body first, later that the client has hung up."""
        if not self._begun:
            self._begun = True
            return {"type": "http.request", "body": b"", "more_body": False}
        while True:
            event = await self._receive()
            if event["type"] == "http.disconnect":
                return event

    def release(self) -> None:
        """Ends the reservation."""
        if self._reservation is not None:
            self._reservation.release()
            self._reservation = None

    async def _pieces(self, reservation: Reservation) -> bytes:
        began_seconds = asyncio.get_running_loop().time()
        body = bytearray()
        async with asyncio.timeout(BODY_SECONDS) as limit:
            while not self._complete:
                body += await self._piece()  # a large one comes in many pieces
                if len(body) > self._bounds.max_bytes:
                    raise _too_large(self._bounds.max_bytes)
                if self._complete:
                    break
                if len(body) > reservation.size:
                    reservation.resize(min(2 * len(body), self._bounds.max_bytes))
                earned_seconds = BODY_SECONDS + len(body) / LEAST_BYTES_PER_SECOND
                limit.reschedule(began_seconds + min(self._bounds.seconds, earned_seconds))
        reservation.resize(len(body))
        return bytes(body)

    async def _piece(self) -> bytes:
        event = await self._receive()
        if event["type"] == "http.disconnect":
            self._complete = True  # nothing more comes
            raise ClientGone
        self._complete = not event.get("more_body", False)
        piece: bytes = event.get("body", b"")
        return piece


def _content_length(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """Returns the number of bytes to come; None when they come in chunks. The server has checked the header's form."""
    length: int | None = 0
    for name, value in headers:
        if name == b"content-length":
            return int(value)
        if name == b"transfer-encoding":
            length = None
    return length


def _too_large(max_bytes: int) -> Refused:
    return exhausted("PAYLOAD_TOO_LARGE", f"The request body is larger than {max_bytes // 1024} KiB")

"""Deliveries to one durable consumer, a batch at a time.

nats-py's own `fetch` waits for the batch to fill after the first message, which delays events at quiet times. Here one
request for many messages stays open on the server, and each message is returned when it comes. The server answers every
request in the end; without an answer after that time the subscription is dead.
"""

import asyncio
import json
from collections import deque
from contextlib import suppress
from typing import Any

import nats.errors
from nats.aio.msg import Msg

from kit.base.ids import parse_id
from kit.events.bus.client import Client
from kit.events.bus.loop import LoopThread
from kit.events.bus.messages import (
    DROPPED,
    EVENT_ID_HEADER,
    NATS_ERRORS,
    REQUEST_ID_HEADER,
    SAME_EVENT_HEADER,
    SIGNATURE_HEADER,
    BusUnavailable,
    Incoming,
)
from kit.events.subjects import STREAM
from kit.observe import tracing
from kit.observe.log import get_logger

_log = get_logger()

REQUEST_SECONDS = 1.0
"""How long a request for messages stays open. Short: an idle consumer shows with each answer that it still fetches."""

SILENCE_SECONDS = 2.0
CALL_TIMEOUT_SECONDS = 10.0

HEADER_MOST_CHARACTERS = 200

NOTHING_CAME = ("404", "408")  # statuses that end a request normally
NOT_THERE = "503"  # the consumer does not exist


class Pull:
    """The deliveries to one durable consumer. Made by `Bus.open_pull`; used by one thread."""

    def __init__(self, loop: LoopThread, client: Client, durable: str) -> None:
        self._loop = loop
        self._client = client
        self._durable = durable
        self._arrived: asyncio.Queue[Msg | None] = asyncio.Queue()
        self._owed = 0  # messages that the server may still send on the open request
        self._ended = ""
        self._silent_at_seconds = 0.0
        self._inbox = ""
        self._subscription: Any = None
        self._to_acknowledge: deque[Msg] = deque()

    def open(self) -> None:
        self._loop.call(self._open, timeout_seconds=CALL_TIMEOUT_SECONDS)

    def close(self) -> None:
        with suppress(BusUnavailable):
            self._loop.call(self._close, timeout_seconds=CALL_TIMEOUT_SECONDS)

    def take(self, limit: int) -> list[Incoming]:
        """Returns up to `limit` deliveries as soon as there is one; none after about 1 s, or when interrupted.

        Raises `BusUnavailable` when the consumer is gone or the server fell silent: close this pull and open another.
        """
        return self._loop.call(
            self._take, limit, timeout_seconds=REQUEST_SECONDS + SILENCE_SECONDS + CALL_TIMEOUT_SECONDS
        )

    def interrupt(self) -> None:
        """Makes a waiting `take` return."""
        self._loop.post(self._arrived.put_nowait, None)

    def forget_request(self) -> None:
        """Forgets the open request, which a restarted server has lost; on the loop's thread."""
        self._owed = 0
        self._arrived.put_nowait(None)

    # Everything below runs on the loop's thread.

    async def _open(self) -> None:
        self._inbox = self._client.new_inbox()
        self._subscription = await self._client.subscribe(self._inbox, cb=self._arrived.put)

    async def _close(self) -> None:
        await self._subscription.unsubscribe()
        while not self._arrived.empty():
            message = self._arrived.get_nowait()
            if message is not None and _status(message) is None:
                await message.nak()

    async def _take(self, limit: int) -> list[Incoming]:
        self._require_deliveries()
        if self._owed <= 0 and self._arrived.empty():
            await self._request(limit)
        now_seconds = asyncio.get_running_loop().time
        try:
            first = await asyncio.wait_for(
                self._arrived.get(), max(0.1, self._silent_at_seconds - now_seconds())
            )
        except TimeoutError:
            raise BusUnavailable(f"NATS fell silent towards {self._durable}") from None
        deliveries: list[Incoming] = []
        self._accept(first, deliveries)
        while len(deliveries) < limit and not self._arrived.empty():
            self._accept(self._arrived.get_nowait(), deliveries)
        if not deliveries:
            self._require_deliveries()
        return deliveries

    def _require_deliveries(self) -> None:
        if self._ended:
            raise BusUnavailable(f"NATS ended the deliveries to {self._durable}: {self._ended}")

    async def _request(self, limit: int) -> None:
        request = {"batch": limit, "expires": int(REQUEST_SECONDS * 1_000_000_000)}
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{self._durable}"
        await self._client.publish(subject, json.dumps(request).encode(), reply=self._inbox)
        self._owed = limit
        self._silent_at_seconds = asyncio.get_running_loop().time() + REQUEST_SECONDS + SILENCE_SECONDS

    def _accept(self, message: Msg | None, deliveries: list[Incoming]) -> None:
        if message is None:
            return
        status = _status(message)
        if status is not None:
            self._owed = 0
            if status == NOT_THERE:
                self._ended = "the consumer is not there, the stream's owner makes it"
            elif status not in NOTHING_CAME:
                self._ended = f"{status} {(message.headers or {}).get('Description', '')}"
            return
        self._owed -= 1
        headers = message.headers or {}
        event_id = parse_id(headers.get(SAME_EVENT_HEADER) or headers.get(EVENT_ID_HEADER, ""))
        if event_id is None:  # no process of ours publishes such a message, so its meaning is unknown
            DROPPED.inc()
            _log.error("message_unidentified", subject=message.subject)
            self._loop.post(message.term)
            return
        deliveries.append(
            Incoming(
                event_id=event_id,
                subject=message.subject,
                payload=message.data,
                request_id=_text(headers.get(REQUEST_ID_HEADER, "")),
                traceparent=headers.get(tracing.HEADER, ""),
                signature=_text(headers.get(SIGNATURE_HEADER, "")),
                deliveries=_deliveries(message),
                acknowledge=lambda: self._acknowledge(message),
                retry_after=lambda seconds: self._loop.post(message.nak, seconds),
            )
        )

    def _acknowledge(self, message: Msg) -> None:
        """Sends the acknowledgement soon, together with others; on the thread that uses this pull."""
        self._to_acknowledge.append(message)
        if len(self._to_acknowledge) == 1:
            self._loop.post(self._send_acknowledgements)

    async def _send_acknowledgements(self) -> None:
        while self._to_acknowledge:
            with suppress(*NATS_ERRORS):  # it is delivered again
                await self._to_acknowledge.popleft().ack()


def _text(header: str) -> str:
    """Removes characters that our headers never have and PostgreSQL refuses: a forged header must not stop the
    consumer.
    """
    header = header[:HEADER_MOST_CHARACTERS]
    if header.isascii() and header.isprintable():  # as ours are: the other way takes 4 us for a signature
        return header
    return "".join(each for each in header if each.isascii() and each.isprintable())


def _deliveries(message: Msg) -> int:
    try:
        return message.metadata.num_delivered or 1
    except nats.errors.NotJSMessageError:  # sent to the subscription past the stream
        return 1


def _status(message: Msg) -> str | None:
    return None if message.headers is None else message.headers.get("Status")

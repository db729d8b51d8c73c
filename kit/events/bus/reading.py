"""Reads the stream for its owner, without a consumer: nothing is delivered, acknowledged or changed."""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import nats.js.errors
from nats.js import JetStreamManager
from nats.js.api import RawStreamMsg

from kit.base.ids import parse_id
from kit.events.bus.client import Client
from kit.events.bus.messages import EVENT_ID_HEADER, SAME_EVENT_HEADER, SIGNATURE_HEADER
from kit.events.bus.stream import read_info
from kit.events.subjects import STREAM

READ_TIMEOUT_SECONDS = 5.0
READ_IN_FLIGHT = 64


@dataclass(frozen=True, kw_only=True)
class Stored:
    """One fact in the stream; `stored_at` is the time of NATS' clock."""

    event_id: uuid.UUID
    subject: str
    payload: bytes
    signature: str
    stored_at: datetime


@dataclass(frozen=True, kw_only=True)
class Page:
    """The facts of up to `limit` numbers of the stream, in its order. `last_seq` is the last number that was read.

    Facts of before `begins_at`, by NATS' clock, are not in the stream: it is not older, or they were removed.
    """

    facts: tuple[Stored, ...]
    last_seq: int
    more: bool
    begins_at: datetime


async def read(client: Client, *, since: datetime, after_seq: int, limit: int) -> Page:
    """Reads what was stored at `since` or later and stands after number `after_seq`; 0 is the first page.

    Messages that no process of Fiatgate has published are left out.
    """
    manager = client.jsm(timeout=READ_TIMEOUT_SECONDS)
    info = await read_info(client)
    newest: int = info["state"]["last_seq"]
    first = max(info["state"]["first_seq"], after_seq + 1)
    if not after_seq:
        first = await _first_since(manager, since, first, newest)
    last = min(first + limit - 1, newest)
    room = asyncio.Semaphore(READ_IN_FLIGHT)

    async def one(seq: int) -> RawStreamMsg | None:
        async with room:
            return await _message(manager, seq)

    messages = await asyncio.gather(*(one(seq) for seq in range(first, last + 1)))
    facts = (_stored(message) for message in messages if message is not None)
    return Page(
        facts=tuple(each for each in facts if each is not None and each.stored_at >= since),
        last_seq=max(last, after_seq),
        more=last < newest,
        begins_at=_begins_at(info),
    )


def _begins_at(info: Mapping[str, Any]) -> datetime:
    """Returns the time from which on nothing is missing at the stream's beginning."""
    state, created_at = info["state"], datetime.fromisoformat(info["created"])
    if state["first_seq"] <= 1:
        return created_at
    return max(created_at, datetime.fromisoformat(state["first_ts" if state["messages"] else "last_ts"]))


async def _first_since(manager: JetStreamManager, since: datetime, first: int, last: int) -> int:
    """Returns the number of the first message of that time or later, by halves; `last` + 1 when there is none."""
    low, high = first, last + 1
    while low < high:
        middle = (low + high) // 2
        seq = middle
        message = await _message(manager, seq)
        while message is None and seq < high - 1:  # removed by an operator: take the next one
            seq += 1
            message = await _message(manager, seq)
        if message is None or _time(message) >= since:
            high = middle
        else:
            low = seq + 1
    return low


async def _message(manager: JetStreamManager, seq: int) -> RawStreamMsg | None:
    try:
        return await manager.get_msg(STREAM, seq)
    except nats.js.errors.NotFoundError:
        return None


def _time(message: RawStreamMsg) -> datetime:
    assert message.time is not None
    return message.time


def _stored(message: RawStreamMsg) -> Stored | None:
    header: Callable[[str], str] = (message.headers or {}).get  # type: ignore[assignment]  # untyped in nats-py
    event_id = parse_id(header(SAME_EVENT_HEADER) or header(EVENT_ID_HEADER) or "")
    if event_id is None or message.subject is None:
        return None
    return Stored(
        event_id=event_id,
        subject=message.subject,
        payload=message.data or b"",
        signature=header(SIGNATURE_HEADER) or "",
        stored_at=_time(message),
    )

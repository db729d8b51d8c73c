"""The stream of the facts and its consumers. Their owner makes and keeps them on the server.

Only the owner may make consumers: a consumer can deliver to any subject, also to JetStream's API.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import nats.js.errors
from nats.js import JetStreamManager
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StorageType, StreamConfig

from kit.base.clock import Clock, SystemClock
from kit.events.bus.client import Client
from kit.events.bus.messages import NATS_ERRORS, SUBJECTS, error_text
from kit.events.subjects import STREAM
from kit.observe.log import get_logger

_log = get_logger()

KEEP_SECONDS = 30 * 86_400
"""How long the stream keeps a fact, so how long a consumer may be away; `fiatgate verify` finds a fact that was missed.
"""

ACK_WAIT_SECONDS = 10.0
"""After this time an unacknowledged fact is delivered again. If its consumer was only slow, the inbox drops the copy.
"""

STREAM_TIMEOUT_SECONDS = 5.0

TOO_FEW_SERVERS = (10005, 10074)
"""NATS' error codes when a stream needs more servers: no suitable peers, and no cluster at all."""

MEND = "FIATGATE_NATS_REPLICAS must not be more than the servers of the NATS cluster that are up"


@dataclass(frozen=True, kw_only=True)
class StreamSeen:
    """The stream at one moment.

    created_at  when it was made, by NATS' clock: if it changes, everything in the old stream is gone
    first_seq   the number of the oldest message: it grows when messages are removed
    first_at    when the oldest message was stored, by NATS' clock; None for an empty stream
    at          the time of this reading, by our clock
    """

    created_at: datetime
    first_seq: int
    first_at: datetime | None
    at: datetime


class OwnStream:
    """The stream and its consumers, made by their owner for its `Bus`, which calls `check` again and again.

    `replicas`   how many servers keep the stream
    `consumers`  the durable consumers of its facts, each with its subject
    """

    def __init__(
        self, *, replicas: int, consumers: Mapping[str, str] | None = None, clock: Clock | None = None
    ) -> None:
        self.seen: StreamSeen | None = None
        self._replicas = replicas
        self._consumers = dict(consumers or {})
        self._clock = clock or SystemClock()

    async def check(self, client: Client) -> bool:
        """Makes the stream and the consumers that are missing; returns whether all of them are there now."""
        manager = client.jsm(timeout=STREAM_TIMEOUT_SECONDS)
        try:
            try:
                info = await read_info(client)
            except nats.js.errors.NotFoundError:
                await manager.add_stream(self._config)
                _log.info("stream_created", stream=STREAM, replicas=self._replicas)
                info = await read_info(client)
            self.seen = self._seen(info)
            for durable, subject in self._consumers.items():
                await keep_consumer(manager, durable, subject)
        except NATS_ERRORS as error:
            self._warn(error)
            return False
        # An operator may reduce the number, this code does not.
        if info["config"]["num_replicas"] < self._replicas:
            try:
                await manager.update_stream(self._config)
                _log.info("stream_enlarged", stream=STREAM, replicas=self._replicas)
            except NATS_ERRORS as error:  # the stream still works with fewer replicas
                self._warn(error)
        return True

    def _seen(self, info: Mapping[str, Any]) -> StreamSeen:
        state = info["state"]
        return StreamSeen(
            created_at=datetime.fromisoformat(info["created"]),
            first_seq=state["first_seq"],
            first_at=datetime.fromisoformat(state["first_ts"]) if state["messages"] else None,
            at=self._clock.now(),
        )

    def _warn(self, error: Exception) -> None:
        if getattr(error, "err_code", None) in TOO_FEW_SERVERS:
            _log.error("stream_replicas_refused", replicas=self._replicas, error=error_text(error), mend=MEND)
        else:
            _log.warning("stream_not_checked", error=error_text(error))

    @property
    def _config(self) -> StreamConfig:
        return StreamConfig(
            name=STREAM,
            subjects=list(SUBJECTS),
            storage=StorageType.FILE,
            max_age=KEEP_SECONDS,
            num_replicas=self._replicas,
        )


async def read_info(client: Client) -> dict[str, Any]:
    """Returns JetStream's own answer: nats-py's does not have the time of the oldest message. Raises `NATS_ERRORS`."""
    answer = await client.request(f"$JS.API.STREAM.INFO.{STREAM}", b"", timeout=STREAM_TIMEOUT_SECONDS)
    info: dict[str, Any] = json.loads(answer.data)
    if "error" in info:
        nats.js.errors.APIError.from_error(info["error"])  # raises
    return info


async def keep_consumer(manager: JetStreamManager, durable: str, subject: str) -> None:
    """Makes a durable consumer if it is missing."""
    try:
        await manager.consumer_info(STREAM, durable)
    except nats.js.errors.NotFoundError:
        await manager.add_consumer(
            STREAM,
            ConsumerConfig(
                durable_name=durable,
                filter_subject=subject,
                deliver_policy=DeliverPolicy.ALL,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=ACK_WAIT_SECONDS,
                max_deliver=-1,  # past a limit NATS stops counting a message: `kit.events.consumer` parks it instead
            ),
        )
        _log.info("consumer_created", stream=STREAM, consumer=durable)

"""fiatgate.queues.v1.QueuesService: the queues that wait for an operator, the same in every service that has one."""

from collections.abc import Sequence
from typing import Protocol

import grpc

from fiatgate.queues.v1 import queues_pb2 as pb
from fiatgate.queues.v1 import queues_pb2_grpc
from kit.base.clock import Clock
from kit.base.proto import timestamp_from
from kit.db.database import Database
from kit.db.queues import Queue, Waiting, waiting

# ruff: noqa: N802  methods are named by the proto


class Parts(Protocol):
    """The parts of a service that the count needs: those of its `Deps`."""

    @property
    def db(self) -> Database: ...

    @property
    def clock(self) -> Clock: ...


class QueuesServicer(queues_pb2_grpc.QueuesServiceServicer):
    def __init__(self, parts: Parts, queues: Sequence[Queue]) -> None:
        self._parts = parts
        self._queues = queues

    def ListQueues(
        self, request: pb.ListQueuesRequest, context: grpc.ServicerContext
    ) -> pb.ListQueuesResponse:
        with self._parts.db.autocommit() as connection:
            found = waiting(connection, self._queues, now=self._parts.clock.now())
        return pb.ListQueuesResponse(queues=map(_queue_to_message, found))


def _queue_to_message(queue: Waiting) -> pb.Queue:
    return pb.Queue(
        name=queue.name,
        count=queue.count,
        oldest_at=timestamp_from(queue.oldest_at),
        newest_at=timestamp_from(queue.newest_at),
    )


def add_to(server: grpc.Server, parts: Parts, queues: Sequence[Queue]) -> None:
    """Adds the service with these queues."""
    queues_pb2_grpc.add_QueuesServiceServicer_to_server(QueuesServicer(parts, queues), server)

"""A service with nothing but what every process has: `python -m tests.kit.sample_service run` (tests/kit/test_process).

Its one RPC answers with the process id and does as it's told: `sleep SECONDS`, `freeze` or `thaw` its worker,
`close` the connection to NATS as nats-py does when it gives up, or nothing.
"""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import grpc
from pydantic import Field

from fiatgate.rpc.v1.access_pb2 import Access
from kit.base.config.processes import ServiceSettings
from kit.db.database import Database
from kit.events.bus.connection import Bus
from kit.process import main as process
from kit.process.service import Service
from kit.rpc.status import Gauge
from kit.work.worker import Fatal, Loop, Worker
from tests.support.contracts import declare

METHOD = "/sample.Sample/Do"


class SampleSettings(ServiceSettings):
    service: ClassVar[str] = "sample"

    worker_dies: bool = Field(default=False, description="whether its worker ends by itself")
    with_bus: bool = Field(default=False, description="whether it uses NATS")


@dataclass(frozen=True)
class Deps:
    settings: SampleSettings
    db: Database
    bus: Bus | None
    sleeping: list[bytes] = field(default_factory=list)  # the calls that do so right now
    may_step: threading.Event = field(default_factory=threading.Event)


def wire(settings: SampleSettings) -> Deps:
    return Deps(
        settings=settings,
        db=Database(settings.database_url, name="sample", pool_size=settings.pool_size, seals=settings.seals),
        bus=Bus(settings.nats_url, name="sample") if settings.with_bus else None,
    )


declare("sample.Sample", {"Do": Access(callers=["gateway"])})


def add_to(server: grpc.Server, deps: Deps) -> None:
    def do(request: bytes, context: grpc.ServicerContext) -> bytes:
        verb, _, seconds = request.decode().partition(" ")
        if verb == "sleep":
            deps.sleeping.append(request)
            threading.Event().wait(float(seconds))
        elif verb == "freeze":
            deps.may_step.clear()
        elif verb == "thaw":
            deps.may_step.set()
        elif verb == "close":
            assert deps.bus is not None
            deps.bus._loop.post(deps.bus._client.close)
        return str(os.getpid()).encode()

    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(do)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("sample.Sample", {"Do": handler})])


def workers(deps: Deps) -> Sequence[Worker]:
    def step() -> bool:
        if deps.settings.worker_dies:
            raise Fatal("as told")
        deps.may_step.wait()
        return False

    deps.may_step.set()
    return [Loop("steps", step, every_seconds=0.1, stale_after_seconds=1)]


def companions(deps: Deps) -> Sequence[Worker]:
    return [Loop("snapshot", lambda: False, every_seconds=60)]


def gauges(deps: Deps) -> Sequence[Gauge]:
    return [Gauge("sleeping", len(deps.sleeping), "Calls that sleep")]


SERVICE = Service(
    name="sample",
    settings=SampleSettings,
    wire=wire,
    add_to=add_to,
    workers=workers,
    companions=companions,
    gauges=gauges,
)

if __name__ == "__main__":
    process.main(SERVICE)

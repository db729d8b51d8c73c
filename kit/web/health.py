"""/healthz: this process answers. /readyz: the services behind it answer too. /: a hint for people."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import falcon
import falcon.asgi
from grpc_health.v1 import health_pb2

from kit.base.clock import monotonic_seconds
from kit.rpc.errors import Refused
from kit.web.exchange import Request
from kit.web.replies import reply

CHECK_SECONDS: Final = 1.0
SHARED_SECONDS: Final = 1.0


class AliveResource:
    """GET /healthz: 200 while the process can answer at all. No service is called."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        reply(resp, {"status": "alive"})

    on_head = on_get


class ReadyResource:
    """GET /readyz: 200 when every service reports SERVING, else 503; the body names those that do not.

    health  one stub of the standard health service per service
    The services are called once in SHARED_SECONDS for any number of requests: an answer is at most that old.
    """

    def __init__(self, health: Mapping[str, Any]) -> None:
        self._health = health
        self._asking: asyncio.Task[dict[str, bool]] | None = None
        self._asked_seconds = 0.0

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        if self._asking is None or monotonic_seconds() - self._asked_seconds >= SHARED_SECONDS:
            self._asked_seconds = monotonic_seconds()
            self._asking = asyncio.create_task(self._ask())
        # A client that hangs up must not cancel it for the others.
        services = await asyncio.shield(self._asking)
        ready = all(services.values())
        body = {
            "status": "ready" if ready else "not ready",
            "services": {name: "serving" if serves else "not serving" for name, serves in services.items()},
        }
        reply(resp, body, status=200 if ready else 503)

    on_head = on_get

    async def _ask(self) -> dict[str, bool]:
        answers = await asyncio.gather(*(_serves(stub) for stub in self._health.values()))
        return dict(zip(self._health, answers, strict=True))


async def _serves(stub: Any) -> bool:
    try:
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=CHECK_SECONDS)
    except Refused:
        return False
    serving: bool = answer.status == health_pb2.HealthCheckResponse.SERVING
    return serving


class IndexResource:
    """GET /: a sentence for the person who pastes the bare address into a browser."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        resp.content_type = falcon.MEDIA_TEXT
        resp.text = f"{self._sentence}\n"

    on_head = on_get

"""One HTTP request and its answer: the state that `edge`, Falcon's middleware and the resources share."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

import falcon.asgi

from kit.base.clock import monotonic_seconds
from kit.rpc import deadline
from kit.rpc.errors import Refused
from kit.web.bodies import ArrivingBody

SCOPE_KEY: Final = "fiatgate"
REQUEST_SECONDS: Final = 5.0


@dataclass(slots=True)
class Exchange:
    """request_id  made here, never the client's: unique per request (docs/api.md#conventions)
    arriving    the body, while the client still has it
    network     the client's, for counts per client
    body        all of it, once `receive_body` has read it
    refused     the refusal of `edge`, made before the route is known
    code        the error code of the answer; empty when there is none
    route       the template of the address; empty when none fits
    stopping    set when the worker is about to stop: long streams end then

    A process that knows more about its clients makes a subclass with the fields and overrides the properties.
    """

    request_id: str
    started_seconds: float
    stopping: asyncio.Event
    arriving: ArrivingBody
    network: str = ""
    body: bytes = b""
    refused: Refused | None = None
    status: int = 0
    code: str = ""
    route: str = ""

    @property
    def sender(self) -> str:
        """The name under which the bytes of the body are counted."""
        return self.network

    def log_fields(self) -> Mapping[str, str]:
        """Returns further fields for the log line of the request."""
        return {}

    def span_attributes(self) -> Mapping[str, str]:
        """Returns further attributes for the span of the request."""
        return {}

    async def receive_body(self, *, item: str = "") -> None:
        """Reads the body, and then restarts the request's time limit. Call it when no other check is left.

        item  the thing that the body is for, known to exist (`walls.uploads`)
        Raises as `ArrivingBody.read`.
        """
        self.body = await self.arriving.read(self.sender, item=item)
        allow(REQUEST_SECONDS)


class Request(falcon.asgi.Request):
    """Falcon's request, with its `Exchange`."""

    @property
    def exchange(self) -> Exchange:
        return cast(Exchange, self.scope[SCOPE_KEY])


def allow(seconds: float) -> None:
    """Gives the current request `seconds` from now, in place of its remaining time."""
    deadline.expires_at.set(monotonic_seconds() + seconds)

"""One HTTP request and its answer: the state that `edge`, Falcon's middleware and the resources share."""

import asyncio
from dataclasses import dataclass
from typing import Final, cast

import falcon.asgi

from fiatgate.merchants.v1.merchants_pb2 import Merchant
from gateway.http.bodies import ArrivingBody
from kit.base.clock import monotonic_seconds
from kit.rpc import deadline
from kit.rpc.errors import Refused

SCOPE_KEY: Final = "fiatgate"
REQUEST_SECONDS: Final = 5.0


@dataclass(slots=True)
class Exchange:
    """request_id  made here, never the client's: unique per request (docs/api.md#conventions)
    arriving    the body, while the client still has it
    network     the client's, for counts per client
    body        all of it, once `receive_body` has read it
    refused     the refusal of `edge`, made before the route is known
    merchant    the authenticated merchant, with `key_id`; set by `auth`
    code        the error code of the answer; empty when there is none
    route       the template of the address, as in `app`; empty when none fits
    stopping    set when the worker is about to stop: long streams end then
    """

    request_id: str
    started_seconds: float
    stopping: asyncio.Event
    arriving: ArrivingBody
    network: str = ""
    body: bytes = b""
    refused: Refused | None = None
    merchant: Merchant | None = None
    key_id: str = ""
    status: int = 0
    code: str = ""
    route: str = ""

    async def receive_body(self, *, payment: str = "") -> None:
        """Reads the body, and then restarts the request's time limit. Call it when no other check is left.

        payment  the payment that it is for, known to exist
        Raises as `ArrivingBody.read`.
        """
        client = self.merchant.merchant_id if self.merchant else self.network
        self.body = await self.arriving.read(client, payment=payment)
        allow(REQUEST_SECONDS)

    @property
    def caller(self) -> Merchant:
        """The authenticated merchant."""
        if self.merchant is None:
            raise LookupError("this route is served without a key")
        return self.merchant


class Request(falcon.asgi.Request):
    """Falcon's request, with its `Exchange`."""

    @property
    def exchange(self) -> Exchange:
        return cast(Exchange, self.scope[SCOPE_KEY])

    @property
    def is_customers(self) -> bool:
        """Whether a person reads the answer: then every answer is a page, errors too."""
        return self.path.startswith("/pay")


def allow(seconds: float) -> None:
    """Gives the current request `seconds` from now, in place of its remaining time."""
    deadline.expires_at.set(monotonic_seconds() + seconds)

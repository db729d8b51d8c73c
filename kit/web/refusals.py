"""Falcon's error handlers that every process has: each exception becomes a `Refused`, and that an answer.

`Refused` is raised on purpose, here or by a service. Falcon raises its own exceptions for unknown routes and methods.
Any other exception is a bug: INTERNAL_ERROR, with an `error_id` that the log has beside the traceback.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar

import falcon
import falcon.asgi

from kit.observe.log import get_logger
from kit.rpc.errors import Refused, unexpected
from kit.web.bodies import ClientGone
from kit.web.exchange import Request

_log = get_logger()

# Falcon's own refusals; a status that is not here means an unexpected error.
_FALCONS: Final[Mapping[int, str]] = {
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "PAYLOAD_TOO_LARGE",
}

R = TypeVar("R", bound=Request)


def say_when(resp: falcon.asgi.Response, refused: Refused, least_seconds: int | None = None) -> None:
    """Sets Retry-After: the seconds that the refusal names, else up to twice the least ones, because those who are
    refused at the same time should not come back at the same time. Without either there is none.
    """
    wait = refused.metadata.get("retry_after_seconds")
    if wait is None and least_seconds is not None:
        wait = str(random.randint(least_seconds, 2 * least_seconds))  # noqa: S311  no secret
    if wait is not None:
        resp.set_header("Retry-After", wait)


class Refusals(ABC, Generic[R]):
    """The handlers; a subclass makes the answer, and may add handlers for exceptions of its own."""

    @abstractmethod
    def answer(self, req: R, resp: falcon.asgi.Response, refused: Refused) -> None:
        """Makes the answer to a request that is refused."""

    def add_to(self, app: falcon.asgi.App[Any, Any]) -> None:
        """Adds the handlers. Falcon uses the handler of the nearest class, so the order does not matter."""
        app.add_error_handler(Exception, self.on_unexpected)
        app.add_error_handler(falcon.HTTPError, self.on_falcons)
        app.add_error_handler(Refused, self.on_refused)
        app.add_error_handler(ClientGone, self.on_client_gone)

    async def on_refused(
        self, req: R, resp: falcon.asgi.Response, refused: Refused, params: object, **_: object
    ) -> None:
        self.answer(req, resp, refused)

    async def on_falcons(
        self, req: R, resp: falcon.asgi.Response, error: falcon.HTTPError, params: object, **_: object
    ) -> None:
        reason = _FALCONS.get(error.status_code)
        if reason is None:
            await self.on_unexpected(req, resp, error, params)
            return
        self.answer(req, resp, Refused(reason))
        resp.set_headers(error.headers or {})  # Allow

    async def on_unexpected(
        self, req: R, resp: falcon.asgi.Response, error: Exception, params: object, **_: object
    ) -> None:
        refused = unexpected()
        _log.error("request_failed", path=req.path, exc_info=error, **refused.metadata)
        self.answer(req, resp, refused)

    async def on_client_gone(
        self, req: R, resp: falcon.asgi.Response, gone: ClientGone, params: object, **_: object
    ) -> None:
        """Passes it on to `edge`: there is no client to answer."""
        raise gone

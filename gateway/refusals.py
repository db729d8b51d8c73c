"""Falcon's error handlers: every exception becomes the envelope, or, under /pay, a page.

Three exceptions are raised on purpose: `Refused` (here or by a service), `InvalidBody` and `InvalidFields`. Falcon
raises its own for unknown routes and methods. Any other exception is a bug: INTERNAL_ERROR, with an `error_id` that the
log has beside the traceback.
"""

from collections.abc import Mapping
from typing import Any, Final

import falcon
import falcon.asgi

from gateway.exchange import Request
from gateway.json.problems import (
    BODY_STATUS,
    FIELDS_STATUS,
    BodyFault,
    FieldFault,
    InvalidBody,
    InvalidFields,
    body_envelope,
    envelope,
    fields_envelope,
    problem_of,
)
from gateway.links import Links
from gateway.pay.refusal import refuse_page
from kit.observe.log import get_logger
from kit.rpc.errors import Refused, unexpected
from kit.web.bodies import ClientGone
from kit.web.protocol import Content
from kit.web.replies import encoded, reply

_log = get_logger()

# Falcon's own refusals; a status that is not here means an unexpected error.
_FALCONS: Final[Mapping[int, str]] = {
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "PAYLOAD_TOO_LARGE",
    414: "PAYLOAD_TOO_LARGE",
}


class Refusals:
    """The handlers; `links` makes the payment_link of an invoice that a refusal names."""

    def __init__(self, links: Links) -> None:
        self._links = links

    def add_to(self, app: falcon.asgi.App[Any, Any]) -> None:
        """Adds the handlers. Falcon uses the handler of the nearest class, so the order does not matter."""
        app.add_error_handler(Exception, self.on_unexpected)
        app.add_error_handler(falcon.HTTPError, self.on_falcons)
        app.add_error_handler(Refused, self.on_refused)
        app.add_error_handler(InvalidBody, self.on_invalid_body)
        app.add_error_handler(InvalidFields, self.on_invalid_fields)
        app.add_error_handler(ClientGone, self.on_client_gone)

    async def on_refused(
        self, req: Request, resp: falcon.asgi.Response, refused: Refused, params: object, **_: object
    ) -> None:
        if refused.reason == "VALIDATION_ERROR":
            await self._on_service_validation(req, resp, refused)
        else:
            self._answer(req, resp, refused)

    async def on_invalid_body(
        self, req: Request, resp: falcon.asgi.Response, invalid: InvalidBody, params: object, **_: object
    ) -> None:
        req.exchange.code = "VALIDATION_ERROR"
        reply(resp, body_envelope(invalid.faults, request_id=req.exchange.request_id), status=BODY_STATUS)

    async def on_invalid_fields(
        self, req: Request, resp: falcon.asgi.Response, invalid: InvalidFields, params: object, **_: object
    ) -> None:
        req.exchange.code = "VALIDATION_ERROR"
        reply(resp, fields_envelope(invalid.faults, request_id=req.exchange.request_id), status=FIELDS_STATUS)

    async def on_falcons(
        self, req: Request, resp: falcon.asgi.Response, error: falcon.HTTPError, params: object, **_: object
    ) -> None:
        reason = _FALCONS.get(error.status_code)
        if reason is None:
            await self.on_unexpected(req, resp, error, params)
            return
        self._answer(req, resp, Refused(reason))
        resp.set_headers(error.headers or {})  # Allow

    async def on_unexpected(
        self, req: Request, resp: falcon.asgi.Response, error: Exception, params: object, **_: object
    ) -> None:
        refused = unexpected()
        _log.error("request_failed", path=req.path, exc_info=error, **refused.metadata)
        self._answer(req, resp, refused)

    async def on_client_gone(
        self, req: Request, resp: falcon.asgi.Response, gone: ClientGone, params: object, **_: object
    ) -> None:
        """Passes it on to `edge`: there is no client to answer."""
        raise gone

    async def _on_service_validation(
        self, req: Request, resp: falcon.asgi.Response, refused: Refused
    ) -> None:
        """A service checks more than the gateway; `shape` selects one of the two shapes."""
        field = refused.metadata.get("field", "")
        if req.is_customers:
            self._answer(req, resp, refused)
        elif refused.metadata.get("shape") == "query" or (field and req.method == "GET"):
            await self.on_invalid_fields(req, resp, InvalidFields(FieldFault(field, refused.message)), {})
        else:
            loc = ("body", field) if field else ("body",)
            await self.on_invalid_body(
                req, resp, InvalidBody(BodyFault(loc, "value_error", refused.message)), {}
            )

    def _answer(self, req: Request, resp: falcon.asgi.Response, refused: Refused) -> None:
        problem = problem_of(refused.reason)
        metadata = dict(refused.metadata)
        req.exchange.code = refused.reason
        wait = metadata.get("retry_after_seconds") or problem.retry_after_seconds
        if req.is_customers:
            refuse_page(req, resp, refused, status=problem.status, prefix=self._links.prefix)
        else:
            if invoice_id := metadata.get("invoice_id"):
                metadata["payment_link"] = self._links.payment_link(invoice_id)
            request_id = req.exchange.request_id
            body = envelope(refused.reason, request_id=request_id, message=refused.message, metadata=metadata)
            reply(resp, body, status=problem.status)
        if wait is not None:
            resp.set_header("Retry-After", str(wait))


def broken_http(status: int, message: str, request_id: str) -> Content:
    """Returns the answer to bytes that are no HTTP request, which reach no resource."""
    if status in (413, 414, 431):
        problem = envelope(
            "PAYLOAD_TOO_LARGE", request_id=request_id, message="The request line or a header is too long"
        )
    elif status < 500 or status == 501:
        problem = body_envelope([BodyFault(("request",), "http_invalid", message)], request_id=request_id)
    else:
        problem = envelope("INTERNAL_ERROR", request_id=request_id, metadata={"error_id": request_id})
    return Content(falcon.MEDIA_JSON, encoded(problem))

"""Falcon's error handlers: every exception becomes the envelope, or, under /pay, a page.

Beside those of `kit.web.refusals`, two exceptions are raised on purpose: `InvalidBody` and `InvalidFields`.
"""

from typing import Any

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
from kit.rpc.errors import Refused
from kit.web import refusals
from kit.web.replies import reply


class Refusals(refusals.Refusals[Request]):
    """The handlers; `links` makes the payment_link of an invoice that a refusal names."""

    def __init__(self, links: Links, *, is_test: bool) -> None:
        self._links = links
        self._is_test = is_test

    def add_to(self, app: falcon.asgi.App[Any, Any]) -> None:
        super().add_to(app)
        app.add_error_handler(InvalidBody, self.on_invalid_body)
        app.add_error_handler(InvalidFields, self.on_invalid_fields)

    async def on_refused(
        self, req: Request, resp: falcon.asgi.Response, refused: Refused, params: object, **_: object
    ) -> None:
        if refused.reason == "VALIDATION_ERROR":
            await self._on_service_validation(req, resp, refused)
        else:
            self.answer(req, resp, refused)

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

    async def _on_service_validation(
        self, req: Request, resp: falcon.asgi.Response, refused: Refused
    ) -> None:
        """Answers a VALIDATION_ERROR of a service, which checks more than the gateway. `shape` selects one of the two
        shapes.
        """
        field = refused.metadata.get("field", "")
        if req.is_customers:
            self.answer(req, resp, refused)
        elif refused.metadata.get("shape") == "query" or (field and req.method == "GET"):
            await self.on_invalid_fields(req, resp, InvalidFields(FieldFault(field, refused.message)), {})
        else:
            loc = ("body", *field.split(".")) if field else ("body",)
            await self.on_invalid_body(
                req, resp, InvalidBody(BodyFault(loc, "value_error", refused.message)), {}
            )

    def answer(self, req: Request, resp: falcon.asgi.Response, refused: Refused) -> None:
        problem = problem_of(refused.reason)
        metadata = dict(refused.metadata)
        req.exchange.code = refused.reason
        if req.is_customers:
            prefix, is_test = self._links.prefix, self._is_test
            refuse_page(req, resp, refused, status=problem.status, prefix=prefix, is_test=is_test)
        else:
            if invoice_id := metadata.get("invoice_id"):
                metadata["payment_link"] = self._links.payment_link(invoice_id)
            request_id = req.exchange.request_id
            body = envelope(refused.reason, request_id=request_id, message=refused.message, metadata=metadata)
            reply(resp, body, status=problem.status)
        refusals.say_when(resp, refused, problem.retry_after_seconds)

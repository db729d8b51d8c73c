"""Falcon's middleware of every process: raises the refusal of `edge`, and records the route of a request."""

import falcon
import falcon.asgi

from kit.web.exchange import Request


class Middleware:
    """The first of an application's middleware."""

    async def process_request(self, req: Request, resp: falcon.asgi.Response) -> None:
        if req.exchange.refused is not None:
            raise req.exchange.refused
        if req.path.startswith("//"):
            raise falcon.HTTPNotFound  # Falcon ignores slashes before the first segment
        if req.method not in falcon.HTTP_METHODS:
            # Falcon answers an unknown method with a bare 400; TRACE, which no route has, gets 405 and Allow.
            req.method = "TRACE"

    async def process_resource(
        self, req: Request, resp: falcon.asgi.Response, resource: object, params: object
    ) -> None:
        req.exchange.route = req.uri_template or ""

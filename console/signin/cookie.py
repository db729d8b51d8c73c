"""The cookie with the token of a session."""

from typing import Final

import falcon.asgi

from console.exchange import Request
from console.surfaces import Surface

TOKEN_MAX_CHARACTERS: Final = 128


class SessionCookie:
    """One cookie for each surface: on localhost, ports share their cookies.

    With https its name begins with `__Host-`: browsers then take it from this host only, over TLS only, for all paths.
    """

    def __init__(self, surface: Surface, *, is_https: bool) -> None:
        self._is_https = is_https
        self.name = f"{'__Host-' if is_https else ''}fiatgate-{surface.name}"

    def of(self, req: Request) -> str:
        """Returns the token; empty when there is none, or it can't be one."""
        token = req.cookies.get(self.name, "")
        return token if len(token) <= TOKEN_MAX_CHARACTERS and token.isascii() else ""

    def set(self, resp: falcon.asgi.Response, token: str) -> None:
        """Stores the token until the browser is closed; accounts ends the session earlier."""
        resp.set_cookie(self.name, token, path="/", secure=self._is_https, http_only=True, same_site="Lax")

    def clear(self, resp: falcon.asgi.Response) -> None:
        """Removes the cookie. Not by `unset_cookie`: browsers ignore a `__Host-` cookie without Secure."""
        resp.set_cookie(
            self.name, "", max_age=0, path="/", secure=self._is_https, http_only=True, same_site="Lax"
        )

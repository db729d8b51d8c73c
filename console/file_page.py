"""The base of every page with a file: all rows of its table as CSV, however many there are."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import ClassVar, Final

import falcon.asgi

from console.exchange import Request
from console.page import App, Page
from console.ui.csv import csv_line
from console.ui.pages import exports, require_exporter
from console.ui.values import queried
from fiatgate.accounts.v1 import accounts_pb2
from kit.base.clock import monotonic_seconds
from kit.rpc.actors import carry_token

TOKEN_SECONDS: Final = 30.0
"""Age at which a file that is being sent takes a new token; services take none older than a minute."""

Lines = Sequence[Sequence[str]]


class FilePage(Page):
    """A page whose table is also a file, without a bound on its rows. A file that arrived is complete: when a service
    does not answer, or the session ends, it is refused or breaks off.

    columns   the head of the CSV
    csv_name  the name of the file; empty: the page has none
    """

    columns: ClassVar[Sequence[str]] = ()
    csv_name: ClassVar[str] = ""

    def lines(self, req: Request, **params: str) -> AsyncGenerator[Lines]:
        """Yields the lines of the file, those of one call at a time. Raises the refusal of a service that is away.

        params  the fields of the path
        """
        raise NotImplementedError

    def add_to(self, app: App, path: str) -> None:
        """Adds the addresses of the page and of its file."""
        app.add_route(path, self)
        if self.csv_name:
            app.add_route(f"{path}.csv", self, suffix="csv")

    def file_name(self, req: Request) -> str:
        """Returns the name under which the file is saved; its filters were checked."""
        return self.csv_name

    def file(self, req: Request, **query: str) -> str:
        """Returns the address of the page's file; empty for people who get none."""
        return queried(f"{req.path}.csv", query) if exports(req) else ""

    async def on_get_csv(self, req: Request, resp: falcon.asgi.Response, **params: str) -> None:
        """Sends the file. A refusal of its first call is a page. Raises RATE_LIMITED for too many files at once."""
        require_exporter(req, self.deps.pages.opened_by(self.link))
        lines = self._in_turns(req, self.lines(req, **params))
        first = await anext(lines, None) or ()  # not anext(lines, ()): an empty tuple fails in CPython 3.11
        resp.content_type = "text/csv; charset=utf-8"
        resp.set_headers(
            {
                "Content-Disposition": f'attachment; filename="{self.file_name(req)}.csv"',
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
            }
        )
        resp.stream = self._bytes(first, lines)

    async def _bytes(self, first: Lines, others: AsyncGenerator[Lines]) -> AsyncIterator[bytes]:
        yield csv_line(self.columns) + _text(first)
        async with aclosing(others):
            async for lines in others:
                yield _text(lines)

    async def _in_turns(self, req: Request, lines: AsyncGenerator[Lines]) -> AsyncGenerator[Lines]:
        """Yields the lines, and waits for a turn before each call."""
        files, person = self.deps.files, req.exchange.signed_in.person.person_id
        token_seconds = monotonic_seconds()
        with files.sending(person):
            async with aclosing(lines):
                while True:
                    async with files.call(person):
                        if monotonic_seconds() - token_seconds > TOKEN_SECONDS:
                            await self._renew(req)
                            token_seconds = monotonic_seconds()
                        part = await anext(lines, None)
                    if part is None:
                        return
                    yield part

    async def _renew(self, req: Request) -> None:
        """Takes a new token. Raises SESSION_INVALID when the session has ended meanwhile."""
        request = accounts_pb2.AuthorizeRequest(
            session_token=req.exchange.session_token, surface=self.deps.surface.kind, client=req.client
        )
        carry_token((await self.deps.signin.Authorize(request)).actor_token)


def _text(lines: Lines) -> bytes:
    return b"".join(map(csv_line, lines))

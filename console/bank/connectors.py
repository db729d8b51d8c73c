"""Connectors of banks: which programs post lines, and when each was heard last. An admin makes and revokes keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import falcon.asgi

from console.exchange import Request
from console.page import Page, leave_for
from fiatgate.bank.v1 import feed_pb2 as pb
from kit.rpc.errors import Refused, invalid

NAME_MOST: Final = 65
"""More than bank takes, as that of the accounts: its refusal names the bound."""
ACCOUNTS_MOST: Final = 10_000
MADE_MEANWHILE: Final = (
    "No key was made now: since this form was opened, one was made, and it is in the list. If it is yours and you have "
    "not copied it, revoke it and make another one."
)
FIELDS: Final = ("name", "accounts", "silence_minutes")


class ConnectorsPage(Page):
    """/bank/connectors: active ones first, with a form. The answer to the form shows the key: no address has it."""

    link = "/bank"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self._show(req, resp)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        name, minutes = form.line("name", most=NAME_MOST), form.line("silence_minutes", most=5)
        accounts = form.prose("accounts", most=ACCOUNTS_MOST)
        try:
            if minutes and not (minutes.isascii() and minutes.isdigit()):
                raise invalid("VALIDATION_ERROR", "Expected whole minutes", field="silence_seconds")
            request = pb.CreateConnectorRequest(
                name=name,
                silence_seconds=60 * int(minutes or 0),
                newest_connector_id=form.line("newest", most=64),
            )
            for each in filter(str.strip, accounts.splitlines()):
                number, _, currency = each.replace(":", " ").strip().rpartition(" ")
                request.accounts.add(account=number, currency_code=currency)
            made = await self.deps.feed.CreateConnector(request)
        except Refused as refused:
            if refused.reason not in ("VALIDATION_ERROR", "EDIT_CONFLICT"):
                raise
            given = dict(zip(FIELDS, (name, accounts, minutes), strict=True))
            await self._show(req, resp, refused=refused, given=given)
        else:
            await self._show(req, resp, key=made.key)

    async def on_post_revoke(self, req: Request, resp: falcon.asgi.Response, connector_id: str) -> None:
        await self.form(req)
        await self.deps.feed.RevokeConnector(pb.RevokeConnectorRequest(connector_id=connector_id))
        leave_for(resp, "/bank/connectors", notice="key-revoked")

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        *,
        refused: Refused | None = None,
        given: Mapping[str, str] = dict.fromkeys(FIELDS, ""),
        key: str = "",
    ) -> None:
        found = (await self.deps.feed.ListConnectors(pb.ListConnectorsRequest())).connectors
        values: dict[str, Any] = {"connectors": found, "given": given, "key": key}
        if refused is not None and refused.reason == "EDIT_CONFLICT":
            values |= {"problem": MADE_MEANWHILE, "errors": {}}
        made = [(each.created_at.ToNanoseconds(), each.connector_id) for each in found]
        values["newest"] = max(made, default=(0, ""))[1]
        self.show(req, resp, "bank-connectors", refused=refused, **values)

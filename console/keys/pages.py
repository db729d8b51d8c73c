"""The API keys of a merchant: a new one with its secret is shown once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from typing import Any, ClassVar, Final

import falcon.asgi

from console.exchange import Request
from console.file_page import FilePage, Lines
from console.ui.values import iso
from console.words.keys import idle_words, is_in_use
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.base.clock import SystemClock
from kit.rpc.errors import Refused, invalid

NAME_MAX_CHARACTERS: Final = 256
"""More than merchants takes: its refusal names the bound."""


MENDABLE: Final = frozenset(
    {
        *("VALIDATION_ERROR", "EDIT_CONFLICT", "API_KEY_NOT_FOUND", "API_KEYS_LIMITED"),
        *("MERCHANT_BLOCKED", "OWNER_BLOCKED"),
    }
)
SCOPES: Final = {
    "read": "all that the API lists and shows",
    "invoices:write": "create and cancel invoices",
    "refunds:write": "refund payments, to any account",
    "webhooks:write": "send webhooks again",
}
"""The rights of a key's programs, with their meaning. A key without a choice has them all."""
_CLOCK: Final = SystemClock()
MADE_MEANWHILE: Final = (
    "No key was made now: since this form was opened, one was made, and it is in the list. If it is yours and you have "
    "not copied it, deactivate it and make another one."
)


class KeysPage(FilePage):
    """/keys at the dashboard: those of the session's merchant, active ones first.

    base   address of the page, with the merchant's id where it is in the address
    frame  the template around the table: at the desk the keys are a part of the merchant's pages
    """

    link = "/keys"
    base: ClassVar[str] = "/keys"
    frame: ClassVar[str] = "keys-page"
    csv_name = "keys"
    columns = (
        *("key_id", "name", "begins_with", "state", "created_at", "deactivated_at"),
        *("last_used_at", "replaced_by_key_id", "scopes"),
    )

    async def on_get(self, req: Request, resp: falcon.asgi.Response, merchant_id: str = "") -> None:
        await self._show(req, resp, merchant_id)

    on_head = on_get

    async def lines(self, req: Request, **params: str) -> AsyncGenerator[Lines]:
        yield [
            (
                *(key.key_id, key.name, key.hint, "active" if key.active else "deactivated"),
                *(iso(key.created_at), iso(key.deactivated_at), iso(key.last_used_at)),
                *(key.replaced_by_key_id, ", ".join(key.scopes or SCOPES)),
            )
            for key in await self._keys(self._merchant_id(req, params.get("merchant_id", "")))
        ]

    def _merchant_id(self, req: Request, of_path: str) -> str:
        """Returns the merchant of the session, or of the address."""
        return req.exchange.signed_in.merchant_id or of_path

    async def _merchant(self, merchant_id: str) -> pb.Merchant:
        """Returns the merchant. Raises MERCHANT_NOT_FOUND."""
        request = pb.GetMerchantRequest(merchant_id=merchant_id)
        return (await self.deps.merchants.GetMerchant(request)).merchant

    async def _keys(self, merchant_id: str) -> Sequence[pb.ApiKey]:
        """Returns the keys, active ones first."""
        return (await self.deps.merchants.ListApiKeys(pb.ListApiKeysRequest(merchant_id=merchant_id))).keys

    async def on_post(self, req: Request, resp: falcon.asgi.Response, merchant_id: str = "") -> None:
        """Makes a key. The answer to the form itself shows key and secret: no address has them.

        The form names the newest key that it was made beside, so a reload of the answer makes no second key.
        """
        await self._make(req, resp, merchant_id)

    async def on_post_rotate(
        self, req: Request, resp: falcon.asgi.Response, key_id: str, merchant_id: str = ""
    ) -> None:
        """Makes a key that is to replace this one, which works on."""
        await self._make(req, resp, merchant_id, replaces=key_id)

    async def _make(
        self, req: Request, resp: falcon.asgi.Response, merchant_id: str, *, replaces: str = ""
    ) -> None:
        merchant_id = self._merchant_id(req, merchant_id)
        form = await self.form(req)
        name = form.line("name", most=NAME_MAX_CHARACTERS)
        newest = form.line("newest_key_id", most=64)
        scopes = [each for each in SCOPES if form.text(f"scope:{each}")]
        request = pb.CreateApiKeyRequest(
            merchant_id=merchant_id, name=name, newest_key_id=newest, scopes=scopes
        )
        if not (replaces or scopes):
            refused = invalid("VALIDATION_ERROR", "Tick what its programs may do", field="scopes")
            await self._show(req, resp, merchant_id, refused=refused, name=name, scopes=scopes)
            return
        if replaces:
            request.replaces_key_id = replaces
        try:
            made = await self.deps.merchants.CreateApiKey(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            kept = SCOPES if replaces else scopes
            await self._show(
                req, resp, merchant_id, refused=refused, name="" if replaces else name, scopes=kept
            )
            return
        merchant = await self._merchant(merchant_id)
        self.show(
            req,
            resp,
            "keys-made",
            frame=self.frame,
            path=self.base.format(merchant_id=merchant_id),
            merchant=merchant,
            made=made,
            name=name,
            replaces=bool(replaces),
        )

    async def on_post_deactivate(
        self, req: Request, resp: falcon.asgi.Response, key_id: str, merchant_id: str = ""
    ) -> None:
        """Deactivates a key; one that is in use, only after a second question."""
        form = await self.form(req)
        if not form.text("although_used"):
            keys = await self._keys(self._merchant_id(req, merchant_id))
            used = next((key for key in keys if key.key_id == key_id and key.active), None)
            if used is not None and is_in_use(used, _CLOCK.now()):
                await self._show(req, resp, merchant_id, used=used)
                return
        request = pb.DeactivateApiKeyRequest(key_id=key_id)
        path = self.base.format(merchant_id=merchant_id)
        change = self.deps.merchants.DeactivateApiKey(request)
        await self.leave_after(resp, change, path, notice="key-deactivated", mendable=("API_KEY_NOT_FOUND",))

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        merchant_id: str,
        *,
        refused: Refused | None = None,
        name: str = "",
        scopes: Collection[str] = SCOPES,
        used: pb.ApiKey | None = None,
    ) -> None:
        """Shows the keys; `used` is one that is asked about again before it is deactivated."""
        merchant_id = self._merchant_id(req, merchant_id)
        merchant = await self._merchant(merchant_id)
        keys = await self._keys(merchant_id)
        values: dict[str, Any] = {}
        if refused is not None and refused.reason == "EDIT_CONFLICT":
            values = {"problem": MADE_MEANWHILE, "errors": {}}
        self.show(
            req,
            resp,
            "keys",
            frame=self.frame,
            path=self.base.format(merchant_id=merchant_id),
            merchant=merchant,
            refused=refused,
            keys=keys,
            active=sum(key.active for key in keys),
            name=name,
            scopes=SCOPES,
            ticked=scopes,
            used=used,
            idle={key.key_id: idle_words(key, _CLOCK.now()) for key in keys},
            newest=max((key.key_id for key in keys), default=""),
            csv=self.file(req),
            **values,
        )


class DeskKeysPage(KeysPage):
    """/merchants/{merchant_id}/keys at the desk."""

    link = "/merchants"
    base = "/merchants/{merchant_id}/keys"
    frame = "merchant-page"

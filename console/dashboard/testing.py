"""A test event: sent to an address of the merchant, with what came back."""

from __future__ import annotations

from typing import Any, Final

import falcon.asgi

from console.exchange import Request
from console.page import Page
from console.ui.pages import only_for
from console.ui.values import number_of
from console.wiring import Deps
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.webhooks.v1 import webhooks_pb2 as pb
from kit.rpc.errors import Refused, not_found
from kit.rpc.limits import OUTWARD_CALL_SECONDS
from kit.web.exchange import allow

REFUSALS: Final = {
    "WEBHOOK_NOT_FOUND": "There is no default address to send to. Set one, or open a webhook and test its address.",
    "API_KEY_NOT_FOUND": "There is no active API key, whose secret would sign it. Make a key first.",
    "WEBHOOK_RESEND_COOLDOWN": "A test was sent a moment ago. The next one can be sent in {seconds} s.",
    "RATE_LIMITED": "Two requests to your server are under way. Wait for their end.",
}
SENDERS: Final = frozenset({"owner", "developer"})


class SendTestPage(Page):
    """/webhooks/test: the address, and after the POST what came back."""

    link = "/webhooks"

    def __init__(self, deps: Deps, *, public_url: str) -> None:
        super().__init__(deps)
        self._guide = f"{public_url}/docs/guide"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, SENDERS)
        await self._show(req, resp, req.get_param("event") or "")

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        event, wrong = form.text("event"), form.text("signature") == "wrong"
        own = req.exchange.signed_in.merchant_id
        request = pb.SendTestRequest(merchant_id=own, event_id=_number_of(event), wrong_signature=wrong)
        allow(OUTWARD_CALL_SECONDS)
        try:
            tested = await self.deps.webhooks.SendTest(request, timeout=OUTWARD_CALL_SECONDS)
        except Refused as refused:
            if refused.reason not in REFUSALS:
                raise
            wait = int(refused.metadata.get("retry_after_seconds", "0"))
            problem = REFUSALS[refused.reason].format(seconds=wait)
            await self._show(req, resp, event, status=422, problem=problem, wait_seconds=wait)
        else:
            body, wait = tested.request_body.decode(), tested.cooldown_seconds
            await self._show(req, resp, event, tested=tested, body=body, wait_seconds=wait, wrong=wrong)

    async def _show(self, req: Request, resp: falcon.asgi.Response, event: str, **values: Any) -> None:
        url = await self._url_of(req, event)
        without: dict[str, Any] = {"tested": None, "body": "", "wait_seconds": 0, "wrong": False}
        self.show(req, resp, "dashboard-test", url=url, event=event, guide=self._guide, **without | values)

    async def _url_of(self, req: Request, event: str) -> str:
        """Returns the address of an event of the merchant, or the merchant's default one; empty: it has none."""
        if event:
            wanted = pb.GetEventRequest(event_id=_number_of(event))
            return (await self.deps.webhooks.GetEvent(wanted)).event.callback_url
        request = merchants_pb2.GetMerchantRequest(merchant_id=req.exchange.signed_in.merchant_id)
        return (await self.deps.merchants.GetMerchant(request)).merchant.callback_url


def _number_of(text: str) -> int:
    """Returns the number of an event, 0 for none. Raises NOT_FOUND for a text that is no number."""
    number = number_of(text)
    if text and not number:
        raise not_found("NOT_FOUND", "There is no such webhook")
    return number

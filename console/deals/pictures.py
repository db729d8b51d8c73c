"""The pictures that customers sent, each at an address of its own: nothing in one can do anything."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import falcon.asgi

from console.exchange import Request
from console.page import Page
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.pictures import NoPicture, Picture, cleaned
from kit.rpc.errors import not_found

KINDS: Final[Mapping[str, pb.ProofKind.ValueType]] = {
    "appeal": pb.PROOF_KIND_APPEAL,
    "case": pb.PROOF_KIND_CASE,
}
PIXELS_MOST: Final = 64 * 1024 * 1024
"""The most pixels of a picture, as invoices accepts them: the operator's browser has to decode it."""
_HEADERS: Final = (
    ("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Referrer-Policy", "same-origin"),
    ("Content-Disposition", "inline"),
    ("Cache-Control", "no-store"),
)


class PicturePage(Page):
    """/deals/{deal_id}/pictures/{appeal|case}: the picture alone."""

    link = "/deals"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, deal_id: str, kind: str) -> None:
        if kind not in KINDS:
            raise not_found("PROOF_NOT_FOUND", "There are no such pictures")
        answer = await self.deps.deals.GetProof(pb.GetProofRequest(deal_id=deal_id, kind=KINDS[kind]))
        picture = await asyncio.to_thread(_checked, answer.content)
        resp.content_type, resp.data = picture.content_type, picture.content
        resp.set_headers(_HEADERS)


def _checked(content: bytes) -> Picture:
    """Returns the picture once more without anything but its pixels, with the type that its own bytes have: a row that
    was written past the service may hold anything.
    """
    try:
        return cleaned(content, most_bytes=len(content), most_pixels=PIXELS_MOST)
    except NoPicture:
        raise not_found("PROOF_NOT_FOUND", "The stored bytes are no picture") from None

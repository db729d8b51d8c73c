"""Pictures that services keep: the most that a form sends, and the answer with one."""

from typing import Final

import falcon.asgi

from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.merchants.v1 import merchants_pb2
from kit.rpc.errors import not_found
from kit.web.files import keep_for_ever

FILE_MAX_BYTES: Final = 192 * 1024
"""More than services take: their refusal names the bound, and advises."""
_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/webp"})


def answer_logo(
    resp: falcon.asgi.Response, found: merchants_pb2.GetLogoResponse | catalog_pb2.GetLogoResponse
) -> None:
    """Answers with a picture whose address is the digest of its content. Raises NOT_FOUND for another content."""
    if found.content_type not in _TYPES:
        raise not_found("NOT_FOUND", "There is no such logo")
    resp.content_type, resp.data = found.content_type, found.content
    keep_for_ever(resp)
    resp.set_headers(
        {
            "Cache-Control": "private, max-age=31536000, immutable",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
    )

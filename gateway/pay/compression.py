"""Texts travel compressed: it takes a twentieth of the time of writing a page, and leaves a third of the bytes.

No text that a stranger can choose stands in a page beside a secret, so the length of a page reveals nothing.
"""

import gzip
from functools import lru_cache
from typing import Final

import falcon

from gateway.exchange import Request

QUICK: Final = 1  # levels of zlib: for what is written anew each time
SMALL: Final = 9  # and for what is compressed once


def answer_text(req: Request, resp: falcon.Response, content: bytes, *, gzipped: bytes | None = None) -> None:
    """Sends it as the client can take it; `gzipped` is the same when it's at hand."""
    resp.set_header("Vary", "Accept-Encoding")
    if takes_gzip(req.get_header("Accept-Encoding") or ""):
        resp.set_header("Content-Encoding", "gzip")
        content = gzip.compress(content, QUICK, mtime=0) if gzipped is None else gzipped
    resp.data = content


@lru_cache(maxsize=64)  # browsers send few different ones
def takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header (RFC 9110, 12.5.3) names gzip, and not as what must not come."""
    for each in accepted.lower().split(","):
        coding, _, parameter = each.partition(";")
        if coding.strip() == "gzip":
            quality = parameter.strip().removeprefix("q=")
            return not quality or quality.strip("0.") != ""
    return False

"""The files that the page loads: stylesheet, scripts, the merchant's colour. Each address changes with its content, so
browsers keep the files for ever.
"""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import falcon.asgi

from gateway.http.exchange import Request
from gateway.pay.brand import stylesheet
from gateway.pay.compression import SMALL, answer_text
from kit.rpc.errors import not_found

STATIC: Final = Path(__file__).parent / "static"

_MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class File:
    content_type: str
    content: bytes
    gzipped: bytes


@cache
def static_files() -> tuple[str, Mapping[str, File]]:
    """A version that changes when any of the files does, and the files by name.

    The version is a folder in their addresses, so that modules can import each other by name, and browsers may keep
    all of them for ever.
    """
    files: dict[str, File] = {}
    digest = hashlib.sha256()
    for path in sorted(STATIC.iterdir()):
        if path.suffix in _MEDIA_TYPES:
            content = path.read_bytes()
            digest.update(f"{path.name} {len(content)} ".encode() + content)
            files[path.name] = File(
                _MEDIA_TYPES[path.suffix], content, gzip.compress(content, SMALL, mtime=0)
            )
    return digest.hexdigest()[:12], files


class StaticResource:
    """GET /pay-static/{version}/{name}"""

    async def on_get(self, req: Request, resp: falcon.asgi.Response, version: str, name: str) -> None:
        known, files = static_files()
        if version != known or name not in files:
            raise not_found("NOT_FOUND", "No such file")
        _answer(req, resp, files[name])
        keep_for_ever(resp)


class BrandResource:
    """GET /pay-brand/{name}: the stylesheet of the colour in its name."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response, name: str) -> None:
        content = stylesheet(name)
        if content is None:
            raise not_found("NOT_FOUND", "No such file")
        resp.content_type, resp.data = _MEDIA_TYPES[".css"], content
        keep_for_ever(resp)


class ModalResource:
    """GET /pay-modal.js: the script with which a merchant shows the page above its own; see the file."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        _answer(req, resp, static_files()[1]["modal.js"])
        resp.set_header("Cache-Control", "public, max-age=3600")
        resp.set_header("X-Content-Type-Options", "nosniff")
        resp.set_header("Cross-Origin-Resource-Policy", "cross-origin")
        resp.set_header("Access-Control-Allow-Origin", "*")


def keep_for_ever(resp: falcon.asgi.Response) -> None:
    resp.set_header("Cache-Control", "public, max-age=31536000, immutable")
    resp.set_header("X-Content-Type-Options", "nosniff")


def _answer(req: Request, resp: falcon.asgi.Response, file: File) -> None:
    resp.content_type = file.content_type
    answer_text(req, resp, file.content, gzipped=file.gzipped)

"""The files that pages load: stylesheets, scripts, pictures. Each address changes with its content, so browsers keep
the files for ever.
"""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import falcon.asgi

from kit.rpc.errors import not_found
from kit.web.compression import SMALL, answer_text
from kit.web.exchange import Request

MEDIA_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class File:
    media_type: str
    content: bytes
    gzipped: bytes

    def answer(self, req: Request, resp: falcon.asgi.Response) -> None:
        resp.content_type = self.media_type
        answer_text(req, resp, self.content, gzipped=self.gzipped)


class Files:
    """The files of one folder, by name, and a version that changes when any of them does.

    The version is a folder in their addresses, so that modules can import each other by name, and browsers may keep
    all of them for ever.
    """

    def __init__(self, folder: Path) -> None:
        self.by_name: dict[str, File] = {}
        digest = hashlib.sha256()
        for path in sorted(folder.iterdir()):
            if path.suffix in MEDIA_TYPES:
                content = path.read_bytes()
                digest.update(f"{path.name} {len(content)} ".encode() + content)
                compressed = gzip.compress(content, SMALL, mtime=0)
                self.by_name[path.name] = File(MEDIA_TYPES[path.suffix], content, compressed)
        self.version = digest.hexdigest()[:12]


class FilesResource:
    """GET …/{version}/{name}"""

    def __init__(self, files: Files) -> None:
        self._files = files

    async def on_get(self, req: Request, resp: falcon.asgi.Response, version: str, name: str) -> None:
        file = self._files.by_name.get(name)
        if version != self._files.version or file is None:
            raise not_found("NOT_FOUND", "No such file")
        file.answer(req, resp)
        keep_for_ever(resp)


def keep_for_ever(resp: falcon.asgi.Response) -> None:
    """Lets browsers and proxies keep the answer: its address changes with its content."""
    resp.set_header("Cache-Control", "public, max-age=31536000, immutable")
    resp.set_header("X-Content-Type-Options", "nosniff")

"""The first visit of each page: all bytes of the page and of what it loads, compressed as they travel."""

import gzip
import re
from collections.abc import Iterator
from typing import Final

import pytest

from console.page import Page
from tests.console.conftest import Staff
from tests.console.house import HTTP_SECONDS, House, Person, new_email
from tests.console.routes import SETTINGS, WITHOUT_SESSION, routes_of

MOST_BYTES: Final = 80_000
LOADED: Final = re.compile(r'(?:src|href)="(/static/[^"]+)"').findall
IMPORTED: Final = re.compile(r'(?:from|import)\s*"\./([\w.-]+)"').findall


class Loads:
    """A browser that keeps nothing. Files are alike for all pages, so each is measured once."""

    def __init__(self, person: Person) -> None:
        self._person = person
        self._files: dict[str, tuple[int, str]] = {}

    def bytes_of(self, path: str) -> int:
        """The bytes of a page, its stylesheets, pictures and scripts, and of what these import; 0 for no page."""
        size, text = self._get(path)
        if not text.startswith("<!doctype html>"):  # an answer to a script
            return 0
        waiting, loaded = LOADED(text), set()
        while waiting:
            address = waiting.pop()
            if address not in loaded:
                loaded.add(address)
                if address not in self._files:
                    self._files[address] = self._get(address)
                size += self._files[address][0]
                folder = address.rpartition("/")[0]
                waiting += [f"{folder}/{name}" for name in IMPORTED(self._files[address][1])]
        assert len(loaded) >= 2, f"{path} loads nothing"
        return size

    def _get(self, path: str) -> tuple[int, str]:
        headers = {"Accept-Encoding": "gzip"}
        with self._person.http.get(
            self._person.url + path, headers=headers, stream=True, timeout=HTTP_SECONDS
        ) as answer:
            assert answer.status_code == 200, path
            body = answer.raw.read(decode_content=False)
            head = sum(len(name) + len(value) + 4 for name, value in answer.headers.items())
            packed = answer.headers.get("Content-Encoding") == "gzip"
        return head + len(body), (gzip.decompress(body) if packed else body).decode()


def addresses(surface: str) -> Iterator[str]:
    """The pages without a field in their address."""
    for method, path, resource in routes_of(surface):
        is_page = isinstance(resource, Page) and path not in WITHOUT_SESSION
        if method == "GET" and is_page and "{" not in path and not path.endswith(".csv"):
            yield path


@pytest.mark.parametrize("surface", SETTINGS)
def test_the_first_load_of_each_page_is_small(house: House, staff: Staff, surface: str) -> None:
    if surface == "desk":
        person = staff("admin")
    else:
        shop = house.stack.cli("merchants", "create", "Lamp shop", "--owner", new_email(), "--active")
        person = house.person("owner", merchant=shop["merchant_id"])
    loads = Loads(person)
    elsewhere = {"/account/totp/confirm", "/account/recovery-codes", "/step-up", "/live", "/refunds/new"}
    sizes = {path: loads.bytes_of(path) for path in sorted({*addresses(surface)} - elsewhere)}
    assert {path: size for path, size in sizes.items() if size >= MOST_BYTES} == {}
    assert sizes["/"] and sizes["/audit"]

"""Cleaned pictures in a browser, as an operator sees them: whole, and the right way up."""

from __future__ import annotations

import base64

import pytest

from kit.base.pictures import cleaned
from tests.gateway.pay.conftest import Open
from tests.support.pictures import JPEG, PNG, WEBP, photo, png, webp_photo

SIZE = """async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    return [image.naturalWidth, image.naturalHeight];
}"""


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (JPEG, [4, 2]),
        (PNG, [4, 2]),
        (WEBP, [4, 2]),
        (photo(), [2, 4]),
        (photo(order=">"), [2, 4]),
        (photo(3), [4, 2]),
        (webp_photo(), [4, 2]),  # Chromium turns JPEG only
        (png(4, 2, (b"tEXt", b"where\0here")), [4, 2]),
    ],
    ids=["jpeg", "png", "webp", "sideways", "big endian", "upside down", "webp photo", "png with text"],
)
def test_what_is_left_of_a_picture_can_be_seen(open_page: Open, content: bytes, size: list[int]) -> None:
    picture = cleaned(content, most_bytes=10_000, most_pixels=100)
    page = open_page()
    page.goto("about:blank")
    data = base64.b64encode(picture.content).decode()
    assert page.evaluate(SIZE, f"data:{picture.content_type};base64,{data}") == size

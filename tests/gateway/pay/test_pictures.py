"""Cleaned pictures in a browser, as an operator sees them: whole, and the right way up."""

import base64

from playwright.sync_api import Page

from kit.base.pictures import cleaned
from tests.support.pictures import JPEG, PNG, WEBP, photo, png, webp_photo

SIZE = """async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    return [image.naturalWidth, image.naturalHeight];
}"""


PICTURES = {
    "jpeg": (JPEG, [4, 2]),
    "png": (PNG, [4, 2]),
    "webp": (WEBP, [4, 2]),
    "sideways": (photo(), [2, 4]),
    "big endian": (photo(order=">"), [2, 4]),
    "upside down": (photo(3), [4, 2]),
    "webp photo": (webp_photo(), [4, 2]),  # Chromium turns JPEG only
    "png with text": (png(4, 2, (b"tEXt", b"where\0here")), [4, 2]),
}


def test_what_is_left_of_a_picture_can_be_seen(page: Page) -> None:
    page.goto("about:blank")
    for name, (content, size) in PICTURES.items():
        picture = cleaned(content, most_bytes=10_000, most_pixels=100)
        data = base64.b64encode(picture.content).decode()
        assert page.evaluate(SIZE, f"data:{picture.content_type};base64,{data}") == size, name

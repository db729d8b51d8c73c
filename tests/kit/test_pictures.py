"""Pictures without their secrets, and what is none."""

import struct
import sys
import zlib
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.base import pictures
from kit.base.pictures import MOST_FILL_BYTES, MOST_PARTS, NoPicture, Picture, cleaned
from tests.support.pictures import JPEG, PLACE, PNG, SIDEWAYS, WEBP, exif, photo, png, webp_photo

PNG_PHOTO = png(
    4, 2, (b"eXIf", exif()), (b"tEXt", b"where\0" + PLACE), (b"acTL", bytes(8)), (b"pHYs", bytes(9))
)
PHOTOS = {"jpeg": photo(), "big endian": photo(order=">"), "png": PNG_PHOTO, "webp": webp_photo()}


def clean(content: bytes, most_pixels: int = 1_000_000, most_bytes: int = 1_000_000) -> Picture:
    return cleaned(content, most_bytes=most_bytes, most_pixels=most_pixels)


@pytest.mark.parametrize("content", [JPEG, PNG, WEBP])
def test_a_picture_without_secrets_stays_as_it_is(content: bytes) -> None:
    picture = clean(content)
    assert (picture.content, picture.width, picture.height) == (content, 4, 2)


@pytest.mark.parametrize("content", PHOTOS.values(), ids=PHOTOS)
def test_place_and_device_go_and_the_orientation_stays(content: bytes) -> None:
    assert PLACE in content
    picture = clean(content)
    assert PLACE not in picture.content
    assert struct.pack(">HHIH", 0x0112, 3, 1, SIDEWAYS) in picture.content
    assert len(picture.content) < len({"jpeg": JPEG, "png": PNG, "webp": WEBP}[picture.content_type[6:]]) + 60


@pytest.mark.parametrize("content", PHOTOS.values(), ids=PHOTOS)
def test_cleaning_again_changes_nothing(content: bytes) -> None:
    assert clean(clean(content).content) == clean(content)


@pytest.mark.parametrize("orientation", [0, 1, 9, 65535])
def test_an_orientation_that_says_nothing_is_dropped(orientation: int) -> None:
    assert clean(photo(orientation)).content == JPEG


@pytest.mark.parametrize("broken", [b"", b"II*\0", exif()[:20], b"XX" + exif()[2:], exif()[:8] + b"\xff\xff"])
def test_exif_that_cannot_be_read_is_dropped(broken: bytes) -> None:
    assert clean(png(4, 2, (b"eXIf", broken))).content == PNG


def test_a_second_scan_and_restarts_stay_within_the_picture() -> None:
    scan = JPEG.index(b"\xff\xda")
    twice = JPEG[:-2] + b"\xff\xd0\x12\xff\x00" + JPEG[scan:]
    assert clean(twice).content == twice


def test_a_jpeg_that_was_cut_off_gets_its_end() -> None:
    assert clean(JPEG[:-2]).content == JPEG


def test_how_the_colours_are_meant_stays_and_nothing_behind_it() -> None:
    adobe = b"Adobe" + struct.pack(">HHHB", 100, 0, 0, 1)

    def with_adobe(said: bytes) -> bytes:
        return JPEG[:2] + b"\xff\xee" + struct.pack(">H", len(said) + 2) + said + JPEG[2:]

    picture = clean(with_adobe(adobe + PLACE))
    assert adobe in picture.content
    assert picture == clean(with_adobe(adobe))


def test_a_preview_within_a_jpeg_is_dropped() -> None:
    preview = JPEG.replace(b"\x00\x10JFIF", b"\x00\x13JFIF").replace(
        b"\x00\x00\xff\xdb", b"\x01\x01abc\xff\xdb", 1
    )
    assert b"abc" in preview
    assert b"abc" not in clean(preview).content


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GIF89a",
        b"%PDF-1.7",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"\xff\xd8\xff",
        b"\xff\xd8\xff\xd9",
        JPEG[:100],
        JPEG[:20] + JPEG[21:],
        PNG[:8],
        PNG[:-12],
        PNG[:20] + b"\xff" + PNG[21:],
        PNG[:8] + PNG[33:],
        WEBP[:12],
        WEBP[:40],
        WEBP[:20] + b"\x02" + WEBP[21:],
        b"RIFF\x04\0\0\0WAVE",
    ],
)
def test_what_is_none_or_broken_is_refused(content: bytes) -> None:
    with pytest.raises(NoPicture):
        clean(content)


@pytest.mark.parametrize("content", [JPEG, PNG, WEBP])
def test_pixels_are_bounded_by_what_the_picture_says(content: bytes) -> None:
    assert clean(content, most_pixels=8)
    with pytest.raises(NoPicture, match="at most 7 pixels"):
        clean(content, most_pixels=7)


@pytest.mark.parametrize("content", [*PHOTOS.values(), JPEG[:-2]], ids=[*PHOTOS, "cut off"])
def test_bytes_are_bounded_as_they_are_kept(content: bytes) -> None:
    """What was dropped doesn't count, and what was added does."""
    kept = len(clean(content).content)
    assert clean(content, most_bytes=kept)
    with pytest.raises(NoPicture, match=f"at most {kept - 1} bytes, it has {kept}"):
        clean(content, most_bytes=kept - 1)


def test_a_picture_of_countless_empty_parts_is_refused() -> None:
    empty = b"\xff\xfe\x00\x02"
    assert clean(JPEG[:2] + empty * 5_000 + JPEG[2:]).content == JPEG
    with pytest.raises(NoPicture, match="parts"):
        clean(JPEG[:2] + empty * 10_000 + JPEG[2:])


MANY_ENTRIES = exif()[:8] + struct.pack("<H", 65_535) + exif()[10:22] + bytes(12 * 5_000)
"""EXIF with 5,000 entries, none of which is the orientation."""
HOSTILE = {
    "fill bytes": JPEG[:2] + b"\xff" * 1_000_000,
    "fill bytes in a scan": JPEG[:-2] + b"\xff" * 1_000_000,
    "empty segments": JPEG[:2] + b"\xff\xfe\0\2" * 250_000,
    "scans": JPEG[:-2] + JPEG[JPEG.index(b"\xff\xda") : -2] * 50_000,
    "EXIFs of a JPEG": JPEG[:2]
    + (b"\xff\xe1" + struct.pack(">H", len(MANY_ENTRIES) + 8) + b"Exif\0\0" + MANY_ENTRIES) * 60
    + JPEG[2:],
    "empty chunks": png(4, 2, *[(b"IDAT", b"")] * 80_000),
    "EXIFs of a PNG": png(4, 2, *[(b"eXIf", MANY_ENTRIES)] * 60),
    "empty chunks of a WebP": WEBP[:4] + struct.pack("<I", 1_000_000) + WEBP[8:] + b"ABCD\0\0\0\0" * 120_000,
    "EXIFs of a WebP": WEBP[:4]
    + struct.pack("<I", 4_000_000)
    + WEBP[8:]
    + (b"EXIF" + struct.pack("<I", len(MANY_ENTRIES)) + MANY_ENTRIES) * 60,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_the_work_for_a_picture_is_bounded_by_its_parts_and_not_by_its_bytes(content: bytes) -> None:
    """5 MiB of fill bytes took 0.3 seconds of the interpreter, one step each."""
    steps = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += frame.f_code.co_filename == pictures.__file__
        return count

    traced_before = sys.gettrace()
    sys.settrace(count)
    try:
        clean(content)
    except NoPicture:
        pass
    finally:
        sys.settrace(traced_before)
    assert steps < 30 * MOST_PARTS


def test_a_marker_may_have_some_fill_bytes_before_it_and_not_many() -> None:
    def filled(count: int) -> bytes:
        return JPEG[:2] + b"\xff" * count + JPEG[2:]

    assert clean(filled(MOST_FILL_BYTES)).content == JPEG
    with pytest.raises(NoPicture, match="broken"):
        clean(filled(MOST_FILL_BYTES + 1))


def test_a_bomb_is_refused_by_what_it_says() -> None:
    """Some hundred bytes that would be 3,600 million pixels."""
    small, head = png(1, 1), struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    bomb = small[:16] + head + struct.pack(">I", zlib.crc32(b"IHDR" + head)) + small[33:]
    with pytest.raises(NoPicture, match="pixels"):
        clean(bomb)


@given(st.sampled_from([photo(), PNG_PHOTO, webp_photo()]), st.data())
def test_whatever_is_damaged_is_cleaned_or_refused(content: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(content) - 1))
    damaged = content[:at] + data.draw(st.binary(max_size=6)) + content[at + data.draw(st.integers(0, 6)) :]
    try:
        picture = clean(damaged)
    except NoPicture:
        return
    assert clean(picture.content) == picture

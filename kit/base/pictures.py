"""Pictures from unknown people: identified by their own bytes, and freed of data about the person who made them.

JPEG, PNG and WebP: no format that can hold a script. Nothing is decoded, so nothing can grow: the parts of a picture
are read one by one. The parts that make it visible are kept, all others are dropped: EXIF with place and device, XMP,
comments, previews, further pictures, and bytes after the end. Of EXIF only the orientation is kept, because without it
a photograph is shown turned.
"""

import hashlib
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

UPRIGHT: Final = 1  # EXIF's orientations are 1 to 8
MOST_PARTS: Final = 10_000
"""Segments or chunks. Cameras write some dozens; millions of empty ones would only cost time."""
MOST_FILL_BYTES: Final = 64
"""Before one marker of a JPEG. The standard allows any number; cameras write none."""
MOST_ENTRIES: Final = 1_000
"""Of EXIF that are searched for the orientation. They are sorted, and it is among the first."""

T = TypeVar("T")


class NoPicture(ValueError):
    """The bytes are not JPEG, PNG or WebP, or broken, or have too many bytes or pixels; the text is a phrase
    for people.
    """


@dataclass(frozen=True)
class Picture:
    """A picture. `content` holds only what is needed to show it; width and height are those before it is turned."""

    content_type: str
    width: int
    height: int
    content: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the content, in hex: a name that never changes, so the picture can be cached for ever."""
        return hashlib.sha256(self.content).hexdigest()


def cleaned(content: bytes, *, most_bytes: int, most_pixels: int) -> Picture:
    """Returns the picture without its private data. Raises NoPicture.

    most_bytes  limit of the remaining bytes: the dropped ones, often more than the picture itself, do not count
    """
    try:
        if content.startswith(b"\xff\xd8\xff"):
            picture = _jpeg(content)
        elif content.startswith(_PNG_SIGNATURE):
            picture = _png(content)
        elif content[:4] == b"RIFF" and content[8:12] == b"WEBP":
            picture = _webp(content)
        else:
            raise NoPicture("expected JPEG, PNG or WebP")
    except (IndexError, OverflowError, struct.error):
        raise NoPicture("the picture is not complete") from None
    if not 0 < picture.width * picture.height <= most_pixels:
        raise NoPicture(f"expected at most {most_pixels:,} pixels, it has {picture.width} x {picture.height}")
    if len(picture.content) > most_bytes:
        raise NoPicture(f"expected at most {most_bytes:,} bytes, it has {len(picture.content):,}")
    return picture


def _bounded(parts: Iterable[T]) -> Iterator[T]:
    for number, part in enumerate(parts):
        if number == MOST_PARTS:
            raise NoPicture(f"expected at most {MOST_PARTS:,} parts in the picture")
        yield part


# -- JPEG (ITU T.81, annex B)

_START, _END, _SCAN, _APP0, _APP1, _APP14 = 0xD8, 0xD9, 0xDA, 0xE0, 0xE1, 0xEE
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_TABLES: Final = frozenset({0xC4, 0xCC, 0xDB, 0xDD})  # Huffman, arithmetic, quantization, restart interval
# Within a scan FF is followed by 00, by the number of a restart, or by FF itself.
_NEXT_SEGMENT: Final = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_JFIF_WITHOUT_PREVIEW_BYTES: Final = 14
_ADOBE_BYTES: Final = 12  # any bytes may follow them


def _jpeg(content: bytes) -> Picture:
    jfif, exif, frames, kept = b"", b"", [], []
    for marker, body, scan in _bounded(_segments(content)):
        segment = struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body
        if marker in _FRAMES:
            frames.append(struct.unpack_from(">HH", body, 1))
        if marker in _FRAMES or marker in _TABLES or marker == _SCAN:
            kept += [segment, scan]
        elif marker == _APP14 and body.startswith(b"Adobe"):
            colours = body[:_ADOBE_BYTES]
            kept.append(struct.pack(">BBH", 0xFF, _APP14, len(colours) + 2) + colours)
        elif marker == _APP0 and body.startswith(b"JFIF\0") and len(body) == _JFIF_WITHOUT_PREVIEW_BYTES:
            jfif = segment
        elif marker == _APP1 and body.startswith(_EXIF_PREFIX):
            exif = body
    if len(frames) != 1:
        raise NoPicture("expected a JPEG with one picture")
    turned = b""
    if (orientation := _orientation(exif)) != UPRIGHT:
        exif = _EXIF_PREFIX + _exif(orientation)
        turned = struct.pack(">BBH", 0xFF, _APP1, len(exif) + 2) + exif
    height, width = frames[0]
    return Picture(
        "image/jpeg", width, height, b"".join([b"\xff\xd8", jfif, turned, *kept, bytes((0xFF, _END))])
    )


def _segments(content: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yields marker, body, and the data of a scan, up to the end of the first picture."""
    at = 2
    while True:
        fill = content[at : at + 1 + MOST_FILL_BYTES]
        at += len(fill) - len(fill.lstrip(b"\xff"))
        marker = content[at]
        if marker == 0xFF or fill[:1] != b"\xff":
            raise NoPicture("the JPEG is broken")
        if marker == _END:
            return
        (length,) = struct.unpack_from(">H", content, at + 1)
        body, at = content[at + 3 : at + 1 + length], at + 1 + length
        if length < 2 or at > len(content):
            raise NoPicture("the JPEG is broken")
        if marker != _SCAN:
            yield marker, body, b""
            continue
        found = _NEXT_SEGMENT.search(content, at)
        end = found.start() if found else len(content)
        yield marker, body, content[at:end]
        if found is None:  # cut off: decoders show the part that came
            return
        at = end


# -- PNG (its specification, section 5)

_PNG_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_PNG_KEPT: Final = frozenset({b"IHDR", b"PLTE", b"tRNS", b"gAMA", b"sRGB", b"IDAT", b"IEND"})


def _png(content: bytes) -> Picture:
    exif, kept = b"", []
    for kind, body in _bounded(_png_chunks(content)):
        if kind == b"eXIf":
            exif = body
        elif kind in _PNG_KEPT:
            kept.append(_png_chunk(kind, body))
    if kept[0][4:8] != b"IHDR":
        raise NoPicture("the PNG is broken")
    width, height = struct.unpack_from(">II", kept[0], 8)
    if (orientation := _orientation(exif)) != UPRIGHT:
        kept.insert(1, _png_chunk(b"eXIf", _exif(orientation)))
    return Picture("image/png", width, height, b"".join([_PNG_SIGNATURE, *kept]))


def _png_chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    at, kind = len(_PNG_SIGNATURE), b""
    while kind != b"IEND":
        length, kind = struct.unpack_from(">I4s", content, at)
        body = content[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack_from(">I", content, at + 8 + length)
        if checksum != zlib.crc32(kind + body):
            raise NoPicture("the PNG is broken")
        yield kind, body
        at += 12 + length


def _png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I4s", len(body), kind) + body + struct.pack(">I", zlib.crc32(kind + body))


# -- WebP (RFC 9649)

_HAS_ALPHA, _HAS_EXIF, _IS_ANIMATED = 0x10, 0x08, 0x02


def _webp(content: bytes) -> Picture:
    exif, canvas, pictures, kept = b"", b"", [], []
    for kind, body in _bounded(_webp_chunks(content)):
        if kind == b"EXIF":
            exif = body
        elif kind == b"VP8X":
            canvas = body
        elif kind == b"ALPH":
            kept.append(_webp_chunk(kind, body))
        elif kind in (b"VP8 ", b"VP8L"):
            pictures.append(_webp_size(kind, body))
            kept.append(_webp_chunk(kind, body))
    if len(pictures) != 1 or (canvas and canvas[0] & _IS_ANIMATED):
        raise NoPicture("expected a WebP with one picture")
    if canvas:
        turned = (orientation := _orientation(exif)) != UPRIGHT
        flags = canvas[0] & _HAS_ALPHA | (_HAS_EXIF if turned else 0)
        kept.insert(0, _webp_chunk(b"VP8X", bytes([flags, 0, 0, 0]) + _webp_canvas(*pictures[0])))
        if turned:
            kept.append(_webp_chunk(b"EXIF", _exif(orientation)))
    body = b"WEBP" + b"".join(kept)
    width, height = pictures[0]
    return Picture("image/webp", width, height, b"RIFF" + struct.pack("<I", len(body)) + body)


def _webp_chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    (size,) = struct.unpack_from("<I", content, 4)
    at, end = 12, min(8 + size, len(content))
    while at + 8 <= end:
        kind, length = struct.unpack_from("<4sI", content, at)
        if at + 8 + length > end:
            raise NoPicture("the WebP is broken")
        yield kind, content[at + 8 : at + 8 + length]
        at += 8 + length + length % 2


def _webp_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack("<4sI", kind, len(body)) + body + bytes(len(body) % 2)


def _webp_canvas(width: int, height: int) -> bytes:
    return (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")


def _webp_size(kind: bytes, body: bytes) -> tuple[int, int]:
    """Returns width and height from the bitstream itself, because the canvas may have a false size."""
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", body, 6)
        return width & 0x3FFF, height & 0x3FFF
    (packed,) = struct.unpack_from("<I", body, 1)
    return (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1


# -- EXIF: a TIFF, of which only one number is used

_EXIF_PREFIX: Final = b"Exif\0\0"
_ORIENTATION_TAG: Final = 0x0112
_SHORT: Final = 3


def _orientation(exif: bytes) -> int:
    """Returns 1 to 8; upright when the orientation is missing or can't be read."""
    tiff = exif.removeprefix(_EXIF_PREFIX)
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    if order is None:
        return UPRIGHT
    try:
        (start,) = struct.unpack_from(f"{order}I", tiff, 4)
        (count,) = struct.unpack_from(f"{order}H", tiff, start)
        for at in range(start + 2, start + 2 + 12 * min(count, MOST_ENTRIES), 12):
            tag, kind, _, value = struct.unpack_from(f"{order}HHIH", tiff, at)
            if tag == _ORIENTATION_TAG and kind == _SHORT and UPRIGHT <= value <= 8:
                return int(value)
    except struct.error:
        pass
    return UPRIGHT


def _exif(orientation: int) -> bytes:
    return struct.pack(">2sHIHHHIHHI", b"MM", 42, 8, 1, _ORIENTATION_TAG, _SHORT, 1, orientation, 0, 0)

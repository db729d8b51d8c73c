"""Small real pictures, 4 by 2 pixels, and what phones write into theirs."""

import base64
import random
import struct
import zlib

JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1x"
    "eXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAAR"
    "CAACAAQDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAb/xAAXEAEBAQEAAAAAAAAAAAAAAAAAAREx/8QAFQEBAQAAAAAAAAAAAAAA"
    "AAAABAb/xAAXEQADAQAAAAAAAAAAAAAAAAAAAQIy/9oADAMBAAIRAxEAPwCdkyZOAA3pldOUf//Z"
)
WEBP = base64.b64decode(
    "UklGRlQAAABXRUJQVlA4WAoAAAAAAAAAAwAAAQAAVlA4IDYAAADQAQCdASoEAAIAAsBMJagCdLoAngAGIAD+8DkSAH24e1TYHee17/9K8QFf"
    "+Wh/6V4gK/DUAAA="
)
PLACE = b"52.5200N 13.4050E"
SIDEWAYS = 6  # EXIF: to be turned a quarter to the right


def png(width: int = 4, height: int = 2, *chunks: tuple[bytes, bytes], line: bytes = b"") -> bytes:
    """Black, with these chunks before its pixels; or, one pixel high, the greys of this line, which stay as large."""
    width, height = (len(line), 1) if line else (width, height)
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0" + line, 0) if line else zlib.compress(bytes(height * (1 + width)), 9)
    parts = [(b"IHDR", head), *chunks, (b"IDAT", pixels), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I4s", len(body), kind) + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )


PNG = png()


def noise(size: int) -> bytes:
    """A PNG of exactly so many bytes, of which no two are alike, and that nothing makes smaller."""
    return png(line=random.randbytes(size - len(png(line=b".")) + 1))


def exif(orientation: int = SIDEWAYS, *, order: str = "<") -> bytes:
    """What a phone writes: how it was held, and where."""
    mark = b"II" if order == "<" else b"MM"
    entries = struct.pack(f"{order}HHII", 0x010F, 2, len(PLACE), 38)
    entries += struct.pack(f"{order}HHIHH", 0x0112, 3, 1, orientation, 0)
    return mark + struct.pack(f"{order}HIH", 42, 8, 2) + entries + bytes(4) + PLACE


def photo(orientation: int = SIDEWAYS, *, order: str = "<") -> bytes:
    """A JPEG as a phone makes it: EXIF, a remark, a second picture behind the first."""
    body = b"Exif\0\0" + exif(orientation, order=order)
    parts = struct.pack(">BBH", 0xFF, 0xE1, len(body) + 2) + body
    remark = b"taken at " + PLACE
    parts += struct.pack(">BBH", 0xFF, 0xFE, len(remark) + 2) + remark
    return JPEG[:2] + parts + JPEG[2:] + JPEG + PLACE


def webp_photo(orientation: int = SIDEWAYS) -> bytes:
    """The same as a WebP."""
    body = exif(orientation)
    chunks = WEBP[12:20] + bytes([0x08 | 0x04]) + WEBP[21:]
    for kind, content in ((b"EXIF", body), (b"XMP ", PLACE)):
        chunks += struct.pack("<4sI", kind, len(content)) + content + bytes(len(content) % 2)
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WEBP" + chunks

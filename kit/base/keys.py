"""Keys and signatures as text: base64 in the URLs' alphabet without padding. Reads both alphabets, padded or not."""

import base64


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Returns the bytes. Raises ValueError for text that is not base64."""
    standard = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)

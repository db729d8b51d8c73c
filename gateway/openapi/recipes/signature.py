"""Fiatgate webhooks: is this request genuine? Needs nothing but Python."""

import hashlib
import hmac


def is_genuine(secret: str, timestamp: str, signature: str, body: bytes) -> bool:
    """timestamp, signature: the headers X-Signature-Timestamp and X-Signature, "" when missing.

    body: the raw bytes, before anything has parsed them.
    """
    signed = timestamp.encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode())

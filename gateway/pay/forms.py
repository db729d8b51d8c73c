"""Reads the forms of the page, and checks that the page itself sent them."""

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Final
from urllib.parse import parse_qsl

import falcon
from falcon.media.multipart import MultipartForm, MultipartParseError, MultipartParseOptions
from falcon.util.mediatypes import parse_header

from gateway.http.bodies import PICTURE_MAX_BYTES
from gateway.http.exchange import Request
from gateway.links import Links
from kit.rpc.errors import invalid

TYPE_MAX_CHARACTERS: Final = 256
FIELDS_MAX: Final = 10
FIELD_MAX_BYTES: Final = 64 * 1024
PICTURE_FIELD: Final = "picture"


@dataclass(frozen=True)
class Form:
    """The fields of a posted form, the last value of a repeated one; and the picture, if one was chosen."""

    fields: Mapping[str, str]
    picture: bytes | None = None

    def text(self, name: str) -> str:
        """The field as it was typed; empty when it was not sent."""
        return self.fields.get(name, "")

    def prose(self, name: str, *, most: int) -> str:
        """A person's text, cut to `most` characters.

        Browsers send line ends as CR LF and count them as one; people do not type NUL.
        """
        return self.text(name).replace("\r\n", "\n").replace("\x00", "").strip()[:most]


def form_of(req: Request) -> Form:
    """Raises VALIDATION_ERROR for a body that is no form of the payment page."""
    try:
        media_type, parameters = parse_header((req.content_type or "")[:TYPE_MAX_CHARACTERS])
        if media_type.lower() == falcon.MEDIA_URLENCODED:
            return _urlencoded(req.exchange.body)
        if media_type.lower() == falcon.MEDIA_MULTIPART:
            return _multipart(req.exchange.body, parameters.get("boundary", ""))
    except (ValueError, MultipartParseError):
        raise invalid("VALIDATION_ERROR", "The form could not be read") from None
    raise invalid("VALIDATION_ERROR", "This is not a form of the payment page")


def _urlencoded(body: bytes) -> Form:
    pairs = parse_qsl(
        body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
    )
    return Form(dict(pairs))


def _multipart(body: bytes, boundary: str) -> Form:
    """Reads only the picture as a file; ignores its name and its claimed type."""
    options = MultipartParseOptions()
    options.max_body_part_count = FIELDS_MAX
    options.max_body_part_buffer_size = PICTURE_MAX_BYTES + FIELD_MAX_BYTES
    if not 0 < len(boundary) <= 70:  # RFC 2046, section 5.1.1
        raise ValueError("no boundary")
    fields: dict[str, str] = {}
    picture = None
    for part in MultipartForm(BytesIO(body), boundary.encode("ascii"), len(body), options):
        content = part.get_data()
        if part.name == PICTURE_FIELD:
            picture = content or None
        elif len(content) <= FIELD_MAX_BYTES:
            fields[part.name or ""] = content.decode()
        else:
            raise ValueError("a field is too long")
    return Form(fields, picture)


def sent_by_our_page(req: Request, links: Links) -> bool:
    """Whether the browser reports that the form was on the payment page.

    Newer browsers report it in Sec-Fetch-Site, older ones in Origin. A client that sends neither is no browser, so no
    other site can misuse it. Every client must know the invoice's id, which only the customer and the merchant have.
    """
    site = req.get_header("Sec-Fetch-Site")
    if site:
        return site in ("same-origin", "none")
    origin = (req.get_header("Origin") or "").lower()
    host = (req.get_header("Host") or "").lower()
    return origin in ("", links.origin, f"http://{host}", f"https://{host}")

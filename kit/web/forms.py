"""Reads posted forms, and checks that a page of our own sent them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Final
from unicodedata import category
from urllib.parse import parse_qsl

import falcon
from falcon.media.multipart import MultipartForm, MultipartParseError, MultipartParseOptions
from falcon.util.mediatypes import parse_header

from kit.rpc.errors import invalid
from kit.web.exchange import Request

TYPE_MAX_CHARACTERS: Final = 256
FIELDS_MAX: Final = 24
FIELD_MAX_BYTES: Final = 64 * 1024


@dataclass(frozen=True)
class Form:
    """The fields of a posted form; and the file, if one was chosen.

    fields  the last value of a repeated field
    pairs   each field with its value, in the order of the form
    """

    fields: Mapping[str, str]
    file: bytes | None = None
    pairs: Sequence[tuple[str, str]] = ()

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]], file: bytes | None = None) -> "Form":
        """Returns the form of these fields."""
        kept = tuple(pairs)
        return cls(dict(kept), file, kept)

    def text(self, name: str) -> str:
        """Returns the field as it was typed; empty when it was not sent."""
        return self.fields.get(name, "")

    def all(self, name: str) -> list[str]:
        """Returns each value of a repeated field, as the ticked boxes of a list send it."""
        return [value for each, value in self.pairs if each == name]

    def prose(self, name: str, *, most: int) -> str:
        """Returns a person's text, cut to `most` characters.

        Browsers send line ends as CR LF and count them as one; people do not type NUL.
        """
        return self.text(name).replace("\r\n", "\n").replace("\x00", "").strip()[:most]

    def line(self, name: str, *, most: int) -> str:
        """Returns a person's text as one line, cut to `most` characters: without control characters and direction
        marks, which could change how lists read, and with one blank between words.
        """
        dense = " ".join(self.text(name).split())
        return "".join(each for each in dense if each in _JOINERS or category(each) not in _UNSEEN)[:most]


_UNSEEN: Final = ("Cc", "Cf", "Cs")
_JOINERS: Final = "\u200c\u200d"  # letters of Persian and Indian scripts need them


def form_of(
    req: Request, *, file_field: str = "", file_max_bytes: int = 0, fields_most: int = FIELDS_MAX
) -> Form:
    """Returns the form in the request's body, which was received. Raises VALIDATION_ERROR for another body.

    file_field   name of the field with a file; empty: there is none
    fields_most  number of fields, repeated ones counted each
    """
    try:
        media_type, parameters = parse_header((req.content_type or "")[:TYPE_MAX_CHARACTERS])
        if media_type.lower() == falcon.MEDIA_URLENCODED:
            return _urlencoded(req.exchange.body, fields_most)
        if media_type.lower() == falcon.MEDIA_MULTIPART:
            boundary = parameters.get("boundary", "")
            return _multipart(req.exchange.body, boundary, file_field, file_max_bytes, fields_most)
    except (ValueError, MultipartParseError):
        raise invalid("VALIDATION_ERROR", "The form could not be read") from None
    raise invalid("VALIDATION_ERROR", "This is not a form of our page")


def _urlencoded(body: bytes, fields_most: int) -> Form:
    return Form.of(
        parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=fields_most)
    )


def _multipart(body: bytes, boundary: str, file_field: str, file_max_bytes: int, fields_most: int) -> Form:
    """Reads one field as a file, its name as the field FIELD_name; ignores its claimed type."""
    options = MultipartParseOptions()
    options.max_body_part_count = fields_most
    options.max_body_part_buffer_size = file_max_bytes + FIELD_MAX_BYTES
    if not 0 < len(boundary) <= 70:  # RFC 2046, section 5.1.1
        raise ValueError("no boundary")
    pairs: list[tuple[str, str]] = []
    file = None
    for part in MultipartForm(BytesIO(body), boundary.encode("ascii"), len(body), options):
        content = part.get_data()
        if part.name and part.name == file_field:
            file = content or None
            pairs.append((f"{file_field}_name", part.filename or ""))
        elif len(content) <= FIELD_MAX_BYTES:
            pairs.append((part.name or "", content.decode()))
        else:
            raise ValueError("a field is too long")
    return Form.of(pairs, file)


def sent_by_own_page(req: Request, origin: str) -> bool:
    """Returns whether the browser reports that the form was on a page of ours, at `origin`.

    Newer browsers report it in Sec-Fetch-Site, older ones in Origin. A client that sends neither is no browser, so no
    other site can misuse it.
    """
    site = req.get_header("Sec-Fetch-Site")
    if site:
        return site in ("same-origin", "none")
    sent = (req.get_header("Origin") or "").lower()
    host = (req.get_header("Host") or "").lower()
    return sent in ("", origin, f"http://{host}", f"https://{host}")

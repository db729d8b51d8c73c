"""What the page's forms send back, and whether it was our page that sent it."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

import falcon

from gateway.exchange import Request
from gateway.links import Links
from kit.errors import invalid

FIELDS_MAX: Final = 10


def form_of(req: Request) -> Mapping[str, str]:
    """The fields of a posted form; of a repeated one the last. Raises VALIDATION_ERROR."""
    if not (req.content_type or "").lower().startswith(falcon.MEDIA_URLENCODED):
        raise invalid("VALIDATION_ERROR", "This is not a form of the payment page")
    try:
        pairs = parse_qsl(
            req.exchange.body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=FIELDS_MAX,
        )
    except ValueError:
        raise invalid("VALIDATION_ERROR", "The form could not be read") from None
    return dict(pairs)


def sent_by_our_page(req: Request, links: Links) -> bool:
    """Whether the browser says that the form stood on our own page.

    Newer browsers say so in Sec-Fetch-Site, older ones in Origin. A client that sends neither is no browser that could
    be tricked; and whoever posts here must know the invoice's id, which only the customer and the merchant have.
    """
    site = req.get_header("Sec-Fetch-Site")
    if site:
        return site in ("same-origin", "none")
    origin = (req.get_header("Origin") or "").lower()
    host = (req.get_header("Host") or "").lower()
    return origin in ("", links.origin, f"http://{host}", f"https://{host}")

"""Bounds on the bodies of merchants and customers, by path.

Pictures, forms and the API have a pool each (`kit.web.walls.uploads`): strangers can't fill that of merchants.
"""

import re
from typing import Final

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.proto import most_of
from kit.web.bodies import BODY_SECONDS, Bounds
from kit.web.walls.uploads import Pool

BODY_MAX_BYTES: Final = 64 * 1024
# For the forms of the payment page, except those with a picture: they hold an id, or nothing.
FORM_MAX_BYTES: Final = 8 * 1024
# For a customer's picture, from a telephone with a slow connection. Nothing else may be that large.
PICTURE_MAX_BYTES: Final = most_of(pb.OpenCustomerAppealRequest, "picture")
PICTURE_PATH: Final = re.compile(r"/pay/[^/]+/(appeal|late)").fullmatch
PICTURE_BODY_MAX_BYTES: Final = PICTURE_MAX_BYTES + BODY_MAX_BYTES
PICTURE_BODY_SECONDS: Final = 60.0

# Forms have a few hundred bytes, orders less than 8 KiB: room for thousands.
FORMS_MOST: Final = 8 * 2**20
FORMS_MOST_PER_CLIENT: Final = 2**20
FORMS_MOST_PER_PAYMENT: Final = 4
PICTURES_MOST_PER_PAYMENT: Final = 1
FEED_PATHS: Final = "/feed/"
FEED_BODY_MAX_BYTES: Final = 2**20
FEED_MOST: Final = 8 * 2**20
ORDERS_MOST: Final = 16 * 2**20
ORDERS_MOST_PER_CLIENT: Final = 2 * 2**20


class Uploads:
    """The pools of one worker; those of pictures have settings, because the memory of pods differs."""

    def __init__(self, *, pictures_most: int, pictures_most_per_client: int) -> None:
        pictures = Pool(
            "pictures",
            most=pictures_most,
            most_per_client=pictures_most_per_client,
            item="payment",
            most_per_item=PICTURES_MOST_PER_PAYMENT,
        )
        forms = Pool(
            "forms",
            most=FORMS_MOST,
            most_per_client=FORMS_MOST_PER_CLIENT,
            item="payment",
            most_per_item=FORMS_MOST_PER_PAYMENT,
        )
        orders = Pool("orders", most=ORDERS_MOST, most_per_client=ORDERS_MOST_PER_CLIENT)
        self._pictures = Bounds(pictures, PICTURE_BODY_MAX_BYTES, PICTURE_BODY_SECONDS)
        self._forms = Bounds(forms, FORM_MAX_BYTES, BODY_SECONDS)
        feed = Pool("feed", most=FEED_MOST, most_per_client=2 * FEED_BODY_MAX_BYTES)
        self._feed = Bounds(feed, FEED_BODY_MAX_BYTES, BODY_SECONDS)
        self._orders = Bounds(orders, BODY_MAX_BYTES, BODY_SECONDS)

    def bounds(self, path: str) -> Bounds:
        """Returns the bounds of a body that is sent to this path."""
        if PICTURE_PATH(path):
            return self._pictures
        if path.startswith(FEED_PATHS):
            return self._feed
        return self._forms if path.startswith("/pay") else self._orders

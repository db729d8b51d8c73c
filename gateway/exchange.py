"""One request of a merchant or a customer: `kit.web.exchange` with the merchant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from fiatgate.merchants.v1.merchants_pb2 import Merchant
from kit.web import exchange
from kit.web.exchange import SCOPE_KEY


@dataclass(slots=True)
class Exchange(exchange.Exchange):
    """merchant      the authenticated merchant, with `key_id`; set by `access.auth`
    connector_id  the authenticated connector, which is its own `key_id`
    scopes        what the key may do; empty: everything
    """

    merchant: Merchant | None = None
    connector_id: str = ""
    key_id: str = ""
    scopes: Sequence[str] = ()

    @property
    def caller(self) -> Merchant:
        """The authenticated merchant."""
        if self.merchant is None:
            raise LookupError("this route is served without a key")
        return self.merchant

    @property
    def sender(self) -> str:
        return self.merchant.merchant_id if self.merchant else self.network

    def log_fields(self) -> Mapping[str, str]:
        return {
            "merchant_id": self.merchant.merchant_id if self.merchant else "",
            "key_id": self.key_id,
        }

    def span_attributes(self) -> Mapping[str, str]:
        return {"fiatgate.merchant_id": self.merchant.merchant_id} if self.merchant else {}


class Request(exchange.Request):
    """Falcon's request, with the gateway's `Exchange`."""

    @property
    def exchange(self) -> Exchange:
        return cast(Exchange, self.scope[SCOPE_KEY])

    @property
    def is_customers(self) -> bool:
        """Whether a person reads the answer: then every answer is a page, errors too."""
        return self.path.startswith("/pay")

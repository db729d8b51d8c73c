"""The rights of a key's programs (docs/api.md#authentication)."""

from collections.abc import Sequence
from typing import Final

from kit.rpc.errors import denied

READ: Final = "read"
INVOICES: Final = "invoices:write"
SCOPE_OF_POST: Final = {
    "/api/v1/create-invoice": INVOICES,
    "/api/v1/invoices/{invoice_ref}/cancel": INVOICES,
    "/api/v1/invoices/{invoice_ref}/refunds": "refunds:write",
    "/api/v1/invoices/{invoice_ref}/webhooks/resend": "webhooks:write",
    "/api/v1/test/invoices/{invoice_ref}/{step}": INVOICES,
}


def require_scope(scopes: Sequence[str], route: str, method: str) -> None:
    """Raises API_KEY_SCOPE_MISSING when a key with these scopes, none of which are all, may not make the request."""
    scope = SCOPE_OF_POST.get(route, READ) if method == "POST" else READ
    if scopes and scope not in scopes:
        raise denied("API_KEY_SCOPE_MISSING", f"The API key lacks the scope {scope}", scope=scope)

"""One function per RPC: the transaction, the rules, the answer.

Each takes `Deps` first, then values as they came in, and may raise VALIDATION_ERROR besides the reasons that it
names. An id that is no UUID is answered like an unknown id.
"""

from services.merchants.operations.api_keys import (
    NewApiKey,
    SigningSecret,
    authenticate,
    create_api_key,
    deactivate_api_key,
    get_signing_secrets,
    list_api_keys,
    rotate_secrets,
)
from services.merchants.operations.categories import list_categories, set_category
from services.merchants.operations.logos import get_logo
from services.merchants.operations.merchants import (
    MerchantOptions,
    activate_merchant,
    ban_merchant,
    configure_merchant,
    create_merchant,
    get_merchant,
    list_merchants,
    unban_merchant,
)
from services.merchants.operations.owners import block_owner, unblock_owner

__all__ = [
    "MerchantOptions",
    "NewApiKey",
    "SigningSecret",
    "activate_merchant",
    "authenticate",
    "ban_merchant",
    "block_owner",
    "configure_merchant",
    "create_api_key",
    "create_merchant",
    "deactivate_api_key",
    "get_logo",
    "get_merchant",
    "get_signing_secrets",
    "list_api_keys",
    "list_categories",
    "list_merchants",
    "rotate_secrets",
    "set_category",
    "unban_merchant",
    "unblock_owner",
]

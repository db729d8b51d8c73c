"""The values of this service that acts decide (kit.audit.decisions)."""

from typing import Final

from kit.audit.decisions import Decided

MERCHANT: Final = Decided(
    "merchant",
    ("merchant.create", "merchant.configure", "merchant.activate", "merchant.ban", "merchant.unban"),
    (
        *(
            "name",
            "owner_email",
            "activated_at",
            "banned_at",
            "category_code",
            "client_share",
            "callback_url",
        ),
        *("success_url", "fail_url", "allowed_currencies", "allowed_methods", "frame_origins"),
    ),
)
OWNER: Final = Decided("owner", ("owner.block", "owner.unblock"), ("blocked_at",))
CATEGORY: Final = Decided("category", ("category.set",), ("commission",))
KEY: Final = Decided(
    "key",
    ("key.create", "key.deactivate"),
    ("merchant_id", "name", "hint", "key_sha256", "deactivated_at"),
)

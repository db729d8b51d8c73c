"""The rows of merchants whose values acts decide (kit.db.books)."""

from typing import Final

from kit.audit.decisions import follow_acts
from kit.db.books import Part
from kit.db.described import schema_part
from services.merchants.store.decisions import CATEGORY, KEY, MERCHANT, OWNER

PARTS: Final = (
    schema_part("merchants"),
    Part(
        name="owners",
        one="owner",
        table="owners",
        key="email",
        key_type="text",
        follows=(follow_acts(OWNER, table="owners", id="email", key_type="text", made_by=OWNER.acts),),
    ),
    Part(
        name="merchants",
        one="merchant",
        table="merchants",
        follows=(
            follow_acts(
                MERCHANT,
                table="merchants",
                made_by=("merchant.create",),
                owner_email="(SELECT email FROM owners WHERE owners.id = owner_id)",
            ),
        ),
    ),
    Part(
        name="categories",
        one="category",
        table="categories",
        key="code",
        key_type="text",
        follows=(
            follow_acts(CATEGORY, table="categories", id="code", key_type="text", made_by=("category.set",)),
        ),
    ),
    Part(
        name="API keys",
        one="key",
        table="api_keys",
        follows=(follow_acts(KEY, table="api_keys", made_by=("key.create",)),),
    ),
)

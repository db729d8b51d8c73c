"""The rows of merchants whose values acts decide, and what the master keys must open (kit.db.books)."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from sqlalchemy import text
from sqlalchemy.orm import Session

from kit.audit.decisions import follow_acts
from kit.base.vault import MasterKeyMissing, Vault
from kit.db.books import Difference, Follows, Part
from kit.db.described import schema_part
from services.merchants.credentials import opened_lookup_key
from services.merchants.store.decisions import CATEGORY, KEY, MERCHANT, OWNER

_SECRETS: Final = """
SELECT id, sealed_secret FROM api_keys WHERE id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid)
"""
_LOOKUP_KEY: Final = "SELECT id, sealed FROM lookup_key"
_LOOKUP_KEY_IS_THERE: Final = """
SELECT 1, 'row', 'deleted', 'there: API keys are known by it'
WHERE EXISTS (SELECT FROM api_keys) AND NOT EXISTS (SELECT FROM lookup_key)
"""


def parts(vault: Vault) -> Sequence[Part]:
    """Returns the parts; `vault` has the master keys of the service."""
    return (
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
                follow_acts(
                    CATEGORY, table="categories", id="code", key_type="text", made_by=("category.set",)
                ),
            ),
        ),
        Part(
            name="API keys",
            one="key",
            table="api_keys",
            follows=(
                follow_acts(
                    KEY,
                    table="api_keys",
                    made_by=("key.create",),
                    key_sha256="encode(sha256(key_hash), 'hex')",
                ),
                _opened("secret", _SECRETS, vault.open),
            ),
        ),
        Part(
            name="lookup key",
            one="lookup key",
            table="lookup_key",
            key="id::bigint",
            key_type="bigint",
            follows=(_LOOKUP_KEY_IS_THERE, _opened("key", _LOOKUP_KEY, partial(opened_lookup_key, vault))),
        ),
    )


def _opened(what: str, rows: str, opened: Callable[[bytes], object]) -> Follows:
    """Returns the rule that the values of these rows, of an id and an encrypted value, can be opened."""

    def follows(tx: Session, first: str, last: str) -> Iterator[Difference]:
        for id, sealed in tx.execute(text(rows), {"first": first, "last": last}):
            try:
                opened(bytes(sealed))
            except MasterKeyMissing:
                yield id, what, "not readable", "one that a master key opens"

    return follows

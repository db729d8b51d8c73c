"""API keys and signing secrets: authentication, making and deactivating keys, secrets for signing, rotation."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy.orm import Session

from kit.audit import acts
from kit.audit.decisions import UNDECIDED, before_by_acts
from kit.base import actors
from kit.base.ids import new_id, parse_id
from kit.base.vault import MasterKeyMissing
from kit.observe.log import get_logger
from kit.rpc import values
from kit.rpc.actors import require_merchant
from kit.rpc.errors import edit_conflict
from services.identity import errors, models
from services.identity.credentials import api_keys as credentials
from services.identity.domain import merchants as domain
from services.identity.operations import fields
from services.identity.operations.leases import ends_leases
from services.identity.operations.lookup import id_of_merchant, merchant_or_refuse
from services.identity.store import api_keys as keys
from services.identity.store import merchants
from services.identity.store.api_keys import KeyHolder
from services.identity.store.decisions import KEY
from services.identity.store.sealed import API_KEY, is_sealed, seal_of
from services.identity.store.versions import Versioned, version_of
from services.identity.wiring import Deps

_log = get_logger()

API_KEYS_LISTED: Final = 1000
ACTIVE_KEYS_MOST: Final = 100
"""Active keys of one merchant."""
RESEALED_PER_TRANSACTION: Final = 500


@dataclass(frozen=True, kw_only=True)
class NewApiKey:
    """The key and its secret, which are shown once and never again."""

    key_id: UUID
    api_key: str
    secret: str


@dataclass(frozen=True, kw_only=True)
class SigningSecret:
    """The secret that now signs for a merchant, with the query that it answers."""

    merchant_id: UUID
    preferred_key_id: UUID | None
    key_id: UUID
    secret: str


def authenticate(deps: Deps, *, api_key: str) -> KeyHolder:
    """Returns the merchant of this API key, compared exactly and read from the database each time.

    Raises, in this order, API_KEY_INVALID, OWNER_BLOCKED, MERCHANT_BLOCKED, MERCHANT_NOT_ACTIVE
    (docs/api.md#authentication).
    """
    key_hash = deps.hasher.hash_of(api_key)
    if key_hash is None:
        raise errors.not_admitted("API_KEY_INVALID")
    holder = keys.holder_of_active_key(deps.db, key_hash)
    if holder is None or not _is_as_made(deps, holder):
        raise errors.not_admitted("API_KEY_INVALID")
    reason = domain.obstacle(holder.merchant)
    if reason is not None:
        raise errors.not_admitted(reason)
    deps.uses.note(deps.db, holder.key_id, at=deps.clock.now())
    return holder


def _is_as_made(deps: Deps, holder: KeyHolder) -> bool:
    """Returns whether the service made the key for this merchant, with these scopes."""
    terms = _terms(holder.key_id, holder.merchant.merchant_id, holder.scopes)
    if is_sealed(deps.seals, holder.seal, API_KEY, *terms):
        return True
    UNDECIDED.labels("key").inc()
    _log.error("value_not_decided", object=f"key:{holder.key_id}", field="scopes")
    return False


def _terms(key_id: UUID, merchant_id: UUID, scopes: Sequence[str]) -> tuple[UUID, UUID, str]:
    return key_id, merchant_id, " ".join(scopes)


def create_api_key(
    deps: Deps,
    *,
    merchant_id: str,
    name: str = "",
    newest_key_id: str | None = None,
    replaces_key_id: str | None = None,
    scopes: Sequence[str] = (),
) -> NewApiKey:
    """Makes a key and its signing secret; only a hash of the key and the encrypted secret are stored.

    newest_key_id    the newest key that the caller knows; empty: none; None: not compared
    replaces_key_id  an active key of the merchant that works on, but is to be replaced
    scopes           of SCOPES; empty: all, or those of the key that is replaced
    Raises MERCHANT_NOT_FOUND, API_KEY_NOT_FOUND, EDIT_CONFLICT when the merchant has a newer key, API_KEYS_LIMITED;
    OWNER_BLOCKED and MERCHANT_BLOCKED for a member: an operator may prepare the end of a ban.
    """
    now = deps.clock.now()
    key_name = values.parsed("name", name, fields.parse_key_name)
    if unknown := set(scopes) - set(domain.SCOPES):
        raise values.invalid("scopes", f"No scope is named {min(unknown)[:64]!r}")
    api_key, secret = credentials.new_api_key(deps.settings.mode), credentials.new_secret()
    with deps.db.transaction() as tx:
        merchant = merchant_or_refuse(tx, id_of_merchant(merchant_id))
        ban = domain.ban_of(merchant)
        if ban is not None and actors.current().surface == "dashboard":
            raise errors.not_admitted(ban)
        merchants.merchant_to_change(
            tx, merchant.merchant_id
        )  # another call waits until this one has made its key
        if newest_key_id is not None:
            _require_newest(tx, merchant.merchant_id, newest_key_id)
        if keys.count_of_active_keys(tx, merchant.merchant_id) >= ACTIVE_KEYS_MOST:
            raise errors.api_keys_limited(ACTIVE_KEYS_MOST)
        replaced = _replaced(tx, merchant.merchant_id, replaces_key_id) if replaces_key_id else None
        wanted = scopes or (replaced.scopes if replaced else ())
        granted = [each for each in domain.SCOPES if each in wanted]
        fresh = deps.key_vault.seal(credentials.new_lookup_key())
        sealed = keys.sealed_lookup_key_or_new(tx, sealed=fresh, at=now)
        lookup_key = credentials.opened_lookup_key(deps.key_vault, sealed)
        key_id = new_id()
        kept = models.ApiKey(
            id=key_id,
            merchant_id=merchant.merchant_id,
            name=key_name,
            hint=credentials.hint_of(api_key),
            key_hash=credentials.hash_of(api_key, lookup_key),
            sealed_secret=deps.key_vault.seal(secret.encode()),
            created_at=now,
            scopes=granted,
            seal=seal_of(deps.seals, API_KEY, *_terms(key_id, merchant.merchant_id, granted)),
        )
        tx.add(kept)
        # Not the stored hash itself: who reads acts needs not have it.
        digest = hashlib.sha256(kept.key_hash).hexdigest()
        after: dict[str, Any] = {
            "name": key_name,
            "hint": kept.hint,
            "key_sha256": digest,
            "scopes": granted,
        }
        if replaced is not None:
            tx.flush()
            keys.replace_api_key(tx, replaced.id, by=kept.id)
            after["replaces"] = str(replaced.id)
        acts.record(tx, "key.create", f"key:{kept.id}", merchant_id=merchant.merchant_id, after=after)
    return NewApiKey(key_id=kept.id, api_key=api_key, secret=secret)


def _replaced(tx: Session, merchant_id: UUID, key_id: str) -> domain.ApiKey:
    """Returns an active key of the merchant, locked. Raises API_KEY_NOT_FOUND."""
    found = keys.api_key_to_change(tx, values.uuid_or(errors.api_key_not_found, key_id))
    if found is None or found.merchant_id != merchant_id or found.deactivated_at is not None:
        raise errors.api_key_not_found()
    return found


def _require_newest(tx: Session, merchant_id: UUID, newest_key_id: str) -> None:
    """Raises EDIT_CONFLICT when the merchant has a newer key."""
    newest = str(keys.newest_api_key_id(tx, merchant_id) or "")
    if newest != newest_key_id:
        raise edit_conflict("newest_key_id", newest)


def list_api_keys(deps: Deps, *, merchant_id: str) -> Sequence[domain.ApiKey]:
    """Returns the merchant's keys, active ones first, each newest first. Raises MERCHANT_NOT_FOUND."""
    with deps.db.transaction() as tx:
        merchant = merchant_or_refuse(tx, id_of_merchant(merchant_id))
        return keys.api_keys_active_first(tx, merchant.merchant_id, limit=API_KEYS_LISTED)


@ends_leases
def deactivate_api_key(deps: Deps, *, key_id: str) -> Versioned[domain.ApiKey]:
    """Deactivates the key for good; the first time counts. Raises API_KEY_NOT_FOUND."""
    parsed = values.uuid_or(errors.api_key_not_found, key_id)
    with deps.db.transaction() as tx:
        before = keys.api_key_to_change(tx, parsed)
        if before is None:
            raise errors.api_key_not_found()
        require_merchant(before.merchant_id, errors.api_key_not_found)
        is_done = before.deactivated_at is not None
        after = before if is_done else keys.api_key_deactivated(tx, parsed, at=deps.clock.now())
        acts.record(
            tx,
            "key.deactivate",
            f"key:{parsed}",
            merchant_id=after.merchant_id,
            before=before_by_acts(tx, KEY, parsed, "deactivated_at"),
            after={"deactivated_at": after.deactivated_at},
            note=after.name,
        )
        return Versioned(answer=after, version=version_of(tx, models.ApiKey.id, parsed))


def get_signing_secrets(deps: Deps, *, queries: Sequence[tuple[str, str]]) -> list[SigningSecret]:
    """Returns for each (merchant id, preferred key id) the secret of that key while it is active, else of the
    merchant's newest active key (docs/api.md#signature). Leaves out merchants that are unknown or have no active key.
    """
    values.at_most("queries", queries, values.LIST_MOST_ROWS)
    parsed = [
        (merchant_id, parse_id(preferred))
        for text, preferred in queries
        if (merchant_id := parse_id(text)) is not None
    ]
    with deps.db.autocommit() as connection:
        found = keys.signing_secrets(connection, parsed)
    secrets = _opened(deps, {each.key_id: each.sealed for each in found})  # many queries name few keys
    return [
        SigningSecret(
            merchant_id=each.merchant_id,
            preferred_key_id=each.preferred_key_id,
            key_id=each.key_id,
            secret=secrets[each.key_id],
        )
        for each in found
        if each.key_id in secrets
    ]


def _opened(deps: Deps, sealed: Mapping[UUID, bytes]) -> dict[UUID, str]:
    """Leaves out secrets that SQL made unreadable. Raises MasterKeyMissing when none can be opened."""
    secrets = {}
    for key_id, each in sealed.items():
        try:
            secrets[key_id] = deps.key_vault.open(each).decode()
        except (MasterKeyMissing, UnicodeDecodeError):
            _log.error("signing_secret_not_opened", key_id=str(key_id))
    if sealed and not secrets:
        raise MasterKeyMissing("no key in MASTER_KEYS opens a signing secret")
    return secrets


def rotate_secrets(deps: Deps) -> int:
    """Encrypts lookup key and signing secrets again; returns their number. A step of `keys.rotate_secrets`."""
    with deps.db.transaction() as tx:
        lookup_key = keys.lookup_key_to_change(tx)
        if lookup_key is None:
            return 0  # no API key was ever made
        lookup_key.sealed = deps.key_vault.reseal(lookup_key.sealed)
    resealed, last = 1, None
    while True:
        with deps.db.transaction() as tx:
            rows = keys.api_keys_after(tx, last, limit=RESEALED_PER_TRANSACTION)
            for key in rows:
                key.sealed_secret = deps.key_vault.reseal(key.sealed_secret)
        if not rows:
            return resealed
        resealed, last = resealed + len(rows), rows[-1].id

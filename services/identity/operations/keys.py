"""The signing keys of actor tokens: making, replacing, publishing; and the rotation of the master key."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from sqlalchemy.orm import Session as Tx

from kit.audit import acts
from kit.base.clock import monotonic_seconds
from kit.base.ids import new_id
from kit.observe.log import get_logger
from kit.rpc.actor_tokens import raw_public_key
from services.identity.credentials import actor_keys
from services.identity.credentials.actor_keys import SigningKey
from services.identity.domain.people import KEY_KEPT, KEY_PUBLISHED_AHEAD
from services.identity.operations import api_keys
from services.identity.store import factors, keys, mails
from services.identity.store.keys import StoredKey
from services.identity.wiring import Deps

RESEALED_PER_TRANSACTION: Final = 500
READ_AGAIN_SECONDS: Final = 10.0

_log = get_logger()


def list_actor_keys(deps: Deps) -> Sequence[StoredKey]:
    """Returns the newest key, and those before it that sign or whose tokens may still be alive."""
    with deps.db.autocommit() as connection:
        return keys.known_keys(connection, now=deps.clock.now(), seals=deps.seals)


class OwnKeys:
    """The public keys (kit.rpc.actor_tokens.Keys) for calls of people to this service itself: read from the database
    every ten seconds, and at once for an unknown key, which another process may have made just now. A call with an
    invented key costs one indexed read, as any call does.
    """

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._keys: Mapping[str, Ed25519PublicKey] = {}
        self._read_at_seconds = -READ_AGAIN_SECONDS

    def find(self, key_id: str) -> Ed25519PublicKey | None:
        """Returns the key; None for an unknown one."""
        age_seconds = monotonic_seconds() - self._read_at_seconds
        if key_id not in self._keys or age_seconds > READ_AGAIN_SECONDS:
            self._read_at_seconds = monotonic_seconds()
            self._keys = {
                str(each.id): Ed25519PublicKey.from_public_bytes(each.public_key)
                for each in list_actor_keys(self._deps)
            }
        return self._keys.get(key_id)


def rotate_actor_key(deps: Deps) -> str:
    """Makes a new signing key and returns its id. It signs once every service has had the time to fetch it."""
    with deps.db.transaction() as tx:
        keys.lock_keys(tx)
        made = _made(deps, tx)
        acts.record(tx, "actor_key.rotate", f"actor_key:{made.id}")
    _log.info("actor_key_rotated", key_id=str(made.id))
    return str(made.id)


def signing_key(deps: Deps) -> SigningKey:
    """Returns the key that signs now, read at most `KEY_KEPT` ago; makes the first one."""
    now = deps.clock.now()
    if (kept := deps.kept_key.get(now)) is not None:
        return kept
    stored = _signing_at(now, list_actor_keys(deps)) or _first_key(deps)
    private_key = actor_keys.private_from(deps.vault.open(stored.sealed_private_key))
    key = SigningKey(str(stored.id), private_key)
    deps.kept_key.set(key, now + KEY_KEPT)
    return key


def _signing_at(now: datetime, known: Sequence[StoredKey]) -> StoredKey | None:
    """Returns the newest key that every service knows; the oldest one when there is none: nothing signed before it."""
    published = (each for each in known if each.created_at <= now - KEY_PUBLISHED_AHEAD)
    return next(published, known[-1] if known else None)


def _first_key(deps: Deps) -> StoredKey:
    with deps.db.transaction() as tx:
        keys.lock_keys(tx)
        return keys.newest_key(tx) or _made(deps, tx)


def replace_old_key(deps: Deps) -> bool:
    """Makes a new signing key when the newest one is older than the setting, or there is none, so that services fetch
    the first one before a token needs it. Returns whether it did.
    """
    oldest = deps.clock.now() - timedelta(days=deps.settings.actor_key_days)
    with deps.db.transaction() as tx:
        keys.lock_keys(tx)
        stored = keys.newest_key(tx)
        if stored is not None and stored.created_at > oldest:
            return False
        made = _made(deps, tx)
    _log.info("actor_key_rotated", key_id=str(made.id))
    return True


def _made(deps: Deps, tx: Tx) -> StoredKey:
    private_key = actor_keys.new_private_key()
    id, public_key, now = new_id(), raw_public_key(private_key), deps.clock.now()
    made = StoredKey(
        id=id,
        public_key=public_key,
        sealed_private_key=deps.vault.seal(private_key.private_bytes_raw()),
        created_at=now,
        seal=keys.seal_of_key(deps.seals, id, public_key, now),
    )
    keys.add_key(tx, made)
    return made


def rotate_secrets(deps: Deps) -> int:
    """Encrypts everything again with the first master key, after which the others can be removed; returns the number of
    values.

    Safe beside running servers, and to repeat. Run it when every process has the new list of master keys: a process
    with the old list would still encrypt with the old key. Raises MasterKeyMissing when a value can't be opened.
    """
    resealed = api_keys.rotate_secrets(deps)
    with deps.db.transaction() as tx:
        for key in keys.keys_to_reseal(tx):
            key.sealed_private_key = deps.vault.reseal(key.sealed_private_key)
            resealed += 1
        for mail in mails.mails_to_reseal(tx):
            mail.sealed_link = deps.vault.reseal(mail.sealed_link)
            resealed += 1
    last = None
    while True:
        with deps.db.transaction() as tx:
            totps = factors.totps_after(tx, last, limit=RESEALED_PER_TRANSACTION)
            for totp in totps:
                if totp.sealed_secret is not None:
                    totp.sealed_secret = deps.vault.reseal(totp.sealed_secret)
                    resealed += 1
                if totp.sealed_new_secret is not None:
                    totp.sealed_new_secret = deps.vault.reseal(totp.sealed_new_secret)
                    resealed += 1
        if not totps:
            return resealed
        last = totps[-1].person_id

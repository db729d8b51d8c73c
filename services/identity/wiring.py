"""The one place that builds the service from its parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kit.base.clock import Clock, SystemClock
from kit.base.seals import Seals
from kit.base.vault import Vault
from kit.db.database import Database
from services.identity.config import IdentitySettings
from services.identity.credentials.actor_keys import KeptKey
from services.identity.credentials.api_keys import ApiKeyHasher
from services.identity.credentials.passkeys import RelyingParty
from services.identity.credentials.passwords import Passwords
from services.identity.domain.people import Surface
from services.identity.store import api_keys
from services.identity.store.decisions import KnownRoles
from services.identity.store.uses import KeyUses
from services.identity.store.versions import KnownVersions


@dataclass(frozen=True, kw_only=True)
class Deps:
    """The first argument of every operation.

    vault            encrypts TOTP secrets, signing keys and links that wait to be sent
    passwords        hashes and compares passwords
    relying_parties  the surfaces as passkeys know them
    kept_key         the signing key, read some seconds ago
    decided_roles    the roles that this process has compared with their acts
    seals            prove sessions, factors and signing keys
    key_vault        encrypts the signing secrets of merchants and the lookup key
    hasher           makes the value under which an API key is found
    uses             writes the last use of each API key
    known            the versions of rows that this process has seen
    """

    settings: IdentitySettings
    db: Database
    clock: Clock
    vault: Vault
    passwords: Passwords
    relying_parties: Mapping[Surface, RelyingParty]
    kept_key: KeptKey
    decided_roles: KnownRoles
    seals: Seals
    key_vault: Vault
    hasher: ApiKeyHasher
    uses: KeyUses = field(default_factory=KeyUses)
    known: KnownVersions = field(default_factory=KnownVersions)


def wire(settings: IdentitySettings, *, clock: Clock | None = None) -> Deps:
    db = Database(
        settings.database_url,
        name=settings.service,
        pool_size=settings.connections,
        seals=settings.seals,
    )
    key_vault = Vault(settings.master_keys, purpose="API keys")

    def sealed_lookup_key() -> bytes | None:
        with db.autocommit() as connection:
            return api_keys.sealed_lookup_key(connection)

    return Deps(
        settings=settings,
        db=db,
        clock=clock or SystemClock(),
        vault=Vault(settings.master_keys, purpose="people"),
        passwords=Passwords(),
        relying_parties={each: RelyingParty(settings.url_of(each)) for each in Surface},
        kept_key=KeptKey(),
        decided_roles=KnownRoles(db),
        seals=settings.seals,
        key_vault=key_vault,
        hasher=ApiKeyHasher(key_vault, settings.mode, sealed_lookup_key),
    )

"""The one place that builds the service from its parts."""

from dataclasses import dataclass, field

from kit.base.clock import Clock, SystemClock
from kit.base.vault import Vault
from kit.db.database import Database
from services.merchants.config import MerchantsSettings
from services.merchants.credentials import ApiKeyHasher
from services.merchants.store import keys
from services.merchants.store.uses import KeyUses
from services.merchants.store.versions import KnownVersions


@dataclass(frozen=True, kw_only=True)
class Deps:
    """The first argument of every operation.

    vault   encrypts the signing secrets
    hasher  makes the value under which an API key is found
    uses    writes the last use of each key
    known   the versions of rows that this process has seen
    """

    settings: MerchantsSettings
    db: Database
    clock: Clock
    vault: Vault
    hasher: ApiKeyHasher
    uses: KeyUses = field(default_factory=KeyUses)
    known: KnownVersions = field(default_factory=KnownVersions)


def wire(settings: MerchantsSettings, *, clock: Clock | None = None) -> Deps:
    db = Database(
        settings.database_url,
        name=settings.service,
        pool_size=settings.connections,
        seals=settings.seals,
    )
    vault = Vault(settings.master_keys)

    def sealed_lookup_key() -> bytes | None:
        with db.autocommit() as connection:
            return keys.sealed_lookup_key(connection)

    return Deps(
        settings=settings,
        db=db,
        clock=clock or SystemClock(),
        vault=vault,
        hasher=ApiKeyHasher(vault, sealed_lookup_key),
    )

"""The one place that builds the service from its parts."""

from collections.abc import Mapping
from dataclasses import dataclass

from kit.base.clock import Clock, SystemClock
from kit.base.seals import Seals
from kit.base.vault import Vault
from kit.db.database import Database
from services.accounts.config import AccountsSettings
from services.accounts.credentials.actor_keys import KeptKey
from services.accounts.credentials.passkeys import RelyingParty
from services.accounts.credentials.passwords import Passwords
from services.accounts.domain import Surface
from services.accounts.store.decisions import KnownRoles


@dataclass(frozen=True, kw_only=True)
class Deps:
    """The first argument of every operation.

    vault            encrypts TOTP secrets, signing keys and links that wait to be sent
    passwords        hashes and compares passwords
    relying_parties  the surfaces as passkeys know them
    kept_key         the signing key, read some seconds ago
    decided_roles    the roles that this process has compared with their acts
    seals            prove sessions, factors and signing keys
    """

    settings: AccountsSettings
    db: Database
    clock: Clock
    vault: Vault
    passwords: Passwords
    relying_parties: Mapping[Surface, RelyingParty]
    kept_key: KeptKey
    decided_roles: KnownRoles
    seals: Seals


def wire(settings: AccountsSettings, *, clock: Clock | None = None) -> Deps:
    db = Database(
        settings.database_url,
        name=settings.service,
        pool_size=settings.connections,
        seals=settings.seals,
    )
    return Deps(
        settings=settings,
        db=db,
        clock=clock or SystemClock(),
        vault=Vault(settings.master_keys),
        passwords=Passwords(),
        relying_parties={each: RelyingParty(settings.url_of(each)) for each in Surface},
        kept_key=KeptKey(),
        decided_roles=KnownRoles(db),
        seals=settings.seals,
    )

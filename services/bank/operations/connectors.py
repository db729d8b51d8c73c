"""Keys of connectors. A key has 196 random bits, so its plain hash can't be turned back."""

import hashlib
import secrets
import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from fiatgate.bank.v1 import feed_pb2 as pb
from kit.audit import acts
from kit.audit.decisions import before_by_acts
from kit.base.account_forms import account_key
from kit.base.ids import new_id
from kit.base.proto import most_of
from kit.rpc import values
from kit.rpc.errors import edit_conflict
from services.bank import errors
from services.bank.store import connectors
from services.bank.store.decisions import CONNECTOR
from services.bank.store.views import ConnectorView
from services.bank.wiring import Deps

CONNECTORS_LISTED: Final = 1000
ACCOUNTS_MOST: Final = 100
ACCOUNT_MAX_CHARACTERS: Final = most_of(pb.FeedAccount, "account")
SILENCE_LEAST_SECONDS: Final = 60
SILENCE_MOST_SECONDS: Final = 30 * 24 * 3600
_ALPHABET: Final = string.digits + string.ascii_letters
_KEY_CHARACTERS: Final = 33
_HINT_CHARACTERS: Final = 8


@dataclass(frozen=True, kw_only=True)
class NewConnector:
    """The key is shown once and never again."""

    connector_id: UUID
    key: str


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A connector, and whether it is silent now."""

    connector: ConnectorView
    is_silent: bool


def account_of(account: str, currency_code: str) -> str:
    """Returns the account as keys hold it. Raises VALIDATION_ERROR."""
    number = account_key(account)
    if not number.isascii() or not 0 < len(number) <= ACCOUNT_MAX_CHARACTERS:
        raise values.invalid("accounts", f"An account has 1 to {ACCOUNT_MAX_CHARACTERS} letters and digits")
    if not (currency_code.isascii() and currency_code.isalpha() and currency_code.isupper()):
        raise values.invalid("accounts", "Expected a currency as EUR with each account")
    return f"{number}:{values.text('accounts', currency_code, least=3, most=3)}"


def create_connector(
    deps: Deps,
    *,
    name: str,
    accounts: Sequence[str],
    silence_seconds: int,
    newest_connector_id: str | None = None,
) -> NewConnector:
    """Makes a key for these accounts, as `account_of` writes them; only its hash is stored. Raises EDIT_CONFLICT when
    there is a newer connector than the one that the caller knows.
    """
    values.at_most("accounts", accounts, ACCOUNTS_MOST)
    if not accounts:
        raise values.invalid("accounts", "Expected at least one account")
    if silence_seconds:
        values.whole_number(
            "silence_seconds", silence_seconds, least=SILENCE_LEAST_SECONDS, most=SILENCE_MOST_SECONDS
        )
    key = "fgc_" + "".join(secrets.choice(_ALPHABET) for _ in range(_KEY_CHARACTERS))
    made = ConnectorView(
        id=new_id(),
        name=values.code("name", name),
        hint=key[:_HINT_CHARACTERS],
        key_hash=hash_of(key),
        accounts=sorted(set(accounts)),
        silence_seconds=silence_seconds or None,
        created_at=deps.clock.now(),
        heard_at=None,
        revoked_at=None,
    )
    after = {name: getattr(made, name) for name in CONNECTOR.fields}
    with deps.db.transaction() as tx:
        connectors.lock_name(tx, made.name)
        newest = connectors.newest(tx)
        if newest_connector_id not in (None, newest):
            raise edit_conflict("newest_connector_id", newest)
        connectors.add(tx, made)
        acts.record(tx, "bank-connector.create", f"bank-connector:{made.id}", after=after)
    return NewConnector(connector_id=made.id, key=key)


def hash_of(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def list_connectors(deps: Deps) -> Sequence[Heard]:
    """Returns connectors, active ones first, each newest first."""
    now = deps.clock.now()
    with deps.db.autocommit() as connection:
        found = connectors.active_first(connection, CONNECTORS_LISTED)
    return [Heard(connector=each, is_silent=each.is_silent(now)) for each in found]


def revoke_connector(deps: Deps, *, connector_id: str) -> Heard:
    """Refuses the key from now on; the first time counts. Raises CONNECTOR_NOT_FOUND."""
    id = values.uuid_or(errors.connector_not_found, connector_id)
    with deps.db.transaction() as tx:
        found = connectors.locked(tx, id)
        if found is None:
            raise errors.connector_not_found()
        if found.revoked_at is None:
            found = replace(found, revoked_at=deps.clock.now())
            connectors.revoke(tx, id, at=deps.clock.now())
        acts.record(
            tx,
            "bank-connector.revoke",
            f"bank-connector:{id}",
            before=before_by_acts(tx, CONNECTOR, id, "revoked_at"),
            after={"revoked_at": found.revoked_at},
            note=found.name,
        )
    return Heard(connector=found, is_silent=False)

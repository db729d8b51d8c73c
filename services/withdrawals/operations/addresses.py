"""The address book of a merchant: its members withdraw to these addresses, and to each only after a waiting time.

A stolen session adds an address and can't use it before the merchant's people had the time to see and remove it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy.orm import Session

from kit.audit import acts
from kit.audit.decisions import is_as_decided
from kit.base import actors
from kit.base.actors import THE_OPERATOR
from kit.base.ids import new_id
from kit.db.database import refusing, retry_conflicts
from kit.observe.log import get_logger
from kit.rpc import values
from kit.rpc.actors import require_merchant
from kit.rpc.errors import Refused
from services.withdrawals import errors
from services.withdrawals.addresses import is_address_of
from services.withdrawals.clients import IdentityClient
from services.withdrawals.domain import ADDRESS_NAME_MAX_CHARACTERS, ADDRESSES_MOST, ADDRESSES_PER_DAY_MOST
from services.withdrawals.operations import fields
from services.withdrawals.operations.bans import refusal_of_member
from services.withdrawals.store import addresses, notices, withdrawals
from services.withdrawals.store.decisions import ADDRESS, METHOD
from services.withdrawals.store.views import AddressView, MethodView
from services.withdrawals.wiring import Deps

DAY: Final = timedelta(days=1)
NOTICE_LEASE: Final = timedelta(seconds=30)
"""Longer than a call of identity takes."""
_log = get_logger()
_IN_ACTS: Final = (
    *("name", "method_id", "network", "address", "address_memo", "added_by", "usable_at", "removed_at"),
)


def list_addresses(deps: Deps, *, merchant_id: str) -> Sequence[AddressView]:
    """Returns the addresses in the merchant's book, newest first."""
    merchant = values.uuid("merchant_id", merchant_id)
    with deps.db.transaction() as tx:
        return addresses.current(tx, merchant)


@retry_conflicts
def add_address(
    deps: Deps,
    *,
    merchant_id: str,
    withdrawal_method_id: int,
    address: str,
    address_memo: str | None,
    name: str,
) -> AddressView:
    """Adds an address, which may be used after `ADDRESS_WAIT_SECONDS`.

    Raises WITHDRAWAL_METHOD_NOT_FOUND, WITHDRAWAL_ADDRESS_INVALID, WITHDRAWAL_ADDRESS_EXISTS,
    WITHDRAWAL_ADDRESSES_LIMITED, and the reasons of `refusal_of_member`.
    """
    merchant = values.uuid("merchant_id", merchant_id)
    given, memo = fields.address(address), fields.memo(address_memo)
    label = values.label("name", name, most=ADDRESS_NAME_MAX_CHARACTERS).strip()
    if refusal := refusal_of_member(deps, merchant):
        raise refusal
    in_book = {"uq_withdrawal_addresses_current": errors.address_exists}
    with refusing(in_book), deps.db.transaction() as tx:
        addresses.lock_book(tx, merchant)
        now = deps.clock.now()
        method = method_for(tx, withdrawal_method_id, given, memo)
        _require_room(tx, merchant, now)
        new = AddressView(
            id=new_id(),
            merchant_id=merchant,
            method_id=method.id,
            network=method.network,
            address=given,
            address_memo=memo,
            name=label,
            added_by=_member() or THE_OPERATOR,
            created_at=now,
            usable_at=now + timedelta(seconds=deps.settings.address_wait_seconds),
            removed_at=None,
        )
        addresses.add(tx, new)
        notices.add(tx, new.id, at=now)
        acts.record(
            tx,
            "withdrawal-address.add",
            f"withdrawal-address:{new.id}",
            merchant_id=merchant,
            after=acts.values_of(new, _IN_ACTS),
        )
    return new


def remove_address(deps: Deps, *, address_id: str) -> None:
    """Removes an address at once. Raises WITHDRAWAL_ADDRESS_NOT_FOUND, also for one that was removed before."""
    id = values.uuid_or(errors.address_not_found, address_id)
    with deps.db.transaction() as tx:
        found = addresses.locked(tx, id)
        if found is None:
            raise errors.address_not_found()
        require_merchant(found.merchant_id, errors.address_not_found)
        if found.removed_at is not None:
            raise errors.address_not_found()
        removed_at = deps.clock.now()
        addresses.remove(tx, id, at=removed_at)
        acts.record(
            tx,
            "withdrawal-address.remove",
            f"withdrawal-address:{id}",
            merchant_id=found.merchant_id,
            before=acts.values_of(found, _IN_ACTS),
            after={"removed_at": removed_at},
        )


def tell_of_new_address(deps: Deps, identity: IdentityClient) -> bool:
    """Has the owners told of the new address that is due for longest; returns whether there was one. While identity
    does not take it, it is due again after `NOTICE_LEASE`.
    """
    with deps.db.transaction() as tx:
        address = notices.take_due(tx, now=deps.clock.now(), lease=NOTICE_LEASE)
    if address is None:
        return False
    try:
        identity.tell_owners(address)
    except Refused as refused:
        _log.warning("address_notice_failed", address_id=str(address.id), reason=refused.reason)
        return True
    with deps.db.transaction() as tx:
        notices.remove(tx, address.id)
    return True


def usable_address(tx: Session, merchant_id: UUID, address_id: str) -> AddressView:
    """Returns the merchant's address, also a removed one, which can't be removed until the transaction ends. Raises
    WITHDRAWAL_ADDRESS_NOT_FOUND, also for one that no act added: its waiting time would be its own word.
    """
    id = values.uuid_or(errors.address_not_found, address_id)
    found = addresses.to_use(tx, merchant_id, id)
    if found is None:
        raise errors.address_not_found()
    values_now = acts.values_of(found, ADDRESS.fields)
    if found.removed_at is None and not is_as_decided(tx, ADDRESS, found.id, values_now):
        raise errors.address_not_found()
    return found


def require_usable(address: AddressView, *, now: datetime) -> None:
    """Raises WITHDRAWAL_ADDRESS_NOT_FOUND for a removed address, WITHDRAWAL_ADDRESS_WAITS before its time."""
    if address.removed_at is not None:
        raise errors.address_not_found()
    if now < address.usable_at:
        raise errors.address_waits(address.usable_at)


def method_for(tx: Session, method_id: int, address: str, memo: str | None) -> MethodView:
    """Returns the method if it is enabled and can send there. Raises WITHDRAWAL_METHOD_NOT_FOUND,
    WITHDRAWAL_ADDRESS_INVALID, VALIDATION_ERROR for a memo that the network does not know.
    """
    method = withdrawals.enabled_method(tx, method_id)
    if method is None or not is_as_decided(tx, METHOD, method.code, acts.values_of(method, METHOD.fields)):
        raise errors.method_not_found()
    if not is_address_of(method.network, address):
        raise errors.address_invalid(method.network)
    if memo is not None and not method.memo_allowed:
        raise values.invalid("address_memo", f"{method.network} knows no memo")
    return method


def _require_room(tx: Session, merchant_id: UUID, now: datetime) -> None:
    in_book, of_the_day = addresses.counts(tx, merchant_id, since=now - DAY)
    if in_book >= ADDRESSES_MOST:
        raise errors.addresses_full(ADDRESSES_MOST)
    if of_the_day >= ADDRESSES_PER_DAY_MOST:
        raise errors.addresses_of_the_day(ADDRESSES_PER_DAY_MOST)


def _member() -> str:
    """Returns the e-mail address of the member whose call this is; empty for an operator."""
    actor = actors.current()
    return actor.name if actor.surface == "dashboard" else ""

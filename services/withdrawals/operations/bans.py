"""Bans: members of a banned merchant, or of a blocked owner's, start nothing. They read, cancel and remove."""

from uuid import UUID

from kit.base import actors
from kit.rpc.errors import Refused, database_unavailable
from services.withdrawals.wiring import Deps


def refusal_of_member(deps: Deps, merchant_id: UUID) -> Refused | None:
    """Returns why the author may start nothing for the merchant: OWNER_BLOCKED, MERCHANT_BLOCKED, MERCHANT_NOT_FOUND.
    None when nothing is in the way, and for operators, who may pay out what a banned merchant is due.

    Call it before the transaction: it waits for identity. Raises DB_UNAVAILABLE when that does not answer.
    """
    if actors.current().surface != "dashboard":
        return None
    if deps.identity is None:
        raise database_unavailable()
    return deps.identity.refusal_of(merchant_id)

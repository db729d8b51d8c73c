"""The causes for which a customer can't pay by a method: for operators, in the log and at the desk. Merchants get no
causes.
"""

from collections.abc import Sequence
from uuid import UUID

from kit.base import actors
from kit.observe.log import get_logger
from kit.rpc.errors import Refused
from services.invoices import errors
from services.invoices.domain.places import Wanted
from services.invoices.store import shares
from services.invoices.wiring import Deps

EXPLAINED_MAX = 10
"""The most methods that are explained. All take one statement together, so a refused call costs one more."""

_log = get_logger()


def no_available_requisites(deps: Deps, merchant_id: UUID, wanted: Sequence[Wanted]) -> Refused:
    """Returns NO_AVAILABLE_REQUISITES, with the cause of each wanted method unless a member of the merchant asks."""
    share_percent = deps.settings.method_share_percent
    with deps.db.autocommit() as connection:
        rooms = shares.rooms(connection, merchant_id, wanted[:EXPLAINED_MAX])
    causes = {room.method_code: room.refusal(share_percent) for room in rooms}
    _log.info("accounts_exhausted", merchant_id=str(merchant_id), causes=causes)
    by_member = actors.current().surface == "dashboard"
    return errors.no_available_requisites({} if by_member else causes)

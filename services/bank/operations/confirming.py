"""Lines that certainly fit confirm their deals, where the rule of the method lets them: invoices decides.

People decide about a line that invoices holds back; a try that failed otherwise is made again. While a try may be under
way, nobody can ignore the line, so that its money is not used otherwise.
"""

from typing import Final
from uuid import UUID

from kit.observe import metrics
from kit.observe.log import get_logger
from kit.rpc.errors import Refused
from services.bank.clients import InvoicesClient
from services.bank.domain.proposals import Deal, Tier
from services.bank.store import lines
from services.bank.store.decisions import is_as_read, is_put_back
from services.bank.store.views import LineView
from services.bank.wiring import Deps

CONFIRMED: Final = metrics.counter("bank_lines_confirmed", "Bank lines that confirmed deals without a person")
HELD: Final = metrics.counter("bank_lines_held", "Bank lines that a limit or a refusal left to people")
_RULE_OFF: Final = "rule_off"
_REFUSED: Final = "refused"
_FOR_GOOD: Final = ("BANK_LINE_CONFLICT", "DEAL_STATE_CONFLICT", "DEAL_NOT_FOUND")

_log = get_logger()


def confirm(deps: Deps, invoices: InvoicesClient, line_id: UUID, deal: Deal) -> bool:
    """Returns whether the deal was confirmed. Raises `Outage`."""
    line = _taken(deps, line_id, deal)
    if line is None:
        return False
    try:
        held = invoices.confirm_by_line(line, deal.id)
    except Refused as refused:
        _log.warning("line_refused", line_id=str(line_id), deal_id=str(deal.id), reason=refused.reason)
        if refused.reason not in _FOR_GOOD:  # the claim stays: it may yet be confirmed, or is tried again
            return False
        held = _REFUSED
    if not held:
        CONFIRMED.inc()
        _log.info("deal_confirmed", line_id=str(line_id), deal_id=str(deal.id))
        return True
    if held != _RULE_OFF:
        HELD.inc()
        _log.info("line_limited", line_id=str(line_id), deal_id=str(deal.id), held=held)
    with deps.db.transaction() as tx:
        lines.set_try(tx, line_id, tried_at=None, held=None if held == _RULE_OFF else held)
    return False


def _taken(deps: Deps, line_id: UUID, deal: Deal) -> LineView | None:
    """Returns the line if it is to be tried now, by this worker alone."""
    with deps.db.transaction() as tx:
        line, now = lines.locked(tx, line_id), deps.clock.now()
        if line is None or not line.is_payable or not is_as_read(deps.settings.seals, line):
            return None
        if (line.tier, line.deal_id, line.deal_amount) != (Tier.CERTAIN, deal.id, line.left):
            return None
        if is_put_back(tx, line):
            return None
        if line.held is not None or line.is_being_confirmed(now):
            return None
        lines.set_try(tx, line_id, tried_at=now)
    return line

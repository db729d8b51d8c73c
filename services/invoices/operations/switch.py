"""The switch behind DEALS_SYSTEM_DISABLED."""

from kit.audit import acts
from kit.audit.decisions import before_by_acts
from kit.base import actors
from services.invoices.store import deals
from services.invoices.store.decisions import SWITCH
from services.invoices.store.views import SwitchView
from services.invoices.wiring import Deps


def get_deals_system(deps: Deps) -> SwitchView:
    with deps.db.autocommit() as connection:
        return deals.deals_switch(connection)


def set_deals_system(deps: Deps, *, enabled: bool) -> bool:
    """Switches new invoices and deals on or off. While they are off, open deals go on."""
    with deps.db.transaction() as tx:
        before = before_by_acts(tx, SWITCH, "deals")
        acts.record(tx, "deals-system.set", "switch:deals", before=before, after={"enabled": enabled})
        deals.set_deals_enabled(tx, enabled=enabled, actor=str(actors.current()), at=deps.clock.now())
    return enabled

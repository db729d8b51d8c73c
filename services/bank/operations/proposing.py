"""Proposals for lines, and what invoices has recorded of their payments."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from kit.db.database import retry_conflicts
from services.bank.clients import InvoicesClient
from services.bank.domain.lines import references_in
from services.bank.domain.proposals import OPEN_STATES, Coming, Deal, LineState, Proposal, Tier, propose
from services.bank.operations import confirming
from services.bank.store import lines
from services.bank.store.decisions import is_as_read
from services.bank.store.views import LineView
from services.bank.wiring import Deps

BATCH: Final = 100
"""The references of so many lines, REFERENCES_MOST each, fit in one call of invoices."""
AGAIN_MOST: Final = 500
"""So many lines that wait for an operator are looked at again: deals open, end and are confirmed beside them."""
PAYMENTS_BATCH: Final = 500


def propose_new(deps: Deps) -> bool:
    """Proposes deals for lines that were not looked at. Returns whether there may be more."""
    with deps.db.autocommit() as connection:
        found = lines.to_look_at(connection, (LineState.WAITING,), BATCH)
    return _propose(deps, found) == BATCH


class Again:
    """Looks again at lines that wait for an operator: each time at the newest ones, and at older ones by turns."""

    def __init__(self, most: int = AGAIN_MOST) -> None:
        self._most = most
        self._before: UUID | None = None

    def step(self, deps: Deps) -> bool:
        for found in self.turn(deps):
            _propose(deps, found)
        return False

    def turn(self, deps: Deps) -> Sequence[Sequence[LineView]]:
        """Returns the newest lines, and the next older ones."""
        with deps.db.autocommit() as connection:
            newest = lines.to_look_at(connection, OPEN_STATES, self._most)
            if len(newest) < self._most:
                return [newest]
            before = min(self._before or newest[-1].id, newest[-1].id)
            older = lines.to_look_at(connection, OPEN_STATES, self._most, before=before)
        self._before = older[-1].id if len(older) == self._most else None
        return [newest, older]


def _propose(deps: Deps, found: Sequence[LineView]) -> int:
    """Returns the number of lines whose proposal changed. Lines that SQL wrote get none."""
    if deps.invoices is None:
        return 0
    sealed = [line for line in found if is_as_read(deps.settings.seals, line)]
    changed: dict[UUID, Proposal] = {}
    automatic: dict[UUID, Deal] = {}
    for first in range(0, len(sealed), BATCH):
        some = sealed[first : first + BATCH]
        proposals = _proposals(deps.invoices, some)
        changed |= {line.id: proposals[line.id] for line in some if _differs(line, proposals[line.id])}
        for line in some:
            deal = proposals[line.id].deal
            if deal and deal.is_automatic and proposals[line.id].tier is Tier.CERTAIN and line.held is None:
                automatic[line.id] = deal
    with deps.db.transaction() as tx:
        lines.save_proposals(tx, changed)
    confirmed = [id for id, deal in automatic.items() if confirming.confirm(deps, deps.invoices, id, deal)]
    while confirmed and follow_step(deps):
        pass
    return len(changed)


def _proposals(invoices: InvoicesClient, some: Sequence[LineView]) -> dict[UUID, Proposal]:
    comings = {line.id: _coming(line) for line in some}
    deals = invoices.deals_of_lines(
        accounts=sorted({each.account for each in comings.values()}),
        references=sorted({code for each in comings.values() for code in each.references}),
        amounts=sorted({each.amount for each in comings.values()}),
    )
    return {id: propose(coming, deals) for id, coming in comings.items()}


def is_proposed_now(deps: Deps, line: LineView) -> bool:
    """Returns whether the stored proposal is that of this moment, else stores that: SQL may have written the other."""
    if deps.invoices is None:
        return True
    proposal = _proposals(deps.invoices, [line])[line.id]
    if not _differs(line, proposal):
        return True
    with deps.db.transaction() as tx:
        lines.save_proposals(tx, {line.id: proposal})
    return False


def _coming(line: LineView) -> Coming:
    texts = (*line.reference_texts.split("\n"), line.text, line.counterparty_name)
    return Coming(
        account=line.account,
        currency_code=line.currency_code,
        amount=line.left,
        references=references_in(texts),
        counterparty_name=line.counterparty_name,
        day=line.booked_on or line.valued_on or line.created_at.date(),
    )


def _differs(line: LineView, proposal: Proposal) -> bool:
    deal = proposal.deal
    return line.state is LineState.WAITING or (line.tier, line.deal_id, line.deal_amount) != (
        proposal.tier,
        deal and deal.id,
        deal and deal.amount,
    )


def follow_step(deps: Deps) -> bool:
    """Stores payments by lines that invoices has recorded since the last time. Returns whether there may be more."""
    if deps.invoices is None:
        return False
    with deps.db.autocommit() as connection:
        after = lines.last_followed(connection)
    found = deps.invoices.payments_after(after, most=PAYMENTS_BATCH)
    if found:
        with deps.db.transaction() as tx:
            lines.add_matches(tx, found)
    return len(found) == PAYMENTS_BATCH


@retry_conflicts
def replace_payments(deps: Deps, *, after: int) -> int:
    """Fetches payments after this number again, in the place of what is known of them. Returns the number after which
    there may be more, else 0.
    """
    if deps.invoices is None:
        return 0
    found = deps.invoices.payments_after(after, most=PAYMENTS_BATCH)
    last = found[-1].number if len(found) == PAYMENTS_BATCH else None
    with deps.db.transaction() as tx:
        lines.replace_matches(tx, after, found, last=last)
    return last or 0

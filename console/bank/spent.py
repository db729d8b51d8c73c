"""Credits and returns of the ended deal that a line is proposed for: its money may be one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from console.calls import or_none
from console.page import Page
from console.ui.values import queried, word
from console.words.corrections import KINDS
from console.words.refunds import LIVE
from fiatgate.bank.v1 import bank_pb2 as pb
from fiatgate.withdrawals.v1 import corrections_pb2, refunds_pb2
from kit.base.money import money_text


@dataclass(frozen=True)
class Spent:
    """A credit or return with its page. `reason` is that for which the line would be ignored."""

    words: str
    name: str
    path: str
    reason: str


async def spent_of(page: Page, line: pb.Line) -> Sequence[Spent]:
    """Returns the credits and returns of late money or surplus of the line's ended deal, those of its amount first."""
    if line.state != pb.LINE_STATE_PROPOSED or line.tier != pb.TIER_ENDED:
        return ()
    credits = corrections_pb2.ListCorrectionsRequest(invoice_id=line.invoice_id)
    returns = refunds_pb2.ListRefundsRequest(invoice_id=line.invoice_id, statuses=LIVE)
    corrections, refunds = await asyncio.gather(
        or_none(page.deps.corrections.ListCorrections(credits)),
        or_none(page.deps.refunds.ListRefunds(returns)),
    )
    made = corrections.corrections if corrections else ()
    back = refunds.refunds if refunds else ()
    never_credited = [each for each in back if each.origin != refunds_pb2.REFUND_ORIGIN_CREDITED]
    found = [(each.received_amount, _credited(each)) for each in made if each.received_amount]
    found += [(each.refund_amount, _returned(each)) for each in never_credited]
    return [spent for _, spent in sorted(found, key=lambda each: each[0] != line.left)]


def _credited(made: corrections_pb2.Correction) -> Spent:
    name, what = made.correction_id[:13], KINDS[word(made, "kind")].capitalize()
    words = f"{what} already, {money_text(made.received_amount, made.currency_code)}"
    path = queried("/corrections", {"invoice": made.invoice_id})
    return Spent(words, name, path, f"{what} by correction {name}")


def _returned(refund: refunds_pb2.Refund) -> Spent:
    name, amount = refund.refund_id[:13], money_text(refund.refund_amount, refund.currency_code)
    words = f"{amount} go back to the customer already"
    return Spent(words, name, f"/refunds/{refund.refund_id}", f"Returned by refund {name}")

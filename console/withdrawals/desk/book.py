"""The entry of the merchant's address book to which a withdrawal goes, for the person who sends the money."""

from __future__ import annotations

from dataclasses import dataclass

from console.calls import or_none
from console.page import Page
from console.words.acts import author_of
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb


@dataclass(frozen=True)
class Entry:
    """by          the author of the request; empty: not recorded
    by_member   whether a member requested it at the dashboard, to an address that was in the book
    found       the entry with the withdrawal's address, if the book has one now
    same_memo   whether it has the withdrawal's memo too
    was         what held of it when the withdrawal was requested: usable, waiting or not added
    is_known    whether the book could be read
    """

    by: str = ""
    by_member: bool = False
    found: pb.WithdrawalAddress | None = None
    same_memo: bool = True
    was: str = ""
    is_known: bool = True


async def entry_of(page: Page, story: pb.GetWithdrawalStoryResponse) -> Entry:
    """Returns the entry: of those with the address, the one with the withdrawal's memo before the others."""
    withdrawal = story.withdrawal
    request = pb.ListAddressesRequest(merchant_id=withdrawal.merchant_id)
    listed = await or_none(page.deps.withdrawals.ListAddresses(request))
    if listed is None:
        return Entry(is_known=False)
    method, address = withdrawal.withdrawal_method_id, withdrawal.address
    fitting = [
        each for each in listed.addresses if (each.withdrawal_method_id, each.address) == (method, address)
    ]
    exact = [each for each in fitting if each.address_memo == withdrawal.address_memo]
    found = next(iter(exact or fitting), None)
    requested = next((each for each in story.acts if each.act == "withdrawal.create"), None)
    return Entry(
        by=author_of(requested) if requested else "",
        by_member=requested is not None and requested.actor.surface == "dashboard",
        found=found,
        was=_state_of(found, withdrawal.created_at.ToNanoseconds()) if found else "",
        same_memo=bool(exact) or not fitting,
    )


def _state_of(address: pb.WithdrawalAddress, at_nanoseconds: int) -> str:
    if address.created_at.ToNanoseconds() > at_nanoseconds:
        return "not added"
    return "waiting" if address.usable_at.ToNanoseconds() > at_nanoseconds else "usable"

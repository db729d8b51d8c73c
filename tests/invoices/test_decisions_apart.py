"""Operators' decisions and the other calls of the desk have threads and bounds of their own."""

from kit.rpc.slots import Pools, Slots
from services.invoices.rpc import SLOTS


def _kind(method: str) -> Slots:
    (kind,) = (each for each in SLOTS if method in each.methods)
    return kind


def test_lists_of_the_desk_take_no_thread_of_decisions() -> None:
    pools = Pools(SLOTS, threads=4)
    decisions = pools.of("/fiatgate.invoices.v1.DealDeskService/ConfirmDeal")
    assert decisions is not None
    assert decisions is pools.of("/fiatgate.invoices.v1.DealDeskService/RejectDeal")
    assert decisions is not pools.of("/fiatgate.invoices.v1.DealDeskService/ListDeals")
    assert decisions is not pools.of("/fiatgate.invoices.v1.CheckoutService/MarkPaid")


def test_as_many_decisions_wait_as_deals_that_are_marked_paid() -> None:
    """Each purchase has one of each. With a smaller bound, decisions were refused for a minute after an outage while
    all other steps of the same purchases were done.
    """
    marked = _kind("CheckoutService/MarkPaid")
    for method in ("ConfirmDeal", "RejectDeal", "OpenAppeal", "ResolveAppeal"):
        decided = _kind(f"DealDeskService/{method}")
        assert (decided.threads, decided.waiting) >= (marked.threads, marked.waiting), method

"""Operators' decisions and the other calls of the desk have threads and bounds of their own; reports have two sides."""

import threading
from concurrent.futures import Future
from dataclasses import replace

import pytest

from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.actors import Actor
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from kit.rpc.permissions import permission_of
from kit.rpc.slots import Pools, Slots
from services.invoices.rpc import SLOTS
from tests.support.acting import ANN, BEN, acting

PATIENCE_SECONDS = 60


def _kind(method: str) -> Slots:
    name = permission_of(f"/fiatgate.invoices.v1.{method}", "invoices").kind
    (kind,) = (each for each in SLOTS if each.name == name)
    return kind


def test_lists_of_the_desk_take_no_thread_of_decisions() -> None:
    decisions = _kind("DealDeskService/ConfirmDeal")
    assert decisions is _kind("DealDeskService/RejectDeal")
    assert decisions is not _kind("DealDeskService/ListDeals")
    assert decisions is not _kind("CheckoutService/MarkPaid")


def test_as_many_decisions_wait_as_deals_that_are_marked_paid() -> None:
    """Each purchase has one of each. With a smaller bound, decisions were refused for a minute after an outage while
    all other steps of the same purchases were done.
    """
    marked = _kind("CheckoutService/MarkPaid")
    for method in ("ConfirmDeal", "RejectDeal", "OpenAppeal", "ResolveAppeal"):
        decided = _kind(f"DealDeskService/{method}")
        assert (decided.threads, decided.waiting) >= (marked.threads, marked.waiting), method


def test_an_operators_report_on_a_merchant_waits_in_no_place_of_its_members() -> None:
    merchant_id = new_id()
    ida = Actor(
        kind="person",
        name="ida@example.com",
        surface="dashboard",
        person_id=new_id(),
        merchant_id=merchant_id,
    )
    kind = _kind("ReportsService/GetReport")
    assert kind.share is not None
    patient = replace(kind, share=replace(kind.share, wait_seconds=PATIENCE_SECONDS))
    pool = Pools([patient], threads=4).get(kind.name)
    assert pool is not None
    request = pb.GetReportRequest(merchant_id=str(merchant_id))
    may_end = threading.Event()

    def report() -> None:
        with pool.turn(request):
            assert may_end.wait(PATIENCE_SECONDS)

    def call(author: Actor) -> Future[None]:
        return pool.submit(acting, author, report)

    places, more = kind.share.working + kind.share.waiting, 3
    try:
        of_members = [call(ida) for _ in range(places + more)]
        wait_until(lambda: pool.use().refused == more, "the members' places to be full", timeout_seconds=15)
        of_operators = [call(ANN), call(BEN)]
        may_end.set()
        for each in of_operators:
            each.result(PATIENCE_SECONDS)
    finally:
        may_end.set()
        pool.shutdown()
    refused = [each for each in of_members if each.exception() is not None]
    assert len(refused) == more
    with pytest.raises(Refused, match="RATE_LIMITED"):
        refused[0].result()

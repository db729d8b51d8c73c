"""Many at once against the whole stack: whatever the order, one wins and everything else follows from that."""

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from threading import Barrier
from typing import TypeVar

import pytest
import requests

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from tests.e2e.market import FORM, HTTP_SECONDS, Customer, Invoice, Operator, Shop, settled
from tests.support.receiver import Answer, Receiver

CALLBACK = "https://shop.example/hook"
T = TypeVar("T")


def all_at_once(calls: Iterable[Callable[[], T]]) -> list[T]:
    together = list(calls)
    begin = Barrier(len(together))

    def call(each: Callable[[], T]) -> T:
        begin.wait(timeout=30)
        return each()

    with ThreadPoolExecutor(len(together)) as threads:
        return list(threads.map(call, together))


def outcome(answer: requests.Response) -> tuple[int, str | None]:
    error = answer.json().get("error")
    return answer.status_code, error and error["code"]


@pytest.mark.parametrize(
    ("member", "code"), [("external_id", "DUPLICATE_EXTERNAL_ID"), ("customer_id", "PENDING_INVOICE_EXISTS")]
)
def test_of_50_creates_for_one_order_or_customer_one_wins_and_49_learn_which(
    shop: Shop, member: str, code: str
) -> None:
    value = new_id().hex
    bodies = [shop.body(callback_url=CALLBACK, **{member: value}) for _ in range(50)]
    answers = all_at_once(
        lambda body=body: shop.request("POST", "/api/v1/create-invoice", json=body)  # type: ignore[misc]  # bound
        for body in bodies
    )
    assert Counter(map(outcome, answers)) == {(201, None): 1, (409, code): 49}
    (made,) = [answer.json()["invoice_id"] for answer in answers if answer.status_code == 201]
    told = {
        answer.json()["error"]["details"]["invoice_id"] for answer in answers if answer.status_code == 409
    }
    assert told == {made}
    listed = shop.request("GET", "/api/v1/invoices?status=pending&per_page=500").json()["data"]
    assert [each[member] for each in listed].count(value) == 1


def test_of_20_confirms_and_cancels_of_one_deal_one_wins_with_one_event_and_one_credit(
    shop: Shop, operator: Operator, receiver: Receiver
) -> None:
    invoice = shop.create(receiver.url())
    Customer(invoice.created["payment_link"]).choose()
    deal = invoice.read()["deal"]
    before = operator.available(shop)

    def confirm() -> str:
        try:
            operator.desk.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal["deal_id"]))
        except Refused as refused:
            return refused.reason
        return "confirmed"

    def cancel() -> str:
        # What the page's form sends; another one's success is shown with a notice, so the answer is 200 always.
        page = f"{shop.url}/pay/{invoice.id}/cancel"
        answer = requests.post(page, headers=FORM, timeout=HTTP_SECONDS)
        return str(answer.status_code)

    results = all_at_once([confirm, cancel] * 10)
    confirms, cancels = Counter(results[::2]), Counter(results[1::2])
    assert cancels == {"200": 10}
    end = invoice.read()
    if end["status"] == "success":
        assert confirms == {"confirmed": 1, "DEAL_STATE_CONFLICT": 9}
        due = Decimal(end["deal"]["merchant_usdt"])
    else:
        assert end["status"] == "canceled"
        assert confirms == {"DEAL_STATE_CONFLICT": 10}
        due = Decimal(0)
    story = operator.desk.GetDeal(pb.GetDealRequest(deal_id=deal["deal_id"])).history
    assert len(story) == 2, "opened, and ended once"

    event = invoice.wait_for_delivery()
    assert event["event_type"] == f"invoice.{end['status']}"
    assert len(receiver.received()) == 1
    settled(lambda: operator.available(shop) == before + due, "the credit")
    _assert_nothing_more_comes(operator, shop, receiver, invoice)


def _assert_nothing_more_comes(operator: Operator, shop: Shop, receiver: Receiver, invoice: Invoice) -> None:
    """A later purchase goes all the way: whatever a loser might have caused would have come before it."""
    later = shop.create(receiver.url("later"))
    Customer(later.created["payment_link"]).choose_and_pay()
    balance = operator.available(shop)
    operator.confirm(later)
    later.wait_for_delivery()
    due = Decimal(later.read()["deal"]["merchant_usdt"])
    settled(lambda: operator.available(shop) == balance + due, "the later credit and no other")
    assert invoice.history()["events_count"] == 1
    assert len(receiver.received()) == 1


def test_of_20_resends_one_is_made(shop: Shop, receiver: Receiver) -> None:
    invoice = shop.create(receiver.url())
    customer = Customer(invoice.created["payment_link"])
    customer.follow("Cancel the payment")
    customer.submit("Yes, cancel it")
    invoice.wait_for_delivery()
    receiver.answer(Answer(delay_seconds=1))  # so that the others meet it under way
    answers = all_at_once([invoice.resend] * 20)
    counted = Counter(map(outcome, answers))
    assert counted.pop((200, None)) == 1
    assert set(counted) <= {(409, "WEBHOOK_RESEND_CONFLICT"), (429, "WEBHOOK_RESEND_COOLDOWN")}
    assert sum(counted.values()) == 19
    event = invoice.event()
    assert (event["auto_attempts"], event["manual_attempts"]) == (1, 1)
    assert len(receiver.received()) == 2

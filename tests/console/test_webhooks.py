"""Webhooks and parked events on the desk."""

import re
from collections.abc import Iterator
from html import unescape

import psycopg2
import pytest
from playwright.sync_api import expect

from console.webhooks.events import RESENT_MOST
from console.webhooks.explained import explained
from fiatgate.webhooks.v1 import webhooks_pb2 as pb
from kit.base.ids import new_id
from tests.console.conftest import Open, Staff
from tests.console.house import House, title_of
from tests.console.looks import looks_right
from tests.e2e.market import Customer, Invoice, Shop, settled
from tests.support.receiver import Answer, Receiver


@pytest.fixture(scope="module")
def shop(house: House) -> Shop:
    return Shop.opened(house.stack)


@pytest.fixture(scope="module")
def failed(shop: Shop, receiver_of_module: Receiver) -> Invoice:
    """A cancelled invoice whose webhook the merchant's server refused once."""
    receiver_of_module.answer(Answer(status=404, body=b"<b>gone fishing</b>"))
    invoice = shop.create(receiver_of_module.url())
    customer = Customer(invoice.created["payment_link"])
    customer.follow("Cancel the payment")
    customer.submit("Yes, cancel it")
    settled(lambda: bool(invoice.history()["events"] and invoice.event()["attempts"]), "the first attempt")
    return invoice


@pytest.fixture(scope="module")
def receiver_of_module() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def test_a_refused_webhook_is_found_explained_and_resent(
    staff: Staff, open_page: Open, failed: Invoice, receiver_of_module: Receiver, shop: Shop
) -> None:
    page = staff.page(open_page, "desk", scripts=False)
    desk = staff("desk").url
    page.goto(f"{desk}/webhooks?state=retrying&merchant={shop.merchant_id}&invoice={failed.id}")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.locator("tbody tr th a").first.click()
    expect(page.get_by_text("answered 404 (Not Found)")).to_be_visible()
    expect(page.get_by_text("the merchant corrects its callback address")).to_be_visible()
    page.get_by_text("Answer of attempt 1").click()
    expect(page.get_by_text("<b>gone fishing</b>")).to_be_visible()
    looking = staff.page(open_page, "desk")
    looking.goto(page.url)
    looks_right(looking, "desk-webhook")
    receiver_of_module.answer(Answer(status=200))
    page.locator("summary", has_text="Resend").click()
    page.get_by_role("button", name="Resend now").click()
    expect(page.get_by_role("status")).to_contain_text("Delivered")
    page.goto(f"{desk}/webhooks?state=success&merchant={shop.merchant_id}&type=invoice.canceled")
    page.locator("tbody input[type=checkbox]").first.check()
    page.get_by_role("button", name="Resend the ticked ones").click()
    expect(page.get_by_role("status")).to_contain_text("It was resent a moment ago")
    expect(page.locator("tbody tr")).to_have_count(1)  # the list is still the filtered one
    page.get_by_role("link", name="All", exact=True).click()
    expect(page.get_by_role("heading", name="Webhooks")).to_be_visible()
    assert f"merchant={shop.merchant_id}" in page.url
    looking.goto(f"{desk}/webhooks?state=success&limit=10")
    looks_right(looking, "desk-webhooks")


def give_up(house: House, *invoices: Invoice) -> None:
    """Makes their webhooks as they are after the last attempt."""
    change = (
        "UPDATE events SET status = 'dead', next_retry_at = NULL, last_manual_at = NULL"
        " WHERE invoice_id = ANY(%s::uuid[])"
    )
    with psycopg2.connect(house.stack.superuser_url("webhooks")) as connection, connection.cursor() as cursor:
        cursor.execute(change, ([each.id for each in invoices],))
    connection.close()


def test_all_that_were_given_up_are_resent(
    house: House, staff: Staff, failed: Invoice, shop: Shop, receiver_of_module: Receiver
) -> None:
    receiver_of_module.answer(Answer(status=200))
    path = f"?state=dead&merchant={shop.merchant_id}"
    give_up(house, failed)
    page = staff("desk").get(f"/webhooks{path}").text
    assert 0 < page.index("Resend all of this list") < page.index("<tbody>"), "above the list"
    answer = staff("desk").post(f"/webhooks/resend{path}", {"every": "yes"})
    assert "Delivered: event" in answer.text
    assert "Nothing was ticked" in staff("desk").post(f"/webhooks/resend{path}", {"every": "yes"}).text
    give_up(house, failed)
    of_shop = ("webhooks", "resend-dead", "--merchant", shop.merchant_id, "--since")
    assert house.stack.cli(*of_shop, "2020-01-01")["ok"]
    assert house.stack.cli(*of_shop, "2020-01-01") == []


def test_a_long_list_is_resent_part_by_part_to_its_end(
    house: House, staff: Staff, open_page: Open, receiver_of_module: Receiver
) -> None:
    receiver_of_module.answer(Answer(status=200))
    shop = Shop.opened(house.stack)
    invoices = [shop.create(receiver_of_module.url()) for _ in range(RESENT_MOST + 1)]
    house.stack.cli("invoices", "cancel", *(each.id for each in invoices))
    for each in invoices:
        each.wait_for_delivery()
    give_up(house, *invoices)
    page = staff.page(open_page, "desk")
    page.goto(f"{house.desk}/webhooks?state=dead&merchant={shop.merchant_id}")
    page.get_by_role("button", name="Resend all of this list").click()
    expect(page.get_by_role("status").get_by_role("listitem")).to_have_count(RESENT_MOST)
    expect(page.get_by_role("link", name="Stop")).to_be_visible()
    # The script sends the rest without a button, and ends.
    expect(page.get_by_role("status").get_by_role("listitem")).to_have_count(1)
    expect(page.get_by_role("link", name="Stop")).to_have_count(0)
    assert all(len(each.event()["attempts"]) == 2 for each in invoices), "each once more"


def test_the_file_has_what_the_list_has(staff: Staff, failed: Invoice, shop: Shop) -> None:
    (row,) = staff("auditor").rows("/webhooks.csv", state="all", merchant=shop.merchant_id)
    assert (row["invoice_id"], row["event_type"]) == (failed.id, "invoice.canceled")
    assert f"/invoices/{failed.id}" in staff("auditor").get(f"/webhooks?invoice={failed.id}").text
    assert staff("auditor").get("/webhooks").url.endswith("/webhooks?state=dead")
    assert title_of(staff("auditor").get("/webhooks/999999999")) == "Not found"
    assert title_of(staff("auditor").get("/webhooks/none")) == "Not found"


def test_a_parked_event_is_shown_retried_and_a_forged_one_discarded(
    house: House, staff: Staff, open_page: Open
) -> None:
    event_id = str(new_id())
    with psycopg2.connect(house.stack.superuser_url("webhooks")) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO parked (event_id, subject, payload, request_id, error, attempts, failed_at, parked_at,"
            " claimed_id, signature) VALUES (%s, 'fiatgate.invoices.finished', 'forged', '', 'Unproven: <i>no</i>', 1,"
            " now(), now(), %s, 'unknown.key')",
            (event_id, str(new_id())),
        )
    connection.close()
    path = f"/parked/webhooks/{event_id}"
    shown = unescape(staff("viewer").get("/parked").text)
    assert staff("viewer").post("/parked/retry").status_code == 403
    assert event_id in shown
    page = staff.page(open_page, "admin")
    page.goto(f"{house.desk}/parked")
    looks_right(page, "desk-parked")
    assert "Unproven: <i>no</i>" in shown
    assert path not in shown, "a viewer has no buttons"
    rows = staff("auditor").rows("/parked.csv")
    assert event_id in [row["event_id"] for row in rows if row["service"] == "webhooks"]
    assert title_of(staff("viewer").post(f"{path}/retry")) == "Not permitted"
    assert "failed again" in staff("desk").post(f"{path}/retry").text
    assert "may be a true event" in re.sub(r"\s+", " ", staff("admin").post(f"{path}/discard").text)
    done = staff("admin").post(f"{path}/discard", {"even_if_true": "on"})
    assert "The event is discarded." in done.text
    assert event_id not in done.text


@pytest.mark.parametrize(
    ("status", "went", "step"),
    [
        (200, "accepted it", ""),
        (302, "302 (Found)", "Redirects are not followed"),
        (401, "401 (Unauthorized)", "signing secret"),
        (503, "503 (Service Unavailable)", "fails on the merchant's side"),
        (799, "799 (an unknown status)", "fails on the merchant's side"),
        (None, "no answer", "reachable"),
    ],
)
def test_each_result_of_an_attempt_has_its_words(status: int | None, went: str, step: str) -> None:
    ok = status is not None and status < 300
    attempt = pb.Attempt(
        status=pb.ATTEMPT_STATUS_SUCCESS if ok else pb.ATTEMPT_STATUS_FAILURE, http_status=status
    )
    words = explained(attempt)
    assert went in words.went
    assert step in words.step


@pytest.mark.parametrize(
    ("not_sent", "step", "step_of_members"),
    [
        (pb.NOT_SENT_NO_KEY, "The merchant makes a key", "Make a key"),
        (pb.NOT_SENT_HELD_BACK, "webhook_unsealed", "nothing to mend at your server"),
        (pb.NOT_SENT_ADDRESS, "The merchant sets a public", "Set a public callback address"),
        (pb.NOT_SENT_INTERNAL, "webhook_attempt_crashed", "nothing to mend at your server"),
        (max(pb.NotSent.values()) + 1, "", ""),  # of a later version
    ],
)
def test_what_was_not_sent_is_no_fault_of_a_server(
    not_sent: pb.NotSent.ValueType, step: str, step_of_members: str
) -> None:
    attempt = pb.Attempt(status=pb.ATTEMPT_STATUS_FAILURE, not_sent=not_sent)
    for words, expected in (
        (explained(attempt), step),
        (explained(attempt, for_members=True), step_of_members),
    ):
        assert words.went.startswith("It was not sent")
        assert expected in words.step


def test_each_reason_for_not_sending_has_its_words() -> None:
    for not_sent in set(pb.NotSent.values()) - {pb.NOT_SENT_UNSPECIFIED}:
        attempt = pb.Attempt(status=pb.ATTEMPT_STATUS_FAILURE, not_sent=not_sent)
        assert explained(attempt).step
        assert explained(attempt, for_members=True).step

"""What the customer's page decides to show, state by state."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fiatgate.invoices.v1 import invoices_pb2 as pb
from gateway.links import Links
from gateway.pay.view import OUTCOMES, PartPayment, Screen, View, view_of, web_url
from kit.base.proto import timestamp_from

NOW = datetime(2026, 1, 15, 23, 50, 0, tzinfo=UTC)
LINKS = Links("https://pay.example")
PAGE = "/pay/an-id"
REQUISITE = pb.Requisite(holder="7", account="4000002500003155", bank="8")


def a_deal(**changes: object) -> pb.Deal:
    values = {
        "deal_id": "d-1",
        "status": pb.DEAL_STATUS_PENDING,
        "sub_status": "awaiting_payment",
        "payment_method_code": "card",
        "payment_method_name": "Card",
        "amount_fiat": "102.50",
        "created_at": timestamp_from(NOW),
        "expires_at": timestamp_from(NOW + timedelta(minutes=15)),
    } | changes
    return pb.Deal(**values)  # type: ignore[arg-type]


def a_checkout(
    *,
    status: pb.InvoiceStatus.ValueType = pb.INVOICE_STATUS_PENDING,
    deal: pb.Deal | None = None,
    **changes: object,
) -> pb.GetCheckoutResponse:
    invoice = pb.Invoice(
        invoice_id="an-id",
        amount="100.00",
        currency_code="EUR",
        status=status,
        success_url="https://shop.example/thanks",
        fail_url="https://shop.example/sorry",
        expires_at=timestamp_from(NOW + timedelta(seconds=61)),
        deal=deal,
    )
    if deal is not None:
        changes = {"requisite": REQUISITE} | changes
    values = {"invoice": invoice, "merchant_name": "Shop", "now": timestamp_from(NOW)} | changes
    return pb.GetCheckoutResponse(**values)  # type: ignore[arg-type]


PAID = timestamp_from(NOW - timedelta(minutes=1))


@pytest.mark.parametrize(
    ("checkout", "screen"),
    [
        (a_checkout(), Screen.CHOOSE),
        (a_checkout(deal=a_deal()), Screen.PAY),
        (a_checkout(deal=a_deal(), requisite=None), Screen.CHOOSE),
        (a_checkout(deal=a_deal(mark_paid_at=PAID)), Screen.WAITING),
        (a_checkout(deal=a_deal(status=pb.DEAL_STATUS_APPEAL, mark_paid_at=PAID)), Screen.REVIEW),
        (a_checkout(deal=a_deal(status=pb.DEAL_STATUS_CANCELED)), Screen.CHOOSE),
        (
            a_checkout(status=pb.INVOICE_STATUS_SUCCESS, deal=a_deal(status=pb.DEAL_STATUS_COMPLETED)),
            Screen.OUTCOME,
        ),
        (
            a_checkout(status=pb.INVOICE_STATUS_FAIL, deal=a_deal(status=pb.DEAL_STATUS_FAILED)),
            Screen.OUTCOME,
        ),
        (a_checkout(status=pb.INVOICE_STATUS_EXPIRED), Screen.OUTCOME),
        (a_checkout(status=pb.INVOICE_STATUS_CANCELED), Screen.OUTCOME),
        # The invoice's word counts, whatever a deal still says.
        (a_checkout(status=pb.INVOICE_STATUS_CANCELED, deal=a_deal()), Screen.OUTCOME),
    ],
)
def test_each_state_has_its_screen(checkout: pb.GetCheckoutResponse, screen: Screen) -> None:
    assert view_of(checkout, LINKS).screen is screen


@pytest.mark.parametrize(
    ("status", "outcome", "url"),
    [
        (pb.INVOICE_STATUS_SUCCESS, "success", "https://shop.example/thanks"),
        (pb.INVOICE_STATUS_FAIL, "fail", "https://shop.example/sorry"),
        (pb.INVOICE_STATUS_EXPIRED, "expired", "https://shop.example/sorry"),
        (pb.INVOICE_STATUS_CANCELED, "canceled", "https://shop.example/sorry"),
    ],
)
def test_an_outcome_leads_to_its_url(status: pb.InvoiceStatus.ValueType, outcome: str, url: str) -> None:
    view = view_of(a_checkout(status=status), LINKS)
    assert view.outcome == outcome
    assert view.return_url == url
    assert view.refresh is not None
    assert view.refresh.url == url


def test_the_times_for_choosing_and_for_paying_are_two() -> None:
    view = view_of(a_checkout(deal=a_deal()), LINKS)
    assert view.choose_until.minutes_left == 2  # 61 seconds, rounded up
    assert view.choose_until.at == NOW + timedelta(seconds=61)
    assert view.pay_until is not None
    assert view.pay_until.minutes_left == 15
    assert view.pay_until.at == NOW + timedelta(minutes=15)


def test_no_time_is_ever_below_zero() -> None:
    late = a_checkout(now=timestamp_from(NOW + timedelta(hours=1)))
    assert view_of(late, LINKS).choose_until.minutes_left == 0


def test_the_fee_is_what_the_customer_pays_beyond_the_amount() -> None:
    assert view_of(a_checkout(deal=a_deal()), LINKS).fee == "2.50"
    assert view_of(a_checkout(deal=a_deal(amount_fiat="100.00")), LINKS).fee is None


def test_an_adjusted_amount_is_the_amount() -> None:
    deal = a_deal(status=pb.DEAL_STATUS_COMPLETED, adjusted_amount="60.00", amount_to_send="102.50")
    view = view_of(a_checkout(status=pb.INVOICE_STATUS_SUCCESS, deal=deal), LINKS)
    assert (view.amount, view.part) == ("60.00", PartPayment(ordered="100.00", asked="102.50"))
    assert view_of(a_checkout(status=pb.INVOICE_STATUS_SUCCESS, deal=a_deal()), LINKS).part is None


def test_the_fee_of_an_adjusted_amount_is_its_own() -> None:
    deal = a_deal(status=pb.DEAL_STATUS_COMPLETED, adjusted_amount="60.00", amount_fiat="61.50")
    assert view_of(a_checkout(status=pb.INVOICE_STATUS_SUCCESS, deal=deal), LINKS).fee == "1.50"


def test_a_check_that_takes_longer_than_the_method_does_is_slow() -> None:
    def waiting(minutes: int) -> View:
        marked = timestamp_from(NOW - timedelta(minutes=minutes))
        return view_of(a_checkout(deal=a_deal(mark_paid_at=marked)), LINKS)

    assert waiting(1).usual_minutes == 15
    assert [waiting(minutes).is_slow for minutes in (14, 16)] == [False, True]


def test_nothing_to_choose_is_explained() -> None:
    refused = a_checkout(methods_refused="RATES_UNAVAILABLE")
    assert "exchange rate" in (view_of(refused, LINKS).nothing_to_choose or "")
    assert view_of(a_checkout(), LINKS).nothing_to_choose


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        " javascript:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,<script>",
        "//evil.example",
        "/relative",
        "https://",
        "https://a b",
        "http://[::1",
        "",
        None,
    ],
)
def test_only_web_addresses_become_links(url: str | None) -> None:
    assert web_url(url) is None


def test_a_web_address_stays_as_it_is() -> None:
    assert web_url("https://shop.example/a?b=c&d='#e") == "https://shop.example/a?b=c&d='#e"


@pytest.mark.parametrize(
    ("status", "deal", "stays"),
    [
        (pb.INVOICE_STATUS_EXPIRED, a_deal(), True),
        (pb.INVOICE_STATUS_CANCELED, a_deal(), True),
        (pb.INVOICE_STATUS_FAIL, a_deal(), True),
        (pb.INVOICE_STATUS_EXPIRED, None, False),
        (pb.INVOICE_STATUS_SUCCESS, a_deal(), False),
    ],
)
def test_who_may_have_paid_in_vain_is_asked_before_the_shop_has_them_back(
    status: pb.InvoiceStatus.ValueType, deal: pb.Deal | None, stays: bool
) -> None:
    view = view_of(a_checkout(status=status, deal=deal), LINKS)
    assert view.can_report_late_money is stays
    assert (view.refresh is None) is stays


@pytest.mark.parametrize(("ago", "leads"), [(10, True), (11, False)])
def test_a_receipt_that_is_opened_again_stays(ago: int, leads: bool) -> None:
    paid = a_checkout(status=pb.INVOICE_STATUS_SUCCESS, deal=a_deal())
    paid.invoice.finished_at.FromDatetime(NOW - timedelta(minutes=ago))
    assert (view_of(paid, LINKS).refresh is not None) is leads


def test_what_the_page_tells_is_its_state() -> None:
    """A script compares states: two that look different must not be equal."""
    views = [
        view_of(checkout, LINKS)
        for checkout in (
            a_checkout(),
            a_checkout(deal=a_deal()),
            a_checkout(deal=a_deal(deal_id="d-2")),
            a_checkout(deal=a_deal(mark_paid_at=PAID)),
            a_checkout(deal=a_deal(status=pb.DEAL_STATUS_APPEAL)),
            a_checkout(status=pb.INVOICE_STATUS_EXPIRED, deal=a_deal()),
            a_checkout(status=pb.INVOICE_STATUS_EXPIRED, deal=a_deal(), case=pb.Case(number=1)),
            a_checkout(
                status=pb.INVOICE_STATUS_EXPIRED, deal=a_deal(), case=pb.Case(number=1, outcome="Sent back")
            ),
        )
    ]
    assert len({view.state for view in views}) == len(views)


def test_every_outcome_of_the_api_has_words() -> None:
    """A status that the template doesn't know would be a blank page at the worst moment."""
    template = (Path(__file__).parents[3] / "gateway/pay/templates/outcome.html").read_text()
    assert all(f'"{outcome}"' in template for outcome in OUTCOMES.values())

"""The rules by themselves: the table of transitions, row by row, and money for any numbers."""

import itertools
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.base.money import round_down
from services.catalog.domain import split_commission
from services.invoices.domain import money, states
from services.invoices.domain.states import DealState, DealStatus, InvoiceStatus, Trigger

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNPAID = DealState(DealStatus.PENDING, "awaiting_payment")
MARKED = DealState(DealStatus.PENDING, "awaiting_confirmation")
APPEALS = [
    DealState(DealStatus.APPEAL, sub_status)
    for sub_status in ("opened_by_operator", "opened_by_customer", "confirmation_overdue")
]

# The steps of a deal, written by hand: from, trigger, to, invoice.
TABLE = [
    (UNPAID, Trigger.MARK_PAID, "pending", "awaiting_confirmation", None),
    (UNPAID, Trigger.EXPIRE, "expired", "payment_window_expired", "expired"),
    (UNPAID, Trigger.CANCEL_BY_CUSTOMER, "canceled", "canceled_by_customer", "canceled"),
    (UNPAID, Trigger.CANCEL_BY_OPERATOR, "canceled", "canceled_by_operator", "canceled"),
    (UNPAID, Trigger.REPLACE, "canceled", "replaced", None),
    (UNPAID, Trigger.CONFIRM, "completed", "successfully_paid", "success"),
    (MARKED, Trigger.CONFIRM, "completed", "successfully_paid", "success"),
    (UNPAID, Trigger.REJECT, "failed", "rejected_by_operator", "fail"),
    (MARKED, Trigger.REJECT, "failed", "rejected_by_operator", "fail"),
    (UNPAID, Trigger.APPEAL_BY_OPERATOR, "appeal", "opened_by_operator", None),
    (MARKED, Trigger.APPEAL_BY_OPERATOR, "appeal", "opened_by_operator", None),
    (MARKED, Trigger.APPEAL_BY_CUSTOMER, "appeal", "opened_by_customer", None),
    (MARKED, Trigger.CONFIRMATION_OVERDUE, "appeal", "confirmation_overdue", None),
    *[(state, Trigger.RESOLVE_PAID, "completed", "successfully_paid", "success") for state in APPEALS],
    *[
        (state, Trigger.RESOLVE_ADJUSTED, "completed", "completed_with_adjustment", "success")
        for state in APPEALS
    ],
    *[(state, Trigger.RESOLVE_REJECTED, "failed", "appeal_rejected", "fail") for state in APPEALS],
]


@pytest.mark.parametrize(("source", "trigger", "status", "sub_status", "invoice"), TABLE)
def test_each_row_of_the_deal_table_leads_where_it_says(
    source: DealState, trigger: Trigger, status: str, sub_status: str, invoice: str | None
) -> None:
    step = states.transition(source, trigger)
    assert step is not None
    assert (step.target.status, step.target.sub_status, step.invoice) == (status, sub_status, invoice)


def test_nothing_outside_the_table_is_possible() -> None:
    sources = {UNPAID, MARKED, *APPEALS} | {DealState(DealStatus(row[2]), row[3]) for row in TABLE}
    allowed = {(row[0], row[1]) for row in TABLE}
    for state, trigger in itertools.product(sources, Trigger):
        assert (states.transition(state, trigger) is not None) == ((state, trigger) in allowed)


@given(st.lists(st.sampled_from(Trigger), max_size=30))
def test_a_terminal_deal_absorbs_everything_and_is_adjusted_at_most_once(triggers: list[Trigger]) -> None:
    state, adjustments, endings = UNPAID, 0, 0
    for trigger in triggers:
        step = states.transition(state, trigger)
        if step is None:
            continue
        assert state.status in states.OPEN_DEAL_STATUSES
        state = step.target
        adjustments += trigger is Trigger.RESOLVE_ADJUSTED
        endings += state.status not in states.OPEN_DEAL_STATUSES
    assert adjustments <= 1
    assert endings <= 1


amounts = st.decimals("0.01", "999999999999.99", places=2)
rates = st.decimals("0.01", "99999999.99", places=2)
percents = st.decimals("0", "100", places=2)


@given(amounts, rates, percents)
def test_a_merchant_is_never_credited_more_than_was_paid_for(
    amount: Decimal, rate: Decimal, percent: Decimal
) -> None:
    usdt = money.merchant_usdt(amount, rate, percent)
    exact_fiat = amount * (100 - percent) / 100
    assert usdt >= 0
    assert usdt * rate <= exact_fiat
    # Rounded down by less than the last digit: nothing is kept back either.
    assert (usdt + Decimal("0.000001")) * rate > exact_fiat


@given(amounts, percents, st.sampled_from([0, 1, 2]))
def test_a_customer_sends_at_least_the_amount_and_its_commission(
    amount: Decimal, percent: Decimal, places: int
) -> None:
    sent = money.customer_amount(amount, percent, places)
    assert sent >= amount * (100 + percent) / 100
    assert sent - amount * (100 + percent) / 100 < Decimal(1).scaleb(-places)
    assert sent == round(sent, places)


@pytest.mark.parametrize(
    ("amount", "rate", "percent", "usdt"),
    [
        ("100.00", "0.92", "0", "108.695652"),
        ("100.00", "0.92", "2.50", "105.978260"),
        ("10.00", "3.00", "0", "3.333333"),
    ],
)
def test_the_credit_is_amount_by_rate_less_the_merchants_part(
    amount: str, rate: str, percent: str, usdt: str
) -> None:
    assert money.merchant_usdt(Decimal(amount), Decimal(rate), Decimal(percent)) == Decimal(usdt)


@given(amounts, amounts)
def test_an_adjustment_only_goes_down(requested: Decimal, adjusted: Decimal) -> None:
    assert money.adjustment_allowed(requested, adjusted) == (adjusted < requested)


@given(amount=amounts, percent=percents, decimals=st.integers(0, 2), missing=st.integers(1, 10**6))
def test_a_received_amount_counts_as_the_largest_part_that_it_pays_for(
    amount: Decimal, percent: Decimal, decimals: int, missing: int
) -> None:
    unit = Decimal(1).scaleb(-decimals)
    order = round_down(amount, decimals)
    to_send = money.customer_amount(order, percent, decimals)
    assert money.order_part(to_send, percent, decimals) == order
    received = to_send - missing * unit
    part = money.order_part(received, percent, decimals)
    assert part < order
    assert money.customer_amount(part, percent, decimals) <= received
    assert money.customer_amount(part + unit, percent, decimals) > received


def test_an_adjustment_to_nothing_is_refused() -> None:
    assert not money.adjustment_allowed(Decimal(10), Decimal(0))
    assert not money.adjustment_allowed(Decimal(10), Decimal(-1))


def test_time_ends_an_invoice_without_deal_at_its_expiry_and_not_before() -> None:
    ends = NOW + timedelta(seconds=1)
    assert not states.invoice_overdue(has_deal=False, invoice_expires_at=ends, now=NOW)
    assert states.invoice_overdue(has_deal=False, invoice_expires_at=ends, now=ends)
    assert not states.invoice_overdue(has_deal=True, invoice_expires_at=ends, now=ends)


def test_time_ends_an_unpaid_deal_but_not_one_that_is_marked_paid() -> None:
    assert states.deal_overdue(UNPAID, NOW, NOW)
    assert not states.deal_overdue(MARKED, NOW, NOW + timedelta(days=9))


FRACTIONS = st.decimals(0, 1, places=4)


@given(category=st.decimals("-0.1", "1.1", places=4), method=FRACTIONS, client_share=FRACTIONS)
def test_the_clients_part_is_forecast_as_the_catalog_quotes_it(
    category: Decimal, method: Decimal, client_share: Decimal
) -> None:
    quoted = split_commission(category, method, client_share)
    forecast = money.client_percent(category, method, client_share)
    assert forecast == (None if quoted is None else quoted.client_percent)


def test_every_final_invoice_status_has_an_event_type() -> None:
    assert set(states.EVENT_TYPES) == set(InvoiceStatus) - {InvoiceStatus.PENDING}

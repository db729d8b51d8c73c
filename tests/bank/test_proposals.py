"""Which deal a line is proposed for, and how sure that is."""

import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from kit.work.worker import Outage
from services.bank.clients import InvoicesClient
from services.bank.domain.proposals import Coming, Deal, Tier, is_same_name, propose

HERE, REFERENCE, OTHER = "DE89", "7K3M9QTX", "D6WPP8EZ"


def deal(**changes: Any) -> Deal:
    values: dict[str, Any] = {
        "id": uuid.uuid4(),
        "invoice_id": uuid.uuid4(),
        "reference": REFERENCE,
        "account": HERE,
        "currency_code": "EUR",
        "amount": Decimal("50.00"),
        "is_open": True,
        "is_paid": False,
        "is_linked": False,
        "sender_name": "",
        "created_at": datetime(2026, 11, 28, 9, tzinfo=UTC),
    }
    return Deal(**(values | changes))


def line(**changes: Any) -> Coming:
    values: dict[str, Any] = {
        "account": HERE,
        "currency_code": "EUR",
        "amount": Decimal("50.00"),
        "references": (REFERENCE,),
        "counterparty_name": "Anna Maria Nováková",
        "day": date(2026, 11, 28),
    }
    return Coming(**(values | changes))


PAID = {"is_open": False, "is_paid": True}
NAMED = {"reference": "", "sender_name": "novakova anna"}


@pytest.mark.parametrize(
    ("coming", "deals", "tier"),
    [
        (line(), [deal()], Tier.CERTAIN),
        (line(), [deal(), deal(reference=OTHER)], Tier.CERTAIN),
        (line(), [deal(), deal(is_open=False)], Tier.CERTAIN),
        (line(amount=Decimal("49.99")), [deal()], Tier.AMOUNT_DIFFERS),
        (line(amount=Decimal("50.01")), [deal()], Tier.AMOUNT_DIFFERS),
        (line(), [deal(account="FR14")], Tier.NONE),
        (line(), [deal(currency_code="USD")], Tier.NONE),
        (line(), [deal(**PAID)], Tier.CONFIRMED),
        (line(), [deal(**PAID, is_linked=True)], Tier.ENDED),
        (line(amount=Decimal(49)), [deal(**PAID)], Tier.ENDED),
        (line(), [deal(is_open=False)], Tier.ENDED),
        (line(references=(REFERENCE, OTHER)), [deal(), deal(reference=OTHER)], Tier.NONE),
        (line(references=()), [deal(**NAMED)], Tier.HINT),
        (line(references=(), day=date(2026, 11, 27)), [deal(**NAMED)], Tier.HINT),
        (line(references=(), day=date(2026, 11, 26)), [deal(**NAMED)], Tier.NONE),
        (line(references=()), [deal(**NAMED), deal(**NAMED)], Tier.NONE),
        (line(references=(), amount=Decimal("49.99")), [deal(**NAMED)], Tier.NONE),
        (line(references=()), [deal(reference="", sender_name="Anna")], Tier.NONE),
        (line(references=()), [deal()], Tier.NONE),
        (line(references=()), [], Tier.NONE),
    ],
)
def test_a_line_is_proposed_for_the_one_deal_that_fits(coming: Coming, deals: list[Deal], tier: Tier) -> None:
    found = propose(coming, deals)
    assert (found.tier, found.deal) == (tier, None if tier is Tier.NONE else deals[0])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Anna Novak", "NOVAK ANNA", True),
        ("Anna Nováková", "MS ANNA NOVAKOVA", True),
        ("Anna Novak", "Anna Novotna", False),
        ("Anna", "Anna Novak", False),
        ("", "", False),
    ],
)
def test_names_are_compared_by_their_words(one: str, other: str, *, same: bool) -> None:
    assert is_same_name(one, other) is same


def test_invoices_that_is_away_is_no_fault_of_bank() -> None:
    """A loop whose step raises something else makes the process unready, and files and posts are refused."""
    with pytest.raises(Outage):
        InvoicesClient("127.0.0.1:1").payments_after(0, most=1)

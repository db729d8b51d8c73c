"""The file of the invented bank: what its lines are for deals of each kind."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from console.app import navigation_of, routes
from console.bank.files import DemoStatementPage
from console.config import DeskSettings
from console.surfaces import surface_of
from console.wiring import wired
from demo.bank import statement
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.codes import check_character
from kit.base.proto import timestamp_from
from services.bank.domain.lines import Line, references_in
from services.bank.files.reading import read
from tests.console.routes import ADDRESSES, apart

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
ACCOUNT = pb.Requisite(requisite_id="r", account="DE89 3704 0044 0532 0130 00")
REFERENCE = "0K3M9QT" + check_character("0K3M9QT")
MANGLED, HALF, TWICE, UNPAID, PLAIN = range(5)


def deal(
    way: int, *, marked: bool = False, status: pb.DealStatus.ValueType = pb.DEAL_STATUS_PENDING
) -> pb.Deal:
    made = pb.Deal(
        deal_id=str(UUID(int=10**12 + way)),
        requisite_id="r",
        status=status,
        currency_code="EUR",
        amount_to_send="101.50",
        reference=REFERENCE,
        takes_reference=True,
        sender_name="Ann <B&B>",
        created_at=timestamp_from(NOW - timedelta(days=1)),
    )
    if marked:
        made.mark_paid_at.CopyFrom(timestamp_from(NOW))
    return made


def lines(*deals: pb.Deal) -> list[Line]:
    """The lines without that of a stranger."""
    (read_statement,) = read(statement(deals, [ACCOUNT], now=NOW))
    *found, stranger = read_statement.lines
    assert (stranger.counterparty_name, stranger.booked_on) == ("Sam Stranger", NOW.date())
    return found


@pytest.mark.parametrize(
    ("paid", "amounts"),
    [
        (deal(PLAIN), ["101.50"]),
        (deal(MANGLED), ["101.50"]),
        (deal(HALF), ["50"]),
        (deal(TWICE), ["101.50", "101.50"]),
        (deal(UNPAID), []),
        (deal(UNPAID, marked=True), ["101.50"]),
        (deal(HALF, marked=True, status=pb.DEAL_STATUS_COMPLETED), ["101.50"]),
        (deal(MANGLED, status=pb.DEAL_STATUS_EXPIRED), ["101.50"]),
        (deal(PLAIN, status=pb.DEAL_STATUS_CANCELED), []),
    ],
    ids=["plain", "mangled", "half", "twice", "unpaid", "marked", "confirmed", "late", "ended"],
)
def test_a_deal_is_paid_as_its_id_and_its_state_say(paid: pb.Deal, amounts: list[str]) -> None:
    found = lines(paid)
    assert [str(line.amount) for line in found] == amounts
    for line in found:
        assert REFERENCE in references_in([line.text])
        assert (line.counterparty_name, str(line.booked_on)) == ("Ann <B&B>", "2026-11-28")


@pytest.mark.parametrize(
    ("settings", "offered"),
    [
        ({"demo_bank": True}, True),
        ({}, False),
        ({"demo_bank": True, "desk_url": "https://desk.example.com"}, False),
    ],
    ids=["trial", "default", "real"],
)
def test_only_a_trial_at_localhost_has_the_address(settings: dict[str, Any], offered: bool) -> None:
    desk = DeskSettings(**ADDRESSES, **settings)

    async def has_it() -> bool:
        async with wired(desk, navigation_of(surface_of(desk))) as deps:
            found = routes(deps)._router.find("/bank/demo-statement")
            return found is not None and isinstance(found[0], DemoStatementPage)

    assert apart(has_it()) is offered

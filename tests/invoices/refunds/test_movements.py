"""The other part of a report of the books: changes of merchants' money beside payments."""

from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from services.withdrawals.domain import CorrectionKind
from services.withdrawals.operations import corrections
from services.withdrawals.operations.corrections import Asked
from tests.invoices.refunds.conftest import SENT, SUCCEEDED, Till
from tests.support.acting import ANN, CID, acting
from tests.withdrawals.test_corrections import GIVE, TAKE, by_two, call
from tests.withdrawals.test_rpc import refusal

JANUARY, FEBRUARY = datetime(2027, 1, 31, 23, tzinfo=UTC), datetime(2027, 2, 1, 1, tzinfo=UTC)
CREDIT = Decimal("211.956521")
COLUMNS = ("received", "by_hand", "reversed", "refunded", "withdrawn")
LEDGER = """
SELECT to_char(created_at AT TIME ZONE 'UTC', %s),
       sum(CASE WHEN accounts.id = credit_account THEN amount ELSE -amount END)
FROM transfers JOIN accounts ON accounts.id IN (debit_account, credit_account) WHERE merchant_id = %s GROUP BY 1
"""


def report(till: Till, by: str, **changes: str) -> dict[str, pb.Movements]:
    request: dict[str, Any] = {
        "first_day": "2027-01-31",
        "last_day": "2027-02-01",
        "merchant_id": till.merchant_id,
    } | changes
    found = till.house.stub.GetMovements(
        pb.GetMovementsRequest(by=pb.MovementsBy.Value(f"MOVEMENTS_BY_{by}"), **request)
    )
    return {each.key: each for each in found.movements}


def receive(till: Till, kind: CorrectionKind, invoice_id: str, fiat: str) -> Decimal:
    asked = Asked(
        kind=kind,
        merchant_id="",
        invoice_id=invoice_id,
        amount="",
        received_amount=fiat,
        conversion_rate="",
        case_number=0,
    )
    texts = {"reason": "It came", "evidence": "BR-1", "request_key": str(new_id()), "expected_amount": ""}
    return acting(ANN, partial(corrections.make_correction, till.house.deps, asked, **texts)).amount


@pytest.fixture
def books(till: Till) -> dict[str, dict[str, Decimal]]:
    """The columns of each day of a merchant whose money moved in each way, around the end of a month."""
    house = till.house
    house.clock.set(JANUARY)
    first, second = till.invoice(), till.invoice()
    late = receive(till, CorrectionKind.LATE_CREDIT, till.invoice(paid=False), "100.00")
    more = receive(till, CorrectionKind.SURPLUS, second, "50.00")
    made = till.ask(second, "20.00")
    till.ask(second, "30.00")  # waits: what is held is the merchant's
    for step in (SENT, SUCCEEDED):
        acting(CID, till.step(step, made))
    by_two(house, call(house, GIVE, "7", merchant=till.merchant_id))
    paid_out = house.withdraw(till.merchant_id, "100")
    house.clock.set(FEBRUARY)
    house.complete(paid_out)
    house.credit("5", till.merchant_id, paid_at=JANUARY)
    till.reverse(first, f"{CREDIT}")
    by_two(
        house, call(house, TAKE, "5000", merchant=till.merchant_id)
    )  # more than there is: the rest is owed
    zero = Decimal(0)
    return {
        "2027-01-31": {
            "credited": 2 * CREDIT + 5,
            "shifted": Decimal(-5),
            "received": late + more,
            "by_hand": Decimal(7),
            "reversed": zero,
            "refunded": -made.amount,
            "withdrawn": zero,
        },
        "2027-02-01": {
            "credited": zero,
            "shifted": Decimal(5),
            "received": zero,
            "by_hand": Decimal(-5000),
            "reversed": -CREDIT,
            "refunded": zero,
            "withdrawn": Decimal(-100),
        },
    }


def test_the_columns_add_up_to_the_change_in_the_ledger(
    till: Till, books: dict[str, dict[str, Decimal]]
) -> None:
    for by, form, length in (("DAY", "YYYY-MM-DD", 10), ("MONTH", "YYYY-MM", 7)):
        rows = report(till, by)
        in_ledger = dict(till.house.execute(LEDGER, form, till.merchant_id))
        for day, due in books.items():
            row = rows[day[:length]]
            found = {each: Decimal(getattr(row, each)) for each in ("shifted", *COLUMNS)}
            assert found == {each: due[each] for each in found}
            assert due["credited"] + sum(found.values()) == in_ledger[day[:length]]
    (row,) = report(till, "MERCHANT", merchant_id=till.merchant_id).values()
    assert row.key == till.merchant_id
    assert Decimal(row.shifted) == 0, "paid and credited in these days"
    for each in COLUMNS:
        assert Decimal(getattr(row, each)) == sum(day[each] for day in books.values())
    everyone = report(till, "MERCHANT", merchant_id="")
    assert everyone[till.merchant_id] == row
    assert till.merchant_id not in report(till, "MERCHANT", merchant_id="", after_key=till.merchant_id)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"first_day": "2027-02-02"}, "last_day"),
        ({"first_day": "yesterday"}, "first_day"),
        ({"last_day": "2028-02-01"}, "last_day"),
        ({"merchant_id": "x"}, "merchant_id"),
    ],
)
def test_wrong_days_are_refused(till: Till, wrong: dict[str, str], field: str) -> None:
    assert refusal(lambda: report(till, "DAY", **wrong))[1]["field"] == field
    assert not report(till, "DAY", first_day="9999-12-31", last_day="9999-12-31")

"""Bank lines that have paid deals, as a timeline names them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from console.words.moments import Moment, given
from fiatgate.bank.v1 import bank_pb2
from fiatgate.invoices.v1 import lines_pb2
from kit.base.money import money_text
from kit.base.proto import datetime_from


@dataclass(frozen=True)
class PaidBy:
    """A payment by a line, as invoices recorded it. `line` is empty while bank does not know it."""

    payment: lines_pb2.LinePayment
    line: bank_pb2.Line
    currency_code: str

    @property
    def title(self) -> str:
        whole = money_text(self.payment.line_amount, self.currency_code)
        if self.payment.amount == self.payment.line_amount:
            return f"Paid by bank line of {whole}"
        return f"Paid {money_text(self.payment.amount, self.currency_code)} by bank line of {whole}"

    @property
    def details(self) -> Sequence[tuple[str, str]]:
        return given(("booked", self.line.booked_on), ("from", self.line.counterparty_name))

    @property
    def link(self) -> str:
        return f"/bank/{self.payment.line_id}"


def of_bank(paid_by: Sequence[PaidBy]) -> Iterator[Moment]:
    for each in paid_by:
        yield Moment(
            at=datetime_from(each.payment.paid_at),
            title=each.title,
            details=each.details,
            tone="good",
            thing=f"bank:{each.payment.line_id}",
        )

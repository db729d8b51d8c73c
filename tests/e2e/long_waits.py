"""Facts that need minutes on the real clock. They pass while the other tests run; `test_waits` collects them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Self

from tests.e2e.market import Customer, Invoice, Operator, Shop
from tests.e2e.people import House
from tests.support.receiver import Answer, Receiver
from tests.support.stack import Stack


@dataclass(frozen=True)
class LongWaits:
    """Invoices whose next event is a matter of time, and the endpoints of their webhooks."""

    failing_twice: Receiver
    """Answers 500, 500, then 200."""
    retried: Invoice
    """Succeeded; its webhook goes to `failing_twice`."""
    patient: Receiver
    unpaid: Invoice
    """A method of one minute was chosen and nothing paid; its webhook goes to `patient`."""
    token: str
    """The token of a person of the desk, made at the start."""

    @classmethod
    @contextmanager
    def begun(cls, stack: Stack, shop: Shop, operator: Operator) -> Iterator[Self]:
        with Receiver() as failing_twice, Receiver() as patient:
            failing_twice.answer_next(Answer(status=500), Answer(status=500))
            retried = shop.create(failing_twice.url())
            Customer(retried.created["payment_link"]).choose_and_pay()
            operator.confirm(retried)
            unpaid = shop.create(patient.url())
            with _hasty_method(stack) as method:
                Customer(unpaid.created["payment_link"]).choose(method)
            with ExitStack() as opened:
                token = House(stack, opened).staff("desk").token()
            yield cls(failing_twice, retried, patient, unpaid, token)


@contextmanager
def _hasty_method(stack: Stack) -> Iterator[str]:
    """A payment method of one minute, offered only meanwhile."""
    options = ("--currency", "EUR", "--name", "Hasty", "--minutes", "1", "--min", "1", "--max", "10000")
    stack.cli("methods", "set", "eur-hasty", *options)
    stack.cli("requisites", "add", "eur-hasty", "--holder", "Alex Demo", "--account", "1")
    yield "eur-hasty"
    stack.cli("methods", "set", "eur-hasty", *options, "--inactive")

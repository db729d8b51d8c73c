"""The rows of the catalog whose values acts decide, and the seals of rates (kit.db.books)."""

from collections.abc import Iterator
from typing import Final

from sqlalchemy.orm import Session

from kit.audit import approval_books
from kit.audit.decisions import follow_acts
from kit.db.books import Difference, Part
from kit.db.database import seals_of
from kit.db.described import schema_part
from services.catalog.store.decisions import CURRENCY, METHOD
from services.catalog.store.rates import is_rate_sealed, numbered_rates


def _rates_are_sealed(tx: Session, first: str, last: str) -> Iterator[Difference]:
    seals = seals_of(tx)
    for number, code, rate in numbered_rates(tx, after_number=int(first), up_to=int(last)):
        if not is_rate_sealed(seals, code, rate):
            yield number, f"{code} rate", rate.source_rate, "one that catalog put in force"


PARTS: Final = (
    schema_part("catalog"),
    Part(
        name="currencies",
        one="currency",
        table="currencies",
        key="code",
        key_type="text",
        follows=(
            follow_acts(CURRENCY, table="currencies", id="code", key_type="text", made_by=CURRENCY.acts),
        ),
    ),
    Part(
        name="payment methods",
        one="payment method",
        table="payment_methods",
        key="code",
        key_type="text",
        follows=(
            follow_acts(METHOD, table="payment_methods", id="code", key_type="text", made_by=METHOD.acts),
        ),
    ),
    Part(name="rates", one="rate", table="rates", key_type="bigint", follows=(_rates_are_sealed,)),
    approval_books.PART,
)

"""The operator's search: invoices, deals, requisites and cases by the texts that people have in front of them. And a
member's search, for the merchant's invoices by what members see: no account, no sender's name.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, literal_column, select

from kit.base.account_forms import account_key
from kit.base.codes import parse_code
from kit.base.money import fiat_text, has_decimals, typed_decimal
from kit.db.finding import Found, Ids, OwnSearch, Part, Search, begins_like
from services.invoices.domain.names import words_of_name
from services.invoices.models import (
    ACCOUNT_KEY,
    DEAL_IS_OPEN,
    FIRST_AMOUNT,
    Case,
    Deal,
    Invoice,
    Link,
    Requisite,
)
from services.invoices.store.deal_lists import ids_of_sender
from services.invoices.store.invoice_lists import (
    InvoiceFilter,
    newest_invoices,
    of_each_customer_like,
    of_each_merchant,
)

IDS: Final[Ids] = {"invoice": Invoice.id, "deal": Deal.id, "link": Link.id, "requisite": Requisite.id}

_AMOUNT_MOST: Final = 10**18
_CASE_DIGITS_MOST: Final = 18
CUSTOMER_LEAST: Final = 3
"""The fewest characters of a customer's reference that a search takes for its beginning."""


# -- invoices


def _invoices(connection: Connection, query: Select[Any], place: str, column: str) -> list[Found]:
    newest = query.order_by(Invoice.created_at.desc(), Invoice.id.desc())
    return [_invoice(row, place, str(getattr(row, column))) for row in connection.execute(newest)]


def _invoice(row: Any, place: str, value: str) -> Found:
    return Found(
        kind="invoice",
        id=str(row.id),
        field=place,
        value=value,
        status=row.status,
        created_at=row.created_at,
        facts={
            "merchant_id": str(row.merchant_id),
            "external_id": row.external_id,
            "customer_id": row.customer_id,
            "amount": fiat_text(row.amount),
            "currency_code": row.currency_code,
        },
    )


def _invoices_by_id(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    condition = begins_like(Invoice.id, text)
    if condition is None:
        return ()
    return _invoices(connection, select(Invoice).where(condition).limit(limit), "id", "id")


def _invoices_by_order(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    return _newest_invoices(connection, Invoice.external_id == text, limit, "order", "external_id")


def _invoices_by_customer(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    return _newest_invoices(connection, Invoice.customer_id == text, limit, "customer", "customer_id")


def _invoices_by_part_of_customer(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    """By the beginning of the customer's reference, in the order of the references: the index has no other."""
    if len(text) < CUSTOMER_LEAST:
        return ()
    ids = connection.execute(of_each_customer_like(text).limit(limit)).scalars().all()
    return _invoices(connection, select(Invoice).where(Invoice.id.in_(ids)), "customer", "customer_id")


def _newest_invoices(
    connection: Connection, condition: ColumnElement[bool], limit: int, place: str, column: str
) -> Sequence[Found]:
    newest = (
        of_each_merchant(condition, limit=limit).order_by(literal_column("created_at").desc()).limit(limit)
    )
    ids = connection.execute(newest).scalars().all()
    return _invoices(connection, select(Invoice).where(Invoice.id.in_(ids)), place, column)


def _invoices_by_amount(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    amount = _amount(text)
    if amount is None:
        return ()
    return _invoices(
        connection, select(Invoice).where(Invoice.amount == amount).limit(limit), "amount", "amount"
    )


def _amount(text: str) -> Any:
    """Returns the amount that the text writes, as 50.9, 50,90 or EUR 50.90; None for other text."""
    try:
        amount = typed_decimal(text)
    except ValueError:
        return None
    return amount if has_decimals(amount, at_most=2) and 0 < amount < _AMOUNT_MOST else None


# -- deals


_DEALS: Final[Any] = (
    select(
        Deal.id,
        Deal.created_at,
        Deal.status,
        Deal.merchant_id,
        Deal.invoice_id,
        Deal.amount_fiat,
        literal_column(FIRST_AMOUNT).label("first_amount"),
        Deal.currency_code,
        Invoice.external_id,
        Invoice.customer_id,
        Requisite.account,
        Deal.reference,
        Deal.sender_name,
    )
    .join(Invoice, Invoice.id == Deal.invoice_id)
    .join(Requisite, Requisite.id == Deal.requisite_id)
)


def _shown(value: object) -> str:
    return fiat_text(value) if isinstance(value, Decimal) else str(value)


def _deals(
    connection: Connection, condition: ColumnElement[bool] | None, limit: int, place: str, column: str
) -> Sequence[Found]:
    """Returns the newest deals under the condition; none without one."""
    if condition is None:
        return ()
    query = _DEALS.where(condition).order_by(Deal.created_at.desc(), Deal.id.desc()).limit(limit)
    return [
        Found(
            kind="deal",
            id=str(row.id),
            field=place,
            value=_shown(getattr(row, column)),
            status=row.status,
            created_at=row.created_at,
            facts={
                "merchant_id": str(row.merchant_id),
                "invoice_id": str(row.invoice_id),
                "external_id": row.external_id,
                "customer_id": row.customer_id,
                "account": row.account,
                "amount": fiat_text(row.amount_fiat),
                "currency_code": row.currency_code,
                "reference": row.reference or "",
                "sender_name": row.sender_name or "",
            },
        )
        for row in connection.execute(query)
    ]


def _deals_by_id(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    return _deals(connection, begins_like(Deal.id, text), limit, "id", "id")


def _deals_by_amount(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    amount = _amount(text)
    condition = None if amount is None else Deal.amount_fiat == amount
    return _deals(connection, condition, limit, "amount", "amount_fiat")


def _adjusted_deals_by_amount(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    """By the amount that the customer was told to send: the receipt has it."""
    amount = _amount(text)
    if amount is None:
        return ()
    condition = Deal.adjusted_amount.is_not(None) & (literal_column(FIRST_AMOUNT) == amount)
    return _deals(connection, condition, limit, "amount to send", "first_amount")


def _deals_by_reference(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    reference = parse_code(text)
    if reference is None:
        return ()
    return _deals(connection, Deal.reference == reference, limit, "reference", "reference")


def _deals_by_sender(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    if not any(each.isalpha() for each in text):
        return ()
    ids = ids_of_sender(connection, words_of_name(text), limit)
    return _deals(connection, Deal.id.in_(ids), limit, "sender", "sender_name")


def _open_deals_by_account(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    condition = _has_account(text)
    if condition is None:
        return ()
    requisites = connection.execute(select(Requisite.id).where(condition).limit(limit)).scalars().all()
    is_open: ColumnElement[bool] = literal_column(f"deals.{DEAL_IS_OPEN}")
    return _deals(connection, Deal.requisite_id.in_(requisites) & is_open, limit, "account", "account")


# -- requisites and cases


def _has_account(text: str) -> ColumnElement[bool] | None:
    """Returns the condition that a requisite has this account, however both are spaced; None for text without any."""
    key = account_key(text)
    return literal_column(ACCOUNT_KEY) == key if key else None


def _requisites(
    connection: Connection, condition: ColumnElement[bool], place: str, column: str
) -> list[Found]:
    return [
        Found(
            kind="requisite",
            id=str(row.id),
            field=place,
            value=str(getattr(row, column)),
            status="enabled" if row.enabled else "disabled",
            created_at=row.created_at,
            facts={"method_code": row.method_code, "holder": row.holder, "account": row.account},
        )
        for row in connection.execute(select(Requisite).where(condition))
    ]


def _requisites_by_id(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    condition = begins_like(Requisite.id, text)
    return () if condition is None else _requisites(connection, condition, "id", "id")[:limit]


def _requisites_by_account(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    condition = _has_account(text)
    return () if condition is None else _requisites(connection, condition, "account", "account")[:limit]


def _case_by_number(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    if not (text.isascii() and text.isdigit() and len(text) <= _CASE_DIGITS_MOST):
        return ()
    return [
        Found(
            kind="case",
            id=str(row.number),
            field="number",
            value=str(row.number),
            status="open" if row.resolved_at is None else "resolved",
            created_at=row.opened_at,
            facts={"merchant_id": str(row.merchant_id), "invoice_id": str(row.invoice_id)},
        )
        for row in connection.execute(select(Case).where(Case.number == int(text)).limit(limit))
    ]


SEARCHES: Final[Sequence[Search]] = (
    _deals_by_id,
    _deals_by_reference,
    _invoices_by_id,
    _invoices_by_order,
    _deals_by_amount,
    _adjusted_deals_by_amount,
    _invoices_by_amount,
    _open_deals_by_account,
    _requisites_by_account,
    _invoices_by_customer,
    _invoices_by_part_of_customer,
    _deals_by_sender,
    _requisites_by_id,
    _case_by_number,
)


# -- one merchant's invoices


def _own_by_id(connection: Connection, merchant_id: UUID, text: str, limit: int) -> Part:
    condition = begins_like(Invoice.id, text)
    if condition is None:
        return Part()
    query = select(Invoice).where(condition, Invoice.merchant_id == merchant_id)
    return Part(_invoices(connection, query.limit(limit), "id", "id"))


def _own_by_order(connection: Connection, merchant_id: UUID, text: str, limit: int) -> Part:
    query = select(Invoice).where(Invoice.merchant_id == merchant_id, Invoice.external_id == text)
    return Part(_invoices(connection, query.limit(limit), "order", "external_id"))


def _own_by_customer(connection: Connection, merchant_id: UUID, text: str, limit: int) -> Part:
    newest = of_each_merchant(Invoice.customer_id == text, merchant_id=merchant_id, limit=limit)
    ids = connection.execute(newest).scalars().all()
    return Part(_invoices(connection, select(Invoice).where(Invoice.id.in_(ids)), "customer", "customer_id"))


def _own_by_amount(connection: Connection, merchant_id: UUID, text: str, limit: int) -> Part:
    """Among the merchant's newest invoices: the index of amounts has those of all merchants, and would take as long as
    others have the amount.
    """
    amount = _amount(text)
    if amount is None:
        return Part()
    wanted = InvoiceFilter(merchant_id=merchant_id, amount_from=amount, amount_to=amount)
    newest = newest_invoices(connection, wanted, limit)
    found = [_invoice(each, "amount", str(each.amount)) for each in newest.invoices]
    return Part(found, may_have_more="" if newest.reached is None else "invoice amount")


def _own_by_reference(connection: Connection, merchant_id: UUID, text: str, limit: int) -> Part:
    reference = parse_code(text)
    if reference is None:
        return Part()
    of_deals = select(Deal.invoice_id).where(Deal.reference == reference, Deal.merchant_id == merchant_id)
    rows = connection.execute(select(Invoice).where(Invoice.id.in_(of_deals)).limit(limit))
    return Part([_invoice(row, "reference", reference) for row in rows])


OWN_SEARCHES: Final[Sequence[OwnSearch]] = (
    _own_by_id,
    _own_by_order,
    _own_by_reference,
    _own_by_amount,
    _own_by_customer,
)

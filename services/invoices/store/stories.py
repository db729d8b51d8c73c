"""Everything that is stored about one invoice: a handful of statements, each of which reads an index."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import Connection, Text, cast, select, text

from kit.audit.listing import Act, newest_acts_on
from kit.db.database import table_of
from kit.db.rows import Rows
from services.invoices.domain.rates import RateBasis, rate_basis_from_json
from services.invoices.models import CustomerPicture, Deal, DealTransition, Requisite
from services.invoices.store import cases
from services.invoices.store.deals import DEALS
from services.invoices.store.invoices import invoice_view
from services.invoices.store.views import (
    CaseView,
    DealView,
    InvoiceView,
    PictureView,
    RequisiteView,
    TransitionView,
)

DEALS_MOST: Final = 100
ACTS_MOST: Final = 200


@dataclass(frozen=True)
class DealStory:
    """A deal with its requisite, and its steps and pictures, oldest first.

    rate_basis  where its rate came from; None: not stored
    """

    deal: DealView
    requisite: RequisiteView
    history: Sequence[TransitionView]
    pictures: Sequence[PictureView]
    rate_basis: RateBasis | None


@dataclass(frozen=True)
class InvoiceStory:
    """An invoice with its deals and the acts on all of it, oldest first.

    opened_at  the first opening of the payment page; None: it was not opened
    """

    invoice: InvoiceView
    opened_at: datetime | None
    deals: Sequence[DealStory]
    case: CaseView | None
    acts: Sequence[Act]


_REQUISITES = Rows(RequisiteView, table_of(Requisite))
_TRANSITIONS = Rows(TransitionView, table_of(DealTransition))
_OPENED_AT = text("SELECT at FROM page_openings WHERE invoice_id = :invoice_id")


def invoice_story(connection: Connection, invoice_id: UUID) -> InvoiceStory | None:
    """Returns the newest DEALS_MOST deals and ACTS_MOST acts of an invoice; None when there is no such invoice."""
    invoice = invoice_view(connection, invoice_id)
    if invoice is None:
        return None
    deals = _deals(connection, invoice_id)
    case = cases.case_of_invoice(connection, invoice_id)
    objects = [f"invoice:{invoice_id}", *(f"deal:{each.deal.id}" for each in deals)]
    if case is not None:
        objects.append(f"case:{case.number}")
    acts = newest_acts_on(connection, objects, limit=ACTS_MOST)
    return InvoiceStory(invoice, _opened_at(connection, invoice_id), deals, case, acts[::-1])


def _opened_at(connection: Connection, invoice_id: UUID) -> datetime | None:
    opened: datetime | None = connection.execute(_OPENED_AT, {"invoice_id": invoice_id}).scalar()
    return opened


def _deals(connection: Connection, invoice_id: UUID) -> Sequence[DealStory]:
    basis = cast(Deal.rate_basis, Text)
    query = select(*DEALS.columns, basis, *_REQUISITES.columns).join_from(
        Deal, Requisite, Requisite.id == Deal.requisite_id
    )
    newest = query.where(Deal.invoice_id == invoice_id).order_by(Deal.created_at.desc(), Deal.id.desc())
    found = connection.execute(newest.limit(DEALS_MOST)).all()[::-1]
    width = len(DEALS.columns)
    deals = [DEALS.make(*row[:width]) for row in found]
    ids = [each.id for each in deals]
    histories, pictures = _histories(connection, ids), _pictures(connection, ids)
    return [
        DealStory(
            deal,
            _REQUISITES.make(*row[width + 1 :]),
            histories[deal.id],
            pictures[deal.id],
            None if row[width] is None else rate_basis_from_json(row[width]),
        )
        for deal, row in zip(deals, found, strict=True)
    ]


def _histories(connection: Connection, deal_ids: Sequence[UUID]) -> Mapping[UUID, list[TransitionView]]:
    histories: defaultdict[UUID, list[TransitionView]] = defaultdict(list)
    query = select(DealTransition.deal_id, *_TRANSITIONS.columns).where(DealTransition.deal_id.in_(deal_ids))
    for deal_id, *columns in connection.execute(query.order_by(DealTransition.id)):
        histories[deal_id].append(_TRANSITIONS.make(*columns))
    return histories


def _pictures(connection: Connection, deal_ids: Sequence[UUID]) -> Mapping[UUID, list[PictureView]]:
    pictures: defaultdict[UUID, list[PictureView]] = defaultdict(list)
    query = select(*cases.PICTURES.columns).where(CustomerPicture.deal_id.in_(deal_ids))
    for picture in cases.PICTURES.all(connection.execute(query.order_by(CustomerPicture.at))):
        pictures[picture.deal_id].append(picture)
    return pictures

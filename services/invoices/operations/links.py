"""Payment links that make a fresh invoice for each payment, as often as customers pay."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.merchants.v1 import merchants_pb2
from kit.audit import acts
from kit.audit.decisions import before_by_acts
from kit.base.codes import new_code
from kit.base.ids import secret_id
from kit.base.money import fiat_text
from kit.base.proto import most_of
from kit.rpc import values
from kit.rpc.actors import require_merchant
from kit.rpc.errors import not_decided
from services.invoices import errors
from services.invoices.domain.creating import NewInvoice
from services.invoices.domain.states import LinkStatus
from services.invoices.operations import creating, fields
from services.invoices.store import links
from services.invoices.store.decisions import LINK
from services.invoices.store.links import ListedLink
from services.invoices.store.views import LinkView
from services.invoices.wiring import Deps

OPEN_MOST: Final = 1000
"""The most pending invoices of one link: anyone who has it can make them."""


@dataclass(frozen=True)
class LinkPage:
    """A link as a customer sees it."""

    link: LinkView
    status: LinkStatus
    merchant: merchants_pb2.Merchant


@dataclass(frozen=True)
class Links:
    """A page of the list, and the time at which the links have their states."""

    links: Sequence[ListedLink]
    now: datetime


def create_link(
    deps: Deps,
    *,
    merchant_id: str,
    amount: str,
    currency_code: str,
    purpose: str | None,
    note: str,
    valid_days: int,
) -> LinkView:
    """Makes a link that counts for so many days; 0: until it is canceled. Raises the reasons of
    InvoicesService.CreateLink.
    """
    merchant = creating.merchant_of_people(deps, merchant_id)
    now = deps.clock.now()
    checked = values.together(
        amount=lambda: creating.price(deps, merchant, amount, currency_code),
        purpose=lambda: creating.purpose_of(purpose),
        note=lambda: values.text("note", note, least=0, most=most_of(pb.CreateLinkRequest, "note")),
        expires_at=lambda: (now + timedelta(days=days)) if (days := creating.days_of(valid_days)) else None,
    )
    new = LinkView(
        **checked,
        id=secret_id(now, cell=deps.settings.cell),  # the id gives access to the customer's page
        merchant_id=values.uuid("merchant_id", merchant_id),
        code=new_code(),
        currency_code=currency_code,
        created_at=now,
        canceled_at=None,
    )
    with deps.db.transaction() as tx:
        links.insert_link(tx, new)
        after = acts.values_of(new, [name for name in LINK.fields if name != "merchant_id"])
        acts.record(tx, "link.create", f"link:{new.id}", merchant_id=new.merchant_id, after=after)
    return new


def cancel_link(deps: Deps, *, link_id: str) -> LinkView:
    """Ends the link; canceling again changes nothing. Its invoices go on. Raises LINK_NOT_FOUND, also for a member of
    another merchant.
    """
    id = fields.link_id(link_id)
    with deps.db.transaction() as tx:
        found = links.link(tx, id, to_change=True)
        if found is None:
            raise errors.link_not_found()
        require_merchant(found.merchant_id, errors.link_not_found)
        if found.canceled_at is not None:
            return found
        now = deps.clock.now()
        links.set_canceled(tx, id, now)
        acts.record(
            *(tx, "link.cancel", f"link:{id}"),
            merchant_id=found.merchant_id,
            before=before_by_acts(tx, LINK, id, "canceled_at"),
            after={"canceled_at": now},
        )
    return replace(found, canceled_at=now)


def list_links(
    deps: Deps, *, merchant_id: str, link_id: str, status: LinkStatus | None, after_link_id: str, limit: int
) -> Links:
    """Returns links of the merchant, newest first; with `link_id` that one. Raises VALIDATION_ERROR, LINK_NOT_FOUND."""
    now, merchant = deps.clock.now(), values.uuid("merchant_id", merchant_id)
    with deps.db.autocommit() as connection:
        after = links.link(connection, fields.link_id(after_link_id)) if after_link_id else None
        if after_link_id and (after is None or after.merchant_id != merchant):
            raise errors.link_not_found()
        found = links.links_of_merchant(
            connection,
            merchant,
            id=fields.link_id(link_id) if link_id else None,
            status=status,
            now=now,
            after=after,
            limit=values.rows(limit),
        )
    if link_id and not found:
        raise errors.link_not_found()
    return Links(found, now)


def get_link(deps: Deps, *, link_id: str) -> LinkPage:
    """Returns the link for its page. Raises LINK_NOT_FOUND, NOT_DECIDED for one that SQL made or changed."""
    found = _decided(deps, fields.link_id(link_id))
    return LinkPage(found, found.status(deps.clock.now()), deps.storefronts.of(found.merchant_id).merchant)


def pay_link(deps: Deps, *, link_id: str) -> NewInvoice:
    """Creates an invoice of the link. Raises the reasons of CheckoutService.PayLink."""
    id = fields.link_id(link_id)
    found = _decided(deps, id)
    if (status := found.status(deps.clock.now())) is not LinkStatus.OPEN:
        raise errors.link_ended(status)
    with deps.db.autocommit() as connection:
        if links.has_open_invoices(connection, id, least=OPEN_MOST):
            raise errors.link_busy(OPEN_MOST)
    reference = f"link-{found.code}-{new_code()}"
    return creating.create_without_key(
        deps,
        creating.merchant_of_people(deps, str(found.merchant_id)),
        amount=fiat_text(found.amount),
        currency_code=found.currency_code,
        customer_id=reference,
        external_id=reference,
        purpose=found.purpose,
        link_id=id,
    )


def _decided(deps: Deps, id: UUID) -> LinkView:
    with deps.db.autocommit() as connection:
        found = links.link(connection, id)
    if found is None:
        raise errors.link_not_found()
    if not deps.decided_links.are(id, found):
        raise not_decided("link")
    return found

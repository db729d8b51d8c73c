"""`fiatgate links …`"""

from typing import Final

from cli import connection, ids, listing, output, several
from cli.command import command, group, option
from cli.listing import Row, Table
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.money import money_text

app = group("links", "Payment links for any number of payments: list, create, cancel.")
MERCHANT: Final = ids.one("merchant", "MERCHANT")
TABLE: Final = Table(
    columns="link_id: link | status | age | asked: amount | payments | code | purpose | note",
    stacks="link_id code | status payments | age | asked | purpose note",
    empty="No such links: fiatgate links create",
    noun="link",
    ids=("link_id",),
)


@command(
    *(app, "list", "0197… --status open", pb.ListLinksRequest),
    MERCHANT,
    option("status", "S", "open, expired, canceled."),
    ids.after("link"),
)
def list_all(request: pb.ListLinksRequest, *, limit: listing.Limit = listing.ROWS) -> None:
    """List a merchant's links, newest first, with the number of their payments."""
    call = connection.invoices().ListLinks
    listing.show_page(
        *(TABLE, request, call, "links", "link_id", "fiatgate links cancel LINK_ID"),
        limit=limit,
        for_people=_for_people,
    )


def _for_people(row: Row) -> Row:
    return {"asked": money_text(row["amount"], row["currency_code"])}


@command(
    *(app, "create", "0197… --amount 49.90 --currency EUR", pb.CreateLinkRequest),
    MERCHANT,
    option("amount", "A", "Of each payment.", required=True),
    option("currency_code", "CODE", None, "--currency", required=True),
    option("purpose", "TEXT", "Customers read it."),
    option("note", "TEXT", "Only people of the merchant read it."),
    option(
        "valid_days", "N", "Days in which payments can be begun; 0: until it is canceled.", default=0, max=90
    ),
    modes="all",
)
def create(request: pb.CreateLinkRequest) -> None:
    """Make a link with which customers pay any number of times. Each payment is an invoice."""
    link = connection.invoices().CreateLink(request).link
    amount = money_text(link.amount, link.currency_code)
    page = f"{connection.gateway_url()}/pay/links/{link.link_id}"
    output.outcome(link, f"Customers pay {amount} at {page}", "fiatgate links list MERCHANT")


@command(app, "cancel", "0197…", modes="all")
def cancel(link_ids: ids.LinkIds) -> None:
    """Begin no payment with these links any more; those that have begun go on. Exit code 1 when one was not
    canceled.
    """
    several.each(
        link_ids,
        lambda id: connection.invoices().CancelLink(pb.CancelLinkRequest(link_id=id)).link,
        lambda link: f"Canceled: the link of {money_text(link.amount, link.currency_code)}.",
    )

"""`fiatgate merchants …`"""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Annotated, Any, Final

import typer
from rich.markup import escape

from cli import connection, ids, listing, logos, output, several, stack
from cli.command import Filled, argument, command, group, option, percent, period
from cli.listing import Row, Table
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.rpc.errors import Refused
from kit.rpc.values import LIST_MOST_ROWS

PAGE = 200
app = group("merchants", "Merchants: create, configure, activate, ban.")
TABLE: Final = Table(
    columns="merchant_id: merchant | state | age | name | owner_email: owner | category_code: category"
    " | client_share: client's share",
    stacks="merchant_id state | age | name owner_email | category_code client_share",
    empty="No merchants yet: fiatgate merchants create",
    noun="merchant",
    ids=("merchant_id",),
)
METHODS: Final = Table(
    columns="method_code | currency_code | commission | rate | offered",
    empty="No methods yet: fiatgate methods set",
)
ONE: Final = ids.one("merchant", "MERCHANT")
_URL: Final = ("URL", "Default for invoices that give none.")
_CODES: Final = ("A,B", 'Allowed codes, comma-separated; "" allows all again.')
_ORIGINS: Final = 'Sites that may show the page in a frame, as https://shop.example; "": none.'


def _options(codes: Callable[[str], Any], origins: Callable[[str], Any]) -> tuple[Filled | str, ...]:
    """Returns the options of a merchant. `codes` and `origins` make the values of their fields."""
    return (
        option("category_code", "CODE", "Category, which sets the commission.", "--category"),
        percent("client_share", "Part of the commission that the client pays: 40 is 40 %."),
        option("callback_url", *_URL),
        option("success_url", *_URL),
        option("fail_url", *_URL),
        option("allowed_currencies", *_CODES, "--currencies", parser=codes),
        option("allowed_methods", *_CODES, "--methods", parser=codes),
        option("colour", "#RRGGBB", 'Colour of the customer\'s page; "": the default.'),
        option(
            "late_money",
            "WHAT",
            "What is done with money that comes late: credit, return, ask_credit, ask_return.",
        ),
        "logo",
        option("frame_origins", "A,B", _ORIGINS, parser=origins),
    )


def _codes(text: str) -> list[str]:
    return [code.strip() for code in text.split(",") if code.strip()]


@command(
    *(app, "create", '"Corner Shop" --owner eve@shop.example --active', pb.CreateMerchantRequest),
    argument("name", None, "Shown to customers."),
    option("owner_email", "EMAIL", "An existing owner gets a further merchant.", "--owner", required=True),
    *_options(codes=_codes, origins=_codes),
    option("active", None, "Activate at once.", default=False),
    modes="all",
)
def create(request: pb.CreateMerchantRequest, *, logo: logos.MerchantLogo = None) -> None:
    """Create a merchant."""
    if logo is not None:
        request.logo = logos.content_of(logo)
    made = connection.merchants().CreateMerchant(request).merchant
    id = output.short(made.merchant_id)
    next_commands = [f"fiatgate keys create {id}" if request.active else f"fiatgate merchants activate {id}"]
    if not made.HasField("category_commission"):
        next_commands.insert(0, f"fiatgate merchants set {id} --category CODE")
    _show(made, f"Created: {made.name}, {made.merchant_id}.", *next_commands)
    _note_missing_category(made)
    if request.allowed_currencies or request.allowed_methods:
        _note_unknown_codes(made)


@command(
    *(app, "list", "--json", pb.ListMerchantsRequest),
    option("name", None, "Words of the name, or their beginnings."),
    option("owner_email", "EMAIL", "Only the merchants of this owner.", "--owner"),
    option("status", "S", "inactive, active, banned."),
    option("owner_blocked", None, "Only merchants of owners who are blocked.", default=False),
    option("category_code", "CODE", "Only merchants of this category.", "--category"),
    *period(),
    ids.after("merchant", "older_than_merchant_id"),
)
def list_all(
    request: pb.ListMerchantsRequest,
    *,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, max=LIST_MOST_ROWS, help="The most rows of a page.", show_default="all"
        ),
    ] = None,
) -> None:
    """List merchants, newest first."""
    call = connection.merchants().ListMerchants
    pages = listing.pages(
        *(request, call, "merchants", "merchant_id"), after="older_than_merchant_id", size=PAGE
    )
    found = list(islice(chain.from_iterable(pages), None if limit is None else limit + 1))
    page, more = found[:limit], limit is not None and len(found) > limit
    shown = page if output.mode.json else [row | {"state": _state_word(row)} for row in page]
    TABLE.show(shown, "fiatgate merchants show ID", more=more)
    if more:
        listing.print_more(page[-1]["merchant_id"])


def _state_word(row: Row) -> str:
    return "owner blocked" if row["owner_blocked"] else str(row["status"])


@command(app, "show", "0197…", pb.GetMerchantRequest, ONE)
def show(request: pb.GetMerchantRequest) -> None:
    """Show one merchant with all its options."""
    merchant = connection.merchants().GetMerchant(request).merchant
    id = output.short(merchant.merchant_id)
    next_commands = (f"fiatgate balance {id}", f"fiatgate invoices list --merchant {id}")
    _show(merchant, _state(merchant), *next_commands, whole=True)


@command(
    *(app, "set", "0197… --colour #1d5bb8 --logo shop.png", pb.ConfigureMerchantRequest),
    ONE,
    option("name", None, "Shown to customers."),
    *_options(
        codes=lambda text: pb.AllowedCodes(codes=_codes(text)),
        origins=lambda text: pb.AllowedOrigins(origins=_codes(text)),
    ),
    modes="all",
)
def configure(request: pb.ConfigureMerchantRequest, *, logo: logos.MerchantLogo = None) -> None:
    """Change the options that are given; an empty text removes a default."""
    if logo is not None:
        request.logo = logos.content_of(logo)
    changed = connection.merchants().ConfigureMerchant(request).merchant
    _show(changed, f"Changed: {changed.name}.")
    _note_missing_category(changed)
    if request.allowed_currencies.codes or request.allowed_methods.codes:
        _note_unknown_codes(changed)


@command(app, "methods", "0197…", invoices_pb2.ListMerchantMethodsRequest, ONE)
def methods(request: invoices_pb2.ListMerchantMethodsRequest) -> None:
    """List the payment methods as the merchant's customers get them, and what keeps each from being offered."""
    answer = connection.desk().ListMerchantMethods(request)
    if output.mode.json:
        output.record(answer)
        return
    if answer.refused:
        output.note(f"[yellow]All new deals are refused: {answer.refused}[/yellow]")
    METHODS.show([_method_row(each) for each in answer.methods])


def _method_row(offered: invoices_pb2.OfferedMethod) -> Row:
    method = offered.method
    return {
        "method_code": method.method.method_code,
        "currency_code": method.currency.code,
        "commission": f"{method.total_percent} %" if method.total_percent else None,
        "rate": method.rate or None,
        "offered": "; ".join(_obstacles(offered)) or "yes",
    }


def _obstacles(each: invoices_pb2.OfferedMethod) -> Iterator[str]:
    for obstacle in each.method.obstacles:
        yield output.enum_word(catalog_pb2.MethodObstacle.DESCRIPTOR, obstacle).replace("_", " ")
    if each.no_place:
        yield each.no_place


def _state_command(word: str, help: str, call: Callable[[str], Any]) -> None:
    def change(merchant_ids: ids.MerchantIds) -> None:
        several.each(merchant_ids, lambda id: call(id).merchant, _state)

    change.__doc__ = help
    command(app, word, "0197…", modes="all")(change)


_state_command(
    "activate",
    "Let a new merchant use the API.",
    lambda id: connection.merchants().ActivateMerchant(pb.ActivateMerchantRequest(merchant_id=id)),
)
_state_command(
    "ban",
    "Refuse all its requests from now on (MERCHANT_BLOCKED).",
    lambda id: connection.merchants().BanMerchant(pb.BanMerchantRequest(merchant_id=id)),
)
_state_command(
    "unban",
    "Restore the state before the ban.",
    lambda id: connection.merchants().UnbanMerchant(pb.UnbanMerchantRequest(merchant_id=id)),
)


def _state(merchant: pb.Merchant) -> str:
    if merchant.owner_blocked:
        return f"{merchant.name}: the owner {merchant.owner_email} is blocked."
    return f"{merchant.name} is {output.enum_word(pb.MerchantStatus.DESCRIPTOR, merchant.status)}."


def _show(merchant: pb.Merchant, sentence: str, *next_commands: str, whole: bool = False) -> None:
    values = output.plain(merchant)
    if not output.mode.json:  # an empty list would mean to people that nothing is allowed
        for name in ("allowed_currencies", "allowed_methods"):
            values[name] = values[name] or "all"
    output.outcome(values, sentence, *next_commands, whole=whole)


def _note_missing_category(merchant: pb.Merchant) -> None:
    """Warns of a merchant whose invoices nobody can pay: without a category's commission no method is offered."""
    if merchant.HasField("category_commission"):
        return
    what = (
        f"category {escape(merchant.category_code)} does not exist"
        if merchant.category_code
        else "it has no category"
    )
    output.note(
        f"[yellow]Its customers are offered no method, because {what}[/yellow] "
        "[dim](fiatgate categories list; a new one: fiatgate categories set CODE --commission 5)[/dim]"
    )


def _note_unknown_codes(merchant: pb.Merchant) -> None:
    """Names the allowed codes that catalog does not have. They are stored: a code may be allowed before it is made."""
    try:
        known = connection.catalog().GetCatalog(catalog_pb2.GetCatalogRequest())
    except (Refused, stack.NoAddress):
        return  # the merchant is stored, and only this remark is lost
    currencies = {each.code for each in known.currencies}
    methods = {each.method_code for each in known.methods}
    for code in set(merchant.allowed_currencies) - currencies:
        output.note(f"[dim]There is no currency {escape(code)} yet: fiatgate currencies set[/dim]")
    for code in set(merchant.allowed_methods) - methods:
        output.note(f"[dim]There is no payment method {escape(code)} yet: fiatgate methods set[/dim]")

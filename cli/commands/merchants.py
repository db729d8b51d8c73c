"""`fiatgate merchants …`"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli import connection, ids, logos, output, paging, several, stack
from cli.moments import Since, Until
from cli.output import Everything, Json
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.base.proto import timestamp_from
from kit.rpc.errors import Refused
from kit.rpc.values import LIST_MOST_ROWS

PAGE = 200
COLUMNS = {
    "merchant_id": "merchant",
    "state": "state",
    "age": "age",
    "name": "name",
    "owner_email": "owner",
    "category_code": "category",
    "client_share": "client's share",
}
METHODS = ("method_code", "currency_code", "commission", "rate", "offered")
STACKS = (("merchant_id", "state"), ("age",), ("name", "owner_email"), ("category_code", "client_share"))
app = typer.Typer(help="Merchants: create, configure, activate, ban.", no_args_is_help=True)

Category = Annotated[str | None, typer.Option(metavar="CODE", help="Category, which sets the commission.")]
Share = Annotated[
    str | None, typer.Option(metavar="0..1", help="Part of the commission that the client pays.")
]
Url = Annotated[str | None, typer.Option(metavar="URL", help="Default for invoices that give none.")]
Codes = Annotated[
    str | None, typer.Option(metavar="A,B", help='Allowed codes, comma-separated; "" allows all again.')
]
Colour = Annotated[
    str | None, typer.Option(metavar="#RRGGBB", help='Colour of the customer\'s page; "": the default.')
]
Origins = Annotated[
    str | None,
    typer.Option(
        metavar="A,B", help='Sites that may show the page in a frame, as https://shop.example; "": none.'
    ),
]


@app.command(
    "create", epilog='Example: fiatgate merchants create "Corner Shop" --owner eve@shop.example --active'
)
def create(
    name: Annotated[str, typer.Argument(help="Shown to customers.")],
    *,
    owner: Annotated[str, typer.Option(metavar="EMAIL", help="An existing owner gets a further merchant.")],
    category: Category = None,
    client_share: Share = None,
    callback_url: Url = None,
    success_url: Url = None,
    fail_url: Url = None,
    currencies: Codes = None,
    methods: Codes = None,
    colour: Colour = None,
    logo: logos.MerchantLogo = None,
    frame_origins: Origins = None,
    active: Annotated[bool, typer.Option("--active", help="Activate at once.")] = False,
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Create a merchant."""
    request = pb.CreateMerchantRequest(
        name=name,
        owner_email=owner,
        category_code=category,
        client_share=client_share,
        callback_url=callback_url,
        success_url=success_url,
        fail_url=fail_url,
        active=active,
        allowed_currencies=_codes(currencies),
        allowed_methods=_codes(methods),
        colour=colour,
        logo=None if logo is None else logos.content_of(logo),
        frame_origins=_codes(frame_origins),
    )
    made = connection.merchants().CreateMerchant(request).merchant
    id = output.short(made.merchant_id)
    next_commands = [f"fiatgate keys create {id}"] if active else [f"fiatgate merchants activate {id}"]
    if not made.HasField("category_commission"):
        next_commands.insert(0, f"fiatgate merchants set {id} --category CODE")
    _show(
        made,
        f"Created: {made.name}, {made.merchant_id}.",
        *next_commands,
        everything=everything,
        as_json=as_json,
    )
    _note_missing_category(made)
    if currencies or methods:
        _note_unknown_codes(made)


@app.command("list", epilog="Example: fiatgate merchants list --json")
def list_all(
    *,
    name: Annotated[str, typer.Option(help="Words of the name, or their beginnings.")] = "",
    owner: Annotated[str, typer.Option(metavar="EMAIL", help="Only the merchants of this owner.")] = "",
    status: Annotated[str | None, typer.Option(metavar="S", help="inactive, active, banned.")] = None,
    owner_blocked: Annotated[
        bool, typer.Option("--owner-blocked", help="Only merchants of owners who are blocked.")
    ] = False,
    category: Annotated[str, typer.Option(metavar="CODE", help="Only merchants of this category.")] = "",
    since: Since = None,
    until: Until = None,
    after: Annotated[str, ids.after("merchant")] = "",
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, max=LIST_MOST_ROWS, help="The most rows of a page.", show_default="all"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List merchants, newest first."""
    wanted = pb.ListMerchantsRequest(
        name=name,
        owner_email=owner,
        category_code=category,
        owner_blocked=owner_blocked,
        created_from=timestamp_from(since),
        created_before=timestamp_from(until),
        older_than_merchant_id=after,
        limit=PAGE,
    )
    wanted.status = output.enum_number(pb.MerchantStatus.DESCRIPTOR, status)  # type: ignore[assignment]  # see deals
    found = list(islice(_merchants(wanted), None if limit is None else limit + 1))
    page = found[:limit]
    if as_json:
        output.print_json([output.plain(merchant) for merchant in page])
    else:
        _print_page(page, more=len(found) > len(page))
    if len(found) > len(page):
        paging.print_more(page[-1].merchant_id)


def _print_page(page: Sequence[pb.Merchant], *, more: bool) -> None:
    short_ids = output.shortened(merchant.merchant_id for merchant in page)
    rows = [
        row
        | {
            "merchant_id": short_ids[row["merchant_id"]],
            "state": "owner blocked" if row["owner_blocked"] else row["status"],
            "age": output.age(row["created_at"]),
        }
        for row in map(output.plain, page)
    ]
    output.overview(output.counted("merchant", page, more=more), "fiatgate merchants show ID")
    output.rows(
        rows, COLUMNS, as_json=False, empty="No merchants yet: fiatgate merchants create", stacks=STACKS
    )


@app.command("show", epilog="Example: fiatgate merchants show 0197…")
def show(merchant_id: ids.MerchantId, *, as_json: Json = False) -> None:
    """Show one merchant with all its options."""
    merchant = connection.merchants().GetMerchant(pb.GetMerchantRequest(merchant_id=merchant_id)).merchant
    id = output.short(merchant_id)
    next_commands = (f"fiatgate balance {id}", f"fiatgate invoices list --merchant {id}")
    _show(merchant, _state(merchant), *next_commands, everything=True, as_json=as_json)


@app.command("set", epilog="Example: fiatgate merchants set 0197… --colour #1d5bb8 --logo shop.png")
def configure(
    merchant_id: ids.MerchantId,
    *,
    name: Annotated[str | None, typer.Option(help="Shown to customers.")] = None,
    category: Category = None,
    client_share: Share = None,
    callback_url: Url = None,
    success_url: Url = None,
    fail_url: Url = None,
    currencies: Codes = None,
    methods: Codes = None,
    colour: Colour = None,
    logo: logos.MerchantLogo = None,
    frame_origins: Origins = None,
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Change the options that are given; an empty text removes a default."""
    request = pb.ConfigureMerchantRequest(
        merchant_id=merchant_id,
        name=name,
        category_code=category,
        client_share=client_share,
        callback_url=callback_url,
        success_url=success_url,
        fail_url=fail_url,
        allowed_currencies=None if currencies is None else pb.AllowedCodes(codes=_codes(currencies)),
        allowed_methods=None if methods is None else pb.AllowedCodes(codes=_codes(methods)),
        colour=colour,
        logo=None if logo is None else logos.content_of(logo),
        frame_origins=None if frame_origins is None else pb.AllowedOrigins(origins=_codes(frame_origins)),
    )
    changed = connection.merchants().ConfigureMerchant(request).merchant
    _show(changed, f"Changed: {changed.name}.", everything=everything, as_json=as_json)
    _note_missing_category(changed)
    if currencies or methods:
        _note_unknown_codes(changed)


@app.command("methods", epilog="Example: fiatgate merchants methods 0197…")
def methods(merchant_id: ids.MerchantId, *, as_json: Json = False) -> None:
    """List the payment methods as the merchant's customers get them, and what keeps each from being offered."""
    request = invoices_pb2.ListMerchantMethodsRequest(merchant_id=merchant_id)
    answer = connection.desk().ListMerchantMethods(request)
    if as_json:
        output.record(answer, as_json=True)
        return
    if answer.refused:
        output.note(f"[yellow]All new deals are refused: {answer.refused}[/yellow]")
    rows = [
        {
            "method_code": each.method.method.method_code,
            "currency_code": each.method.currency.code,
            "commission": f"{each.method.total_percent} %" if each.method.total_percent else None,
            "rate": each.method.rate or None,
            "offered": "; ".join(_obstacles(each)) or "yes",
        }
        for each in answer.methods
    ]
    output.rows(rows, METHODS, as_json=False, empty="No methods yet: fiatgate methods set")


def _obstacles(each: invoices_pb2.OfferedMethod) -> Iterator[str]:
    for obstacle in each.method.obstacles:
        yield output.enum_word(catalog_pb2.MethodObstacle.DESCRIPTOR, obstacle).replace("_", " ")
    if each.no_place:
        yield each.no_place


def _state_command(word: str, help_text: str, call: Callable[[str], Any]) -> None:
    @app.command(word, help=help_text, epilog=f"Example: fiatgate merchants {word} 0197…")
    def change(
        merchant_ids: ids.MerchantIds, *, everything: Everything = False, as_json: Json = False
    ) -> None:
        several.each(
            merchant_ids,
            lambda id: call(id).merchant,
            _state,
            everything=everything,
            as_json=as_json,
        )


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


def _merchants(wanted: pb.ListMerchantsRequest) -> Iterator[pb.Merchant]:
    while True:
        page = connection.merchants().ListMerchants(wanted).merchants
        yield from page
        if len(page) < PAGE:
            return
        wanted.older_than_merchant_id = page[-1].merchant_id


def _state(merchant: pb.Merchant) -> str:
    if merchant.owner_blocked:
        return f"{merchant.name}: the owner {merchant.owner_email} is blocked."
    return f"{merchant.name} is {output.enum_word(pb.MerchantStatus.DESCRIPTOR, merchant.status)}."


def _show(merchant: pb.Merchant, sentence: str, *next_commands: str, everything: bool, as_json: bool) -> None:
    values = output.plain(merchant)
    if not as_json:  # an empty list would mean to people that nothing is allowed
        for name in ("allowed_currencies", "allowed_methods"):
            values[name] = values[name] or "all"
    output.outcome(values, sentence, *next_commands, everything=everything, as_json=as_json)


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
        "[dim](fiatgate categories list; a new one: fiatgate categories set CODE --commission 0.05)[/dim]"
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


def _codes(text: str | None) -> list[str]:
    return [code.strip() for code in (text or "").split(",") if code.strip()]

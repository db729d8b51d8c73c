"""`fiatgate merchants …`"""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli import connection, logos, output, stack
from cli.output import Json
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.rpc.errors import Refused

NAME = "merchants"
PAGE = 200
app = typer.Typer(help="Merchants: create, configure, activate, ban.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="The merchant's UUID.")]
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
    _show(made, as_json=as_json)
    if currencies or methods:
        _note_unknown_codes(made)


@app.command("list", epilog="Example: fiatgate merchants list --json")
def list_all(*, as_json: Json = False) -> None:
    """List all merchants, newest first."""
    columns = (
        "merchant_id",
        "name",
        "owner_email",
        "status",
        "owner_blocked",
        "category_code",
        "client_share",
    )
    output.records(
        _all_merchants(), columns, as_json=as_json, empty="No merchants yet: fiatgate merchants create"
    )


@app.command("show", epilog="Example: fiatgate merchants show 0197…")
def show(merchant_id: Id, *, as_json: Json = False) -> None:
    """Show one merchant with all its options."""
    request = pb.GetMerchantRequest(merchant_id=merchant_id)
    _show(connection.merchants().GetMerchant(request).merchant, as_json=as_json)


@app.command("set", epilog="Example: fiatgate merchants set 0197… --colour #1d5bb8 --logo shop.png")
def configure(
    merchant_id: Id,
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
    _show(changed, as_json=as_json)
    if currencies or methods:
        _note_unknown_codes(changed)


def _state_command(word: str, help_text: str, call: Callable[[str], Any]) -> None:
    @app.command(word, help=help_text, epilog=f"Example: fiatgate merchants {word} 0197…")
    def change(merchant_id: Id, *, as_json: Json = False) -> None:
        _show(call(merchant_id).merchant, as_json=as_json)


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


def _all_merchants() -> Iterator[pb.Merchant]:
    oldest = ""
    while True:
        request = pb.ListMerchantsRequest(older_than_merchant_id=oldest, limit=PAGE)
        page = connection.merchants().ListMerchants(request).merchants
        yield from page
        if len(page) < PAGE:
            return
        oldest = page[-1].merchant_id


def _show(merchant: pb.Merchant, *, as_json: bool) -> None:
    values = output.plain(merchant)
    if not as_json:  # an empty list would mean to people that nothing is allowed
        for name in ("allowed_currencies", "allowed_methods"):
            values[name] = values[name] or "all"
    output.record(values, as_json=as_json)


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

"""`fiatgate methods …`"""

from typing import Final

from cli import connection, logos, output
from cli.command import argument, command, group, option, percent
from cli.listing import Table
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.base.money import amount_text, money_text
from kit.rpc.errors import not_found

app = group("methods", "Payment methods: bounds, time, commission.")
TABLE: Final = Table(
    columns="method_code | currency_code | name | min_sum | max_sum | payment_minutes | commission"
    " | account_kind | takes_reference | active",
    stacks="method_code currency_code | name account_kind | min_sum max_sum | payment_minutes commission"
    " | active takes_reference",
    empty="No methods yet: fiatgate methods set",
)


@command(
    *(app, "set", "sepa --currency EUR --name SEPA --min 10 --max 5000 --minutes 30", pb.PaymentMethod),
    argument("method_code", "CODE"),
    option("currency_code", "C", "Currency code.", "--currency", required=True),
    option("name", "N", "Shown to customers.", required=True),
    option("min_sum", "A", "Least invoice amount.", "--min", required=True),
    option("max_sum", "A", "Largest invoice amount.", "--max", required=True),
    option("payment_minutes", "M", "Time a customer has to pay.", "--minutes", required=True, min=1),
    percent("commission", "Added to the category's commission: 1.5 is 1.5 %.", default="0"),
    "logo",
    option("logo_url", "URL", "The address that merchants get, in place of the logo's own."),
    option("active", None, "Whether customers may choose it.", "--active/--inactive", default=True),
    option(
        *("takes_reference", None, "Whether customers write the payment reference into the transfer."),
        "--takes-reference/--no-takes-reference",
        show_default=False,
    ),
    option("account_kind", "K", "What new accounts must be: iban, card, phone, upi; free: any text."),
    modes="all",
)
def set_one(request: pb.PaymentMethod, *, logo: logos.MethodLogo = None) -> None:
    """Create a payment method or replace its options; logo, reference and kind stay unless others are given."""
    picture = None if logo is None else logos.content_of(logo)
    setting = pb.SetPaymentMethodRequest(method=request, logo=picture)
    made = connection.catalog().SetPaymentMethod(setting).method
    state = "active" if made.active else "inactive"
    sentence = (
        f"{made.name} ({made.method_code}) is {state}: {amount_text(made.min_sum, made.currency_code)} to "
        f"{money_text(made.max_sum, made.currency_code)}."
    )
    output.outcome(made, sentence, f"fiatgate requisites add {made.method_code} --holder H --account A")


def require_known(code: str) -> None:
    """Raises Refused PAYMENT_METHOD_NOT_FOUND for an unknown code; an empty one stands for any method."""
    if code and code not in {
        each.method_code for each in connection.catalog().GetCatalog(pb.GetCatalogRequest()).methods
    }:
        raise not_found("PAYMENT_METHOD_NOT_FOUND", f"There is no payment method {code!r}", method_code=code)


@command(app, "list", "", pb.GetCatalogRequest)
def list_all(request: pb.GetCatalogRequest) -> None:
    """List all payment methods, also inactive ones."""
    TABLE.show_all(connection.catalog().GetCatalog(request).methods)

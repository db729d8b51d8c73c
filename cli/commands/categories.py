"""`fiatgate categories …`"""

from typing import Final

from cli import connection, output
from cli.command import argument, command, group, option, percent
from cli.listing import Table
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.base.money import percent_of

app = group("categories", "Categories of merchants and their commission.")
TABLE: Final = Table(
    columns="code | commission | refunds_return_commission: refunds return it", empty="No categories yet"
)


@command(
    *(app, "set", "shops --commission 5", pb.SetCategoryRequest),
    argument("code", "CODE"),
    percent("commission", "Of the amount: 1.5 is 1.5 %.", required=True),
    option(
        "refunds_return_commission",
        None,
        "Whether a refund returns the merchant's commission; without either it stays as it is.",
        "--refunds-return-commission/--refunds-keep-commission",
    ),
    modes="all",
)
def set_one(request: pb.SetCategoryRequest) -> None:
    """Create a category or change it."""
    category = connection.merchants().SetCategory(request).category
    refunds = "; refunds return it" if category.refunds_return_commission else ""
    output.outcome(
        category,
        f"Category {category.code} has a commission of {percent_of(category.commission)} %{refunds}.",
    )


@command(app, "list", "", pb.ListCategoriesRequest)
def list_all(request: pb.ListCategoriesRequest) -> None:
    """List all categories."""
    TABLE.show_all(connection.merchants().ListCategories(request).categories)

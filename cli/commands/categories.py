"""`fiatgate categories …`"""

from typing import Final

from cli import connection, output
from cli.command import argument, command, group, percent
from cli.listing import Table
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.base.money import percent_of

app = group("categories", "Categories of merchants and their commission.")
TABLE: Final = Table(columns="code | commission", empty="No categories yet")


@command(
    *(app, "set", "shops --commission 5", pb.SetCategoryRequest),
    argument("code", "CODE"),
    percent("commission", "Of the amount: 1.5 is 1.5 %.", required=True),
    modes="all",
)
def set_one(request: pb.SetCategoryRequest) -> None:
    """Create a category or change its commission."""
    category = connection.merchants().SetCategory(request).category
    output.outcome(
        category, f"Category {category.code} has a commission of {percent_of(category.commission)} %."
    )


@command(app, "list", "", pb.ListCategoriesRequest)
def list_all(request: pb.ListCategoriesRequest) -> None:
    """List all categories."""
    TABLE.show_all(connection.merchants().ListCategories(request).categories)

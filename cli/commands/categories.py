"""`fiatgate categories …`"""

from typing import Annotated

import typer

from cli import connection, output
from cli.output import Everything, Json
from fiatgate.merchants.v1 import merchants_pb2 as pb

app = typer.Typer(help="Categories of merchants and their commission.", no_args_is_help=True)


@app.command("set", epilog="Example: fiatgate categories set shops --commission 0.05")
def set_one(
    code: Annotated[str, typer.Argument(metavar="CODE")],
    *,
    commission: Annotated[str, typer.Option(metavar="0..1", help="0.05 is five percent.")],
    everything: Everything = False,
    as_json: Json = False,
) -> None:
    """Create a category or change its commission."""
    request = pb.SetCategoryRequest(code=code, commission=commission)
    category = connection.merchants().SetCategory(request).category
    sentence = f"Category {category.code} has a commission of {category.commission}."
    output.outcome(category, sentence, everything=everything, as_json=as_json)


@app.command("list", epilog="Example: fiatgate categories list")
def list_all(*, as_json: Json = False) -> None:
    """List all categories."""
    answer = connection.merchants().ListCategories(pb.ListCategoriesRequest())
    output.records(answer.categories, ("code", "commission"), as_json=as_json, empty="No categories yet")

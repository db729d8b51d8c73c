"""`fiatgate owners …`"""

from typing import Annotated

import typer

from cli import connection, output
from cli.output import Json
from fiatgate.merchants.v1 import merchants_pb2 as pb

NAME = "owners"
app = typer.Typer(help="Owners of merchants: block, unblock.", no_args_is_help=True)
Email = Annotated[str, typer.Argument(metavar="EMAIL")]


@app.command("block", epilog="Example: fiatgate owners block eve@shop.example")
def block(email: Email, *, as_json: Json = False) -> None:
    """Refuse all requests of all the owner's merchants from now on (OWNER_BLOCKED)."""
    output.record(connection.merchants().BlockOwner(pb.BlockOwnerRequest(email=email)), as_json=as_json)


@app.command("unblock", epilog="Example: fiatgate owners unblock eve@shop.example")
def unblock(email: Email, *, as_json: Json = False) -> None:
    """Accept requests of the owner's merchants again."""
    output.record(connection.merchants().UnblockOwner(pb.UnblockOwnerRequest(email=email)), as_json=as_json)

"""`fiatgate owners …`"""

from typing import Annotated

import typer

from cli import connection, output
from cli.output import Everything, Json
from fiatgate.merchants.v1 import merchants_pb2 as pb

NAME = "owners"
app = typer.Typer(help="Owners of merchants: block, unblock.", no_args_is_help=True)
Email = Annotated[str, typer.Argument(metavar="EMAIL")]


@app.command("block", epilog="Example: fiatgate owners block eve@shop.example")
def block(email: Email, *, everything: Everything = False, as_json: Json = False) -> None:
    """Refuse all requests of all the owner's merchants from now on (OWNER_BLOCKED)."""
    blocked = connection.merchants().BlockOwner(pb.BlockOwnerRequest(email=email))
    sentence = f"Blocked: all requests of the merchants of {email} are refused."
    output.outcome(blocked, sentence, everything=everything, as_json=as_json)


@app.command("unblock", epilog="Example: fiatgate owners unblock eve@shop.example")
def unblock(email: Email, *, everything: Everything = False, as_json: Json = False) -> None:
    """Accept requests of the owner's merchants again."""
    unblocked = connection.merchants().UnblockOwner(pb.UnblockOwnerRequest(email=email))
    sentence = f"Unblocked: requests of the merchants of {email} are accepted again."
    output.outcome(unblocked, sentence, everything=everything, as_json=as_json)

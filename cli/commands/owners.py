"""`fiatgate owners …`"""

from typing import Annotated

import typer

from cli import connection, output
from cli.output import Everything, Json
from fiatgate.merchants.v1 import merchants_pb2 as pb

app = typer.Typer(help="Owners of merchants: show, block, unblock.", no_args_is_help=True)
Email = Annotated[str, typer.Argument(metavar="EMAIL")]


@app.command("show", epilog="Example: fiatgate owners show eve@shop.example")
def show(email: Email, *, everything: Everything = False, as_json: Json = False) -> None:
    """Show an owner: whether it is blocked, and the number of its merchants."""
    owner = connection.merchants().GetOwner(pb.GetOwnerRequest(owner=email)).owner
    merchants = f"{owner.merchants} merchant{'' if owner.merchants == 1 else 's'}"
    state = "is blocked" if owner.HasField("blocked_at") else "is not blocked"
    next_command = f"fiatgate merchants list --owner {owner.email}"
    sentence = f"{owner.email} {state} and has {merchants}."
    output.outcome(owner, sentence, next_command, everything=everything, as_json=as_json)


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

"""`fiatgate owners …`"""

from typing import Final

from cli import connection, output
from cli.command import argument, command, group
from fiatgate.merchants.v1 import merchants_pb2 as pb

app = group("owners", "Owners of merchants: show, block, unblock.")
EMAIL: Final = argument("email", "EMAIL")
EXAMPLE: Final = "eve@shop.example"


@command(app, "show", EXAMPLE, pb.GetOwnerRequest, argument("owner", "EMAIL"), modes="all")
def show(request: pb.GetOwnerRequest) -> None:
    """Show an owner: whether it is blocked, and the number of its merchants."""
    owner = connection.merchants().GetOwner(request).owner
    merchants = f"{owner.merchants} merchant{'' if owner.merchants == 1 else 's'}"
    state = "is blocked" if owner.HasField("blocked_at") else "is not blocked"
    list_them = f"fiatgate merchants list --owner {owner.email}"
    output.outcome(owner, f"{owner.email} {state} and has {merchants}.", list_them)


@command(app, "block", EXAMPLE, pb.BlockOwnerRequest, EMAIL, modes="all")
def block(request: pb.BlockOwnerRequest) -> None:
    """Refuse all requests of all the owner's merchants from now on (OWNER_BLOCKED)."""
    blocked = connection.merchants().BlockOwner(request)
    output.outcome(blocked, f"Blocked: all requests of the merchants of {request.email} are refused.")


@command(app, "unblock", EXAMPLE, pb.UnblockOwnerRequest, EMAIL, modes="all")
def unblock(request: pb.UnblockOwnerRequest) -> None:
    """Accept requests of the owner's merchants again."""
    unblocked = connection.merchants().UnblockOwner(request)
    output.outcome(unblocked, f"Unblocked: requests of the merchants of {request.email} are accepted again.")

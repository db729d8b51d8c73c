"""`fiatgate actor-keys …`: the keys by which accounts signs the tokens of people."""

import typer

from cli import connection, output
from cli.output import Json
from fiatgate.accounts.v1 import accounts_pb2 as pb

app = typer.Typer(help="Keys that sign the tokens of people.", no_args_is_help=True)


@app.command("rotate", epilog="Example: fiatgate actor-keys rotate")
def rotate(*, as_json: Json = False) -> None:
    """Make a new key. It signs after 75 seconds. Tokens of the one before count for three minutes."""
    made = connection.actor_keys().RotateActorKey(pb.RotateActorKeyRequest())
    output.outcome(
        made,
        f"In 75 seconds actor tokens will be signed with key {made.key_id}.",
        everything=False,
        as_json=as_json,
    )

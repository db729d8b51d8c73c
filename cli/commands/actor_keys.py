"""`fiatgate actor-keys …`: the keys by which accounts signs the tokens of people."""

from cli import connection, output
from cli.command import command, group
from fiatgate.accounts.v1 import accounts_pb2 as pb

app = group("actor-keys", "Keys that sign the tokens of people.")


@command(app, "rotate", "", pb.RotateActorKeyRequest)
def rotate(request: pb.RotateActorKeyRequest) -> None:
    """Make a new key. It signs after 75 seconds. Tokens of the one before count for three minutes."""
    made = connection.actor_keys().RotateActorKey(request)
    output.outcome(made, f"In 75 seconds actor tokens will be signed with key {made.key_id}.")

"""`fiatgate keys …`"""

from typing import Annotated

import typer

from cli import connection, output
from cli.output import Json
from fiatgate.merchants.v1 import merchants_pb2 as pb

NAME = "keys"
app = typer.Typer(help="API keys with their signing secrets.", no_args_is_help=True)
Merchant = Annotated[str, typer.Argument(metavar="MERCHANT", help="The merchant's UUID.")]


@app.command("create", epilog="Example: fiatgate keys create 0197… --name production")
def create(
    merchant_id: Merchant,
    *,
    name: Annotated[str, typer.Option(help="For people, at most 64 characters.")] = "",
    as_json: Json = False,
) -> None:
    """Make a key and its secret. They are shown only now."""
    request = pb.CreateApiKeyRequest(merchant_id=merchant_id, name=name)
    output.record(connection.merchants().CreateApiKey(request), as_json=as_json)
    if not as_json:
        output.note("[yellow]Save both now: neither can be shown again.[/yellow]")


@app.command("list", epilog="Example: fiatgate keys list 0197…")
def list_all(merchant_id: Merchant, *, as_json: Json = False) -> None:
    """List a merchant's keys, newest first, without the keys themselves."""
    answer = connection.merchants().ListApiKeys(pb.ListApiKeysRequest(merchant_id=merchant_id))
    columns = ("key_id", "name", "hint", "active", "created_at", "deactivated_at")
    output.records(answer.keys, columns, as_json=as_json, empty="No keys yet: fiatgate keys create MERCHANT")


@app.command("deactivate", epilog="Example: fiatgate keys deactivate 0197…")
def deactivate(
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="The key's UUID, not the key.")],
    *,
    as_json: Json = False,
) -> None:
    """Refuse the key from now on. It cannot be activated again."""
    answer = connection.merchants().DeactivateApiKey(pb.DeactivateApiKeyRequest(key_id=key_id))
    output.record(answer.key, as_json=as_json)

"""`fiatgate keys …`"""

from typing import Annotated

import typer

from cli import connection, ids, output, several
from cli.output import Everything, Json
from fiatgate.merchants.v1 import merchants_pb2 as pb

app = typer.Typer(help="API keys with their signing secrets.", no_args_is_help=True)


@app.command("create", epilog="Example: fiatgate keys create 0197… --name production")
def create(
    merchant_id: ids.MerchantId,
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
def list_all(merchant_id: ids.MerchantId, *, as_json: Json = False) -> None:
    """List a merchant's keys, active ones first, without the keys themselves."""
    answer = connection.merchants().ListApiKeys(pb.ListApiKeysRequest(merchant_id=merchant_id))
    columns = (
        *("key_id", "name", "hint", "active", "last_used_at"),
        *("replaced_by_key_id", "created_at", "deactivated_at"),
    )
    stacks = (
        *(("key_id",), ("name", "hint"), ("active", "replaced_by_key_id"), ("last_used_at",)),
        ("created_at", "deactivated_at"),
    )
    rows = [output.plain(key) for key in answer.keys]
    if not as_json:
        short_ids = output.shortened(row["key_id"] for row in rows)
        rows = [row | {"key_id": short_ids[row["key_id"]]} for row in rows]
        output.overview(output.counted("key", rows))
    empty = "No keys yet: fiatgate keys create MERCHANT"
    output.rows(rows, columns, as_json=as_json, empty=empty, stacks=stacks)


@app.command("deactivate", epilog="Example: fiatgate keys deactivate 0197…")
def deactivate(key_ids: ids.KeyIds, *, everything: Everything = False, as_json: Json = False) -> None:
    """Refuse the keys from now on. They cannot be activated again. Exit code 1 when one was not deactivated."""
    several.each(
        key_ids,
        lambda id: connection.merchants().DeactivateApiKey(pb.DeactivateApiKeyRequest(key_id=id)).key,
        lambda key: f"Deactivated: key {key.name or key.hint}. Requests with it are refused from now on.",
        everything=everything,
        as_json=as_json,
    )

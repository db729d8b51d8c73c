"""`fiatgate keys …`"""

from typing import Final

from cli import connection, ids, output, several
from cli.command import command, group, option
from cli.listing import Table
from fiatgate.merchants.v1 import merchants_pb2 as pb

app = group("keys", "API keys with their signing secrets.")
MERCHANT: Final = ids.one("merchant", "MERCHANT")
TABLE: Final = Table(
    columns="key_id | name | hint | active | last_used_at | replaced_by_key_id | created_at | deactivated_at",
    stacks="key_id | name hint | active replaced_by_key_id | last_used_at | created_at deactivated_at",
    empty="No keys yet: fiatgate keys create MERCHANT",
    noun="key",
    ids=("key_id",),
)


@command(
    *(app, "create", "0197… --name production", pb.CreateApiKeyRequest),
    MERCHANT,
    option("name", None, "For people, at most 64 characters."),
)
def create(request: pb.CreateApiKeyRequest) -> None:
    """Make a key and its secret. They are shown only now."""
    output.record(connection.merchants().CreateApiKey(request))
    output.note("[yellow]Save both now: neither can be shown again.[/yellow]")


@command(app, "list", "0197…", pb.ListApiKeysRequest, MERCHANT)
def list_all(request: pb.ListApiKeysRequest) -> None:
    """List a merchant's keys, active ones first, without the keys themselves."""
    TABLE.show_all(connection.merchants().ListApiKeys(request).keys)


@command(app, "deactivate", "0197…", modes="all")
def deactivate(key_ids: ids.KeyIds) -> None:
    """Refuse the keys from now on. They cannot be activated again. Exit code 1 when one was not deactivated."""
    several.each(
        key_ids,
        lambda id: connection.merchants().DeactivateApiKey(pb.DeactivateApiKeyRequest(key_id=id)).key,
        lambda key: f"Deactivated: key {key.name or key.hint}. Requests with it are refused from now on.",
    )

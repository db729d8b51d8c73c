"""The webhook: the request that Fiatgate sends to the merchant's `callback_url` (docs/api.md#events)."""

from typing import Final

from gateway.json.problems import Json
from gateway.openapi.answers import EVENT_UUID
from gateway.openapi.schemas import example_of, ref

DESCRIPTION: Final = (
    "Sent once an invoice is final (`success`, `fail`, `expired`, `canceled`) to its `callback_url`. There is no other "
    "event, and none for changes in between.\n\n"
    "Answer with any 2xx within 15 seconds; do slow work afterwards. Anything else, a redirect too, is a failure and "
    "is retried 7 times: 30 seconds, 1, 2, 4, 8, 16 and 30 minutes after each failure. Then the event is `dead`; "
    "you can have it resent.\n\n"
    "- Check the signature over the body's raw bytes, before parsing them.\n"
    "- Deduplicate by `event_id`: the same event may come more than once, with the same bytes.\n"
    "- Go by `amount`: it is the final one, also after an adjustment."
)
SIGNATURE: Final = (
    "`X-Signature` is the HMAC-SHA256, in lower-case hexadecimal, of the value of `X-Signature-Timestamp`, a period "
    "and the raw body; the key is the signing secret that was shown with your API key. Compare in constant time. You "
    "need not check the timestamp's age: retries come up to half an hour late, resends days later."
)


def _header(name: str, description: str, schema: Json, example: str) -> Json:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": description,
        "schema": schema,
        "example": example,
    }


HEADERS: Final = (
    _header("X-Signature", SIGNATURE, {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "5f" * 32),
    _header(
        "X-Signature-Timestamp",
        "Unix time of the attempt, seconds.",
        {"type": "string", "pattern": "^[0-9]+$"},
        "1768478982",
    ),
    _header(
        "X-Idempotency-Key",
        "The payload's `event_id`, the same on every attempt.",
        {"type": "string", "format": "uuid"},
        EVENT_UUID,
    ),
)


def webhooks(components: dict[str, Json]) -> Json:
    """Returns the member `webhooks` of the OpenAPI document."""
    payload = ref("WebhookPayload")
    return {
        "invoice-finished": {
            "post": {
                "operationId": "invoiceFinished",
                "tags": ["Webhooks"],
                "summary": "An invoice has ended",
                "description": DESCRIPTION,
                "security": [],
                "parameters": list(HEADERS),
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": payload, "example": example_of(payload, components)}
                    },
                },
                "responses": {
                    "2XX": {"description": "You have it. Nothing more is sent."},
                    "default": {"description": "A failure; it is retried."},
                },
            }
        }
    }

"""`fiatgate listen`: a merchant's server for webhooks, to see what comes."""

import json
import os
import sys
import threading
from collections import deque
from contextlib import suppress
from typing import Annotated, Any, Final

import typer

from cli import connection, output
from cli.command import shaped
from demo.webhooks import KEPT, Delivery, is_signed

EXAMPLE: Final = "fiatgate listen --port 9000"
SECRET: Final = "FIATGATE_SIGNING_SECRET"  # noqa: S105  the name of the variable


@shaped(None)
def listen(
    *,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where to listen, on 127.0.0.1 only.")] = 9000,
) -> None:
    """Receive webhooks, check their signature and print a line for each, until Ctrl-C. The signing secret comes from
    FIATGATE_SIGNING_SECRET, else it is that of the demo merchant of `make run`.
    """
    from cli.receiving import OwnReceiver  # noqa: PLC0415  it imports an HTTP client

    secret = os.environ.get(SECRET) or connection.demo_credentials()["secret"]
    seen: deque[str] = deque(maxlen=KEPT)

    def answer(delivery: Delivery) -> int:
        is_genuine = is_signed(delivery, [secret])
        event = json.loads(delivery.body) if is_genuine else {}
        is_again = event.get("event_id", "") in seen
        if is_genuine:
            seen.append(event["event_id"])
        if output.mode.json:
            output.print_json({"genuine": is_genuine, "again": is_again, "event": event})
            sys.stdout.flush()
        else:
            output.lead(
                _line(event, is_again=is_again)
                if is_genuine
                else "refused: the signature is wrong or missing"
            )
        return 204 if is_genuine else 401

    try:
        with OwnReceiver(port, answer) as receiver:
            output.note(f"Listening at {receiver.url}. Ctrl-C ends it.")
            with suppress(KeyboardInterrupt):
                threading.Event().wait()
    except OSError as error:
        raise typer.BadParameter(f"port {port}: {error.strerror}", param_hint="--port") from None


def _line(event: dict[str, Any], *, is_again: bool) -> str:
    remarks = (
        f"ordered: {event['original_amount']}" if event["is_adjusted"] else "",
        "a test" if event.get("test_event") else "",
        "again" if is_again else "",
    )
    said = ", ".join(filter(None, remarks))
    line = f"{event['status']} {event['external_id']} {event['amount']} {event['currency']}"
    return f"{line} ({said})" if said else line

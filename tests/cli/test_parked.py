"""`fiatgate parked` and `fiatgate webhooks resend`, against the whole stack."""

import json
from contextlib import closing

import psycopg2
import pytest

from deploy.local.waiting import wait_until
from fiatgate.webhooks.v1 import webhooks_pb2
from kit.base.ids import new_id
from kit.events.signing import Signer
from tests.cli.command_line import Fiatgate, run
from tests.cli.test_operating import create_invoice, like, shop  # noqa: F401  a fixture
from tests.support.receiver import Receiver

PARK = """
INSERT INTO parked (event_id, subject, payload, signature, request_id, error, attempts, failed_at, parked_at)
VALUES (%s, 'fiatgate.invoices.finished', %s, %s, 'req-7', 'ValueError: a bug', 20, now(), now())
"""
UNKNOWN = "01000000-0000-7000-8000-000000000000"


def _park(fiatgate: Fiatgate, payload: bytes, *, sign: bool = True) -> str:
    """As if withdrawals had failed 20 times at it: with the pauses between them that takes a quarter of an hour."""
    id = new_id()
    event_id, signature = str(id), None
    if sign:
        signer = Signer(fiatgate.stack.home.secrets()["fact_signing_key"])
        signature = signer.sign(subject="fiatgate.invoices.finished", event_id=id, payload=payload)
    url = fiatgate.stack.database_urls["withdrawals"]
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(PARK, (event_id, payload, signature))
    return event_id


def _unpark(fiatgate: Fiatgate, event_id: str) -> None:
    url = fiatgate.stack.database_urls["withdrawals"]
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM parked WHERE event_id = %s", (event_id,))


def _announced(fiatgate: Fiatgate, invoice_id: str) -> bytes:
    """The fact of a finished invoice, as it was published."""
    url = fiatgate.stack.database_urls["invoices"]
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        query = (
            "SELECT payload FROM outbox JOIN invoices ON invoices.event_id = outbox.id WHERE invoices.id = %s"
        )
        cursor.execute(query, (invoice_id,))
        row = cursor.fetchone()
    assert row is not None
    return bytes(row[0])


def test_what_is_parked_is_listed_and_its_retry_credits_nothing_twice(
    fiatgate: Fiatgate,
    shop: dict[str, str],  # noqa: F811  the fixture
    receiver: Receiver,
) -> None:
    invoice_id = create_invoice(fiatgate, shop, callback_url=receiver.url())["invoice_id"]
    deal = fiatgate("checkout", "select", invoice_id, "sepa")["deal"]
    credited = fiatgate("deals", "confirm", deal["deal_id"], "--yes")["merchant_usdt"]
    wait_until(
        lambda: fiatgate("balance", shop["merchant_id"])["available"] == credited,
        "the credit",
        timeout_seconds=30,
    )
    receiver.wait_for(1)
    assert fiatgate("parked", "list") == []
    assert "No event has failed" in fiatgate.shown("parked", "list")
    good, bad = _park(fiatgate, _announced(fiatgate, invoice_id)), _park(fiatgate, b"no message at all")
    try:
        listed = fiatgate("parked", "list")
        assert [(each["service"], each["event_id"], each["attempts"]) for each in listed] == [
            ("withdrawals", good, 20),
            ("withdrawals", bad, 20),
        ]
        assert listed[0]["consumer"] == "withdrawals-invoices-finished"
        assert good in fiatgate.shown("parked", "list")

        assert listed[0]["invoice_id"] == invoice_id
        assert listed[1]["invoice_id"] is None

        assert {"service": "withdrawals", "retried": 1, "took_effect": 1} in fiatgate("parked", "retry", good)
        assert fiatgate.refused("parked", "retry", good) == "NOT_PARKED"
        assert fiatgate("balance", shop["merchant_id"])["available"] == credited

        ended = run("parked", "retry", "--all", "--json")
        assert ended.exit_code == 1
        assert {"service": "withdrawals", "retried": 1, "took_effect": 0} in json.loads(ended.out)
        (left,) = fiatgate("parked", "list")
        assert (left["event_id"], left["attempts"]) == (bad, 21)
        assert "DecodeError" in left["error"]
    finally:
        _unpark(fiatgate, bad)


def test_a_forged_event_stays_parked_until_an_operator_discards_it(fiatgate: Fiatgate) -> None:
    forged, true = _park(fiatgate, b"forged", sign=False), _park(fiatgate, b"true")
    assert run("parked", "retry", forged).exit_code == 1
    listed = {each["event_id"]: each for each in fiatgate("parked", "list")}
    assert listed[forged]["error"] == "Unproven: it carries no signature"
    assert fiatgate.refused("parked", "discard", true) == "VALIDATION_ERROR"
    assert fiatgate("parked", "discard", forged) == [
        {"service": "withdrawals", "discarded": True},
        {"service": "webhooks", "discarded": False},
    ]
    assert fiatgate.refused("parked", "discard", forged) == "NOT_PARKED"
    assert [each["event_id"] for each in fiatgate("parked", "list")] == [true]
    _unpark(fiatgate, true)


@pytest.mark.parametrize("arguments", [(), (UNKNOWN, "--all")])
def test_a_retry_names_one_event_or_all(fiatgate: Fiatgate, arguments: tuple[str, ...]) -> None:
    assert run("parked", "retry", *arguments).exit_code == 2


def test_an_operator_resends_a_webhook_under_the_merchants_rules(
    fiatgate: Fiatgate,
    shop: dict[str, str],  # noqa: F811  the fixture
    receiver: Receiver,
) -> None:
    invoice = create_invoice(fiatgate, shop, callback_url=receiver.url())
    assert fiatgate.refused("webhooks", "resend", invoice["invoice_id"]) == "WEBHOOK_NOT_FOUND"
    fiatgate("invoices", "cancel", invoice["invoice_id"])
    receiver.wait_for(1)
    wait_until(
        lambda: fiatgate("webhooks", "list", invoice["invoice_id"])[0]["status"] == "success",
        "the delivery to be written down",
        timeout_seconds=30,
    )
    answer = fiatgate("webhooks", "resend", invoice["invoice_id"])
    assert like(answer, webhooks_pb2.ResendLatestResponse)
    assert (answer["ok"], answer["http_status"]) == (True, 200)
    first, second = receiver.wait_for(2)
    assert first.body == second.body
    shown = fiatgate("webhooks", "show", str(answer["event_id"]))
    assert [each["trigger"] for each in shown["attempts"]] == ["auto", "manual"]
    assert fiatgate.refused("webhooks", "resend", invoice["invoice_id"]) == "WEBHOOK_RESEND_COOLDOWN"

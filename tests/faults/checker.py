"""What must be true after whatever happened. Reads PostgreSQL and the two journals; asks no process of ours."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal, localcontext
from pathlib import Path
from typing import Any, Final

import psycopg2
import psycopg2.extras

from tests.faults.journal import lines, received_body

Row = Mapping[str, Any]
Journal = Sequence[Mapping[str, Any]]

# The codes that may have a status of 5xx (docs/api.md#error-codes).
LATER_CODES: Final = {
    "DEALS_SYSTEM_DISABLED",
    "NO_AVAILABLE_REQUISITES",
    "RATES_UNAVAILABLE",
    "RATES_INVALID",
    "DB_UNAVAILABLE",
}
TERMINAL_DEALS: Final = {"completed", "canceled", "failed", "expired"}
LISTED: Final = 10
_PAYMENTS: Final = "SELECT number, line_id, deal_id, amount FROM {} ORDER BY number"


@dataclass(frozen=True)
class Evidence:
    """All that is looked at, read once."""

    invoices: Mapping[str, Row]
    deals: Sequence[Row]
    transitions: Sequence[Row]
    outbox: Sequence[Row]
    transfers: Sequence[Row]
    accounts: Sequence[Row]
    corrections: Sequence[Row]
    refunds: Sequence[Row]
    bank_files: Sequence[Row]
    bank_lines: Sequence[Row]
    line_payments: Sequence[Row]
    line_matches: Sequence[Row]
    events: Sequence[Row]
    parked: Sequence[Row]
    answers: Journal
    received: Journal
    secrets: Mapping[str, str]  # by merchant


def evidence(
    admin_url: Callable[[str], str], *, secrets: Mapping[str, str], clients: Path, receiver: Path
) -> Evidence:
    """`admin_url(database)` is where to read; `secrets` are the merchants' signing secrets, by merchant id."""
    merchants = list(secrets)
    ours = "SELECT * FROM {} WHERE merchant_id::text = ANY(%s)"
    invoices = _rows(admin_url("invoices"), ours.format("invoices"), merchants)
    transitions = (
        "SELECT * FROM deal_transitions WHERE deal_id IN (SELECT id FROM deals WHERE merchant_id::text = ANY(%s)) "
        "ORDER BY id"
    )
    return Evidence(
        invoices={str(row["id"]): row for row in invoices},
        deals=_rows(admin_url("invoices"), ours.format("deals"), merchants),
        transitions=_rows(admin_url("invoices"), transitions, merchants),
        outbox=_rows(admin_url("invoices"), "SELECT id, published_at FROM outbox"),
        transfers=_rows(admin_url("withdrawals"), "SELECT * FROM transfers"),
        accounts=_rows(admin_url("withdrawals"), "SELECT * FROM accounts"),
        corrections=_rows(admin_url("withdrawals"), "SELECT * FROM corrections"),
        refunds=_rows(admin_url("withdrawals"), "SELECT * FROM refunds"),
        bank_files=_rows(admin_url("bank"), "SELECT id, state, lines, new_lines FROM imports"),
        bank_lines=_rows(admin_url("bank"), "SELECT id, import_id, amount FROM lines"),
        line_payments=_rows(admin_url("invoices"), _PAYMENTS.format("line_payments")),
        line_matches=_rows(admin_url("bank"), _PAYMENTS.format("line_matches")),
        events=_rows(admin_url("webhooks"), ours.format("events"), merchants),
        parked=[
            row
            for service in ("withdrawals", "webhooks")
            for row in _rows(admin_url(service), "SELECT event_id, error FROM parked")
        ],
        answers=list(lines(clients)),
        received=list(lines(receiver)),
        secrets=secrets,
    )


def violations(seen: Evidence) -> list[str]:
    """Every promise that was not kept, one line each, at most ten of a kind."""
    found: list[str] = []
    for check in CHECKS:
        broken = list(check(seen))
        found += broken[:LISTED]
        if len(broken) > LISTED:
            found.append(f"... and {len(broken) - LISTED} more of: {check.__name__}")
    return found


def every_created_invoice_is_readable(seen: Evidence) -> Iterator[str]:
    reads = {
        answer["invoice_id"] for answer in seen.answers if answer["what"] == "read" and answer["http"] == 200
    }
    for answer in _answered(seen, "create", 201):
        created = json.loads(answer["body"])
        row = seen.invoices.get(created["invoice_id"])
        if row is None:
            yield f"invoice {created['invoice_id']} was answered with 201 and is not in the database"
        elif (row["external_id"], str(row["merchant_id"]), f"{row['amount']:.2f}") != (
            answer["sent"]["external_id"],
            answer["merchant_id"],
            f"{Decimal(answer['sent']['amount']):.2f}",
        ):
            yield f"invoice {created['invoice_id']} is not what was asked for: {dict(row)}"
        if created["invoice_id"] not in reads:
            yield f"invoice {created['invoice_id']} was never read back"
    for answer in seen.answers:
        if answer["what"] == "read" and answer["http"] not in (200, None) and answer["http"] < 500:
            yield f"reading {answer['invoice_id']} was answered with {answer['http']} {answer['body']}"


def each_external_id_is_used_once(seen: Evidence) -> Iterator[str]:
    used = Counter((row["merchant_id"], row["external_id"]) for row in seen.invoices.values())
    yield from (
        f"{external_id} stands for {count} invoices" for (_, external_id), count in used.items() if count > 1
    )
    told: dict[str, set[str]] = defaultdict(set)
    for answer in seen.answers:
        if answer["what"] == "create" and answer["http"] in (201, 409):
            body = json.loads(answer["body"])
            told[answer["sent"]["external_id"]].add(
                body.get("invoice_id") or body["error"]["details"]["invoice_id"]
            )
    yield from (f"{external_id} was told to be {ids}" for external_id, ids in told.items() if len(ids) > 1)


def each_finished_invoice_has_one_event_that_arrived_unchanged(seen: Evidence) -> Iterator[str]:
    events: dict[str, list[Row]] = defaultdict(list)
    for event in seen.events:
        events[str(event["invoice_id"])].append(event)
    received: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for request in seen.received:
        received[json.loads(received_body(request))["order_id"]].append(request)
    for id, invoice in seen.invoices.items():
        if invoice["status"] == "pending":
            if events[id]:
                yield f"invoice {id} is pending and has an event"
            continue
        if len(events[id]) != 1:
            yield f"invoice {id} ({invoice['status']}) has {len(events[id])} events"
            continue
        yield from _wrong_with_event(seen, invoice, events[id][0], received[id])
    for id in received.keys() - seen.invoices.keys():
        yield f"a webhook came for {id}, which does not exist"


def _wrong_with_event(
    seen: Evidence, invoice: Row, event: Row, requests: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    id = invoice["id"]
    payload = json.loads(bytes(event["payload"]))
    if event["payload_event_id"] != invoice["event_id"] or payload["event_id"] != str(invoice["event_id"]):
        yield f"the event of invoice {id} is {event['payload_event_id']}, not {invoice['event_id']}"
    if payload["status"] != invoice["status"]:
        yield f"the event of invoice {id} says {payload['status']}; it is {invoice['status']}"
    if event["status"] != "success":
        yield f"the event of invoice {id} is {event['status']} in the end"
    if not any(request["mood"] == "well" for request in requests):
        yield f"no webhook of invoice {id} was received and answered well"
    if {received_body(request) for request in requests} != {bytes(event["payload"])}:
        yield f"the webhooks of invoice {id} differ from each other or from what was queued"
    for request in requests:
        headers = request["headers"]
        signed = headers["x-signature-timestamp"].encode() + b"." + received_body(request)
        secret = seen.secrets[str(invoice["merchant_id"])].encode()
        if headers["x-signature"] != hmac.new(secret, signed, hashlib.sha256).hexdigest():
            yield f"a webhook of invoice {id} has a wrong signature"
        if headers["x-idempotency-key"] != str(invoice["event_id"]):
            yield f"a webhook of invoice {id} has another idempotency key than its event"


def each_success_is_credited_once_with_the_right_amount(seen: Evidence) -> Iterator[str]:
    accounts = {row["id"]: row for row in seen.accounts}
    credits: dict[str, list[Row]] = defaultdict(list)
    for transfer in seen.transfers:
        kind, _, id = transfer["reference"].partition(":")
        if kind == "invoice":
            credits[id].append(transfer)
    completed = {str(deal["invoice_id"]): deal for deal in seen.deals if deal["status"] == "completed"}
    for id, invoice in seen.invoices.items():
        due = _due(completed[id]) if invoice["status"] == "success" else None
        if invoice["status"] != "success" and id in completed:
            yield f"invoice {id} is {invoice['status']} and its deal is completed"
        amounts = [transfer["amount"] for transfer in credits[id]]
        if amounts != ([due] if due else []):
            yield f"invoice {id} ({invoice['status']}): credited {amounts}, due {due}"
        for transfer in credits[id]:
            account = accounts[transfer["credit_account"]]
            if (str(account["merchant_id"]), account["kind"]) != (
                str(invoice["merchant_id"]),
                "merchant_available",
            ):
                yield f"the credit of invoice {id} went to {dict(account)}"


def _due(deal: Row) -> Decimal:
    """Computes the credit a second time: amount / rate x (1 - merchant %), rounded down to 6 decimals."""
    amount = deal["adjusted_amount"] or deal["invoice_amount"]
    with localcontext(prec=60):
        exact: Decimal = amount * (1 - deal["merchant_percent"] / 100) / deal["conversion_rate"]
        return exact.quantize(Decimal("0.000001"), rounding=ROUND_DOWN)


def the_ledger_sums_to_zero(seen: Evidence) -> Iterator[str]:
    sums: dict[int, Decimal] = defaultdict(Decimal)
    for transfer in seen.transfers:
        sums[transfer["debit_account"]] -= transfer["amount"]
        sums[transfer["credit_account"]] += transfer["amount"]
    if total := sum(sums.values()):
        yield f"all accounts together hold {total} USDT"
    for account in seen.accounts:
        sign = -1 if account["kind"] == "merchant_owed" else 1  # it grows when it is debited
        if account["balance"] is not None and account["balance"] != sign * sums[account["id"]]:
            yield f"account {account['id']} says {account['balance']} and its transfers {sums[account['id']]}"


def each_correction_moved_its_money_once(seen: Evidence) -> Iterator[str]:
    moved: dict[str, Decimal] = defaultdict(Decimal)
    for transfer in seen.transfers:
        if transfer["reference"].startswith("correction:"):
            moved[transfer["reference"].split(":")[1]] += transfer["amount"]
    made = {str(row["id"]): row for row in seen.corrections}
    for id, row in made.items():
        if moved[id] != row["amount"]:
            yield f"correction {id} of {row['amount']} moved {moved[id]}"
    yield from (f"correction {id} moved {moved[id]} and does not exist" for id in moved.keys() - made.keys())
    per_invoice = Counter(str(row["invoice_id"]) for row in seen.corrections)
    yield from (
        f"invoice {id} was taken back {count} times" for id, count in per_invoice.items() if count > 1
    )


def each_refund_moved_its_money_as_its_status_says(seen: Evidence) -> Iterator[str]:
    ends = {
        "succeeded": {"reserve", "pay"},
        "failed": {"reserve", "release"},
        "canceled": {"reserve", "release"},
    }
    moved: dict[str, list[tuple[str, Decimal]]] = defaultdict(list)
    for transfer in seen.transfers:
        if transfer["reference"].startswith("refund:"):
            _, id, step = transfer["reference"].split(":")
            moved[id].append((step, transfer["amount"]))
    for row in seen.refunds:
        due = {(step, row["amount"]) for step in ends.get(row["status"], {"reserve"})}
        if sorted(moved.pop(str(row["id"]), [])) != sorted(due):
            yield f"refund {row['id']} is {row['status']} and did not move {sorted(due)}"
    yield from (f"refund {id} does not exist and moved {steps}" for id, steps in moved.items())
    per_invoice = Counter(str(row["invoice_id"]) for row in seen.refunds)
    yield from (f"invoice {id} was refunded {count} times" for id, count in per_invoice.items() if count > 1)


def each_bank_line_pays_at_most_its_amount_and_each_deal_once(seen: Evidence) -> Iterator[str]:
    amounts = {row["id"]: row["amount"] for row in seen.bank_lines}
    of_line: dict[str, Decimal] = defaultdict(Decimal)
    of_deal: dict[str, Decimal] = defaultdict(Decimal)
    for row in seen.line_payments:
        of_line[row["line_id"]] += row["amount"]
        of_deal[row["deal_id"]] += row["amount"]
    for id, paid in of_line.items():
        if paid > amounts.get(id, 0):
            yield f"bank line {id} of {amounts.get(id)} paid {paid}"
    for deal in seen.deals:
        due = deal["amount_fiat"] if deal["status"] == "completed" else 0
        if of_deal[deal["id"]] not in (0, due):
            yield f"deal {deal['id']} ({deal['status']}) was paid {of_deal[deal['id']]} by lines, due {due}"
    if [dict(row) for row in seen.line_payments] != [dict(row) for row in seen.line_matches]:
        yield "bank knows other payments by lines than invoices"


def each_file_of_a_bank_is_taken_whole(seen: Evidence) -> Iterator[str]:
    stored = Counter(row["import_id"] for row in seen.bank_lines)
    for row in seen.bank_files:
        if row["state"] != "taken" or {row["lines"], row["new_lines"]} != {stored[row["id"]]}:
            yield f"file {dict(row)} has {stored[row['id']]} lines"


def no_terminal_state_changed(seen: Evidence) -> Iterator[str]:
    ended: dict[str, str] = {}
    newest: dict[str, Row] = {}
    for step in seen.transitions:
        deal_id = str(step["deal_id"])
        newest[deal_id] = step
        if deal_id in ended:
            yield f"deal {deal_id} went from {ended[deal_id]} to {step['status']}"
        if step["status"] in TERMINAL_DEALS:
            ended[deal_id] = step["status"]
    for deal in seen.deals:
        last = newest[str(deal["id"])]
        if (deal["status"], deal["sub_status"]) != (last["status"], last["sub_status"]):
            yield f"deal {deal['id']} is {deal['status']}, its history ends with {last['status']}"
    told: dict[str, str] = {}
    for answer in _answered(seen, "read", 200):
        id, status = answer["invoice_id"], json.loads(answer["body"])["data"]["status"]
        if told.get(id, "pending") not in ("pending", status):
            yield f"invoice {id} was read as {told[id]}, later as {status}"
        told[id] = status
    for id, status in told.items():
        row = seen.invoices.get(id)
        if row is None:
            yield f"invoice {id} was read as {status} and is not in the database"
        elif status not in ("pending", row["status"]):
            yield f"invoice {id} was read as {status} and is {row['status']}"


def failures_have_the_documented_shape_and_end_with_the_faults(seen: Evidence) -> Iterator[str]:
    for answer in seen.answers:
        if answer["what"] in ("broke", "gave up"):
            yield f"a shopper {answer['what']}: {answer.get('error', '')}"
            continue
        failed = answer["http"] is None or answer["http"] >= 500
        if failed and answer["phase"] == "after":
            yield f"after recovery {answer['what']} was answered with {answer['http']} {answer.get('body', '')}"
        if answer["http"] is not None and answer["http"] >= 500 and not _is_documented(answer):
            yield f"undocumented failure: {answer['http']} {answer['body']}"


def _is_documented(answer: Mapping[str, Any]) -> bool:
    try:
        body = json.loads(answer["body"])
        error = body["error"]
        whole = body["successful"] is False and bool(body["request_id"]) and isinstance(error["message"], str)
    except (ValueError, KeyError, TypeError):
        return False
    if answer["http"] == 500:
        return whole and error["code"] == "INTERNAL_ERROR" and bool(error.get("error_id"))
    return whole and answer["http"] == 503 and error["code"] in LATER_CODES


def nothing_is_left_behind(seen: Evidence) -> Iterator[str]:
    yield from (f"event {row['event_id']} is parked or failing: {row['error']}" for row in seen.parked)
    unpublished = [row for row in seen.outbox if row["published_at"] is None]
    if unpublished:
        yield f"{len(unpublished)} facts were never published"


CHECKS: Final[Sequence[Callable[[Evidence], Iterator[str]]]] = (
    every_created_invoice_is_readable,
    each_external_id_is_used_once,
    each_finished_invoice_has_one_event_that_arrived_unchanged,
    each_success_is_credited_once_with_the_right_amount,
    each_correction_moved_its_money_once,
    each_refund_moved_its_money_as_its_status_says,
    the_ledger_sums_to_zero,
    each_bank_line_pays_at_most_its_amount_and_each_deal_once,
    each_file_of_a_bank_is_taken_whole,
    no_terminal_state_changed,
    failures_have_the_documented_shape_and_end_with_the_faults,
    nothing_is_left_behind,
)


def unsettled(admin_url: Callable[[str], str], merchants: Sequence[str]) -> str:
    """What of these merchants is still on its way, for a person to read; empty when nothing is."""
    names = ("invoices", "webhooks", "withdrawals", "bank")
    invoices, webhooks, withdrawals, bank = (admin_url(name) for name in names)
    ours = "merchant_id::text = ANY(%s)"
    of_ours = f"JOIN accounts a ON a.id = credit_account WHERE reference LIKE 'invoice:%%' AND a.{ours}"
    waiting = {
        "facts unpublished": _count(invoices, "outbox WHERE published_at IS NULL"),
        "files of banks unread": _count(bank, "imports WHERE state = 'waiting'"),
        "payments by lines unknown to bank": _count(invoices, "line_payments") - _count(bank, "line_matches"),
        "invoices overdue": _count(invoices, f"invoices WHERE status = 'pending' AND {ours}", merchants),
        "webhooks undelivered": _count(webhooks, f"events WHERE status = 'pending' AND {ours}", merchants),
        "events missing": _count(invoices, f"invoices WHERE status <> 'pending' AND {ours}", merchants)
        - _count(webhooks, f"events WHERE {ours}", merchants),
        "credits missing": _count(invoices, f"deals WHERE merchant_usdt > 0 AND {ours}", merchants)
        - _count(withdrawals, f"transfers {of_ours}", merchants),
    }
    return ", ".join(f"{count} {what}" for what, count in waiting.items() if count)


def _answered(seen: Evidence, what: str, http: int) -> Iterator[Mapping[str, Any]]:
    return (answer for answer in seen.answers if answer["what"] == what and answer["http"] == http)


def _rows(url: str, query: str, merchants: Sequence[str] | None = None) -> list[Row]:
    with (
        closing(psycopg2.connect(url, connect_timeout=5)) as connection,
        connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor,
    ):
        cursor.execute(query, None if merchants is None else (list(merchants),))
        return list(cursor.fetchall())


def _count(url: str, what: str, merchants: Sequence[str] | None = None) -> int:
    (row,) = _rows(url, f"SELECT count(*) AS n FROM {what}", merchants)
    return int(row["n"])

"""The moments of a timeline: what they have, and those of the ledger and of webhooks."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, localcontext
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from console.words.acts import APPROVED, author_of, title_of
from console.words.ledger import transfer_words
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from fiatgate.withdrawals.v1 import corrections_pb2, withdrawals_pb2
from kit.base.money import USDT_PLACES, amount_text, money_text, round_down, usdt_text
from kit.base.proto import datetime_from

BODY_MOST_CHARACTERS: Final = 1000
_ONE_TRANSACTION: Final = timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One entry of a timeline.

    title    what happened, in words of ours
    by       its author: an e-mail address, cli:USER@HOST, customer, time; empty: the service itself
    details  facts by their names: amounts, accounts, texts of strangers
    note     the words of the author; may be empty
    tone     good, bad or wait; empty: neither
    thing    the thing that has more: deal:ID, case:NUMBER, webhook:NUMBER, proof:DEAL_ID/KIND,
             approval:SERVICE/ID; empty: none
    service  the service that stored it
    """

    at: datetime
    title: str
    by: str = ""
    details: Sequence[tuple[str, str]] = ()
    note: str = ""
    tone: str = ""
    thing: str = ""
    service: str = "invoices"


def approvals_first(moments: Iterable[Moment]) -> list[Moment]:
    """Returns the moments with each approval before what it did: one transaction records both, the approval last."""
    ordered: list[Moment] = []
    for each in moments:
        place = len(ordered)
        while each.title == APPROVED and place and _is_of(each, ordered[place - 1]):
            place -= 1
        ordered.insert(place, each)
    return ordered


def _is_of(approval: Moment, before: Moment) -> bool:
    return before.by in (approval.by, "") and approval.at - before.at < _ONE_TRANSACTION


# -- withdrawals


def of_ledger(
    deal: invoices_pb2.Deal,
    transfers: Iterable[withdrawals_pb2.Transfer],
    corrections: corrections_pb2.ListCorrectionsResponse,
) -> Iterator[Moment]:
    """Yields what the ledger moved for the invoice that has this deal."""
    made = {each.correction_id: each for each in corrections.corrections}
    authors = {each.object: author_of(each) for each in corrections.acts if not each.refused}
    for transfer in transfers:
        is_credit = transfer.kind == withdrawals_pb2.TRANSFER_KIND_CREDIT
        why = made.get(transfer.correction_id, corrections_pb2.Correction())
        yield Moment(
            at=datetime_from(transfer.created_at),
            title="Credited to the merchant" if is_credit else transfer_words(transfer),
            by=authors.get(f"correction:{transfer.correction_id}", ""),
            details=given(
                ("credit" if is_credit else "amount", money_text(transfer.amount, "USDT")),
                ("after the merchant’s commission", _commission(deal, transfer.amount) if is_credit else ""),
                ("came", money_text(why.received_amount, why.currency_code) if why.received_amount else ""),
                ("rate", f"{amount_text(why.conversion_rate)} per USDT" if why.conversion_rate else ""),
                ("commission", both_commissions(deal) if why.received_amount else ""),
                ("evidence", why.evidence),
                ("balance after it", money_text(transfer.after.available, "USDT")),
                ("owed after it", _if_any(transfer.after.owed)),
                ("transfer", transfer.transfer_id),
            ),
            note=why.reason,
            tone="good" if is_credit else "",
            service="withdrawals",
        )


def both_commissions(deal: invoices_pb2.Deal) -> str:
    return f"customer {deal.client_percent} %, merchant {deal.merchant_percent} %"


def _if_any(amount: str) -> str:
    return money_text(amount, "USDT") if amount and Decimal(amount) else ""


def _commission(deal: invoices_pb2.Deal, credit: str) -> str:
    """Returns the merchant's part of the commission, in percent and USDT."""
    amount = deal.adjusted_amount if deal.HasField("adjusted_amount") else deal.invoice_amount
    if not amount or not Decimal(deal.merchant_percent):
        return ""
    with localcontext(prec=60):
        whole = round_down(Decimal(amount) / Decimal(deal.conversion_rate), USDT_PLACES)
    return f"{deal.merchant_percent} %, {money_text(usdt_text(whole - Decimal(credit)), 'USDT')}"


# -- webhooks

_TRIGGERS: Final = {webhooks_pb2.ATTEMPT_TRIGGER_MANUAL: " by hand"}


def of_webhooks(answer: webhooks_pb2.ListInvoiceEventsResponse) -> Iterator[Moment]:
    """Yields the events of an invoice with their attempts, and the acts on them."""
    for event in answer.events:
        thing = f"webhook:{event.event_id}"
        yield Moment(
            at=datetime_from(event.created_at),
            title="Webhook made",
            details=given(
                ("event", event.event_type),
                ("to", event.callback_url),
                ("sent", one_line(event.request_payload.decode("utf-8", "replace"))),
            ),
            thing=thing,
            service="webhooks",
        )
        for attempt in event.attempts:
            yield _attempt(attempt, thing)
        if event.status == webhooks_pb2.EVENT_STATUS_DEAD:
            yield Moment(
                at=datetime_from(event.updated_at),
                title="Webhook given up",
                tone="bad",
                thing=thing,
                service="webhooks",
            )
    yield from (
        Moment(
            at=datetime_from(act.at),
            title=title_of(act)[0],
            by=author_of(act),
            details=given(("reason", act.refused)),
            thing=act.object.replace("event:", "webhook:", 1),
            service="webhooks",
        )
        for act in answer.acts
    )


def _attempt(attempt: webhooks_pb2.Attempt, thing: str) -> Moment:
    delivered = attempt.status == webhooks_pb2.ATTEMPT_STATUS_SUCCESS
    word = "delivered" if delivered else "failed"
    return Moment(
        at=datetime_from(attempt.created_at),
        title=f"Webhook attempt {attempt.try_number}{_TRIGGERS.get(attempt.trigger, '')} {word}",
        details=given(
            ("answer", f"HTTP {attempt.http_status}" if attempt.HasField("http_status") else ""),
            ("fault", attempt.error_message),
            ("took", f"{attempt.duration_ms} ms" if attempt.HasField("duration_ms") else ""),
            ("body", one_line(attempt.response_body)),
        ),
        tone="good" if delivered else "bad",
        thing=thing,
        service="webhooks",
    )


def one_line(text: str) -> str:
    """Returns the text of a body on one line, cut after BODY_MOST_CHARACTERS."""
    try:
        text = json.dumps(json.loads(text), ensure_ascii=False, separators=(", ", ": "))
    except ValueError:
        text = " ".join(text.split())
    return text if len(text) <= BODY_MOST_CHARACTERS else f"{text[:BODY_MOST_CHARACTERS]}…"


# -- values


def given(*details: tuple[str, str]) -> list[tuple[str, str]]:
    """Returns the details that have a value."""
    return [(name, value) for name, value in details if value]


def time(at: Timestamp) -> str:
    return datetime_from(at).strftime("%Y-%m-%d %H:%M:%S UTC")

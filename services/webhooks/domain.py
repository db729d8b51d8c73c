"""The payload of a webhook, its signature, the retries and the rules of the resend (docs/api.md#events)."""

import hmac
import json
import math
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from http import HTTPStatus
from urllib.parse import urlsplit
from uuid import UUID


class EventStatus(StrEnum):
    """The states of docs/api.md#webhook-event-status."""

    PENDING = "pending"
    SUCCESS = "success"
    DEAD = "dead"


NOT_SENT = "not sent: "
"""The errors of attempts that made no request begin with it."""

HELD_BACK_ERROR = f"{NOT_SENT}held back by Fiatgate, whose operators are informed"
"""The error of an attempt whose event has no right seal (delivery.seals), shown to merchants. Such attempts are no
retries: once the event is sealed it has all its retries."""
NO_KEY_ERROR = f"{NOT_SENT}the merchant has no active API key to sign with"
INTERNAL_ERROR = f"{NOT_SENT}internal error"


class NotSent(StrEnum):
    """Why an attempt made no request."""

    NO_KEY = "no_key"
    HELD_BACK = "held_back"
    ADDRESS = "address"
    INTERNAL = "internal"


_WHY_NOT_SENT = {
    NO_KEY_ERROR: NotSent.NO_KEY,
    HELD_BACK_ERROR: NotSent.HELD_BACK,
    INTERNAL_ERROR: NotSent.INTERNAL,
}


def why_not_sent(error: str | None) -> NotSent | None:
    """Returns why the attempt with this error made no request; None when it made one."""
    if error is None or not error.startswith(NOT_SENT):
        return None
    return _WHY_NOT_SENT.get(error, NotSent.ADDRESS)  # the others say what is wrong with the address


class Trigger(StrEnum):
    AUTO = "auto"
    MANUAL = "manual"


class AttemptStatus(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"


RETRY_DELAYS_SECONDS = (30, 60, 120, 240, 480, 960, 1800)
"""The delay after each failure except the last (docs/api.md#retries). After the eighth failure the event is dead."""

RETRY_JITTER_SECONDS = 1.0
"""Spreads the retries of a receiver that was down; only later, never earlier than documented."""


# -- the content of a webhook


@dataclass(frozen=True, kw_only=True)
class FinishedInvoice:
    """An invoice that reached a terminal status, with all the data of its webhook."""

    event_id: UUID
    event_type: str
    invoice_id: UUID
    merchant_id: UUID
    key_id: UUID
    external_id: str
    status: str
    sub_status: str | None
    finished_at: datetime
    expires_at: datetime
    amount: str
    currency: str
    rate_usd: str | None
    callback_url: str | None
    success_url: str | None
    fail_url: str | None
    is_adjusted: bool
    original_amount: str | None
    adjusted_amount: str | None
    reason: str | None
    metadata: Mapping[str, str] = field(default_factory=dict)


def payload_of(invoice: FinishedInvoice, *, is_test: bool = False, is_test_event: bool = False) -> bytes:
    """Returns the exact bytes of every attempt's body: compact JSON in UTF-8, in the order of docs/api.md#payload.

    is_test        in test mode: with the member `test`, which live mode has not
    is_test_event  with the member `test_event`, which no webhook of an invoice has (docs/api.md#test-events)
    """
    marks = {"test": is_test, "test_event": is_test_event}
    return _json(_members_of(invoice) | {name: True for name, is_set in marks.items() if is_set})


def invoice_of_test(*, event_id: UUID, invoice_id: UUID, merchant_id: UUID, at: datetime) -> FinishedInvoice:
    """Returns an invoice that does not exist, for a test event: it expired, so a server that overlooks the mark ships
    nothing.
    """
    return FinishedInvoice(
        event_id=event_id,
        event_type="invoice.expired",
        invoice_id=invoice_id,
        merchant_id=merchant_id,
        key_id=UUID(int=0),
        external_id=f"test-{invoice_id}",
        status="expired",
        sub_status=None,
        finished_at=at,
        expires_at=at,
        amount="1.00",
        currency="USD",
        rate_usd=None,
        callback_url=None,
        success_url=None,
        fail_url=None,
        is_adjusted=False,
        original_amount=None,
        adjusted_amount=None,
        reason="ttl_expired",
    )


def _members_of(invoice: FinishedInvoice) -> dict[str, object]:
    return {
        "event_id": str(invoice.event_id),
        "order_id": str(invoice.invoice_id),
        "external_id": invoice.external_id,
        "status": invoice.status,
        "sub_status": invoice.sub_status,
        "finished_at": invoice.finished_at.isoformat(),
        "expires_at": invoice.expires_at.isoformat(),
        "amount": invoice.amount,
        "currency": invoice.currency,
        "rate_usd": invoice.rate_usd,
        "success_url": invoice.success_url,
        "fail_url": invoice.fail_url,
        "is_adjusted": invoice.is_adjusted,
        "original_amount": invoice.original_amount,
        "adjusted_amount": invoice.adjusted_amount,
        "reason": invoice.reason,
        **({"metadata": dict(invoice.metadata)} if invoice.metadata else {}),
    }


def _json(payload: dict[str, object]) -> bytes:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


USER_AGENT = "Fiatgate-Webhooks/1"


def headers_of(payload_event_id: UUID, at: datetime) -> dict[str, str]:
    """Returns the headers of an attempt that began at this time, without its signatures."""
    id, timestamp = str(payload_event_id), str(int(at.timestamp()))
    return {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "X-Idempotency-Key": id,
        "X-Signature-Timestamp": timestamp,
        "webhook-id": id,
        "webhook-timestamp": timestamp,
    }


def signed_headers(payload_event_id: UUID, at: datetime, secret: str, body: bytes) -> dict[str, str]:
    """Returns all headers of an attempt that began at this time (docs/api.md#webhook-headers)."""
    headers = headers_of(payload_event_id, at)
    timestamp = headers["X-Signature-Timestamp"]
    headers["X-Signature"] = signature(secret, timestamp, body)
    headers["webhook-signature"] = standard_signature(secret.encode(), headers["webhook-id"], timestamp, body)
    return headers


def standard_signature(key: bytes, id: str, timestamp: str, body: bytes) -> str:
    """Returns the signature of the Standard Webhooks specification."""
    signed = f"{id}.{timestamp}.".encode() + body
    return "v1," + b64encode(hmac.digest(key, signed, "sha256")).decode()


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Returns the hexadecimal HMAC-SHA256 over timestamp, period and raw body (docs/api.md#signature)."""
    return hmac.digest(secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()


def destination_of(url: str) -> str:
    """Returns host:port in lower case. A merchant's webhooks to one destination share a lane; one that hangs delays no
    other.

    It is logged, so it contains no user, path or query, where merchants keep secrets.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    except ValueError:  # it can't be sent to, but the event and its failures belong to the history
        return re.split("[/?#]", url.partition("//")[2])[0].rpartition("@")[2]
    return f"{parts.hostname or ''}:{port}"


@dataclass(frozen=True, slots=True)
class EventTerms:
    """An event's content and address, made from a proven fact. They change only together with the event's seal."""

    payload_event_id: UUID
    invoice_id: UUID
    merchant_id: UUID
    key_id: UUID
    event_type: str
    callback_url: str
    destination: str
    payload: bytes


def terms_of(invoice: FinishedInvoice, callback_url: str, *, is_test: bool = False) -> EventTerms:
    return EventTerms(
        payload_event_id=invoice.event_id,
        invoice_id=invoice.invoice_id,
        merchant_id=invoice.merchant_id,
        key_id=invoice.key_id,
        event_type=invoice.event_type,
        callback_url=callback_url,
        destination=destination_of(callback_url),
        payload=payload_of(invoice, is_test=is_test),
    )


# -- the result of an attempt


@dataclass(frozen=True)
class Delivered:
    """The receiver has it; there are no more automatic attempts."""


@dataclass(frozen=True)
class RetryAt:
    """It failed; the next automatic attempt comes at `at`."""

    at: datetime


@dataclass(frozen=True)
class Dead:
    """It failed for the last time; there are no more automatic attempts."""


@dataclass(frozen=True)
class Unchanged:
    """A manual attempt failed: status and schedule stay as they are."""


Verdict = Delivered | RetryAt | Dead | Unchanged


def is_success(http_status: int | None) -> bool:
    """Returns whether the status is a 2xx; nothing else is a success."""
    return http_status is not None and HTTPStatus.OK <= http_status < HTTPStatus.MULTIPLE_CHOICES


def is_refusal(http_status: int) -> bool:
    """Returns whether the status is a 4xx: the receiver says that the request itself is wrong."""
    return HTTPStatus.BAD_REQUEST <= http_status < HTTPStatus.INTERNAL_SERVER_ERROR


def after_automatic(
    *,
    succeeded: bool,
    attempts_before: int,
    ended_at: datetime,
    jitter_seconds: float,
    delays_seconds: tuple[int, ...] = RETRY_DELAYS_SECONDS,
) -> Verdict:
    """Returns the verdict on an automatic attempt. `attempts_before` automatic attempts came before it."""
    if succeeded:
        return Delivered()
    if attempts_before >= len(delays_seconds):
        return Dead()
    return RetryAt(ended_at + timedelta(seconds=delays_seconds[attempts_before] + jitter_seconds))


def after_manual(*, succeeded: bool) -> Verdict:
    """Returns the verdict on a manual attempt: a success ends the retries, a failure changes nothing."""
    return Delivered() if succeeded else Unchanged()


# -- permission to resend


@dataclass(frozen=True)
class ResendAllowed:
    pass


@dataclass(frozen=True)
class ResendConflict:
    """Another attempt of the event is under way."""


@dataclass(frozen=True)
class ResendTooSoon:
    """The last manual attempt of the event is too recent."""

    retry_after_seconds: int


def may_resend(
    *, now: datetime, lease_until: datetime | None, last_manual_at: datetime | None, cooldown_seconds: int
) -> ResendAllowed | ResendConflict | ResendTooSoon:
    """Returns whether a manual attempt may start now; the conflict is reported before the cooldown."""
    if lease_until is not None and lease_until > now:
        return ResendConflict()
    if last_manual_at is not None:
        allowed_at = last_manual_at + timedelta(seconds=cooldown_seconds)
        if allowed_at > now:
            return ResendTooSoon(math.ceil((allowed_at - now).total_seconds()))
    return ResendAllowed()

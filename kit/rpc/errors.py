"""The error type of an expected refusal, and its two translations to and from the gRPC wire
(docs/ARCHITECTURE.md#errors).

A service raises `Refused` through the small constructors below; the server (kit.rpc.server) writes it as
google.rpc.Status with ErrorInfo; the client's channel reads it back. Only the gateway knows HTTP.
"""

import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import grpc
from google.rpc import error_details_pb2, status_pb2

from fiatgate.errors.v1 import error_reason_pb2

DOMAIN: Final = "fiatgate"
STATUS_DETAILS_KEY: Final = "grpc-status-details-bin"

# Trailing metadata above 8 KiB may be dropped by a peer, and the message travels twice, once percent-encoded.
_MESSAGE_MAX_CHARACTERS = 400
_METADATA_MAX_CHARACTERS = 2048

_REASONS = frozenset(error_reason_pb2.ErrorReason.keys())
_STATUS_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}

# gRPC answers with these itself when the peer is away, overloaded or too slow.
_AWAY: Final = frozenset(
    {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED}
)
_OVERLOADED_DETAILS: Final = "Concurrent RPC limit exceeded"


class Refused(Exception):
    """An expected refusal, with the reason that callers decide by.

    reason    a name in fiatgate.errors.v1.ErrorReason: exactly the public code
    message   one sentence for people
    code      the gRPC status code
    metadata  strings only; the proto documents the keys of each reason
    """

    is_answer: Final = True
    """A span that ends with this exception has not failed (kit.observe.otel)."""

    def __init__(
        self,
        reason: str,
        message: str = "",
        *,
        code: grpc.StatusCode = grpc.StatusCode.FAILED_PRECONDITION,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(reason, message)
        self.reason = reason
        self.message = message
        self.code = code
        self.metadata: Mapping[str, str] = dict(metadata or {})
        self.silent_peer = ""
        """The service that could not be reached; empty when the refusal is an answer."""
        self.peer = ""
        """The service that was called; empty when the refusal was made in this process."""

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


def _refusal(code: grpc.StatusCode, reason: str, message: str, /, **metadata: str) -> Refused:
    if reason not in _REASONS:  # a typing error here would reach merchants as an undocumented code
        raise ValueError(f"{reason} is not declared in fiatgate/errors/v1/error_reason.proto")
    return Refused(reason, message, code=code, metadata=metadata)


# Each takes a reason, a message and the metadata: `not_found("INVOICE_NOT_FOUND", "There is no such invoice")`.
invalid = partial(_refusal, grpc.StatusCode.INVALID_ARGUMENT)
"""Wrong in any state."""
not_found = partial(_refusal, grpc.StatusCode.NOT_FOUND)
"""It does not exist, or the caller may not see it."""
already_exists = partial(_refusal, grpc.StatusCode.ALREADY_EXISTS)
"""The caller tried to create a thing that exists."""
precondition = partial(_refusal, grpc.StatusCode.FAILED_PRECONDITION)
"""The current state doesn't allow it."""
denied = partial(_refusal, grpc.StatusCode.PERMISSION_DENIED)
"""The caller is known, but not allowed."""
unauthenticated = partial(_refusal, grpc.StatusCode.UNAUTHENTICATED)
"""The caller is not known."""
exhausted = partial(_refusal, grpc.StatusCode.RESOURCE_EXHAUSTED)
"""The caller has used up a limit."""
conflict = partial(_refusal, grpc.StatusCode.ABORTED)
"""Another call does the same right now."""
unavailable = partial(_refusal, grpc.StatusCode.UNAVAILABLE)
"""Temporary: the same call may succeed later."""


_ALSO: Final = "also "


def invalid_together(refusals: Sequence[Refused]) -> Refused:
    """Returns the first of these VALIDATION_ERRORs, which also names the fields of the others."""
    first, *others = refusals
    also = {f"{_ALSO}{each.metadata['field']}": each.message for each in others}
    return Refused(first.reason, first.message, code=first.code, metadata={**first.metadata, **also})


def faults_of(refused: Refused) -> dict[str, str]:
    """Returns the message about each field that the refusal names, the refused one before the others."""
    field, also = refused.metadata.get("field", ""), refused.metadata.items()
    others = {name.removeprefix(_ALSO): text for name, text in sorted(also) if name.startswith(_ALSO)}
    return ({field: refused.message} if field else {}) | others


def edit_conflict(field: str, now: str) -> Refused:
    """Returns EDIT_CONFLICT: the field is no longer what the caller saw, it is `now`."""
    message = f"Another change came first: it is {now or 'empty'} now"
    return precondition("EDIT_CONFLICT", message, field=field, now=now)


def not_decided(thing: str) -> Refused:
    """Returns NOT_DECIDED: the values of this thing are not those that the last act about it decided."""
    message = (
        f"The {thing} was made or changed past the service: no act decided it. `fiatgate verify` says more"
    )
    return precondition("NOT_DECIDED", message)


def database_unavailable(
    message: str = "The service is temporarily unavailable, retry in a few seconds",
) -> Refused:
    """Returns DB_UNAVAILABLE: the database, or a service on the way to it, does not answer now."""
    return unavailable("DB_UNAVAILABLE", message)


def too_late() -> Refused:
    """Returns DB_UNAVAILABLE because too little of the deadline is left for useful work."""
    return unavailable("DB_UNAVAILABLE", "The service is too slow at the moment, retry in a few seconds")


def unexpected() -> Refused:
    """Returns INTERNAL_ERROR with a fresh `error_id`. The caller logs the details of the failure under that id."""
    from kit.observe import metrics  # noqa: PLC0415  a process that serves has it; the command starts sooner

    metrics.UNEXPECTED_ERRORS.inc()
    return Refused(
        "INTERNAL_ERROR",
        "Unexpected server error",
        code=grpc.StatusCode.INTERNAL,
        metadata={"error_id": secrets.token_hex(4)},
    )


def is_away(refused: Refused) -> bool:
    """Returns whether the service failed or did not answer, so that the same call may succeed later. A service that has
    just started refuses the tokens of people until it has the key of identity.
    """
    has_no_key = refused.reason == "ACTOR_INVALID" and refused.metadata.get("problem") == "key"
    return has_no_key or refused.reason in ("DB_UNAVAILABLE", "INTERNAL_ERROR")


# -- the wire


def refused_to_status(refused: Refused) -> status_pb2.Status:
    """Returns google.rpc.Status with one ErrorInfo; long texts are cut, because trailing metadata is bounded."""
    info = error_details_pb2.ErrorInfo(
        reason=refused.reason,
        domain=DOMAIN,
        metadata={key: value[:_METADATA_MAX_CHARACTERS] for key, value in refused.metadata.items()},
    )
    status = status_pb2.Status(code=refused.code.value[0], message=refused.message[:_MESSAGE_MAX_CHARACTERS])
    status.details.add().Pack(info)
    return status


def refused_from_status(status: status_pb2.Status) -> Refused | None:
    """Returns the Refused inside a google.rpc.Status; None when it holds no ErrorInfo of this domain."""
    info = error_details_pb2.ErrorInfo()
    for detail in status.details:
        if detail.Is(info.DESCRIPTOR) and detail.Unpack(info) and info.domain == DOMAIN:
            return Refused(
                info.reason,
                status.message,
                code=_STATUS_CODES.get(status.code, grpc.StatusCode.UNKNOWN),
                metadata=dict(info.metadata),
            )
    return None


def refused_by_peer(error: grpc.RpcError) -> Refused | None:
    """Returns the refusal that one of our services sent; None when the call failed in another way."""
    pairs: Any = error.trailing_metadata() or ()
    for key, value in pairs:
        if key == STATUS_DETAILS_KEY:
            refused = refused_from_status(status_pb2.Status.FromString(value))
            if refused is not None:
                return refused
    return None


def refused_from_rpc_error(error: grpc.RpcError) -> Refused:
    """Returns the meaning of a failed call for the caller: the peer's own Refused; DB_UNAVAILABLE when the peer is
    away, overloaded or past the deadline; INTERNAL_ERROR (with an `error_id` to log) for anything else.
    """
    if (refused := refused_by_peer(error)) is not None:
        return refused
    if error.code() in _AWAY or (error.details() or "").startswith(_OVERLOADED_DETAILS):
        return database_unavailable()
    return unexpected()

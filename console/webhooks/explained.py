"""The result of an attempt in words, with the next step."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from fiatgate.webhooks.v1 import webhooks_pb2 as pb


@dataclass(frozen=True)
class Explanation:
    """went: what happened. step: what to do; empty: nothing."""

    went: str
    step: str = ""


_PHRASES = {each.value: each.phrase for each in HTTPStatus}
_BY_STATUS = {
    400: "The merchant's server did not understand the body: the merchant compares it with the documents.",
    401: "The merchant's server refuses the signature: the merchant checks the signing secret of its key.",
    403: "The merchant's server or its firewall refuses us: the merchant permits our requests.",
    404: "Nothing is at this address: the merchant corrects its callback address.",
    405: "The address takes no POST: the merchant corrects its callback address.",
    410: "The merchant has given this address up: the merchant sets a new callback address.",
    429: "The merchant's server receives too many requests. It is tried again later.",
}


def explained(attempt: pb.Attempt) -> Explanation:
    """Returns the words for one attempt."""
    if attempt.status == pb.ATTEMPT_STATUS_SUCCESS:
        return Explanation("The merchant's server accepted it.")
    if not attempt.HasField("http_status"):
        return Explanation(
            "The merchant's server gave no answer.",
            "The merchant checks that its server runs and is reachable from the internet, and its certificate.",
        )
    status = attempt.http_status
    name = _PHRASES.get(status, "an unknown status")
    went = f"The merchant's server answered {status} ({name})."
    if status in _BY_STATUS:
        return Explanation(went, _BY_STATUS[status])
    if 300 <= status < 400:
        return Explanation(
            went, "Redirects are not followed: the merchant sets the address that it leads to."
        )
    if status >= 500:
        return Explanation(went, "It fails on the merchant's side: resend when the merchant has mended it.")
    return Explanation(went, "Only an answer of 200 to 299 counts as accepted.")

"""The result of an attempt in words, with the next step: for operators, or for the merchant's own people."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from fiatgate.webhooks.v1 import webhooks_pb2 as pb


@dataclass(frozen=True)
class Explanation:
    """went: what happened. step: what to do; empty: nothing."""

    went: str
    step: str = ""


@dataclass(frozen=True)
class Words:
    """The sentences for one kind of readers.

    server     the receiver, at the start of a sentence
    by_status  the step after an answer of this status
    not_sent   what is said of an attempt that made no request, by the reason
    """

    server: str
    by_status: dict[int, str]
    not_sent: dict[int, Explanation]
    no_answer: str
    redirect: str
    fails: str


_PHRASES = {each.value: each.phrase for each in HTTPStatus}
_FOR_OPERATORS = Words(
    server="The merchant's server",
    by_status={
        400: "The merchant's server did not understand the body: the merchant compares it with the documents.",
        401: "The merchant's server refuses the signature: the merchant checks the signing secret of its key.",
        403: "The merchant's server or its firewall refuses us: the merchant permits our requests.",
        404: "Nothing is at this address: the merchant corrects its callback address.",
        405: "The address takes no POST: the merchant corrects its callback address.",
        410: "The merchant has given this address up: the merchant sets a new callback address.",
        429: "The merchant's server receives too many requests. It is tried again later.",
    },
    not_sent={
        pb.NOT_SENT_NO_KEY: Explanation(
            "It was not sent: the merchant has no active API key, whose secret would sign it.",
            "The merchant makes a key; then resend it.",
        ),
        pb.NOT_SENT_HELD_BACK: Explanation(
            "It was not sent: the event has no right seal.",
            "Somebody may have written it into the database: look for webhook_unsealed in the log.",
        ),
        pb.NOT_SENT_ADDRESS: Explanation(
            "It was not sent: Fiatgate may not call this address.",
            "The merchant sets a public callback address with https.",
        ),
        pb.NOT_SENT_INTERNAL: Explanation(
            "It was not sent, because of an error of the webhooks service.",
            "Look for webhook_attempt_crashed in the log.",
        ),
    },
    no_answer="The merchant checks that its server runs and is reachable from the internet, and its certificate.",
    redirect="Redirects are not followed: the merchant sets the address that it leads to.",
    fails="It fails on the merchant's side: resend when the merchant has mended it.",
)
_FOR_MEMBERS = Words(
    server="Your server",
    by_status={
        400: "Your server did not understand the body: compare the body below with the documents of the API.",
        401: "Your server refuses the signature: check its signing secret, and that it signs the raw body.",
        403: "Your server or its firewall refuses us: permit our requests.",
        404: "Nothing is at this address: correct the callback address.",
        405: "The address takes no POST: correct the callback address, or take POST there.",
        410: "Your server says that this address is given up: set a new callback address.",
        429: "Your server limits our requests. It is tried again later.",
    },
    not_sent={
        pb.NOT_SENT_NO_KEY: Explanation(
            "It was not sent: you have no active API key, whose secret would sign it.",
            "Make a key; then resend it.",
        ),
        pb.NOT_SENT_HELD_BACK: Explanation(
            "It was not sent: Fiatgate held it back.",
            "There is nothing to mend at your server. Fiatgate's operators are informed.",
        ),
        pb.NOT_SENT_ADDRESS: Explanation(
            "It was not sent: Fiatgate may not call this address.",
            "Set a public callback address with https.",
        ),
        pb.NOT_SENT_INTERNAL: Explanation(
            "It was not sent, because of an error of Fiatgate.",
            "There is nothing to mend at your server. Resend it; if it fails again, tell your operator.",
        ),
    },
    no_answer="Check that your server runs and is reachable from the internet, and its certificate.",
    redirect="Redirects are not followed: set the address that it leads to.",
    fails="It fails on your server: look into its log at this time, mend it, then resend.",
)


def explained(attempt: pb.Attempt, *, for_members: bool = False) -> Explanation:
    """Returns the words for one attempt."""
    words = _FOR_MEMBERS if for_members else _FOR_OPERATORS
    if attempt.status == pb.ATTEMPT_STATUS_SUCCESS:
        return Explanation(f"{words.server} accepted it.")
    if attempt.not_sent:
        return words.not_sent.get(attempt.not_sent, Explanation("It was not sent."))
    if not attempt.HasField("http_status"):
        return Explanation(f"{words.server} gave no answer.", words.no_answer)
    status = attempt.http_status
    went = f"{words.server} answered {status} ({_PHRASES.get(status, 'an unknown status')})."
    if status in words.by_status:
        return Explanation(went, words.by_status[status])
    if 300 <= status < 400:
        return Explanation(went, words.redirect)
    if status >= 500:
        return Explanation(went, words.fails)
    return Explanation(went, "Only an answer of 200 to 299 counts as accepted.")

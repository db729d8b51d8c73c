"""Acts in words: as the title of an entry in a timeline, and as a sentence that begins with the author."""

from collections.abc import Mapping
from typing import Final

from fiatgate.audit.v1 import audit_pb2 as pb
from kit.base.actors import API_KEY

APPROVED: Final = "Second person approved"
_TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "approval.approve": (APPROVED, "good"),
    "approval.reject": ("Second person rejected", "bad"),
    "approval.request": ("Second person asked", "wait"),
    "correction.make": ("Corrected", ""),
    "currency.set": ("Currency set", ""),
    "event.resend": ("Webhook resent", ""),
    "invoice.accept": ("Change without the service accepted", ""),
    "invoice.reannounce": ("Announced again", ""),
    "invoice.restore": ("Restored from its signed fact", ""),
    "rate.accept": ("Held rate accepted", ""),
    "rate.pull": ("Sources polled", ""),
    "rate.set": ("Rate set by hand", ""),
    "requisite.add": ("Added", "good"),
    "requisite.disable": ("Disabled", "bad"),
    "requisite.enable": ("Enabled", "good"),
    "refund.account": ("Account given", ""),
    "refund.cancel": ("Canceled", "bad"),
    "refund.complete": ("Refunded", "good"),
    "refund.fail": ("Failed", "bad"),
    "refund.request": ("Refund requested", "wait"),
    "refund.send": ("Being sent", "wait"),
    "withdrawal.cancel": ("Canceled", "bad"),
    "withdrawal.complete": ("Sent", "good"),
    "withdrawal.create": ("Requested", "wait"),
    "withdrawal.fail": ("Failed", "bad"),
    "withdrawal.process": ("Being sent", "wait"),
}
PAST: Final[Mapping[str, str]] = {
    "accept": "accepted",
    "activate": "activated",
    "add": "added",
    "adjust": "adjusted",
    "answer": "answered",
    "appeal": "moved into appeal",
    "approve": "approved",
    "ban": "banned",
    "block": "blocked",
    "cloned": "was refused a copy of",
    "cancel": "canceled",
    "complete": "completed",
    "configure": "configured",
    "confirm": "confirmed",
    "create": "created",
    "deactivate": "deactivated",
    "delete": "deleted",
    "disable": "disabled",
    "discard": "discarded",
    "enable": "enabled",
    "end": "ended",
    "fail": "marked as failed",
    "ignore": "ignored",
    "import": "imported",
    "link": "linked",
    "make": "made",
    "open": "opened",
    "process": "began to send",
    "pull": "polled",
    "reannounce": "announced again",
    "record": "recorded",
    "reject": "rejected",
    "remove": "removed",
    "request": "requested",
    "resend": "resent",
    "resolve": "resolved",
    "restart": "restarted",
    "restore": "restored",
    "retry": "retried",
    "reverse": "took back",
    "revoke": "revoked",
    "roles": "changed the roles of",
    "send": "began to send",
    "account": "gave the account of",
    "rotate": "made",
    "save": "saved",
    "set": "set",
    "start": "started",
    "step_up": "stepped up",
    "unban": "unbanned",
    "unblock": "unblocked",
    "use": "used",
    "withdraw": "withdrew",
}
SENTENCES: Final[Mapping[str, str]] = {
    "attempts.prune": "deleted old attempts",
    "deals-system.set": "switched payments on or off",
    "event.reschedule": "made stuck events due now",
    "parked.discard": "discarded a failed event",
    "parked.retry": "retried failed events",
    "person.invite": "invited a person",
    "person.recover": "made a recovery link",
    "webhooks.check": "saw how a server answers a wrong signature",
    "webhooks.test": "sent a test event",
}
"""Acts whose object is no single thing."""


def title_of(act: pb.Act) -> tuple[str, str]:
    """Returns the title of the act and its tone: good, bad or wait; empty: neither."""
    words = act.act.replace(".", " ")
    return (f"Refused: {words}", "bad") if act.refused else _TITLES.get(act.act, (words, ""))


def done(act: pb.Act, named: str) -> str:
    """Returns the end of a sentence that begins with the author: "confirmed deal 0197…".

    named  the object as the sentence names it
    """
    if act.act in SENTENCES:
        return SENTENCES[act.act]
    noun, _, verb = act.act.rpartition(".")
    past = PAST.get(verb, verb)
    return f"{past} {named}" if act.object.partition(":")[0] == noun else f"{past} {noun} of {named}"


def author_of(act: pb.Act) -> str:
    """Returns the author for people: an e-mail address, cli:USER@HOST, the customer, API key; for members of merchants
    "the operator".
    """
    actor = act.actor
    if any(each.field == "account_by_customer" and each.after == "yes" for each in act.changes):
        return "the customer"
    if actor.kind == "api":
        return API_KEY
    if actor.kind in ("person", "operator"):
        return actor.name
    named = f"{actor.kind}:{actor.name}" if actor.name else actor.kind
    return f"{named} for {actor.on_behalf_of}" if actor.on_behalf_of else named

"""The keys of tests, and facts signed with one of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kit.base.seals import Seals
from kit.events.bus.messages import Incoming, Outgoing
from kit.events.proof import Verifier
from kit.events.signing import Signer

SIGNING_KEY: Final = "c2lnbnMtdGhlLWZhY3RzLW9mLWFsbC10aGUtdGVzdHM="  # of "signs-the-facts-of-all-the-tests"
SEAL_KEY: Final = "c2VhbHMtdGhlLWV2ZW50cy1vZi1hbGwtdGhlLXRlc3Q="  # of "seals-the-events-of-all-the-test"
SEALS: Final = Seals((SEAL_KEY,))
SIGNER: Final = Signer(SIGNING_KEY)
PUBLIC_KEYS: Final = (SIGNER.public_key,)


def verifier() -> Verifier:
    return Verifier(PUBLIC_KEYS)


def signed(fact: Outgoing, signer: Signer = SIGNER) -> Outgoing:
    """As the producer's outbox has it."""
    signature = signer.sign(subject=fact.subject, event_id=fact.event_id, payload=fact.payload)
    return replace(fact, signature=signature)


def delivered(
    fact: Outgoing,
    *,
    acknowledge: Callable[[], None] = lambda: None,
    retry_after: Callable[[float], None] = lambda _seconds: None,
) -> Incoming:
    """The fact as a consumer gets it."""
    return Incoming(
        fact.event_id,
        fact.subject,
        fact.payload,
        fact.request_id,
        acknowledge,
        retry_after,
        signature=fact.signature,
    )

"""Signing in by password or passkey, and stepping a session up."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy.orm import Session as Tx

from kit.audit import acts
from kit.base import actors
from kit.base.emails import EMAIL_CHARACTERS
from kit.db.database import retry_conflicts
from kit.observe import metrics
from kit.observe.log import get_logger
from kit.rpc import values
from kit.rpc.errors import Refused
from services.identity import errors
from services.identity.credentials import challenges, passkeys, tokens, totp
from services.identity.credentials.challenges import Challenge, Use
from services.identity.credentials.passwords import MOST_CHARACTERS
from services.identity.domain.people import (
    ADDRESSES_KNOWN_MOST,
    SESSIONS_A_MINUTE_MOST,
    Client,
    Person,
    Purpose,
    Surface,
    Way,
)
from services.identity.operations import guesses, sessions
from services.identity.operations.sessions import SignedIn
from services.identity.store import factors, people
from services.identity.store import sessions as stored_sessions
from services.identity.store.factors import ConfirmedTotp
from services.identity.wiring import Deps

CODE_CHARACTERS: Final = 64
STEP_UP: Final = "session.step_up"
_NOBODY: Final = UUID(int=0)

SIGN_INS: Final = metrics.counter(
    "sign_ins", "Tries to sign in, by way and result (started, refused)", ["way", "result"]
)
STEP_UPS: Final = metrics.counter(
    "step_ups", "Tries to step a session up, by result (done, refused)", ["result"]
)
CLONED: Final = metrics.counter(
    "passkeys_cloned", "Passkeys whose counter went back: the authenticator was probably copied"
)
for _way in Way:
    for _result in ("started", "refused"):
        SIGN_INS.labels(_way.value, _result)  # at 0 from the start, so that the first one is an increase
for _result in ("done", "refused"):
    STEP_UPS.labels(_result)

_log = get_logger()


# -- by password


@dataclass(frozen=True, kw_only=True)
class _Proof:
    """The proof that a code gives: a TOTP step, or a recovery code."""

    step: int | None = None
    recovery_hash: bytes | None = None

    @property
    def way(self) -> Way:
        return Way.RECOVERY if self.step is None else Way.PASSWORD


@dataclass(frozen=True, kw_only=True)
class _Stored:
    """The stored factors of one address. An unknown one has none, and the same statements find that out."""

    person: Person | None
    password_hash: str | None
    totp: ConfirmedTotp | None
    has_recovery_code: bool


def knows_network(deps: Deps, *, email: str, client: Client) -> bool:
    """Returns whether the person has signed in from the client's network, as far as sessions are kept."""
    with deps.db.transaction() as tx:
        addresses = stored_sessions.addresses_of(tx, _address_of(email), limit=ADDRESSES_KNOWN_MOST)
    return any(client.shares_network_with(each) for each in addresses)


def _address_of(email: str) -> str:
    values.text("email", email, most=EMAIL_CHARACTERS, least=0)
    return email.strip().lower()


def sign_in_by_password(
    deps: Deps, *, email: str, password: str, code: str, surface: Surface, client: Client
) -> str:
    """Starts a session by e-mail address, password and code (TOTP or recovery), and returns its token.

    Unknown people, wrong passwords and wrong codes have the same answer after the same work. Raises SIGN_IN_REFUSED,
    SIGN_IN_DELAYED.
    """
    address = _address_of(email)
    values.text("code", code, most=CODE_CHARACTERS, least=0)
    if len(password) > MOST_CHARACTERS:
        raise values.invalid("password", f"password has at most {MOST_CHARACTERS} characters")
    is_known = knows_network(deps, email=email, client=client)
    counters = guesses.of_sign_in(address, surface, client, is_known=is_known)
    guesses.begin(deps, counters)
    recovery_hash = tokens.hash_of_recovery_code(code)
    stored = _stored(deps, address, recovery_hash or bytes(32))
    password_fits = deps.passwords.fits(stored.password_hash, password)
    proof = _proof_of(deps, stored, code, recovery_hash)
    token = None
    if password_fits and proof is not None and stored.person is not None:
        try:
            token = _session_by_proof(deps, stored, proof, surface, client)
        except Refused:  # a right sign-in that comes too soon after others is no guess
            guesses.take_back(deps, counters)
            raise
    if token is None:
        SIGN_INS.labels(Way.PASSWORD.value, "refused").inc()
        _log.info("sign_in_refused", way=Way.PASSWORD.value, surface=surface.value)
        raise errors.sign_in_refused()
    guesses.take_back(deps, counters)
    assert proof is not None
    SIGN_INS.labels(proof.way.value, "started").inc()
    return token


def _stored(deps: Deps, address: str, recovery_hash: bytes) -> _Stored:
    with deps.db.transaction() as tx:
        person = people.person_by_email(tx, address)
        person_id = _NOBODY if person is None else person.id
        return _Stored(
            person=person,
            password_hash=factors.password_hash(tx, person_id),
            totp=factors.confirmed_totp(tx, person_id),
            has_recovery_code=factors.has_recovery_code(tx, person_id, recovery_hash),
        )


def _proof_of(deps: Deps, stored: _Stored, code: str, recovery_hash: bytes | None) -> _Proof | None:
    known, secret = stored.totp, None
    if stored.person is not None and known is not None:
        secret = _opened(deps, stored.person.id, known)
    step = totp.step_of(secret or totp.NO_SECRET, code.strip(), now=deps.clock.now())
    if known is not None and secret is not None and step is not None and step > known.last_step:
        return _Proof(step=step)
    return _Proof(recovery_hash=recovery_hash) if stored.has_recovery_code else None


def _opened(deps: Deps, person_id: UUID, known: ConfirmedTotp) -> str | None:
    return totp.opened(deps.vault, person_id, known.sealed_secret, confirmed_at=known.confirmed_at)


@retry_conflicts
def _session_by_proof(
    deps: Deps, stored: _Stored, proof: _Proof, surface: Surface, client: Client
) -> str | None:
    """Uses the proof up and starts the session; None when another call was first, when the password or the TOTP secret
    was replaced since it was compared, or when the person may not sign in. Raises SIGN_IN_DELAYED.
    """
    assert stored.person is not None
    person_id = stored.person.id
    with deps.db.transaction() as tx:
        people.lock_person(tx, person_id)
        person = people.person(tx, person_id)
        if person is None or not person.may_use(surface) or not _counts_still(tx, person_id, stored):
            return None
        _require_pause(deps, tx, person_id)
        if not _use(deps, tx, person_id, proof):
            return None
        return sessions.start(deps, tx, person, surface=surface, way=proof.way, client=client)


def _counts_still(tx: Tx, person_id: UUID, stored: _Stored) -> bool:
    now, then = factors.confirmed_totp(tx, person_id), stored.totp
    same_totp = (now and now.sealed_secret) == (then and then.sealed_secret)
    return same_totp and factors.password_hash(tx, person_id) == stored.password_hash


def _require_pause(deps: Deps, tx: Tx, person_id: UUID) -> None:
    """Raises SIGN_IN_DELAYED when the person has signed in often within the last minute."""
    now, minute = deps.clock.now(), timedelta(minutes=1)
    started = stored_sessions.started_between(tx, person_id, now - minute, now)
    if started >= SESSIONS_A_MINUTE_MOST:
        raise errors.sign_in_delayed(int(minute.total_seconds()))


def _use(deps: Deps, tx: Tx, person_id: UUID, proof: _Proof) -> bool:
    if proof.step is not None:
        return factors.use_totp_step(tx, person_id, proof.step)
    assert proof.recovery_hash is not None
    return factors.use_recovery_code(tx, person_id, proof.recovery_hash, at=deps.clock.now())


# -- by passkey


def start_passkey(deps: Deps, *, surface: Surface, session_token: str) -> tuple[str, str]:
    """Returns a sealed challenge and PublicKeyCredentialRequestOptions as JSON: to sign in; with a session, to step up.
    Raises SESSION_INVALID.
    """
    party = deps.relying_parties[surface]
    use, known = Use(purpose=Purpose.SIGN_IN, surface=surface), None
    if session_token:
        with deps.db.transaction() as tx:
            signed_in = sessions.signed_in_by(deps, tx, session_token, surface)
            known = factors.credentials_of(tx, signed_in.person.id, rp_id=party.rp_id)
        use = Use(purpose=Purpose.STEP_UP, surface=surface, session_id=signed_in.session.id)
    options, challenge = party.request_options(known)
    return challenges.seal(deps.vault, challenge, use, now=deps.clock.now()), options


def sign_in_by_passkey(
    deps: Deps, *, challenge_id: str, credential: str, surface: Surface, client: Client
) -> str:
    """Starts a session by the answer of a passkey, and returns its token. Raises SIGN_IN_REFUSED, SIGN_IN_DELAYED."""
    use = Use(purpose=Purpose.SIGN_IN, surface=surface)
    token = None
    with suppress(challenges.Invalid, passkeys.Invalid):
        challenge = challenges.unseal(deps.vault, challenge_id, use, now=deps.clock.now())
        token = _session_by_passkey(deps, challenge, credential, client)
    if token is None:
        SIGN_INS.labels(Way.PASSKEY.value, "refused").inc()
        _log.info("sign_in_refused", way=Way.PASSKEY.value, surface=surface.value)
        raise errors.sign_in_refused()
    SIGN_INS.labels(Way.PASSKEY.value, "started").inc()
    return token


@retry_conflicts
def _session_by_passkey(deps: Deps, challenge: Challenge, credential: str, client: Client) -> str | None:
    surface = challenge.use.surface
    with deps.db.transaction() as tx:
        person_id = _proved_by_passkey(deps, tx, challenge, credential)
        person = None if person_id is None else people.person(tx, person_id)
        if person is None or not person.may_use(surface):
            return None
        _require_pause(deps, tx, person.id)
        return sessions.start(deps, tx, person, surface=surface, way=Way.PASSKEY, client=client)


def _proved_by_passkey(deps: Deps, tx: Tx, challenge: Challenge, credential: str) -> UUID | None:
    """Returns the person whose passkey gave the answer, and uses the challenge up; None when it proves nothing. A
    counter that went back marks the passkey: it never counts again. Raises passkeys.Invalid.
    """
    surface = challenge.use.surface
    party = deps.relying_parties[surface]
    credential_id = passkeys.credential_id_of(credential)
    known = factors.passkey(tx, credential_id, rp_id=party.rp_id)
    if known is None:
        return None
    # So a removal of the passkey, or a decision about the person, happens before or after this.
    people.lock_person(tx, known.person_id)
    stored = factors.passkey(tx, credential_id, rp_id=party.rp_id)
    if stored is None:
        return None
    count = party.sign_count(
        challenge.challenge, credential, credential=stored.credential, person_id=stored.person_id
    )
    # Before the counter is compared: an answer that is sent again is no copy of the passkey.
    if not factors.use_challenge(tx, challenge):
        return None
    if passkeys.went_back(stored.sign_count, count):
        factors.mark_cloned(tx, stored.id, at=deps.clock.now())
        person = people.person(tx, stored.person_id)
        assert person is not None
        with actors.acting(sessions.actor_of(person, surface)):
            acts.record(
                tx,
                "passkey.cloned",
                f"passkey:{stored.id}",
                note=f"counter {stored.sign_count}, then {count}",
            )
        CLONED.inc()
        _log.warning("passkey_cloned", passkey_id=str(stored.id), person_id=str(stored.person_id))
        return None
    factors.mark_used(tx, stored.id, count, at=deps.clock.now())
    return stored.person_id


# -- stepping up


def step_up(
    deps: Deps,
    *,
    session_token: str,
    surface: Surface,
    client: Client,
    code: str = "",
    challenge_id: str = "",
    credential: str = "",
) -> str:
    """Steps the session up by a TOTP code or a passkey, and returns its new token; the one before ends. A recovery code
    does not step up. Raises SESSION_INVALID, SIGN_IN_REFUSED, SIGN_IN_DELAYED (a code).
    """
    with deps.db.transaction() as tx:
        signed_in = sessions.signed_in_by(deps, tx, session_token, surface)
    if challenge_id:
        token = _stepped_up_by_passkey(deps, signed_in, challenge_id, credential)
    else:
        counters = guesses.of_step_up(signed_in.person.id, surface)
        guesses.begin(deps, counters)
        token = _stepped_up_by_code(deps, signed_in, code)
        if token is not None:
            guesses.take_back(deps, counters)
    if token is None:
        STEP_UPS.labels("refused").inc()
        _log.info("step_up_refused", session_id=str(signed_in.session.id), surface=surface.value)
        acts.record_refusal(
            deps.db, STEP_UP, "SIGN_IN_REFUSED", object=_object_of(signed_in), actor=signed_in.actor
        )
        raise errors.sign_in_refused()
    STEP_UPS.labels("done").inc()
    return token


@retry_conflicts
def _stepped_up_by_passkey(deps: Deps, signed_in: SignedIn, challenge_id: str, credential: str) -> str | None:
    session = signed_in.session
    use = Use(purpose=Purpose.STEP_UP, surface=session.surface, session_id=session.id)
    try:
        challenge = challenges.unseal(deps.vault, challenge_id, use, now=deps.clock.now())
        with deps.db.transaction() as tx:
            proved = _proved_by_passkey(deps, tx, challenge, credential)
            if proved != session.person_id:
                return None
            return _stepped_up(deps, tx, signed_in, "passkey")
    except (challenges.Invalid, passkeys.Invalid):
        return None


@retry_conflicts
def _stepped_up_by_code(deps: Deps, signed_in: SignedIn, code: str) -> str | None:
    person_id = signed_in.person.id
    with deps.db.transaction() as tx:
        people.lock_person(tx, person_id)
        known = factors.confirmed_totp(tx, person_id)
        if known is None:
            return None
        secret = _opened(deps, person_id, known)
        step = None if secret is None else totp.step_of(secret, code.strip(), now=deps.clock.now())
        if step is None or not factors.use_totp_step(tx, person_id, step):
            return None
        return _stepped_up(deps, tx, signed_in, "TOTP")


def _stepped_up(deps: Deps, tx: Tx, signed_in: SignedIn, factor: str) -> str:
    """Steps the session up and returns its new token."""
    token, session = tokens.new_token(), signed_in.session
    if not stored_sessions.step_up(tx, session, token_hash=tokens.hash_of(token), at=deps.clock.now()):
        raise errors.session_invalid()
    with actors.acting(signed_in.actor):
        acts.record(tx, STEP_UP, _object_of(signed_in), note=factor)
    return token


def _object_of(signed_in: SignedIn) -> str:
    return f"session:{signed_in.session.id}"

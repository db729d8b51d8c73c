"""The person's own factors: passkeys, password, TOTP, recovery codes.

All that add one raise STEP_UP_REQUIRED.
"""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.orm import Session as Tx

from kit.audit import acts
from kit.base import actors
from kit.base.ids import new_id
from kit.db.database import refusing, retry_conflicts
from kit.rpc import values
from services.identity import errors
from services.identity.credentials import challenges, passkeys, tokens, totp
from services.identity.credentials.challenges import Use
from services.identity.credentials.passwords import weakness_of
from services.identity.domain import people as domain
from services.identity.domain.people import (
    PASSKEY_NAME_CHARACTERS,
    TOTP_STARTED_LASTS,
    Person,
    Purpose,
    Surface,
)
from services.identity.operations.sessions import author, end_all, live
from services.identity.store import factors, people, sessions
from services.identity.store.decisions import has_factors_by_acts
from services.identity.wiring import Deps

PASSKEYS_AT_MOST = 20


@dataclass(frozen=True, kw_only=True)
class OwnFactors:
    passkeys: list[domain.Passkey]
    has_password: bool
    has_totp: bool
    unused_recovery_codes: int


def list_factors(deps: Deps) -> OwnFactors:
    person_id, _ = author()
    with deps.db.transaction() as tx:
        own = factors.factors(tx, person_id, rp_id=_rp_id(deps))
        return OwnFactors(
            passkeys=factors.passkeys(tx, person_id),
            has_password=own.has_password,
            has_totp=own.has_totp,
            unused_recovery_codes=factors.unused_recovery_codes(tx, person_id),
        )


# -- passkeys


def start_passkey_registration(deps: Deps) -> tuple[str, str]:
    """Returns a sealed challenge and PublicKeyCredentialCreationOptions as JSON."""
    person_id, _ = author()
    party = deps.relying_parties[_surface()]
    with deps.db.transaction() as tx:
        _may_add_factors(deps, tx)
        person = _person(tx, person_id)
        known = factors.credentials_of(tx, person_id, rp_id=party.rp_id)
    options, challenge = party.creation_options(person_id, person.email, person.name, known)
    return challenges.seal(deps.vault, challenge, _registering(), now=deps.clock.now()), options


@retry_conflicts
def register_passkey(deps: Deps, *, challenge_id: str, credential: str, name: str) -> domain.Passkey:
    """Raises PASSKEY_INVALID: the answer does not fit, or the challenge is used or too old."""
    person_id, session_id = author()
    party = deps.relying_parties[_surface()]
    shown = values.label("name", name.strip(), most=PASSKEY_NAME_CHARACTERS)
    now = deps.clock.now()
    try:
        challenge = challenges.unseal(deps.vault, challenge_id, _registering(), now=now)
        made = party.registered(challenge.challenge, credential)
    except (challenges.Invalid, passkeys.Invalid):
        raise errors.passkey_invalid() from None
    passkey = domain.Passkey(new_id(), shown, now, None)
    with refusing({"uq_passkeys_credential_id": errors.passkey_invalid}), deps.db.transaction() as tx:
        people.lock_person(tx, person_id)
        _may_add_factors(deps, tx)
        if not factors.use_challenge(tx, challenge):
            raise errors.passkey_invalid()
        if len(factors.passkeys(tx, person_id)) >= PASSKEYS_AT_MOST:
            raise values.invalid("name", f"Expected at most {PASSKEYS_AT_MOST} passkeys; remove one before")
        factors.add_passkey(
            tx,
            person_id,
            passkey,
            rp_id=party.rp_id,
            credential=made.credential,
            proof=(made.credential_id, made.sign_count),
        )
        sessions.mark_stepped_up(tx, session_id, at=now)
        _record(tx, "factor.add", f"passkey:{passkey.id}", shown)
    return passkey


@retry_conflicts
def remove_passkey(deps: Deps, *, passkey_id: str) -> None:
    """Raises FACTOR_NOT_FOUND, LAST_FACTOR."""
    person_id, _ = author()
    wanted = values.uuid_or(errors.factor_not_found, passkey_id)
    with deps.db.transaction() as tx:
        people.lock_person(tx, person_id)
        if not factors.remove_passkey(tx, person_id, wanted):
            raise errors.factor_not_found()
        _require_a_way_in(deps, tx, person_id, without=f"passkey:{wanted}")
        _record(tx, "factor.remove", f"passkey:{wanted}", "")


# -- password


def set_password(deps: Deps, *, password: str) -> None:
    """Sets the password; the person's other sessions end. Raises PASSWORD_REFUSED."""
    person_id, _ = author()
    with deps.db.transaction() as tx:
        _may_add_factors(deps, tx)
        person = _person(tx, person_id)
    if why := weakness_of(password, own=(person.email, person.name)):
        raise errors.password_refused(why)
    _store_password(deps, deps.passwords.hash(password))


@retry_conflicts
def _store_password(deps: Deps, hashed: str) -> None:
    person_id, session_id = author()
    with deps.db.transaction() as tx:
        people.lock_person(tx, person_id)
        _may_add_factors(deps, tx)
        factors.set_password(tx, person_id, hashed, at=deps.clock.now())
        _record(tx, "factor.add", f"person:{person_id}", "password")
        end_all(deps, tx, person_id, but=session_id)


# -- TOTP


@retry_conflicts
def start_totp(deps: Deps) -> tuple[str, str]:
    """Returns a new secret in base32 and its otpauth:// address. It counts once `confirm_totp` got a code of it; until
    then an earlier one does.
    """
    person_id, _ = author()
    secret = totp.new_secret()
    with deps.db.transaction() as tx:
        _may_add_factors(deps, tx)
        person = _person(tx, person_id)
        factors.start_totp(tx, person_id, totp.sealed(deps.vault, person_id, secret), at=deps.clock.now())
    return secret, totp.uri_of(secret, person.email)


@retry_conflicts
def confirm_totp(deps: Deps, *, code: str) -> None:
    """Raises CODE_INVALID."""
    person_id, session_id = author()
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        people.lock_person(tx, person_id)
        _may_add_factors(deps, tx)
        sealed = factors.started_totp(tx, person_id, since=now - TOTP_STARTED_LASTS)
        if sealed is None:
            raise errors.code_invalid()
        secret = totp.opened(deps.vault, person_id, sealed)
        step = None if secret is None else totp.step_of(secret, code.strip(), now=now)
        if secret is None or step is None:
            raise errors.code_invalid()
        confirmed = totp.sealed(deps.vault, person_id, secret, confirmed_at=now)
        factors.confirm_totp(tx, person_id, confirmed, step=step, at=now)
        sessions.mark_stepped_up(tx, session_id, at=now)
        _record(tx, "factor.add", f"person:{person_id}", "TOTP")


@retry_conflicts
def remove_totp(deps: Deps) -> None:
    """Raises FACTOR_NOT_FOUND, LAST_FACTOR."""
    person_id, _ = author()
    with deps.db.transaction() as tx:
        people.lock_person(tx, person_id)
        if not factors.remove_totp(tx, person_id):
            raise errors.factor_not_found()
        _require_a_way_in(deps, tx, person_id, without="TOTP")
        _record(tx, "factor.remove", f"person:{person_id}", "TOTP")


# -- recovery codes


@retry_conflicts
def make_recovery_codes(deps: Deps) -> list[str]:
    """Returns ten new codes, which are shown once; the earlier ones end."""
    person_id, _ = author()
    codes = [tokens.new_recovery_code() for _ in range(tokens.RECOVERY_CODES)]
    hashes = [each for code in codes if (each := tokens.hash_of_recovery_code(code)) is not None]
    with deps.db.transaction() as tx:
        people.lock_person(tx, person_id)
        _may_add_factors(deps, tx)
        factors.replace_recovery_codes(tx, person_id, hashes, at=deps.clock.now())
        _record(tx, "factor.add", f"person:{person_id}", "recovery codes")
    return codes


def _record(tx: Tx, act: str, object: str, factor: str) -> None:
    """Records the act; never anything of the factor but its kind or name."""
    acts.record(tx, act, object, note=factor)


def _may_add_factors(deps: Deps, tx: Tx) -> None:
    """Raises STEP_UP_REQUIRED (domain.Session.may_add_factors has the rule). For a change call this with the person
    locked: a decision that ends the session may be under way.
    """
    person_id, session_id = author()
    session = sessions.live_session(tx, session_id, live(deps))
    own = factors.factors(tx, person_id, rp_id=_rp_id(deps))
    if session is None or not session.may_add_factors(deps.clock.now(), own):
        raise errors.step_up_required()


def _require_a_way_in(deps: Deps, tx: Tx, person_id: UUID, *, without: str) -> None:
    are_complete = factors.factors(tx, person_id, rp_id=_rp_id(deps)).are_complete
    if not (are_complete and has_factors_by_acts(tx, person_id, without=without)):
        raise errors.last_factor()


def _registering() -> Use:
    _, session_id = author()
    return Use(purpose=Purpose.REGISTER, surface=_surface(), session_id=session_id)


def _surface() -> Surface:
    return Surface(actors.current().surface)


def _rp_id(deps: Deps) -> str:
    return deps.relying_parties[_surface()].rp_id


def _person(tx: Tx, person_id: UUID) -> Person:
    person = people.person(tx, person_id)
    if person is None:
        raise errors.person_not_found()
    return person

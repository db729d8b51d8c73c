"""Actor tokens: identity signs one for each request of a person, and every service checks it.

A token is a JWT with an Ed25519 signature and lives for a minute. It names the person, the surface, the roles there,
the merchant of a member, the session, and the time of its last step-up.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from kit.base.actors import Actor
from kit.base.ids import new_id, parse_id

ISSUER: Final = "fiatgate-identity"
ALGORITHM: Final = "EdDSA"
LIFETIME: Final = timedelta(seconds=60)
AHEAD_AT_MOST: Final = timedelta(seconds=5)
"""How far the clock of identity may be ahead of the clock of a service."""
MAX_CHARACTERS: Final = 4096
SURFACES: Final = frozenset({"desk", "dashboard"})

_REQUIRED: Final = ("sub", "name", "surface", "roles", "sid", "iat", "exp", "step_up", "jti")


class Invalid(Exception):
    """A token that counts for nothing. The text is one of: malformed, algorithm, key, signature, issuer, age."""


class Keys(Protocol):
    """The public keys of identity by their ids."""

    def find(self, key_id: str) -> Ed25519PublicKey | None: ...


def write_token(actor: Actor, *, key_id: str, private_key: Ed25519PrivateKey, now: datetime) -> str:
    """Returns a token for one request of the person. That of a member names the merchant that the member chose."""
    assert actor.person_id is not None and actor.session_id is not None and actor.surface in SURFACES
    claims: dict[str, Any] = {
        "iss": ISSUER,
        "sub": str(actor.person_id),
        "name": actor.name,
        "surface": actor.surface,
        "roles": sorted(actor.roles),
        "sid": str(actor.session_id),
        "iat": int(now.timestamp()),
        "exp": int((now + LIFETIME).timestamp()),
        "step_up": int(actor.stepped_up_at.timestamp()) if actor.stepped_up_at else 0,
        "jti": str(new_id()),
    }
    if actor.merchant_id is not None:
        claims["merchant"] = str(actor.merchant_id)
    return jwt.encode(claims, private_key, algorithm=ALGORITHM, headers={"kid": key_id})


def read_token(token: str | bytes, keys: Keys, *, now: datetime) -> Actor:
    """Returns the person that the token names. Raises `Invalid`."""
    if not isinstance(token, str) or len(token) > MAX_CHARACTERS:
        raise Invalid("malformed")
    claims = _proved(token, keys)
    issued, expires = _time(claims["iat"]), _time(claims["exp"])
    if not (issued - AHEAD_AT_MOST <= now < expires <= issued + LIFETIME):
        raise Invalid("age")
    person_id, session_id = parse_id(str(claims["sub"])), parse_id(str(claims["sid"]))
    merchant = claims.get("merchant")
    merchant_id = None if merchant is None else parse_id(str(merchant))
    surface, name, roles = claims["surface"], claims["name"], claims["roles"]
    texts = [surface, name, *(roles if isinstance(roles, list) else [None])]
    if (
        not all(isinstance(each, str) for each in texts)
        or person_id is None
        or session_id is None
        or surface not in SURFACES
        or (merchant is not None and (merchant_id is None or surface == "desk"))
    ):
        raise Invalid("malformed")
    return Actor(
        kind="person",
        name=name,
        surface=surface,
        person_id=person_id,
        session_id=session_id,
        roles=frozenset(roles),
        merchant_id=merchant_id,
        stepped_up_at=_time(claims["step_up"]) if claims["step_up"] else None,
    )


def _proved(token: str, keys: Keys) -> Mapping[str, Any]:
    """Returns the claims, which a key of identity has signed. Their times are not checked yet."""
    try:
        header = jwt.get_unverified_header(token)
    except jwt.InvalidTokenError:
        raise Invalid("malformed") from None
    # Before any key is fetched: the header is the sender's word.
    if header.get("alg") != ALGORITHM:
        raise Invalid("algorithm")
    key = keys.find(str(header.get("kid", "")))
    if key is None:
        raise Invalid("key")
    # The clock of a service is kit.base.clock, which tests can move, so the times are checked by `read_token`.
    options: Any = {
        "require": list(_REQUIRED),
        "verify_exp": False,
        "verify_iat": False,
        "verify_nbf": False,
        "verify_aud": False,
    }
    try:
        claims: Mapping[str, Any] = jwt.decode(
            token, key, algorithms=[ALGORITHM], issuer=ISSUER, options=options
        )
    except jwt.InvalidSignatureError:
        raise Invalid("signature") from None
    except jwt.InvalidIssuerError:
        raise Invalid("issuer") from None
    except jwt.InvalidTokenError:
        raise Invalid("malformed") from None
    return claims


def _time(seconds: object) -> datetime:
    if not isinstance(seconds, int) or not 0 <= seconds < 1 << 40:
        raise Invalid("malformed")
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise Invalid("malformed") from None


def raw_public_key(private_key: Ed25519PrivateKey) -> bytes:
    """Returns the 32 bytes by which ListActorKeys publishes the key."""
    return private_key.public_key().public_bytes_raw()


class NoKeys:
    """A service without the address of identity: no token counts."""

    def find(self, key_id: str) -> Ed25519PublicKey | None:
        return None

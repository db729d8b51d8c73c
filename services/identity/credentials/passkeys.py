"""Passkeys (WebAuthn Level 3), by the library fido2: what a browser is sent, and whether its answer counts.

A passkey belongs to a host name (RP id). User verification is required, so a passkey is two factors in one. Attestation
is not requested: any authenticator will do.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from fido2.server import Fido2Server
from fido2.utils import websafe_encode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

CREDENTIAL_CHARACTERS: Final = 16_384
_CHALLENGE_BYTES: Final = 32
_REQUIRED: Final = UserVerificationRequirement.REQUIRED


class Invalid(Exception):
    """The answer of the browser does not count."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A new passkey: the credential's id, its data (id and public key), its counter."""

    credential_id: bytes
    credential: bytes
    sign_count: int


class RelyingParty:
    """One surface, as browsers know it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.rp_id = parts.hostname or ""
        origin = f"{parts.scheme}://{parts.netloc}"
        self._server = Fido2Server(
            PublicKeyCredentialRpEntity(name="Fiatgate", id=self.rp_id),
            verify_origin=lambda given: given == origin,
        )

    def creation_options(
        self, person_id: UUID, email: str, name: str, known: Sequence[bytes]
    ) -> tuple[str, bytes]:
        """Returns PublicKeyCredentialCreationOptions as JSON, and the challenge in it."""
        challenge = secrets.token_bytes(_CHALLENGE_BYTES)
        options, _ = self._server.register_begin(
            PublicKeyCredentialUserEntity(id=person_id.bytes, name=email, display_name=name),
            credentials=[AttestedCredentialData(each) for each in known],
            resident_key_requirement=ResidentKeyRequirement.REQUIRED,
            user_verification=_REQUIRED,
            challenge=challenge,
        )
        return _json(options), challenge

    def request_options(self, known: Sequence[bytes] | None) -> tuple[str, bytes]:
        """Returns PublicKeyCredentialRequestOptions as JSON, and the challenge in it. Without `known` credentials the
        browser offers all that it has for this host.
        """
        challenge = secrets.token_bytes(_CHALLENGE_BYTES)
        credentials = None if known is None else [AttestedCredentialData(each) for each in known]
        options, _ = self._server.authenticate_begin(
            credentials, user_verification=_REQUIRED, challenge=challenge
        )
        return _json(options), challenge

    def registered(self, challenge: bytes, answer: str) -> Registered:
        """Returns the new passkey of a RegistrationResponseJSON. Raises Invalid."""
        try:
            data = self._server.register_complete(_state(challenge), _parsed(answer))
            credential = data.credential_data
            if credential is None:
                raise Invalid
            return Registered(credential.credential_id, bytes(credential), data.counter)
        except Invalid:
            raise
        except Exception as error:  # whatever the library's parsers raise: a stranger wrote the answer
            raise Invalid(str(error)) from error

    def sign_count(self, challenge: bytes, answer: str, *, credential: bytes, person_id: UUID) -> int:
        """Returns the counter of an AuthenticationResponseJSON that this credential of the person signed. Raises
        Invalid.
        """
        try:
            given = AuthenticationResponse.from_dict(_parsed(answer))
            handle = given.response.user_handle
            if handle is not None and handle != person_id.bytes:
                raise Invalid
            self._server.authenticate_complete(_state(challenge), [AttestedCredentialData(credential)], given)
            count: int = given.response.authenticator_data.counter
            return count
        except Invalid:
            raise
        except Exception as error:  # as above
            raise Invalid(str(error)) from error


def credential_id_of(answer: str) -> bytes:
    """Returns the id of the credential that an AuthenticationResponseJSON names. Raises Invalid."""
    try:
        return bytes(AuthenticationResponse.from_dict(_parsed(answer)).raw_id)
    except Invalid:
        raise
    except Exception as error:  # as above
        raise Invalid(str(error)) from error


def went_back(stored: int, given: int) -> bool:
    """Returns whether the counter shows a copy of the authenticator. One without a counter always sends 0."""
    return (stored > 0 or given > 0) and given <= stored


def _parsed(answer: str) -> Any:
    if len(answer) > CREDENTIAL_CHARACTERS:
        raise Invalid("too long")
    return json.loads(answer)


def _state(challenge: bytes) -> dict[str, Any]:
    return {"challenge": websafe_encode(challenge), "user_verification": _REQUIRED}


def _json(options: Any) -> str:
    return json.dumps(dict(options)["publicKey"])

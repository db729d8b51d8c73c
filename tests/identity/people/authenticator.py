"""An authenticator in software: a device that holds passkeys, as a browser sees it through WebAuthn."""

from __future__ import annotations

import json
import secrets
import struct
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2 import cbor
from fido2.cose import ES256
from fido2.utils import websafe_decode, websafe_encode

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


@dataclass
class Authenticator:
    """A device with one passkey, at a page of `origin`. `counts` is false for one that sends 0 always."""

    origin: str
    flags: int = PRESENT | VERIFIED
    counts: bool = True
    count: int = 0
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    user_handle: bytes = b""

    def create(self, options: str) -> str:
        """RegistrationResponseJSON for PublicKeyCredentialCreationOptions."""
        asked = json.loads(options)
        self.user_handle = websafe_decode(asked["user"]["id"])
        cose = ES256.from_cryptography_key(self.key.public_key())  # type: ignore[no-untyped-call]  # a gap of the library
        public = cbor.encode(dict(cose))
        attested = bytes(16) + struct.pack(">H", len(self.credential_id)) + self.credential_id + public
        data = self._data(asked["rp"]["id"], self.flags | ATTESTED) + attested
        attestation = cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", asked["challenge"])
        return self._answer(clientDataJSON=client, attestationObject=attestation)

    def get(self, options: str) -> str:
        """AuthenticationResponseJSON for PublicKeyCredentialRequestOptions."""
        asked = json.loads(options)
        data = self._data(asked["rpId"], self.flags)
        client = self._client("webauthn.get", asked["challenge"])
        signature = self.key.sign(data + sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(
            clientDataJSON=client, authenticatorData=data, signature=signature, userHandle=self.user_handle
        )

    def _data(self, rp_id: str, flags: int) -> bytes:
        self.count += self.counts
        return sha256(rp_id.encode()).digest() + struct.pack(">BI", flags, self.count)

    def _client(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _answer(self, **response: bytes) -> str:
        id = websafe_encode(self.credential_id)
        shown: dict[str, Any] = {name: websafe_encode(value) for name, value in response.items()}
        return json.dumps(
            {"id": id, "rawId": id, "type": "public-key", "response": shown, "clientExtensionResults": {}}
        )

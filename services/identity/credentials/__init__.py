"""How people and merchants prove who they are: cryptography, which domain must not know.

                      made of           stored as
session token         256 random bits   SHA-256
token of an invitation  256 random bits SHA-256
recovery code         120 random bits   SHA-256
password              the person's      Argon2id
TOTP secret           160 random bits   encrypted (kit.base.vault)
signing key           Ed25519           encrypted; the public part as it is
passkey               the person's device   public key and counter
challenge             256 random bits   not at all; the id of an answered one
API key               `api_keys`        the same, with its signing secret
"""

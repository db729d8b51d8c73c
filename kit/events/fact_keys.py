"""Makes the keys that sign facts (kit.events.signing), and reads keys in the form in which they are printed.

A key is read bare or as `FIATGATE_FACT_SIGNING_KEY=…` or `FIATGATE_FACT_PUBLIC_KEYS=…,…`: the output of `new` and the
settings can be given as they are. No error shows a key.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kit.base.keys import decoded, encoded
from kit.events.signing import KEY_BYTES, Signer, key_id, new_private_key

PRIVATE: Final = "FIATGATE_FACT_SIGNING_KEY"
PUBLIC: Final = "FIATGATE_FACT_PUBLIC_KEYS"

SHOWN_CHARACTERS: Final = 6
"""The characters of a key that are shown: enough to find it in a list, too few to use a private one."""


class NoKey(ValueError):
    """The text is not a key of the expected kind."""


class PublicKey(NamedTuple):
    key: str
    id: str


def new_pair() -> str:
    """Returns a private key and its public key, as two lines of an environment file under a comment with their id."""
    private_key = new_private_key()
    signer = Signer(private_key)
    return f"# key {signer.key_id}\n{PRIVATE}={private_key}\n{PUBLIC}={signer.public_key}\n"


def public_key(text: str) -> PublicKey:
    """Returns the public key of the one private key in the text. Raises NoKey."""
    values = [value for name, value in _lines(text) if name in ("", PRIVATE)]
    if len(values) != 1:
        raise NoKey(f"expected one private key, as `{PRIVATE}=…` or the key alone; found {len(values)}")
    return _public_key_of(values[0])


def public_keys(text: str) -> list[PublicKey]:
    """Returns the public keys in the text and those of named private keys, each once. Raises NoKey."""
    found: dict[str, PublicKey] = {}
    for name, value in _lines(text):
        for part in value.split(","):
            key = _public_key_of(part) if name == PRIVATE else _public_key(part)
            found[key.id] = key
    if not found:
        raise NoKey(f"expected public keys, as `{PUBLIC}=…` or the keys alone; found none")
    return list(found.values())


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yields name and value of each line; the name is empty for a value alone."""
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        # An = at the end of a key without a name is padding.
        if equals and name in (PRIVATE, PUBLIC):
            yield name, value.strip("\"'")
        elif name and not name.startswith("#"):
            yield "", line.strip()


def _public_key_of(private_key: str) -> PublicKey:
    signer = Signer(encoded(_key_bytes(private_key)))
    return PublicKey(signer.public_key, signer.key_id)


def _public_key(text: str) -> PublicKey:
    raw = _key_bytes(text)
    return PublicKey(encoded(raw), key_id(raw))


def _key_bytes(text: str) -> bytes:
    try:
        raw = decoded(text.strip())
    except ValueError:
        raw = b""
    if len(raw) != KEY_BYTES:
        raise NoKey(
            f"this is not a key: expected {KEY_BYTES} bytes in base64, as `fiatgate fact-keys new` prints them"
        )
    return raw


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs `python -m kit.events.signing new | public | id`."""
    parser = argparse.ArgumentParser(prog="python -m kit.events.signing", description="Keys that sign facts.")
    parser.add_argument(
        "verb",
        choices=("new", "public", "id"),
        help="make a pair; print the public key of the private key on standard input; print the ids of the keys there",
    )
    verb = parser.parse_args(arguments).verb
    try:
        sys.stdout.write(output_of(verb, sys.stdin.read() if verb != "new" else ""))
    except NoKey as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


def output_of(verb: str, text: str) -> str:
    """Returns the output of `new`, `public` or `id`. Raises NoKey."""
    if verb == "new":
        return new_pair()
    if verb == "public":
        return f"{public_key(text).key}\n"
    return "".join(f"{each.id} {each.key[:SHOWN_CHARACTERS]}…\n" for each in public_keys(text))

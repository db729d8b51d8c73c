"""How the hash of a transaction is written, and the one form it is stored in."""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.withdrawals.addresses import NETWORKS
from services.withdrawals.transactions import normal_form, pattern, writings

HASHES = st.binary(min_size=32, max_size=32)


def all_writings(network: str, hash: bytes) -> list[str]:
    digits = hash.hex()
    written = [digits, digits.upper(), f"0x{digits}", f"0X{digits.upper()}"]
    if network == "TON":
        encoded = [base64.b64encode(hash).decode(), base64.urlsafe_b64encode(hash).decode()]
        written += [*encoded, *(each.rstrip("=") for each in encoded)]
    return written


@given(network=st.sampled_from(sorted(NETWORKS)), hash=HASHES)
def test_every_writing_of_a_hash_has_one_form(network: str, hash: bytes) -> None:
    forms = {normal_form(network, written) for written in all_writings(network, hash)}
    assert len(forms) == 1
    (form,) = forms
    assert form.removeprefix("0x") == hash.hex()
    assert normal_form(network, form) == form


@given(network=st.sampled_from(sorted(NETWORKS)), hash=HASHES)
def test_every_writing_is_looked_for(network: str, hash: bytes) -> None:
    looked_for = writings(network, normal_form(network, hash.hex()))
    assert {written.lower() for written in all_writings(network, hash)} == set(looked_for)


@given(
    network=st.sampled_from(sorted(NETWORKS)),
    text=st.text(alphabet="0123456789abcdefABCDEFxX-_+/=z", min_size=40, max_size=67) | HASHES.map(bytes.hex),
)
def test_the_command_line_questions_what_is_stored_as_a_mark(network: str, text: str) -> None:
    stored_as_hash = re.fullmatch("[0-9a-f]{64}", normal_form(network, text).removeprefix("0x"))
    assert bool(re.fullmatch(pattern(network), text)) == bool(stored_as_hash)


@given(network=st.sampled_from(sorted(NETWORKS)), hash=HASHES)
def test_the_command_line_questions_no_hash(network: str, hash: bytes) -> None:
    assert all(re.fullmatch(pattern(network), written) for written in all_writings(network, hash))


@given(one=HASHES, other=HASHES)
def test_two_hashes_have_two_forms(one: bytes, other: bytes) -> None:
    forms = [normal_form("TON", base64.b64encode(each).decode()) for each in (one, other)]
    assert (forms[0] == forms[1]) == (one == other)


@pytest.mark.parametrize(
    ("network", "written", "form"),
    [
        ("TRC20", "AB" * 32, "ab" * 32),
        ("ERC20", "AB" * 32, "0x" + "ab" * 32),
        ("BEP20", "0xAB" + "ab" * 31, "0x" + "ab" * 32),
        ("TRC20", "Order-4711", "Order-4711"),  # an operator's own mark
        ("TRC20", "A" * 43 + "=", "A" * 43 + "="),  # base64 is a writing of TON's only
        ("ERC20", "0xAB", "0xAB"),
    ],
)
def test_the_form_that_is_stored(network: str, written: str, form: str) -> None:
    assert normal_form(network, written) == form

"""kit.events.signing and kit.events.proof: which events count, and how keys are made and replaced."""

import io
import re
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.base.ids import new_id
from kit.events import fact_keys
from kit.events.bus.messages import Outgoing
from kit.events.proof import Unproven, Verifier
from kit.events.signing import Signer, new_private_key
from tests.support.signing import PUBLIC_KEYS, SIGNER, delivered, signed, verifier

FACT = Outgoing(new_id(), "fiatgate.invoices.finished", b"paid", "req-7")
OTHER_KEY = new_private_key()
OTHER = Signer(OTHER_KEY)


def reason(fact: Outgoing, judge: Verifier | None = None) -> str:
    with pytest.raises(Unproven) as raised:
        (judge or verifier()).proven(delivered(fact))
    return raised.value.reason


def test_a_fact_that_its_producer_signed_is_proven() -> None:
    event = delivered(signed(FACT))
    assert verifier().proven(event) is event


def test_a_fact_without_a_signature_is_not() -> None:
    assert reason(FACT) == "unsigned"


def test_a_fact_signed_with_another_key_is_not() -> None:
    assert reason(signed(FACT, OTHER)) == "unknown_key"


@pytest.mark.parametrize(
    "change",
    [{"payload": b"paid twice"}, {"subject": "fiatgate.invoices.finishe"}, {"event_id": new_id()}],
    ids=lambda change: next(iter(change)),
)
def test_a_signature_is_of_one_subject_id_and_payload(change: dict[str, object]) -> None:
    assert reason(replace(signed(FACT), **change)) == "wrong_signature"  # type: ignore[arg-type]


def test_bytes_that_move_from_the_subject_to_the_payload_are_another_fact() -> None:
    moved = replace(signed(FACT), subject=FACT.subject[:-1], payload=b"d" + FACT.payload)
    assert reason(moved) == "wrong_signature"


def test_a_signature_under_the_name_of_a_known_key_is_not_enough() -> None:
    name = signed(FACT).signature.partition(".")[0]
    forged = signed(FACT, OTHER).signature.partition(".")[2]
    assert reason(replace(FACT, signature=f"{name}.{forged}")) == "wrong_signature"
    assert reason(replace(FACT, signature=f"{name}.")) == "wrong_signature"
    assert reason(replace(FACT, signature=f"{name}.é")) == "wrong_signature"


@given(st.text(min_size=1))
def test_no_header_makes_a_verifier_fail_otherwise(signature: str) -> None:
    assert reason(replace(FACT, signature=signature)) in ("unknown_key", "wrong_signature")


def test_every_public_key_counts_so_that_keys_can_be_replaced() -> None:
    both = Verifier((*PUBLIC_KEYS, OTHER.public_key))
    for signer in (SIGNER, OTHER):
        both.proven(delivered(signed(FACT, signer)))


def run(monkeypatch: pytest.MonkeyPatch, verb: str, text: str = "") -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    fact_keys.main([verb])


def test_the_command_makes_a_pair_and_reads_it_as_it_was_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, "new")
    printed = capsys.readouterr().out
    made = re.fullmatch(
        r"# key (?P<id>\S+)\nFIATGATE_FACT_SIGNING_KEY=(?P<private>\S+)\nFIATGATE_FACT_PUBLIC_KEYS=(?P<public>\S+)\n",
        printed,
    )
    assert made is not None
    assert made["id"] == Signer(made["private"]).key_id
    for text in (
        made["private"],
        f"{made['private']}=\n",
        printed,
        f'# mine\n\nFIATGATE_FACT_SIGNING_KEY="{made["private"]}"\r\n',
    ):
        run(monkeypatch, "public", text)
        assert capsys.readouterr().out == f"{made['public']}\n"
    Verifier([made["public"]]).proven(delivered(signed(FACT, Signer(made["private"]))))


def test_the_id_of_a_key_is_the_one_that_signatures_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = SIGNER, Signer(OTHER_KEY)
    ids = {
        each: each.sign(subject="s", event_id=FACT.event_id, payload=b"").partition(".")[0]
        for each in (one, other)
    }
    lines = [f"{ids[each]} {each.public_key[:6]}…\n" for each in (one, other)]
    run(monkeypatch, "id", f"{one.public_key},{other.public_key}")
    assert capsys.readouterr().out == "".join(lines)
    run(
        monkeypatch,
        "id",
        f"FIATGATE_FACT_SIGNING_KEY={OTHER_KEY}\nFIATGATE_FACT_PUBLIC_KEYS={other.public_key}\n",
    )
    assert capsys.readouterr().out == lines[1]


@pytest.mark.parametrize("verb", ["public", "id"])
@pytest.mark.parametrize(
    "text", ["", "\n", "no key", "c2hvcnQ=", "FIATGATE_FACT_SIGNING_KEY=", "é", "SOME=thing"]
)
def test_no_key_is_one_clear_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: str, text: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, verb, text)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "expected" in line

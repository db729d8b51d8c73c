"""Forms that carry the values they were made from (`was:`), so that two people's changes do not undo each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from console.ui.words import errors_of
from kit.base.money import amount_text, fraction_of, percent_of, plainly
from kit.rpc.errors import Refused
from kit.web.forms import Form

MENDABLE: Final = frozenset({"VALIDATION_ERROR", "EDIT_CONFLICT", "CURRENCY_NOT_FOUND"})
TEXT_MAX_CHARACTERS: Final = 300
AMOUNTS: Final = frozenset({"min_amount", "max_amount", "min_sum", "max_sum"})
PERCENTS: Final = frozenset({"markup", "commission"})
"""Fractions of the services, and per cent of the forms."""


def typed_in(form: Form, names: Sequence[str], *, prefix: str = "") -> dict[str, str]:
    """Returns the fields as they were typed. Without a tick a box is empty."""
    return {name: form.prose(f"{prefix}{name}", most=TEXT_MAX_CHARACTERS) for name in names}


def was_in(form: Form, names: Sequence[str]) -> dict[str, str]:
    """Returns the values that the form was made from."""
    return typed_in(form, names, prefix="was:")


def as_shown(values: Mapping[str, str]) -> dict[str, str]:
    """Returns the values of a service as the form has them."""
    return {name: _shown(name, value) for name, value in values.items()}


def as_sent(typed: Mapping[str, str]) -> dict[str, str]:
    """Returns what was typed as the services take it."""
    return {
        name: plainly(text) if name in AMOUNTS else fraction_of(text) if name in PERCENTS else text
        for name, text in typed.items()
    }


def _shown(name: str, value: str) -> str:
    return amount_text(value) if name in AMOUNTS else percent_of(value) if name in PERCENTS else value


def faults_of(refused: Refused) -> dict[str, str]:
    """Returns the sentence about each field that was refused, by its name in the form."""
    name = _name_of(refused)
    if refused.reason == "EDIT_CONFLICT":
        now = _shown(name, refused.metadata.get("now", ""))
        sentence = f"Another person changed this to “{now}” meanwhile. Save again to set your value."
        if name in ("code", "method_code"):
            sentence = "This code is in use: open its page." if now else "This is gone."
        return {name: sentence}
    if refused.reason == "CURRENCY_NOT_FOUND":
        return {"currency_code": "There is no such currency."}
    return errors_of(refused)


def next_was(was: Mapping[str, str], refused: Refused) -> dict[str, str]:
    """Returns the values for the next attempt: the person has now seen the present value of a field that another person
    changed.
    """
    if refused.reason != "EDIT_CONFLICT":
        return dict(was)
    name = _name_of(refused)
    return {**was, name: _shown(name, refused.metadata.get("now", ""))}


def _name_of(refused: Refused) -> str:
    return refused.metadata.get("field", "").rpartition(".")[2]


def whole(text: str) -> int:
    """Returns the number that was typed; -1 for other text, which the service refuses by the field's name."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1

"""Forms that carry the values they were made from (`was:`), so that two people's changes do not undo each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kit.rpc.errors import Refused
from kit.web.forms import Form

MENDABLE: Final = frozenset({"VALIDATION_ERROR", "EDIT_CONFLICT", "CURRENCY_NOT_FOUND"})
TEXT_MAX_CHARACTERS: Final = 300


def typed_in(form: Form, names: Sequence[str], *, prefix: str = "") -> dict[str, str]:
    """Returns the fields as they were typed. Without a tick a box is empty."""
    return {name: form.prose(f"{prefix}{name}", most=TEXT_MAX_CHARACTERS) for name in names}


def was_in(form: Form, names: Sequence[str]) -> dict[str, str]:
    """Returns the values that the form was made from."""
    return typed_in(form, names, prefix="was:")


def faults_of(refused: Refused) -> dict[str, str]:
    """Returns the sentence about the field that was refused, by its name in the form."""
    field = refused.metadata.get("field", "")
    name = field.rpartition(".")[2]
    if refused.reason == "EDIT_CONFLICT":
        now = refused.metadata.get("now", "")
        sentence = f"Another person changed this to “{now}” meanwhile. Save again to set your value."
        if name in ("code", "method_code"):
            sentence = "This code is in use: open its page." if now else "This is gone."
        return {name: sentence}
    if refused.reason == "CURRENCY_NOT_FOUND":
        return {"currency_code": "There is no such currency."}
    message = refused.message.removeprefix(f"{field}: ").rstrip(".")
    return {name: f"{message[:1].upper()}{message[1:]}."} if name else {}


def next_was(was: Mapping[str, str], refused: Refused) -> dict[str, str]:
    """Returns the values for the next attempt: the person has now seen the present value of a field that another person
    changed.
    """
    if refused.reason != "EDIT_CONFLICT":
        return dict(was)
    return {**was, refused.metadata.get("field", "").rpartition(".")[2]: refused.metadata.get("now", "")}


def whole(text: str) -> int:
    """Returns the number that was typed; -1 for other text, which the service refuses by the field's name."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1

"""Acts on one thing as entries of a timeline (macro `timeline`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from console.ui.moments import author_of
from fiatgate.audit.v1 import audit_pb2 as pb

_TITLES: Final = {
    "currency.set": "Currency set",
    "rate.accept": "Held rate accepted",
    "rate.pull": "Sources polled",
    "rate.set": "Rate set by hand",
    "requisite.add": "Added",
    "requisite.disable": "Disabled",
    "requisite.enable": "Enabled",
}
_TONES: Final = {"requisite.add": "good", "requisite.enable": "good", "requisite.disable": "bad"}


def moments_of(acts: Iterable[pb.Act]) -> list[dict[str, Any]]:
    """Returns an entry for each act, in the order of the acts."""
    return [_moment(each) for each in acts]


def _moment(act: pb.Act) -> dict[str, Any]:
    title = _TITLES.get(act.act, act.act.replace(".", " "))
    changes = {each.field: each for each in act.changes}
    if summary := changes.get("summary"):
        text = summary.after
    else:
        text = "; ".join(
            f"{name.replace('_', ' ')}: {f'{each.before} → ' if each.before else ''}{each.after or 'none'}"
            for name, each in changes.items()
        )
    return {
        "at": act.at,
        "title": f"Refused: {title}" if act.refused else title,
        "by": author_of(act),
        "text": "; ".join(each for each in (act.refused, text, act.note) if each),
        "tone": "bad" if act.refused else _TONES.get(act.act, ""),
        "link": "",
    }

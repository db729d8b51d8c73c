"""Acts on one thing as entries of a timeline (macro `timeline`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from console.words.acts import author_of, title_of
from console.words.approvals import named
from console.words.moments import Moment
from fiatgate.audit.v1 import audit_pb2 as pb


def moments_of(acts: Iterable[pb.Act]) -> list[dict[str, Any]]:
    """Returns an entry for each act, in the order of the acts."""
    return [_moment(each) for each in acts]


def _moment(act: pb.Act) -> dict[str, Any]:
    title, tone = title_of(act)
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
        "title": title,
        "by": author_of(act),
        "text": "; ".join(each for each in (act.refused, text, act.note) if each),
        "tone": tone,
        "link": "",
    }


def entry_of(moment: Moment, *, merchant_id: str = "", merchant: str = "") -> dict[str, Any]:
    """Returns the entry of a moment; the merchant's name, if it is given, stands in place of its id."""
    names = {merchant_id: merchant}
    details = [f"{name} {named(value, merchant_id, names)}" for name, value in moment.details]
    kind, _, id = moment.thing.partition(":")
    return {
        "at": moment.at,
        "title": moment.title,
        "by": moment.by,
        "text": "; ".join([*details, *([f"“{moment.note}”"] if moment.note else [])]),
        "tone": moment.tone,
        "link": f"/approvals/{moment.service}/{id}" if kind == "approval" else "",
    }

"""Lists that show the selected row beside them: which row that is, also after a decision."""

from __future__ import annotations

from collections.abc import Sequence

from console.exchange import Request


def selected_of(req: Request, ids: Sequence[str], *, or_first: bool) -> str:
    """Returns the id of the row to show: the one that the address names. After a decision (`decided`, `next`) that is
    the one that was refused, so that its page shows the reason, else the next one if it is still listed.
    """
    first = ids[0] if or_first and ids else ""
    if selected := req.get_param("selected"):
        return selected
    if req.get_param("problem"):
        return req.get_param("decided") or first
    following = req.get_param("next") or ""
    return following if following in ids else first


def following(ids: Sequence[str], selected: str) -> str:
    """Returns the row that is shown once this one is decided: the one after it, or else the one before it."""
    if selected not in ids:
        return ids[0] if ids else ""
    at = ids.index(selected)
    return ids[at + 1] if at + 1 < len(ids) else ids[at - 1] if at else ""

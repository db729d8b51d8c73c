"""The table of docs/security.md."""

from pathlib import Path
from typing import Final

from kit.base.services import SERVICES
from tests.security.attacks import ATTACKS
from tests.security.attacks.attack import Attack, Outcome

DOCUMENT: Final = Path("docs/security.md")
_BEGIN, _END = "<!-- attacks: written by tests/security/attacks -->\n", "<!-- end of attacks -->"


def documented(text: str) -> str:
    """Returns the document with the table made anew: a row for each service, and one for the owners of databases."""
    rows = [
        "| with the database of | refused | found by `fiatgate verify` | not promised |",
        "|---|---:|---:|---|",
    ]
    for name in (*SERVICES, "any, as its owner with triggers off"):
        of = [each for each in ATTACKS if _row_of(each) == name]
        counts = [sum(each.outcome is outcome for each in of) for outcome in (Outcome.REFUSED, Outcome.FOUND)]
        open_ones = "; ".join(each.what for each in of if each.outcome is Outcome.NOT_PROMISED)
        rows.append(f"| {name} | {counts[0]} | {counts[1]} | {open_ones} |")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return before + _BEGIN + "\n" + "\n".join(rows) + "\n\n" + _END + after


def _row_of(attack: Attack) -> str:
    return "any, as its owner with triggers off" if attack.by_owner else attack.service

"""The harness itself: what it reads in the sentences of `fiatgate verify`, and that its verdict can be a bad one."""

from __future__ import annotations

from typing import Final

from tests.restore.rounds import Ended, not_told

WITHDRAWAL: Final = "0197a000-0000-7000-8000-000000000001"


def test_a_withdrawal_that_was_canceled_and_is_open_again_has_to_be_told_as_that() -> None:
    ended = [
        Ended(id=WITHDRAWAL, command=("complete", WITHDRAWAL), sign="address"),
        Ended(id=WITHDRAWAL, command=("cancel", WITHDRAWAL), sign="CancelWithdrawal"),
    ]
    sent = f"withdrawal {WITHDRAWAL}: look at the address"
    (untold,) = not_told(ended, [sent])
    assert "`cancel " in untold
    assert not_told(ended, [f"{sent}, and for CancelWithdrawal in the log"]) == []
    assert len(not_told(ended, ["withdrawal of another id: address, CancelWithdrawal"])) == 2
    assert not_told([], []) == []

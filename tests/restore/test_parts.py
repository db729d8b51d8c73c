"""The harness itself: what it reads in the sentences of `fiatgate verify`, and that its verdict can be a bad one."""

from typing import Final

from kit.base.ids import new_id
from tests.restore.rounds import Ended, ids_in, not_told

WITHDRAWAL: Final = "0197a000-0000-7000-8000-000000000001"


def test_only_invoices_count_as_named() -> None:
    """In the sentences of `cli.restoring` and `cli.verifying`, each of which also names something else."""
    merchant, event, *invoices = (str(new_id()) for _ in range(6))
    texts = (
        f"invoice {invoices[0]}, order a-1 over 5 EUR of merchant {merchant}: its signed fact says success",
        f"credit of 7 USDT for invoice {invoices[1]}, which is unknown: it was delivered to merchant {merchant}",
        f"webhook event {event} of invoice {invoices[2]} is overdue",
        f"the transfer of invoice:{invoices[3]} to merchant {merchant} is missing",
    )
    assert ids_in({"problems": [{"text": each} for each in texts]}) == set(invoices)


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

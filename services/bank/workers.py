"""Loops of bank: files are read, lines get their proposals, payments by lines are fetched from invoices."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from kit.db.queues import waiting
from kit.rpc.status import Gauge
from kit.work.worker import Loop, Worker
from services.bank.operations import importing, proposing
from services.bank.store.queues import QUEUES
from services.bank.wiring import Deps

FILES_SECONDS: Final = 1.0
PROPOSALS_SECONDS: Final = 1.0
AGAIN_SECONDS: Final = 30.0
PAYMENTS_SECONDS: Final = 1.0


def workers(deps: Deps) -> Sequence[Worker]:
    """Any number of processes may run them."""
    loops = (
        ("bank-files", importing.read_next, FILES_SECONDS, deps.arrived),
        ("bank-proposals", proposing.propose_new, PROPOSALS_SECONDS, None),
        ("bank-proposals-again", proposing.Again().step, AGAIN_SECONDS, None),
        ("bank-payments", proposing.follow_step, PAYMENTS_SECONDS, None),
    )
    return tuple(
        Loop(name, partial(step, deps), every_seconds=seconds, signal=signal, clock=deps.clock)
        for name, step, seconds, signal in loops
    )


def gauges(deps: Deps) -> Sequence[Gauge]:
    """Returns the numbers of lines and connectors that wait for an operator."""
    with deps.db.autocommit() as connection:
        found = {each.name: each.count for each in waiting(connection, QUEUES, now=deps.clock.now())}
    return (
        Gauge("bank_lines_proposed", found["bank_lines_proposed"], "Bank lines with a deal to confirm"),
        Gauge("bank_lines_unmatched", found["bank_lines_unmatched"], "Bank lines without a deal"),
        Gauge(
            "bank_lines_reversed",
            found["bank_lines_reversed"],
            "Bank lines taken back after they paid a deal, and debits of files that take money back",
        ),
        Gauge(
            "bank_connectors_silent", found["bank_connectors_silent"], "Connectors silent beyond their limit"
        ),
    )

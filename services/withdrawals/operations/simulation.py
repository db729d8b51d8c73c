"""Test mode: withdrawals end by themselves after `TEST_WITHDRAWAL_SECONDS`, by the operator's operations."""

import hashlib
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Final

from kit.base.actors import Actor, acting
from kit.rpc.errors import Refused
from services.withdrawals.addresses import fails_in_test_mode
from services.withdrawals.domain import WithdrawalStatus
from services.withdrawals.operations.stepping import complete_withdrawal, fail_withdrawal
from services.withdrawals.store import withdrawals
from services.withdrawals.store.withdrawals import Filter
from services.withdrawals.wiring import Deps

SIMULATION: Final = Actor(kind="process", name="simulation")
BATCH: Final = 100


def end_withdrawals(deps: Deps) -> bool:
    """Completes the oldest withdrawals that have waited, with invented hashes; fails those to an address that is made
    for it. Leaves one that an operator ends meanwhile, or that SQL made. Returns false: the next round goes on.
    """
    before = deps.clock.now() - timedelta(seconds=deps.settings.test_withdrawal_seconds)
    due = Filter(status=WithdrawalStatus.PENDING, created_before=before)
    with deps.db.transaction() as tx:
        waiting = withdrawals.listed(tx, due, after=None, oldest_first=True, limit=BATCH)
    alone = replace(deps, settings=deps.settings.model_copy(update={"four_eyes": False}))
    for each in waiting:
        id = str(each.id)
        with acting(SIMULATION), suppress(Refused):
            if fails_in_test_mode(each.network, each.address):
                fail_withdrawal(alone, withdraw_uuid=id, substatus="")
            else:
                invented = hashlib.sha256(each.id.bytes).hexdigest()
                complete_withdrawal(alone, withdraw_uuid=id, external_tx_id=invented)
    return False

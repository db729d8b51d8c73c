"""The operators' calls on withdrawal methods."""

from collections.abc import Sequence
from dataclasses import asdict, replace

from kit.audit import acts
from kit.rpc import values
from services.withdrawals.domain import MAX_AMOUNT, METHOD_NAME_MAX_CHARACTERS
from services.withdrawals.operations import fields
from services.withdrawals.store import withdrawals
from services.withdrawals.store.views import MethodView
from services.withdrawals.wiring import Deps


def list_withdrawal_methods(deps: Deps) -> Sequence[MethodView]:
    """Returns all methods by id, disabled ones included."""
    with deps.db.transaction() as tx:
        return withdrawals.methods(tx)


def set_withdrawal_method(
    deps: Deps,
    *,
    code: str,
    network: str,
    name: str,
    network_fee: str,
    min_amount: str,
    memo_allowed: bool,
    enabled: bool,
) -> MethodView:
    """Creates the method of this code or replaces its options, except its network.

    Existing withdrawals keep their network and fee. Raises VALIDATION_ERROR.
    """
    fee = fields.amount("method.network_fee", network_fee)
    least = fields.amount("method.min_amount", min_amount)
    if fee < 0:
        raise values.invalid("method.network_fee", "Expected 0 or more")
    if not fee < least <= MAX_AMOUNT:
        raise values.invalid("method.min_amount", f"Expected more than the fee, at most {MAX_AMOUNT:f}")
    given = MethodView(
        id=0,  # of the method that has this code, or the next one
        code=values.code("method.code", code),
        network=fields.network(network),
        name=values.label("method.name", name, most=METHOD_NAME_MAX_CHARACTERS),
        network_fee=fee,
        min_amount=least,
        memo_allowed=memo_allowed,
        enabled=enabled,
    )
    with deps.db.transaction() as tx:
        known = {method.code: method for method in withdrawals.methods_to_change(tx)}
        before = known.get(given.code)
        if before and before.network != given.network:
            message = f"{given.code} is of {before.network}; another network needs a method of its own"
            raise values.invalid("method.network", message)
        id = before.id if before else max((method.id for method in known.values()), default=0) + 1
        stored = replace(given, id=id)
        withdrawals.put_method(tx, stored)
        acts.record(
            tx,
            "withdrawal-method.set",
            f"withdrawal-method:{stored.code}",
            before={} if before is None else asdict(before),
            after=asdict(stored),
        )
    return stored

"""The operators' calls on withdrawal methods."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from typing import Final

from kit.audit import acts
from kit.audit.decisions import decided_change
from kit.base.money import usdt_text
from kit.rpc import values
from kit.rpc.errors import edit_conflict
from services.withdrawals.domain import MAX_AMOUNT, METHOD_NAME_MAX_CHARACTERS
from services.withdrawals.operations import fields
from services.withdrawals.store import withdrawals
from services.withdrawals.store.decisions import METHOD
from services.withdrawals.store.views import MethodView
from services.withdrawals.wiring import Deps

SEEN: Final = ("code", "name", "network_fee", "min_amount", "memo_allowed", "enabled")
"""The values that a caller compares: those that may change, and the code, which is empty for no method."""


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
    was: Mapping[str, object] | None = None,
) -> MethodView:
    """Creates the method of this code or replaces its options. Existing withdrawals keep their network and fee.

    `was` has the fields of `SEEN` as the caller saw them, amounts as text; None: nothing is compared. Raises
    EDIT_CONFLICT if one of them has changed, and VALIDATION_ERROR, also for a network that differs from the method's.
    """
    checked = values.together(
        code=lambda: values.code("method.code", code),
        network=lambda: fields.network(network),
        name=lambda: values.label("method.name", name, most=METHOD_NAME_MAX_CHARACTERS),
        network_fee=lambda: fields.amount("method.network_fee", network_fee),
        min_amount=lambda: fields.amount("method.min_amount", min_amount),
    )
    # The id is that of the method that has this code, or the next one.
    given = MethodView(**checked, id=0, memo_allowed=memo_allowed, enabled=enabled)
    if given.network_fee < 0:
        raise values.invalid("method.network_fee", "Expected 0 or more")
    if not given.network_fee < given.min_amount <= MAX_AMOUNT:
        raise values.invalid("method.min_amount", f"Expected more than the fee, at most {MAX_AMOUNT:f}")
    with deps.db.transaction() as tx:
        known = {method.code: method for method in withdrawals.methods_to_change(tx)}
        before = known.get(given.code)
        if was is not None:
            _require_same(before, was)
        if before and before.network != given.network:
            message = f"{given.code} is of {before.network}; another network needs a method of its own"
            raise values.invalid("method.network", message)
        id = before.id if before else max((method.id for method in known.values()), default=0) + 1
        stored = replace(given, id=id)
        withdrawals.put_method(tx, stored)
        row, given_now = {} if before is None else asdict(before), METHOD.fields if was is None else ()
        decided, now = decided_change(tx, METHOD, stored.code, row, asdict(stored), given=given_now)
        object = f"withdrawal-method:{stored.code}"
        acts.record(tx, "withdrawal-method.set", object, before=decided, after=now)
    return stored


def _require_same(before: MethodView | None, was: Mapping[str, object]) -> None:
    """Raises EDIT_CONFLICT for the first value that is no longer as the caller saw it."""
    now = dict.fromkeys(SEEN, "") if before is None else {name: _text(getattr(before, name)) for name in SEEN}
    for name in SEEN:
        if now[name] != was[name]:
            raise edit_conflict(f"method.{name}", acts.text_of(now[name]))
        if not now["code"]:
            return


def _text(value: object) -> object:
    """Returns an amount as messages have it, and other values as they are."""
    return usdt_text(value) if isinstance(value, Decimal) else value

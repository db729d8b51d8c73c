"""Renders the tables of docs/api.md that come from the rules of the services: states, event types, retries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from services.invoices.domain import states as invoices
from services.webhooks.config import WebhooksSettings
from services.withdrawals import domain as withdrawals
from tools.api_tables import table

TRIGGERS: Final[Mapping[invoices.Trigger, str]] = {
    invoices.Trigger.MARK_PAID: 'the customer presses "I have paid"',
    invoices.Trigger.EXPIRE: "the payment window ends",
    invoices.Trigger.CANCEL_BY_CUSTOMER: "the customer cancels",
    invoices.Trigger.CANCEL_BY_OPERATOR: "an operator cancels",
    invoices.Trigger.REPLACE: "the customer chooses another method; a new deal begins",
    invoices.Trigger.CONFIRM: "an operator confirms that the money came",
    invoices.Trigger.REJECT: "an operator rejects",
    invoices.Trigger.APPEAL_BY_OPERATOR: "an operator opens an appeal",
    invoices.Trigger.APPEAL_BY_CUSTOMER: "the customer opens an appeal",
    invoices.Trigger.CONFIRMATION_OVERDUE: "no operator confirmed in time",
    invoices.Trigger.RESOLVE_PAID: "an operator resolves the appeal as paid",
    invoices.Trigger.RESOLVE_ADJUSTED: "an operator resolves the appeal with a lower amount",
    invoices.Trigger.RESOLVE_REJECTED: "an operator rejects the appeal",
}


def deal_steps() -> str:
    """Renders the table of transitions of services/invoices/domain/states.py, one row per event and outcome."""
    sources: dict[tuple[invoices.Trigger, invoices.Transition], list[str]] = {}
    for (source, trigger), step in invoices.TRANSITIONS.items():
        sources.setdefault((trigger, step), []).append(_state(source.status, source.sub_status))
    return table(
        ("from", "event", "to", "the invoice becomes"),
        (
            (
                ", ".join(befores),
                TRIGGERS[trigger],
                _state(step.target.status, step.target.sub_status),
                f"`{step.invoice}`" if step.invoice else "",
            )
            for (trigger, step), befores in sources.items()
        ),
    )


def _state(status: str, detail: str | None) -> str:
    return f"`{status}` / `{detail}`" if detail else f"`{status}`"


def withdrawal_states() -> str:
    """Renders the table of states of services/withdrawals/domain.py."""
    return table(
        ("`status`", "`substatus`", "reached from"),
        (
            (
                f"`{state.status}`",
                f"`{state.substatus}`" if state.substatus else "null",
                ", ".join(sorted(_state(each.status, each.substatus) for each in sources)) or "its creation",
            )
            for state, sources in withdrawals.REACHED_FROM.items()
        ),
    )


def event_types() -> str:
    rows = [
        (f"`{name}`", f"`{status}`", "" if status != "success" else "the amount is the requested one")
        for status, name in invoices.EVENT_TYPES.items()
    ]
    rows.append((f"`{invoices.ADJUSTED_EVENT_TYPE}`", "`success`", "the amount was lowered in an appeal"))
    return table(("`event_type`", "`status` of the payload", "when"), rows)


def retries() -> str:
    delays = enumerate(WebhooksSettings.model_fields["webhook_retry_delays"].default, 1)
    return table(
        ("retry", "seconds after the failure"), ((str(number), str(delay)) for number, delay in delays)
    )


PARTS: Final[dict[str, Callable[[], str]]] = {
    "deal steps": deal_steps,
    "withdrawal states": withdrawal_states,
    "event types": event_types,
    "retries": retries,
}
"""The blocks of docs/api.md by the names between their marks."""

"""Renders the tables of docs/api.md: codes of openapi.yaml, states of the services, limits of settings.

tools/docs.py writes them into the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from gateway.api.paging import PER_PAGE_DEFAULT
from gateway.config import GatewaySettings
from gateway.openapi.document import codes_of, document
from gateway.walls import uploads
from kit.base.config.processes import Settings
from kit.rpc.limits import OUTWARD_CALL_SECONDS
from kit.rpc.values import PAGE_MOST_ROWS
from kit.web import bodies
from kit.web.exchange import REQUEST_SECONDS
from services.invoices.config import InvoicesSettings
from services.invoices.domain import states as invoices
from services.webhooks.config import WebhooksSettings
from services.withdrawals import domain as withdrawals


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [f"| {' | '.join(line)} |" for line in (names, *rows)]
    return "\n".join([lines[0], "|---" * len(names) + "|", *lines[1:]])


# -- errors


def codes() -> str:
    """Renders every code that a merchant can get, with an anchor each."""
    return table(
        ("code", "status", "meaning, and what to do", "further members", "answers"),
        (
            (
                f'<a id="error-{each.code}"></a>`{each.code}`',
                ", ".join(map(str, each.statuses)),
                each.text,
                ", ".join(f"`{name}`" for name in each.members),
                each.answers,
            )
            for each in codes_of(document())
        ),
    )


# -- states

TRIGGERS: Final[Mapping[invoices.Trigger, str]] = {
    invoices.Trigger.MARK_PAID: 'the customer presses "I have paid"',
    invoices.Trigger.EXPIRE: "the payment window ends",
    invoices.Trigger.CANCEL_BY_CUSTOMER: "the customer cancels",
    invoices.Trigger.CANCEL_BY_OPERATOR: "an operator or the merchant cancels",
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


# -- limits


# The name of each bound, the settings class, its fields, and the value in words.
OF_SETTINGS: Final[tuple[tuple[str, type[Settings], tuple[str, ...], str], ...]] = (
    ("requests of one key", GatewaySettings, ("rate_limit_per_minute",), "{} a minute and process"),
    (
        "unknown keys tried from one network",
        GatewaySettings,
        ("strangers_per_minute",),
        "{} a minute and process",
    ),
    ("time to choose a payment method", InvoicesSettings, ("invoice_ttl_seconds",), "{} seconds"),
    (
        "unpaid invoices of one customer",
        InvoicesSettings,
        ("customer_limit", "customer_window_minutes"),
        "{} within {} minutes",
    ),
    (
        "what one merchant may hold of a payment method",
        InvoicesSettings,
        ("method_share_percent",),
        "{} % of the places and accounts that no other merchant holds",
    ),
    (
        "time to confirm a deal before it is in appeal",
        InvoicesSettings,
        ("confirmation_minutes",),
        "{} minutes",
    ),
    ("one webhook attempt", WebhooksSettings, ("webhook_timeout_seconds",), "{} seconds"),
    (
        "time between two resends of an event",
        WebhooksSettings,
        ("webhook_resend_cooldown_seconds",),
        "{} seconds",
    ),
    ("attempts of ended events are kept", WebhooksSettings, ("webhook_retention_days",), "{} days at least"),
)


def limits() -> str:
    """Renders the bounds that belong to no single field: fixed ones first, then those of settings with their
    defaults.
    """
    fixed = {
        "request body": f"{uploads.BODY_MAX_BYTES // 1024} KiB",
        "time to send the body": f"{bodies.BODY_SECONDS:g} seconds",
        "time until an answer": f"{REQUEST_SECONDS:g} seconds; {OUTWARD_CALL_SECONDS} for a resend",
        "`per_page`": f"1 to {PAGE_MOST_ROWS}, default {PER_PAGE_DEFAULT}",
    }
    rows = [(limit, value, "") for limit, value in fixed.items()]
    for limit, settings, names, value in OF_SETTINGS:
        defaults = [settings.model_fields[name].default for name in names]
        variables = ", ".join(f"`FIATGATE_{name.upper()}`" for name in names)
        rows.append((limit, value.format(*defaults), variables))
    return table(("limit", "value", "setting of the installation"), rows)


PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "deal steps": deal_steps,
    "withdrawal states": withdrawal_states,
    "event types": event_types,
    "retries": retries,
    "error codes": codes,
    "limits": limits,
}
"""The blocks of docs/api.md by the names between their marks."""

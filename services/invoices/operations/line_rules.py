"""Rules by which bank lines confirm deals without a person, one for a method; and the confirmations by them.

A rule is off until two people switch it on. Changes of rules and payments by lines wait for each other
(`store.lines.lock`), so a day's limit holds however many workers confirm, and a rule that is off confirms nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy.orm import Session

from kit.audit import acts
from kit.audit.approvals import Approval, Terms, close
from kit.audit.decisions import before_by_acts, is_as_decided
from kit.base import actors
from kit.base.actors import Actor
from kit.base.money import FIAT_PLACES, fiat_text, has_decimals
from kit.db.database import retry_conflicts
from kit.rpc import approvals, callers, values
from kit.rpc.errors import denied, not_decided
from services.invoices.domain.states import Trigger
from services.invoices.models import Deal
from services.invoices.operations import desk, fields, lifecycle
from services.invoices.operations.lines import pay
from services.invoices.store import line_rules, lines
from services.invoices.store.decisions import LINE_RULE
from services.invoices.store.line_rules import RuleView
from services.invoices.store.lines import Part
from services.invoices.wiring import Deps

SET: Final = "line-rule.set"
MATCHER: Final = Actor(kind="process", name="bank matcher")
"""The author of confirmations by a rule."""


def list_line_rules(deps: Deps) -> Sequence[RuleView]:
    with deps.db.autocommit() as connection:
        return line_rules.rules(connection, since=_today(deps))


def set_line_rule(
    deps: Deps, *, method_code: str, enabled: bool, deal_most: str = "", day_most: str = ""
) -> RuleView:
    """Switches the rule on with these limits, or off. Raises VALIDATION_ERROR; to switch it on, or to raise a limit,
    APPROVAL_REQUIRED and APPROVAL_STATE_CONFLICT.
    """
    code = values.code("method_code", method_code)
    wanted = _wanted(deps, code, deal_most, day_most) if enabled else None
    return approvals.done(_set(deps, code, wanted))


def _wanted(deps: Deps, code: str, deal_most: str, day_most: str) -> dict[str, Any]:
    currencies = deps.catalog.catalog().currencies.values()
    of_method = [each.code for each in currencies if code in {method.code for method in each.methods}]
    if not of_method:
        raise values.invalid("method_code", "No active method has this code")
    limits = values.together(
        deal_most=lambda: _limit("deal_most", deal_most), day_most=lambda: _limit("day_most", day_most)
    )
    if limits["day_most"] < limits["deal_most"]:
        raise values.invalid("day_most", "Expected the limit of a deal or more")
    return {"method_code": code, "currency_code": of_method[0], "enabled": True} | limits


def _limit(field: str, text: str) -> Decimal:
    limit = values.decimal(field, text)
    if not (0 < limit < 10**18 and has_decimals(limit, at_most=FIAT_PLACES)):
        raise values.invalid(field, f"Expected an amount above zero with at most {FIAT_PLACES} decimals")
    return limit.quantize(Decimal(1).scaleb(-FIAT_PLACES))


@retry_conflicts
def _set(deps: Deps, code: str, wanted: Mapping[str, Any] | None) -> RuleView | Approval:
    with deps.db.transaction() as tx:
        before = _locked(tx, deps, code)
        if wanted is None:
            if before is None:
                raise values.invalid("method_code", "The method has no rule")
            wanted = _off(tx, before)
        elif deps.settings.four_eyes and not _is_narrower(tx, before, wanted):
            return approvals.request(tx, _setting(before, wanted), deps)
        close(tx, f"line-rule:{code}", at=deps.clock.now(), note="The rule was changed")
        return _put(deps, tx, wanted)


def set_approved(deps: Deps, tx: Session, asked: Approval) -> None:
    """Switches the rule on with the requested limits. Raises APPROVAL_STATE_CONFLICT when it has changed since."""
    request = asked.request
    wanted = {name: request[name] for name in ("method_code", "currency_code")}
    limits = {name: Decimal(request[name]) for name in ("deal_most", "day_most")}
    before = _locked(tx, deps, request["method_code"])
    if not asked.asks_for(_setting(before, wanted | limits)):
        raise approvals.changed_since()
    _put(deps, tx, wanted | limits | {"enabled": True})


def rule_terms(request: Mapping[str, Any]) -> Terms:
    currency, method = request["currency_code"], request["method_code"]
    return Terms(
        act=SET,
        object=f"line-rule:{method}",
        request=request,
        summary=f"Let bank lines that certainly fit confirm deals of {method} without a person: at most "
        f"{request['deal_most']} {currency} a deal and {request['day_most']} {currency} a day. "
        f"The rule is {request['present']} at the request",
    )


def _setting(before: RuleView | None, wanted: Mapping[str, Any]) -> Terms:
    present = "off"
    if before is not None and before.enabled:
        present = f"on with {fiat_text(before.deal_most)} and {fiat_text(before.day_most)}"
    limits = {name: fiat_text(wanted[name]) for name in ("deal_most", "day_most")}
    return rule_terms(
        {name: wanted[name] for name in ("method_code", "currency_code")} | limits | {"present": present}
    )


def _off(tx: Session, before: RuleView) -> dict[str, Any]:
    """Returns the rule as its acts say, switched off: SQL may have written other limits."""
    limits = before_by_acts(tx, LINE_RULE, before.method_code, "deal_most", "day_most")
    return asdict(replace(before, enabled=False)) | {name: Decimal(text) for name, text in limits.items()}


def _is_narrower(tx: Session, before: RuleView | None, wanted: Mapping[str, Any]) -> bool:
    """Returns whether the rule is on, by its acts, and its limits only fall."""
    if before is None or not before.enabled or before.currency_code != wanted["currency_code"]:
        return False
    falls = wanted["deal_most"] <= before.deal_most and wanted["day_most"] <= before.day_most
    return falls and _is_as_decided(tx, before)


def _put(deps: Deps, tx: Session, wanted: Mapping[str, Any]) -> RuleView:
    code, now = wanted["method_code"], deps.clock.now()
    values_now = {name: wanted[name] for name in LINE_RULE.fields}
    was = before_by_acts(tx, LINE_RULE, code)
    by = {"changed_at": now, "actor": str(actors.current())}
    line_rules.put(tx, {"method_code": code} | values_now | by)
    acts.record(tx, SET, f"line-rule:{code}", before=was, after=values_now)
    found = _locked(tx, deps, code)
    assert found is not None
    return found


def _locked(tx: Session, deps: Deps, code: str) -> RuleView | None:
    lines.lock(tx)
    return line_rules.rule_of(tx, code, since=_today(deps))


def _is_as_decided(tx: Session, rule: RuleView) -> bool:
    return is_as_decided(tx, LINE_RULE, rule.method_code, asdict(rule), locked=True)


def _today(deps: Deps) -> datetime:
    return deps.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)


# -- confirmations


@retry_conflicts
def confirm_by_line(deps: Deps, *, deal_id: str, part: Part) -> str:
    """Confirms a pending deal that the line pays, as the desk does. Returns why a person has to do it, "" when it is
    done. Raises DEAL_NOT_FOUND, DEAL_STATE_CONFLICT, BANK_LINE_CONFLICT, NOT_DECIDED, and ACTOR_INVALID for people.
    """
    id, caller = fields.deal_id(deal_id), actors.current()
    with actors.acting(MATCHER), deps.db.transaction() as tx:
        invoice, deal = lifecycle.locked_by_deal(tx, id)
        if caller.kind != "process" or callers.current() not in (None, "bank"):
            raise denied("ACTOR_INVALID", "Only bank confirms so: people confirm deals under their own names")
        lifecycle.step_of(deal, Trigger.CONFIRM)
        if held := _held(tx, deps, deal):
            return held
        note = f"Bank line {part.line_id}"
        desk.take(tx, deps, invoice, deal, Trigger.CONFIRM, note=note, adjustment=None)
        pay(tx, deps, deal, [part], rule=deal.method_code)
    return ""


def _held(tx: Session, deps: Deps, deal: Deal) -> str:
    rule = _locked(tx, deps, deal.method_code)
    if rule is None or not rule.enabled or rule.currency_code != deal.currency_code:
        return "rule_off"
    if not _is_as_decided(tx, rule):
        raise not_decided("rule of bank lines")
    if deal.amount_fiat > rule.deal_most:
        return "deal_limit"
    return "day_limit" if rule.day_sum + deal.amount_fiat > rule.day_most else ""

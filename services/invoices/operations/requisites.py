"""The operator's calls on requisites: the accounts that customers pay to."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from sqlalchemy.orm import Session

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.audit import acts
from kit.audit.decisions import before_by_acts, is_as_decided
from kit.audit.listing import Act, Filter, list_acts
from kit.base.account_forms import AccountKind, account_key, same_account
from kit.base.ids import new_id
from kit.base.proto import most_of
from kit.rpc import values
from kit.rpc.errors import Refused, faults_of, invalid_together, not_decided
from services.invoices import errors
from services.invoices.domain.places import DEFAULT_MAX_DEALS
from services.invoices.domain.states import DealStatus
from services.invoices.models import Requisite
from services.invoices.operations import fields
from services.invoices.store import deal_lists, deals
from services.invoices.store import requisites as store
from services.invoices.store.decisions import REQUISITE
from services.invoices.store.requisites import (
    DayOfUse,
    DealsOfRequisite,
    MethodPlaces,
    ReadDeals,
    RequisiteFilter,
)
from services.invoices.store.views import RequisiteView
from services.invoices.wiring import Deps

ADDED_AT_ONCE_MOST: Final = 200
MAX_DEALS_MOST: Final = 10_000
DAYS: Final = 14
DAYS_MOST: Final = 31
ACTS_MOST: Final = 100
_FIELDS: Final = ("method_code", "holder", "account", "bank", "max_deals", "enabled")


@dataclass(frozen=True, kw_only=True)
class NewRequisite:
    """An account to add, as it was given. `max_deals` 0 means the default."""

    holder: str
    account: str
    bank: str | None
    max_deals: int


@dataclass(frozen=True)
class CheckedRequisite:
    """The account as it would be stored, and a sentence about each field that is wrong."""

    account: str
    faults: Mapping[str, str]

    @property
    def field(self) -> str:
        """The first wrong field; empty for a right account."""
        return next(iter(self.faults), "")

    @property
    def problem(self) -> str:
        return self.faults.get(self.field, "")

    def refusals(self, place: str = "") -> list[Refused]:
        return [values.invalid(f"{place}{field}", problem) for field, problem in self.faults.items()]


# -- adding


def add_requisite(
    deps: Deps, *, method_code: str, holder: str, account: str, bank: str | None, max_deals: int
) -> RequisiteView:
    """Adds an account to a payment method and returns it. Raises VALIDATION_ERROR, also for an unknown method, for an
    account that has not the form of the method's kind, and for one that the method has already.
    """
    kind = _kind_of(deps, method_code)
    new = NewRequisite(holder=holder, account=account, bank=bank, max_deals=max_deals)
    row = _row(new, method_code, kind, deps.clock.now())
    with deps.db.transaction() as tx:
        store.queue_to_add(tx, method_code)
        (checked,) = _checked(deps, tx, method_code, kind, [new])
        if refusals := checked.refusals():
            raise invalid_together(refusals)
        return _add(tx, row)


def add_requisites(deps: Deps, *, method_code: str, given: Sequence[NewRequisite]) -> Sequence[RequisiteView]:
    """Adds all of the accounts, or none. Raises VALIDATION_ERROR with the place of the first that is wrong, or that the
    method has already.
    """
    kind = _kind_of(deps, method_code)
    _require_some(given)
    with deps.db.transaction() as tx:
        store.queue_to_add(tx, method_code)
        for number, checked in enumerate(_checked(deps, tx, method_code, kind, given)):
            if refusals := checked.refusals(f"requisites[{number}]."):
                raise invalid_together(refusals)
        now = deps.clock.now()
        return [_add(tx, _row(each, method_code, kind, now)) for each in given]


def check_requisites(
    deps: Deps, *, method_code: str, given: Sequence[NewRequisite]
) -> Sequence[CheckedRequisite]:
    """Returns each account as it would be added, or its first problem. Raises VALIDATION_ERROR for the list as a whole
    and for an unknown method.
    """
    kind = _kind_of(deps, method_code)
    _require_some(given)
    with deps.db.transaction() as tx:
        return _checked(deps, tx, method_code, kind, given)


def _checked(
    deps: Deps, tx: Session, method_code: str, kind: AccountKind, given: Sequence[NewRequisite]
) -> Sequence[CheckedRequisite]:
    now = deps.clock.now()
    found = [_checked_alone(each, method_code, kind, now) for each in given]
    accounts = [(checked.account, each.bank) for checked, each in zip(found, given, strict=True)]
    keys = [account_key(account) for account, _ in accounts]
    there, above = defaultdict[str, list[RequisiteView]](list), defaultdict[str, list[int]](list)
    for used in store.requisites_in_use(tx, method_code, set(keys) - {""}):
        there[account_key(used.account)].append(used)
    for number, (key, account) in enumerate(zip(keys, accounts, strict=True)):
        taken = next(
            (each for each in there[key] if same_account(kind, account, (each.account, each.bank))), None
        )
        problem = ""
        if taken is not None:
            problem = f"The method has this account already: requisite {taken.id}"
        elif any(same_account(kind, account, accounts[each]) for each in above[key]):
            problem = "This account stands above already"
        if problem and "account" not in found[number].faults:
            found[number] = replace(found[number], faults={**found[number].faults, "account": problem})
        above[key].append(number)
    return found


def _checked_alone(new: NewRequisite, method_code: str, kind: AccountKind, now: datetime) -> CheckedRequisite:
    try:
        return CheckedRequisite(_row(new, method_code, kind, now).account, {})
    except Refused as refused:
        problems = {each: text.removeprefix(f"{each}: ") for each, text in faults_of(refused).items()}
        return CheckedRequisite(
            new.account, {each: text[:1].upper() + text[1:] for each, text in problems.items()}
        )


def _kind_of(deps: Deps, method_code: str) -> AccountKind:
    kind = deps.catalog.account_kind(method_code)
    if kind is None:
        raise values.invalid("method_code", "No such payment method; set it with `fiatgate methods set`")
    return kind


def _require_some(given: Sequence[NewRequisite]) -> None:
    values.at_most("requisites", given, ADDED_AT_ONCE_MOST)
    if not given:
        raise values.invalid("requisites", "Expected at least one account")


def _row(new: NewRequisite, method_code: str, kind: AccountKind, now: datetime) -> Requisite:
    """Returns the checked account. Raises VALIDATION_ERROR."""
    bank, most_open = new.bank, new.max_deals or DEFAULT_MAX_DEALS
    checked = values.together(
        account=lambda: fields.account(new.account, kind),
        holder=lambda: values.text("holder", new.holder, most=most_of(pb.AddRequisiteRequest, "holder")),
        bank=lambda: (
            values.text("bank", bank, most=most_of(pb.AddRequisiteRequest, "bank")) if bank else None
        ),
        max_deals=lambda: values.whole_number("max_deals", most_open, least=1, most=MAX_DEALS_MOST),
    )
    return Requisite(
        **checked,
        id=new_id(),
        method_code=method_code,
        open_deals=0,
        enabled=True,
        created_at=now,
    )


def _add(tx: Session, row: Requisite) -> RequisiteView:
    tx.add(row)
    tx.flush()
    # The act has what was asked for: the owner of the database may have stored another account.
    acts.record(tx, "requisite.add", f"requisite:{row.id}", after=acts.values_of(row, _FIELDS))
    return _found(deals.requisite(tx, row.id))


# -- reading


@dataclass(frozen=True)
class RequisiteStory:
    """A requisite, its use by day (newest first) and the acts on it. `since`: from then on all deals are counted."""

    requisite: RequisiteView
    last_used_at: datetime | None
    days: Sequence[DayOfUse]
    since: datetime
    acts: Sequence[Act]


@dataclass(frozen=True)
class UseToday:
    """The use of one requisite on this day (UTC): deals opened, those of them completed, and their sum in fiat."""

    last_used_at: datetime | None
    opened: int
    completed: int
    amount: Decimal


def list_requisites(
    deps: Deps,
    *,
    method_code: str = "",
    enabled: bool | None = None,
    text: str = "",
    full: bool = False,
    rows: int = 0,
    after_requisite_id: str = "",
) -> Sequence[RequisiteView]:
    """Returns requisites by method and age; all of them if `rows` is 0.

    Raises VALIDATION_ERROR, REQUISITE_NOT_FOUND.
    """
    wanted = RequisiteFilter(
        method_code=method_code.replace("\0", ""),
        enabled=enabled,
        text=values.text("text", text, least=0, most=most_of(pb.ListRequisitesRequest, "text")).strip(),
        full=full,
    )
    with deps.db.autocommit() as connection:
        if after_requisite_id:
            after = _found(deals.requisite(connection, fields.requisite_id(after_requisite_id)))
            wanted = replace(wanted, after=after)
        return store.requisites(
            connection,
            wanted,
            values.whole_number("rows", rows, least=1, most=values.LIST_MOST_ROWS) if rows else None,
        )


def use_today(deps: Deps, requisites: Sequence[RequisiteView]) -> tuple[Mapping[UUID, UseToday], datetime]:
    """Returns the use of each of the requisites today, and the time from which on deals are counted. The count is some
    seconds old.
    """
    ids = [each.id for each in requisites]
    today = _start_of_day(deps.clock.now())
    with deps.db.autocommit() as connection:
        use = deps.uses.get(today, lambda: store.use_since(connection, None, today))
        last_uses = store.last_uses(connection, ids)
    unused = {id: UseToday(at, 0, 0, Decimal(0)) for id, at in last_uses.items()}
    used = {
        each.requisite_id: UseToday(last_uses[each.requisite_id], each.opened, each.completed, each.amount)
        for each in use.days
        if each.requisite_id in last_uses
    }
    return unused | used, use.since


def get_requisite(deps: Deps, *, requisite_id: str, days: int) -> RequisiteStory:
    """Returns the requisite with its use of the last days, today among them. Raises VALIDATION_ERROR,
    REQUISITE_NOT_FOUND.
    """
    id = fields.requisite_id(requisite_id)
    number = values.whole_number("days", days or DAYS, least=1, most=DAYS_MOST)
    first = _start_of_day(deps.clock.now()) - timedelta(days=number - 1)
    with deps.db.autocommit() as connection:
        found = _found(deals.requisite(connection, id))
        use = store.use_since(connection, [id], first)
        last_used_at = store.last_uses(connection, [id])[id]
    written = list_acts(deps.db, Filter(object=f"requisite:{id}"), after=None, limit=ACTS_MOST)
    return RequisiteStory(found, last_used_at, use.days, use.since, written)


def list_requisite_deals(
    deps: Deps,
    *,
    requisite_id: str,
    status: DealStatus | None,
    created_from: datetime | None,
    created_before: datetime | None,
    after_deal_id: str,
    limit: int,
) -> ReadDeals:
    """Returns deals of the requisite, newest first, as far as one call reads. Raises VALIDATION_ERROR,
    REQUISITE_NOT_FOUND, DEAL_NOT_FOUND.
    """
    id = fields.requisite_id(requisite_id)
    with deps.db.autocommit() as connection:
        found = _found(deals.requisite(connection, id))
        after = None
        if after_deal_id:
            after = deal_lists.place_of_deal(connection, fields.deal_id(after_deal_id))
            if after is None:
                raise errors.deal_not_found()
        last_used_at = store.last_uses(connection, [id])[id]
        if last_used_at is None:
            return ReadDeals([], None)
        # Its deals are between these two times, so an account that is no longer used is found at once.
        newest = last_used_at + timedelta(microseconds=1)
        wanted = DealsOfRequisite(
            requisite_id=id,
            status=status,
            created_from=max(created_from or found.created_at, found.created_at),
            created_before=min(created_before or newest, newest),
            after=after,
        )
        return store.deals_of_requisite(connection, wanted, values.rows(limit))


def list_method_places(deps: Deps) -> Sequence[MethodPlaces]:
    with deps.db.autocommit() as connection:
        return store.method_places(connection)


def _start_of_day(now: datetime) -> datetime:
    return datetime.combine(now.astimezone(UTC).date(), time(), UTC)


# -- changing


def disable_requisite(deps: Deps, *, requisite_id: str) -> RequisiteView:
    """Disables the requisite: it gets no new deals; its open ones go on."""
    return _set_enabled(deps, requisite_id, enabled=False)


def enable_requisite(deps: Deps, *, requisite_id: str) -> RequisiteView:
    """Enables the requisite. Raises REQUISITE_NOT_FOUND, NOT_DECIDED for an account that SQL wrote or changed,
    VALIDATION_ERROR when another one of the method is in use with the same account.
    """
    return _set_enabled(deps, requisite_id, enabled=True)


def _set_enabled(deps: Deps, requisite_id: str, *, enabled: bool) -> RequisiteView:
    id = fields.requisite_id(requisite_id)
    kinds = deps.catalog.catalog().account_kinds if enabled else {}
    with deps.db.transaction() as tx:
        if enabled:
            _require_alone(tx, _found(deals.requisite(tx, id)), kinds)
        row = _found(deals.requisite_to_change(tx, id))
        if enabled:
            _require_decided(tx, row)
        after = _found(deals.set_requisite_enabled(tx, id, enabled=enabled))
        acts.record(
            tx,
            "requisite.enable" if enabled else "requisite.disable",
            f"requisite:{id}",
            before=before_by_acts(tx, REQUISITE, id, "enabled"),
            after={"enabled": after.enabled},
        )
    return after


def _require_decided(tx: Session, requisite: RequisiteView) -> None:
    by_acts = before_by_acts(tx, REQUISITE, requisite.id)
    found = acts.values_of(requisite, REQUISITE.fields) | {"enabled": by_acts.get("enabled", "")}
    if not is_as_decided(tx, REQUISITE, requisite.id, found, locked=True):
        raise not_decided("requisite")


def _require_alone(tx: Session, requisite: RequisiteView, kinds: Mapping[str, AccountKind]) -> None:
    """Raises VALIDATION_ERROR when another requisite in use has the account of this disabled one."""
    if requisite.enabled:
        return
    code, account = requisite.method_code, (requisite.account, requisite.bank)
    store.queue_to_add(tx, code)
    for each in store.requisites_in_use(tx, code, {account_key(requisite.account)} - {""}):
        same = same_account(kinds.get(code, AccountKind.FREE), account, (each.account, each.bank))
        if same and each.id != requisite.id:
            raise values.invalid("requisite_id", f"Requisite {each.id} of the method has the same account")


def _found(row: RequisiteView | None) -> RequisiteView:
    if row is None:
        raise errors.requisite_not_found()
    return row

"""Merchants: creating, configuring, activating, banning."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from sqlalchemy.orm import Session

from kit.audit import acts
from kit.audit.decisions import decided_change
from kit.base.ids import new_id
from kit.base.money import parse_fraction
from kit.egress.address import check_url
from kit.rpc import values
from kit.rpc.errors import edit_conflict
from services.identity import errors, models
from services.identity.domain import merchants as domain
from services.identity.domain.merchants import Merchant, MerchantFilter, MerchantStatus
from services.identity.operations import fields
from services.identity.operations.leases import ends_leases
from services.identity.operations.logos import kept_logo
from services.identity.operations.lookup import id_of_merchant, merchant_or_refuse
from services.identity.store import merchants
from services.identity.store.decisions import MERCHANT
from services.identity.store.versions import Versioned, version_of
from services.identity.wiring import Deps

MERCHANTS_PER_PAGE: Final = 200
ALL_MERCHANTS: Final = MerchantFilter()
_IN_ACTS: Final = (
    "name",
    "owner_email",
    "activated_at",
    "banned_at",
    "category_code",
    "client_share",
    "callback_url",
    "success_url",
    "fail_url",
    "allowed_currencies",
    "allowed_methods",
    "colour",
    "logo",
    "frame_origins",
    "late_money",
)


@dataclass(frozen=True, kw_only=True)
class MerchantOptions:
    """The options of a merchant; None leaves one as it is.

    An empty category, colour, logo or URL means none. An empty list means all; of frame origins it means none.
    """

    name: str | None = None
    category_code: str | None = None
    client_share: str | None = None
    callback_url: str | None = None
    success_url: str | None = None
    fail_url: str | None = None
    allowed_currencies: Sequence[str] | None = None
    allowed_methods: Sequence[str] | None = None
    colour: str | None = None
    logo: bytes | None = None
    frame_origins: Sequence[str] | None = None
    late_money: str | None = None


Before = Mapping[str, str | Sequence[str]]
"""Options by name, as the caller saw them before its change; the logo by its digest."""
UNKNOWN: Final[Before] = MappingProxyType({})


def create_merchant(
    deps: Deps, *, owner_email: str, options: MerchantOptions, active: bool = False
) -> Merchant:
    """Creates a merchant of the owner with this e-mail address; creates the owner too when the address is new.

    The options must have a name. Raises MERCHANT_CATEGORY_NOT_FOUND.
    """
    now = deps.clock.now()
    email = values.parsed("owner_email", owner_email, fields.parse_email)
    created = models.Merchant(
        id=new_id(), created_at=now, activated_at=now if active else None, client_share=domain.NO_SHARE
    )
    _configure(deps, created, replace(options, name=options.name or ""))
    created.logo = kept_logo(deps, options.logo or b"")
    with deps.db.transaction() as tx:
        _require_category(tx, options.category_code)
        created.owner_id = merchants.id_of_owner_or_new(tx, email, at=now)
        tx.add(created)
        tx.flush()
        merchant = merchant_or_refuse(tx, created.id)
        _record(tx, "merchant.create", None, merchant, given=_IN_ACTS)
        return merchant


def get_merchant(deps: Deps, *, merchant_id: str) -> Merchant:
    """Returns the merchant. Raises MERCHANT_NOT_FOUND."""
    merchant = merchants.merchant_by_id(deps.db, id_of_merchant(merchant_id))
    if merchant is None:
        raise errors.merchant_not_found()
    return merchant


def list_merchants(
    deps: Deps,
    *,
    filters: MerchantFilter = ALL_MERCHANTS,
    older_than_merchant_id: str = "",
    limit: int = 0,
) -> list[Merchant]:
    """Returns merchants, newest first: the page after the given merchant, or the first page when it is empty."""
    limit = values.rows(limit, default=MERCHANTS_PER_PAGE, most=MERCHANTS_PER_PAGE)
    older_than = id_of_merchant(older_than_merchant_id) if older_than_merchant_id else None
    checked = replace(
        filters,
        owner_email=_if_given("owner_email", filters.owner_email, fields.parse_email),
        category_code=_if_given("category_code", filters.category_code, fields.parse_category_code),
        name=_if_given("name", filters.name, fields.parse_name),
    )
    with deps.db.autocommit() as connection:
        return merchants.merchants_newest_first(connection, checked, older_than=older_than, limit=limit)


def _if_given(field: str, text: str, parse: Callable[[str], str]) -> str:
    return values.parsed(field, text, parse) if text else ""


def name_merchants(deps: Deps, *, merchant_ids: Sequence[str]) -> dict[UUID, str]:
    """Returns the names of the merchants among these."""
    values.at_most("merchant_ids", merchant_ids, values.LIST_MOST_ROWS)
    ids = [values.uuid("merchant_ids", each) for each in merchant_ids]
    with deps.db.autocommit() as connection:
        return merchants.names_of_merchants(connection, ids)


@ends_leases
def configure_merchant(
    deps: Deps, *, merchant_id: str, options: MerchantOptions, was: Before = UNKNOWN
) -> Versioned[Merchant]:
    """Changes the options that are given, from the values that they `was` to the caller, as far as it names them.

    Raises MERCHANT_NOT_FOUND, MERCHANT_CATEGORY_NOT_FOUND, EDIT_CONFLICT.
    """
    logo = None if options.logo is None else kept_logo(deps, options.logo)
    return _configured(deps, merchant_id, options, was, logo=logo)


@ends_leases
def configure_own_merchant(
    deps: Deps, *, merchant_id: str, options: MerchantOptions, was: Before = UNKNOWN
) -> Versioned[Merchant]:
    """Does the same for the merchant's own people; a new picture counts among theirs.

    Raises MERCHANT_NOT_FOUND, EDIT_CONFLICT.
    """
    kept_for = id_of_merchant(merchant_id)
    logo = None if options.logo is None else kept_logo(deps, options.logo, kept_for=kept_for)
    return _configured(deps, merchant_id, options, was, logo=logo)


def set_late_money(deps: Deps, *, merchant_id: str, late_money: str, was: Before = UNKNOWN) -> Merchant:
    """Sets what is done with the merchant's late money. Raises MERCHANT_NOT_FOUND, EDIT_CONFLICT."""
    return _configured(deps, merchant_id, MerchantOptions(late_money=late_money), was, logo=None).answer


def _configured(
    deps: Deps, merchant_id: str, options: MerchantOptions, was: Before, *, logo: str | None
) -> Versioned[Merchant]:
    """Returns the merchant with the options; `logo` is the digest of theirs."""

    def configure(tx: Session, merchant: models.Merchant) -> None:
        present = {name: _option(getattr(merchant, name)) for name in was}
        _configure(deps, merchant, options)
        _require_category(tx, options.category_code)
        if options.logo is not None:
            merchant.logo = logo
        _require_no_conflict(merchant, options, was, present)

    given = [each.name for each in fields_of(options) if getattr(options, each.name) is not None]
    given = [name for name in given if name not in was]
    return _change(deps, merchant_id, "merchant.configure", configure, given=given)


def activate_merchant(deps: Deps, *, merchant_id: str) -> Merchant:
    """Lets the merchant use the API; an active one stays as it is.

    Raises MERCHANT_NOT_FOUND, and MERCHANT_STATE_CONFLICT for a banned merchant.
    """
    now = deps.clock.now()

    def activate(_: Session, merchant: models.Merchant) -> None:
        status = domain.status_of(merchant.activated_at, merchant.banned_at)
        if status is MerchantStatus.BANNED:
            raise errors.merchant_state_conflict(status.value)
        merchant.activated_at = merchant.activated_at or now

    return _change(deps, merchant_id, "merchant.activate", activate, given=["activated_at"]).answer


@ends_leases
def ban_merchant(deps: Deps, *, merchant_id: str) -> Versioned[Merchant]:
    """Bans a merchant in any state; the state beneath is kept. Raises MERCHANT_NOT_FOUND."""
    now = deps.clock.now()

    def ban(_: Session, merchant: models.Merchant) -> None:
        merchant.banned_at = merchant.banned_at or now

    return _change(deps, merchant_id, "merchant.ban", ban, given=["banned_at"])


def unban_merchant(deps: Deps, *, merchant_id: str) -> Merchant:
    """Restores the state before the ban. Raises MERCHANT_NOT_FOUND."""

    def unban(_: Session, merchant: models.Merchant) -> None:
        merchant.banned_at = None

    return _change(deps, merchant_id, "merchant.unban", unban, given=["banned_at"]).answer


def _change(
    deps: Deps,
    merchant_id: str,
    act: str,
    change: Callable[[Session, models.Merchant], None],
    *,
    given: Collection[str],
) -> Versioned[Merchant]:
    with deps.db.transaction() as tx:
        merchant = merchants.merchant_to_change(tx, id_of_merchant(merchant_id))
        if merchant is None:
            raise errors.merchant_not_found()
        before = merchant_or_refuse(tx, merchant.id)
        change(tx, merchant)
        tx.flush()
        after = merchant_or_refuse(tx, merchant.id)
        _record(tx, act, before, after, given=given)
        return Versioned(answer=after, version=version_of(tx, models.Merchant.id, merchant.id))


def _record(
    tx: Session, act: str, before: Merchant | None, after: Merchant, *, given: Collection[str]
) -> None:
    rows = acts.values_of(before, _IN_ACTS), acts.values_of(after, _IN_ACTS)
    was, now = decided_change(tx, MERCHANT, after.merchant_id, *rows, given=given)
    object = f"merchant:{after.merchant_id}"
    acts.record(tx, act, object, merchant_id=after.merchant_id, before=was, after=now)


def _require_category(tx: Session, code: str | None) -> None:
    if code and not merchants.has_category(tx, code):
        raise errors.category_not_found(code)


def _configure(deps: Deps, merchant: models.Merchant, options: MerchantOptions) -> None:
    # Browsers open success_url and fail_url: http and any host are allowed. Webhooks calls callback_url itself.
    callback_url = _url(allow_private=deps.settings.webhook_allow_private)
    page_url = _url(allow_private=True)
    parsers: Mapping[str, Callable[[Any], Any]] = {
        "name": fields.parse_name,
        "category_code": _or_none(fields.parse_category_code),
        "client_share": parse_fraction,
        "callback_url": _or_none(callback_url),
        "success_url": _or_none(page_url),
        "fail_url": _or_none(page_url),
        "allowed_currencies": fields.parse_currency_codes,
        "allowed_methods": fields.parse_method_codes,
        "colour": _or_none(fields.parse_colour),
        "frame_origins": fields.parse_origins,
        "late_money": fields.parse_late_money,
    }
    given = {field: getattr(options, field) for field in parsers if getattr(options, field) is not None}
    checks = {field: partial(values.parsed, field, value, parsers[field]) for field, value in given.items()}
    for field, value in values.together(**checks).items():
        setattr(merchant, field, value)


def _require_no_conflict(
    changed: models.Merchant, options: MerchantOptions, was: Before, present: Before
) -> None:
    """Raises EDIT_CONFLICT for the first option that another caller has changed to something else."""
    for field, now in present.items():
        if getattr(options, field) is not None and now not in (was[field], _option(getattr(changed, field))):
            raise edit_conflict(field, now if isinstance(now, str) else ", ".join(now))


def _option(value: object) -> str | Sequence[str]:
    """Returns the value of a column as MerchantOptions has it."""
    if isinstance(value, Decimal):
        return domain.fraction_text(value)
    return value if isinstance(value, list) else str(value or "")


def _or_none(parse: Callable[[str], str]) -> Callable[[str], str | None]:
    return lambda text: parse(text) if text else None


def _url(*, allow_private: bool) -> Callable[[str], str]:
    def parse(text: str) -> str:
        check_url(text, allow_private=allow_private)
        return text  # as it was given, not as it was parsed

    return parse

"""Values of the service to messages, and back."""

from collections.abc import Sequence

from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.base.proto import optional, optional_datetime, timestamp_from
from services.identity.domain import merchants as domain
from services.identity.domain.merchants import MerchantStatus
from services.identity.operations.api_keys import SigningSecret
from services.identity.operations.merchants import Before, MerchantOptions

_STATUSES = {
    MerchantStatus.INACTIVE: pb.MERCHANT_STATUS_INACTIVE,
    MerchantStatus.ACTIVE: pb.MERCHANT_STATUS_ACTIVE,
    MerchantStatus.BANNED: pb.MERCHANT_STATUS_BANNED,
}


def merchant_to_message(merchant: domain.Merchant) -> pb.Merchant:
    commission = merchant.category_commission
    return pb.Merchant(
        merchant_id=str(merchant.merchant_id),
        name=merchant.name,
        owner_email=merchant.owner_email,
        owner_blocked=merchant.owner_blocked,
        status=_STATUSES[merchant.status],
        category_code=merchant.category_code,
        category_commission=None if commission is None else domain.fraction_text(commission),
        client_share=domain.fraction_text(merchant.client_share),
        callback_url=merchant.callback_url,
        success_url=merchant.success_url,
        fail_url=merchant.fail_url,
        allowed_currencies=merchant.allowed_currencies,
        allowed_methods=merchant.allowed_methods,
        branding=pb.Branding(
            colour=merchant.colour, frame_origins=merchant.frame_origins, logo=merchant.logo
        ),
        created_at=timestamp_from(merchant.created_at),
        refunds_return_commission=merchant.refunds_return_commission,
        late_money=merchant.late_money,
    )


def filter_from_message(request: pb.ListMerchantsRequest) -> domain.MerchantFilter:
    statuses = {number: status for status, number in _STATUSES.items()}
    return domain.MerchantFilter(
        status=statuses.get(request.status),
        owner_blocked=request.owner_blocked,
        owner_email=request.owner_email,
        category_code=request.category_code,
        name=request.name,
        created_from=optional_datetime(request, "created_from"),
        created_before=optional_datetime(request, "created_before"),
    )


def owner_to_message(owner: domain.OwnerFacts) -> pb.Owner:
    return pb.Owner(
        owner_id=str(owner.id),
        email=owner.email,
        created_at=timestamp_from(owner.created_at),
        blocked_at=timestamp_from(owner.blocked_at),
        merchants=owner.merchants,
    )


def api_key_to_message(key: domain.ApiKey) -> pb.ApiKey:
    return pb.ApiKey(
        key_id=str(key.id),
        merchant_id=str(key.merchant_id),
        name=key.name,
        hint=key.hint,
        active=key.deactivated_at is None,
        created_at=timestamp_from(key.created_at),
        deactivated_at=timestamp_from(key.deactivated_at),
        last_used_at=timestamp_from(key.last_used_at),
        replaced_by_key_id=None if key.replaced_by is None else str(key.replaced_by),
        scopes=key.scopes,
    )


def category_to_message(category: domain.Category) -> pb.Category:
    return pb.Category(
        code=category.code,
        commission=domain.fraction_text(category.commission),
        refunds_return_commission=category.refunds_return_commission,
    )


def signing_secret_to_message(secret: SigningSecret) -> pb.SigningSecret:
    return pb.SigningSecret(
        merchant_id=str(secret.merchant_id),
        preferred_key_id=str(secret.preferred_key_id or ""),
        key_id=str(secret.key_id),
        secret=secret.secret,
    )


def options_from_creation(request: pb.CreateMerchantRequest) -> MerchantOptions:
    return MerchantOptions(
        name=request.name,
        category_code=optional(request, "category_code"),
        client_share=optional(request, "client_share"),
        callback_url=optional(request, "callback_url"),
        success_url=optional(request, "success_url"),
        fail_url=optional(request, "fail_url"),
        allowed_currencies=request.allowed_currencies,
        allowed_methods=request.allowed_methods,
        colour=optional(request, "colour"),
        logo=optional(request, "logo"),
        frame_origins=request.frame_origins,
        late_money=optional(request, "late_money"),
    )


def options_from_change(request: pb.ConfigureMerchantRequest) -> MerchantOptions:
    currencies, methods = optional(request, "allowed_currencies"), optional(request, "allowed_methods")
    origins = optional(request, "frame_origins")
    return MerchantOptions(
        name=optional(request, "name"),
        category_code=optional(request, "category_code"),
        client_share=optional(request, "client_share"),
        callback_url=optional(request, "callback_url"),
        success_url=optional(request, "success_url"),
        fail_url=optional(request, "fail_url"),
        allowed_currencies=None if currencies is None else currencies.codes,
        allowed_methods=None if methods is None else methods.codes,
        colour=optional(request, "colour"),
        logo=optional(request, "logo"),
        frame_origins=None if origins is None else origins.origins,
        late_money=optional(request, "late_money"),
    )


def options_from_own_change(request: pb.ConfigureOwnMerchantRequest) -> MerchantOptions:
    origins = optional(request, "frame_origins")
    return MerchantOptions(
        callback_url=optional(request, "callback_url"),
        success_url=optional(request, "success_url"),
        fail_url=optional(request, "fail_url"),
        colour=optional(request, "colour"),
        logo=optional(request, "logo"),
        frame_origins=None if origins is None else origins.origins,
    )


def before_from_message(was: pb.MerchantOptions) -> Before:
    found: dict[str, str | Sequence[str]] = {}
    for field, value in was.ListFields():
        if isinstance(value, pb.AllowedCodes):
            found[field.name] = list(value.codes)
        elif isinstance(value, pb.AllowedOrigins):
            found[field.name] = list(value.origins)
        else:
            found[field.name] = value
    return found

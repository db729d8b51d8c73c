"""MerchantsService: the methods."""

from typing import Any, Final

from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.rpc.methods import Methods, by_name
from services.identity.domain.merchants import Merchant, MerchantStatus, Owner
from services.identity.operations import api_keys, categories, logos, merchants, owners
from services.identity.rpc.merchant_converters import (
    api_key_to_message,
    before_from_message,
    category_to_message,
    filter_from_message,
    merchant_to_message,
    options_from_change,
    options_from_creation,
    options_from_own_change,
    owner_to_message,
    signing_secret_to_message,
)
from services.identity.wiring import Deps


def authenticate(deps: Deps, request: pb.AuthenticateRequest) -> pb.AuthenticateResponse:
    holder = api_keys.authenticate(deps, api_key=request.api_key)
    return pb.AuthenticateResponse(
        merchant=merchant_to_message(holder.merchant),
        key_id=str(holder.key_id),
        scopes=holder.scopes,
        lease_milliseconds=deps.settings.key_lease_milliseconds,
    )


def create_merchant(deps: Deps, request: pb.CreateMerchantRequest) -> pb.CreateMerchantResponse:
    options = options_from_creation(request)
    merchant = merchants.create_merchant(
        deps, owner_email=request.owner_email, options=options, active=request.active
    )
    return pb.CreateMerchantResponse(merchant=merchant_to_message(merchant))


def get_merchant(deps: Deps, request: pb.GetMerchantRequest) -> pb.GetMerchantResponse:
    merchant = merchants.get_merchant(deps, merchant_id=request.merchant_id)
    may_sell = merchant.status == MerchantStatus.ACTIVE and not merchant.owner_blocked
    return pb.GetMerchantResponse(
        merchant=merchant_to_message(merchant),
        lease_milliseconds=deps.settings.key_lease_milliseconds if may_sell else 0,
    )


def list_merchants(deps: Deps, request: pb.ListMerchantsRequest) -> pb.ListMerchantsResponse:
    found = merchants.list_merchants(
        deps,
        filters=filter_from_message(request),
        older_than_merchant_id=request.older_than_merchant_id,
        limit=request.limit,
    )
    return pb.ListMerchantsResponse(merchants=map(merchant_to_message, found))


def configure_merchant(deps: Deps, request: pb.ConfigureMerchantRequest) -> pb.ConfigureMerchantResponse:
    merchant = merchants.configure_merchant(
        deps,
        merchant_id=request.merchant_id,
        options=options_from_change(request),
        was=before_from_message(request.was),
    )
    return pb.ConfigureMerchantResponse(merchant=merchant_to_message(merchant))


def configure_own_merchant(
    deps: Deps, request: pb.ConfigureOwnMerchantRequest
) -> pb.ConfigureOwnMerchantResponse:
    merchant = merchants.configure_own_merchant(
        deps,
        merchant_id=request.merchant_id,
        options=options_from_own_change(request),
        was=before_from_message(request.was),
    )
    return pb.ConfigureOwnMerchantResponse(merchant=merchant_to_message(merchant))


def set_late_money(deps: Deps, request: pb.SetLateMoneyRequest) -> pb.SetLateMoneyResponse:
    merchant = merchants.set_late_money(
        deps,
        merchant_id=request.merchant_id,
        late_money=request.late_money,
        was=before_from_message(request.was),
    )
    return pb.SetLateMoneyResponse(merchant=merchant_to_message(merchant))


def get_signing_secrets(deps: Deps, request: pb.GetSigningSecretsRequest) -> pb.GetSigningSecretsResponse:
    queries = [(each.merchant_id, each.preferred_key_id) for each in request.queries]
    secrets = api_keys.get_signing_secrets(deps, queries=queries)
    return pb.GetSigningSecretsResponse(
        secrets=map(signing_secret_to_message, secrets),
        lease_milliseconds=deps.settings.key_lease_milliseconds,
    )


def _merchant(merchant: Merchant) -> dict[str, Any]:
    return {"merchant": merchant_to_message(merchant)}


def _owner(owner: Owner) -> dict[str, Any]:
    return {"email": owner.email, "blocked": owner.blocked_at is not None}


METHODS: Final[Methods] = {
    "Authenticate": authenticate,
    "CreateMerchant": create_merchant,
    "GetMerchant": get_merchant,
    "ListMerchants": list_merchants,
    "NameMerchants": by_name(
        merchants.name_merchants,
        lambda names: {"names": {str(id): name for id, name in names.items()}},
    ),
    "ConfigureMerchant": configure_merchant,
    "ConfigureOwnMerchant": configure_own_merchant,
    "SetLateMoney": set_late_money,
    "ActivateMerchant": by_name(merchants.activate_merchant, _merchant),
    "BanMerchant": by_name(merchants.ban_merchant, _merchant),
    "UnbanMerchant": by_name(merchants.unban_merchant, _merchant),
    "GetLogo": by_name(
        logos.get_logo, lambda logo: {"content_type": logo.content_type, "content": logo.content}
    ),
    "KeepLogo": by_name(logos.keep_logo, lambda logo: {"logo": logo}, content="logo"),
    "GetOwner": by_name(owners.get_owner, lambda owner: {"owner": owner_to_message(owner)}),
    "BlockOwner": by_name(owners.block_owner, _owner),
    "UnblockOwner": by_name(owners.unblock_owner, _owner),
    "CreateApiKey": by_name(
        api_keys.create_api_key,
        lambda made: {"key_id": str(made.key_id), "api_key": made.api_key, "secret": made.secret},
    ),
    "ListApiKeys": by_name(api_keys.list_api_keys, lambda keys: {"keys": map(api_key_to_message, keys)}),
    "DeactivateApiKey": by_name(api_keys.deactivate_api_key, lambda key: {"key": api_key_to_message(key)}),
    "SetCategory": by_name(
        categories.set_category,
        lambda category: {"category": category_to_message(category)},
        was="was_commission",
    ),
    "ListCategories": by_name(
        categories.list_categories, lambda found: {"categories": map(category_to_message, found)}
    ),
    "GetSigningSecrets": get_signing_secrets,
}

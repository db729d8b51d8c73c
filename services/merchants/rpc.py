"""fiatgate.merchants.v1.MerchantsService: message, operation, message. kit's server translates errors."""

from collections.abc import Sequence
from typing import Final

import grpc

from fiatgate.merchants.v1 import merchants_pb2 as pb
from fiatgate.merchants.v1 import merchants_pb2_grpc
from kit.base.proto import optional, optional_datetime, timestamp_from
from kit.rpc import audit, find, status
from kit.rpc.callers import ALL, Callers
from kit.rpc.permissions import OF_OBJECT, READERS, Permissions, everyone, machine, members, staff
from kit.rpc.slots import Slots
from services.merchants import domain, store
from services.merchants.domain import MerchantStatus
from services.merchants.operations import api_keys, categories, logos, merchants, owners
from services.merchants.operations.api_keys import SigningSecret
from services.merchants.operations.merchants import Before, MerchantOptions
from services.merchants.wiring import Deps

# ruff: noqa: N802  the proto names the methods

_STATUSES = {
    MerchantStatus.INACTIVE: pb.MERCHANT_STATUS_INACTIVE,
    MerchantStatus.ACTIVE: pb.MERCHANT_STATUS_ACTIVE,
    MerchantStatus.BANNED: pb.MERCHANT_STATUS_BANNED,
}


# Each waits for the end of a lease (operations/leases.py).
_ENDS_LEASES: Final = frozenset(
    {
        "MerchantsService/BanMerchant",
        "MerchantsService/BlockOwner",
        "MerchantsService/ConfigureMerchant",  # also commissions, and the addresses that get webhooks
        "MerchantsService/DeactivateApiKey",
        "MerchantsService/SetCategory",
    }
)
_OF_DESK: Final = frozenset(
    {
        "FindService/Find",
        "MerchantsService/ActivateMerchant",
        "MerchantsService/CreateApiKey",
        "MerchantsService/CreateMerchant",
        "MerchantsService/GetOwner",
        "MerchantsService/KeepLogo",
        "MerchantsService/ListApiKeys",
        "MerchantsService/ListCategories",
        "MerchantsService/ListMerchants",
        "MerchantsService/NameMerchants",
        "MerchantsService/UnbanMerchant",
        "MerchantsService/UnblockOwner",
    }
)

CALLERS: Final[Callers] = {
    "cli": frozenset({ALL}),
    "console-desk": _OF_DESK
    | _ENDS_LEASES
    | {audit.LIST, status.GET, "MerchantsService/GetLogo", "MerchantsService/GetMerchant"},
    "console-dashboard": frozenset(
        {
            audit.LIST,
            "MerchantsService/CreateApiKey",
            "MerchantsService/DeactivateApiKey",
            "MerchantsService/GetMerchant",
            "MerchantsService/ListApiKeys",
            "MerchantsService/NameMerchants",
        }
    ),
    "gateway": frozenset({"MerchantsService/Authenticate", "MerchantsService/GetLogo"}),
    "invoices": frozenset({"MerchantsService/GetMerchant"}),
    "webhooks": frozenset({"MerchantsService/GetMerchant", "MerchantsService/GetSigningSecrets"}),
}

# Every merchant's request waits for Authenticate: many such calls must not stop the pages, nor the pages stop them.
SLOTS: Final = (
    Slots(name="keys", methods=frozenset({"MerchantsService/Authenticate"}), waiting=160),
    Slots(
        name="services",
        methods=frozenset({"MerchantsService/GetMerchant", "MerchantsService/GetSigningSecrets"}),
        threads=2,
        waiting=64,
    ),
    Slots(name="logos", methods=frozenset({"MerchantsService/GetLogo"}), threads=1),
    Slots(name="desk", methods=_OF_DESK | {"FindService/CompleteId"}, threads=2),
    # A call occupies a thread for a second and a connection for a moment. The last that waits begins in time to answer
    # within its caller's 5 seconds.
    Slots(name="leases", methods=_ENDS_LEASES, threads=8, waiting=24, threads_per_connection=4),
)


# A key and a secret open a merchant's money, so both sides step up for them.
PERMISSIONS: Final[Permissions] = {
    **status.PERMISSIONS,
    **find.PERMISSIONS,
    "MerchantsService/Authenticate": machine(for_api=True),
    "MerchantsService/GetSigningSecrets": machine(),
    "MerchantsService/GetLogo": machine() | staff(*READERS),
    "MerchantsService/KeepLogo": staff("admin", changes=True),
    "MerchantsService/GetOwner": staff(*READERS),
    "MerchantsService/GetMerchant": machine() | staff(*READERS) | members("developer", "finance", "viewer"),
    "MerchantsService/ListMerchants": staff(*READERS),
    "MerchantsService/NameMerchants": everyone(),
    "MerchantsService/ListCategories": staff(*READERS),
    "MerchantsService/CreateMerchant": staff("admin", changes=True),
    "MerchantsService/ConfigureMerchant": staff("admin", changes=True, steps_up=True),
    "MerchantsService/ActivateMerchant": staff("admin", changes=True),
    "MerchantsService/BanMerchant": staff("admin", changes=True),
    "MerchantsService/UnbanMerchant": staff("admin", changes=True),
    "MerchantsService/BlockOwner": staff("admin", changes=True),
    "MerchantsService/UnblockOwner": staff("admin", changes=True),
    "MerchantsService/SetCategory": staff("admin", changes=True),
    "MerchantsService/ListApiKeys": staff(*READERS) | members("developer"),
    "MerchantsService/CreateApiKey": staff("admin", changes=True, steps_up=True) | members("developer"),
    "MerchantsService/DeactivateApiKey": staff("admin", changes=True, steps_up=True)
    | members("developer", merchant_field=OF_OBJECT),
}


def add_to(server: grpc.Server, deps: Deps) -> None:
    merchants_pb2_grpc.add_MerchantsServiceServicer_to_server(MerchantsServicer(deps), server)
    find.add_to(server, deps.db, store.IDS, store.SEARCHES)


class MerchantsServicer(merchants_pb2_grpc.MerchantsServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def Authenticate(
        self, request: pb.AuthenticateRequest, context: grpc.ServicerContext
    ) -> pb.AuthenticateResponse:
        holder = api_keys.authenticate(self._deps, api_key=request.api_key)
        return pb.AuthenticateResponse(
            merchant=merchant_to_message(holder.merchant),
            key_id=str(holder.key_id),
            lease_milliseconds=self._deps.settings.key_lease_milliseconds,
        )

    def CreateMerchant(
        self, request: pb.CreateMerchantRequest, context: grpc.ServicerContext
    ) -> pb.CreateMerchantResponse:
        merchant = merchants.create_merchant(
            self._deps,
            owner_email=request.owner_email,
            options=options_from_creation(request),
            active=request.active,
        )
        return pb.CreateMerchantResponse(merchant=merchant_to_message(merchant))

    def GetMerchant(
        self, request: pb.GetMerchantRequest, context: grpc.ServicerContext
    ) -> pb.GetMerchantResponse:
        merchant = merchants.get_merchant(self._deps, merchant_id=request.merchant_id)
        may_sell = merchant.status == MerchantStatus.ACTIVE and not merchant.owner_blocked
        return pb.GetMerchantResponse(
            merchant=merchant_to_message(merchant),
            lease_milliseconds=self._deps.settings.key_lease_milliseconds if may_sell else 0,
        )

    def ListMerchants(
        self, request: pb.ListMerchantsRequest, context: grpc.ServicerContext
    ) -> pb.ListMerchantsResponse:
        found = merchants.list_merchants(
            self._deps,
            filters=filter_from_message(request),
            older_than_merchant_id=request.older_than_merchant_id,
            limit=request.limit,
        )
        return pb.ListMerchantsResponse(merchants=[merchant_to_message(each) for each in found])

    def NameMerchants(
        self, request: pb.NameMerchantsRequest, context: grpc.ServicerContext
    ) -> pb.NameMerchantsResponse:
        names = merchants.name_merchants(self._deps, merchant_ids=request.merchant_ids)
        return pb.NameMerchantsResponse(names={str(id): name for id, name in names.items()})

    def ConfigureMerchant(
        self, request: pb.ConfigureMerchantRequest, context: grpc.ServicerContext
    ) -> pb.ConfigureMerchantResponse:
        merchant = merchants.configure_merchant(
            self._deps,
            merchant_id=request.merchant_id,
            options=options_from_change(request),
            was=before_from_message(request.was),
        )
        return pb.ConfigureMerchantResponse(merchant=merchant_to_message(merchant))

    def ActivateMerchant(
        self, request: pb.ActivateMerchantRequest, context: grpc.ServicerContext
    ) -> pb.ActivateMerchantResponse:
        merchant = merchants.activate_merchant(self._deps, merchant_id=request.merchant_id)
        return pb.ActivateMerchantResponse(merchant=merchant_to_message(merchant))

    def BanMerchant(
        self, request: pb.BanMerchantRequest, context: grpc.ServicerContext
    ) -> pb.BanMerchantResponse:
        merchant = merchants.ban_merchant(self._deps, merchant_id=request.merchant_id)
        return pb.BanMerchantResponse(merchant=merchant_to_message(merchant))

    def UnbanMerchant(
        self, request: pb.UnbanMerchantRequest, context: grpc.ServicerContext
    ) -> pb.UnbanMerchantResponse:
        merchant = merchants.unban_merchant(self._deps, merchant_id=request.merchant_id)
        return pb.UnbanMerchantResponse(merchant=merchant_to_message(merchant))

    def GetLogo(self, request: pb.GetLogoRequest, context: grpc.ServicerContext) -> pb.GetLogoResponse:
        logo = logos.get_logo(self._deps, logo=request.logo)
        return pb.GetLogoResponse(content_type=logo.content_type, content=logo.content)

    def KeepLogo(self, request: pb.KeepLogoRequest, context: grpc.ServicerContext) -> pb.KeepLogoResponse:
        return pb.KeepLogoResponse(logo=logos.keep_logo(self._deps, content=request.logo))

    def GetOwner(self, request: pb.GetOwnerRequest, context: grpc.ServicerContext) -> pb.GetOwnerResponse:
        owner = owners.get_owner(self._deps, owner=request.owner)
        return pb.GetOwnerResponse(owner=owner_to_message(owner))

    def BlockOwner(
        self, request: pb.BlockOwnerRequest, context: grpc.ServicerContext
    ) -> pb.BlockOwnerResponse:
        owner = owners.block_owner(self._deps, email=request.email)
        return pb.BlockOwnerResponse(email=owner.email, blocked=owner.blocked_at is not None)

    def UnblockOwner(
        self, request: pb.UnblockOwnerRequest, context: grpc.ServicerContext
    ) -> pb.UnblockOwnerResponse:
        owner = owners.unblock_owner(self._deps, email=request.email)
        return pb.UnblockOwnerResponse(email=owner.email, blocked=owner.blocked_at is not None)

    def CreateApiKey(
        self, request: pb.CreateApiKeyRequest, context: grpc.ServicerContext
    ) -> pb.CreateApiKeyResponse:
        made = api_keys.create_api_key(
            self._deps,
            merchant_id=request.merchant_id,
            name=request.name,
            newest_key_id=optional(request, "newest_key_id"),
        )
        return pb.CreateApiKeyResponse(key_id=str(made.key_id), api_key=made.api_key, secret=made.secret)

    def ListApiKeys(
        self, request: pb.ListApiKeysRequest, context: grpc.ServicerContext
    ) -> pb.ListApiKeysResponse:
        keys = api_keys.list_api_keys(self._deps, merchant_id=request.merchant_id)
        return pb.ListApiKeysResponse(keys=[api_key_to_message(each) for each in keys])

    def DeactivateApiKey(
        self, request: pb.DeactivateApiKeyRequest, context: grpc.ServicerContext
    ) -> pb.DeactivateApiKeyResponse:
        key = api_keys.deactivate_api_key(self._deps, key_id=request.key_id)
        return pb.DeactivateApiKeyResponse(key=api_key_to_message(key))

    def SetCategory(
        self, request: pb.SetCategoryRequest, context: grpc.ServicerContext
    ) -> pb.SetCategoryResponse:
        category = categories.set_category(
            self._deps,
            code=request.code,
            commission=request.commission,
            was=optional(request, "was_commission"),
        )
        return pb.SetCategoryResponse(category=category_to_message(category))

    def ListCategories(
        self, request: pb.ListCategoriesRequest, context: grpc.ServicerContext
    ) -> pb.ListCategoriesResponse:
        found = categories.list_categories(self._deps)
        return pb.ListCategoriesResponse(categories=[category_to_message(each) for each in found])

    def GetSigningSecrets(
        self, request: pb.GetSigningSecretsRequest, context: grpc.ServicerContext
    ) -> pb.GetSigningSecretsResponse:
        queries = [(each.merchant_id, each.preferred_key_id) for each in request.queries]
        secrets = api_keys.get_signing_secrets(self._deps, queries=queries)
        return pb.GetSigningSecretsResponse(
            secrets=[signing_secret_to_message(each) for each in secrets],
            lease_milliseconds=self._deps.settings.key_lease_milliseconds,
        )


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
    )


def category_to_message(category: domain.Category) -> pb.Category:
    return pb.Category(code=category.code, commission=domain.fraction_text(category.commission))


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

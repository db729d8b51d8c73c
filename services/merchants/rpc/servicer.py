"""The methods of MerchantsService."""

import grpc

from fiatgate.merchants.v1 import merchants_pb2 as pb
from fiatgate.merchants.v1 import merchants_pb2_grpc
from kit.base.proto import optional
from services.merchants.domain import MerchantStatus
from services.merchants.operations import api_keys, categories, logos, merchants, owners
from services.merchants.rpc.converters import (
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
from services.merchants.wiring import Deps

# ruff: noqa: N802  the proto names the methods


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

    def ConfigureOwnMerchant(
        self, request: pb.ConfigureOwnMerchantRequest, context: grpc.ServicerContext
    ) -> pb.ConfigureOwnMerchantResponse:
        merchant = merchants.configure_own_merchant(
            self._deps,
            merchant_id=request.merchant_id,
            options=options_from_own_change(request),
            was=before_from_message(request.was),
        )
        return pb.ConfigureOwnMerchantResponse(merchant=merchant_to_message(merchant))

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
        logo = logos.keep_logo(self._deps, content=request.logo, merchant_id=request.merchant_id)
        return pb.KeepLogoResponse(logo=logo)

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
            replaces_key_id=optional(request, "replaces_key_id"),
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

"""The service over a real socket: messages in, messages and reasons out."""

import hashlib
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg2
import pytest
import structlog.testing
from psycopg2.extensions import cursor as Cursor

from deploy.local.waiting import wait_until
from fiatgate.merchants.v1 import merchants_pb2 as pb
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from kit.rpc.errors import Refused
from services.identity.config import IdentitySettings
from services.identity.wiring import Deps
from tests.identity.merchants.conftest import serving
from tests.support.databases import owner_url
from tests.support.pictures import PNG


@pytest.fixture
def merchant(stub: MerchantsServiceStub, new_email: str) -> pb.Merchant:
    request = pb.CreateMerchantRequest(name="Shop", owner_email=new_email, active=True)
    return stub.CreateMerchant(request).merchant


@pytest.fixture
def key(stub: MerchantsServiceStub, merchant: pb.Merchant) -> pb.CreateApiKeyResponse:
    return stub.CreateApiKey(pb.CreateApiKeyRequest(merchant_id=merchant.merchant_id, name="till"))


def refused(call: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as refused:
        call()
    return refused.value


def test_a_created_merchant_is_told_in_full(stub: MerchantsServiceStub, new_email: str) -> None:
    stub.SetCategory(pb.SetCategoryRequest(code="games", commission="0.050"))
    request = pb.CreateMerchantRequest(
        name="Shop",
        owner_email=new_email.upper(),
        category_code="games",
        client_share="0.50",
        callback_url="https://shop.example/hook",
        success_url="https://shop.example/thanks?a=1#top",
        fail_url="http://shop.example:8080/sorry",
        allowed_currencies=["rub"],
        allowed_methods=["sbp", "card"],
        colour="#1D5BB8",
        frame_origins=["https://shop.example"],
        logo=PNG,
    )
    created = stub.CreateMerchant(request).merchant
    assert created == pb.Merchant(
        merchant_id=created.merchant_id,
        name="Shop",
        owner_email=new_email,
        status=pb.MERCHANT_STATUS_INACTIVE,
        category_code="games",
        category_commission="0.05",
        client_share="0.5",
        callback_url="https://shop.example/hook",
        success_url="https://shop.example/thanks?a=1#top",
        fail_url="http://shop.example:8080/sorry",
        allowed_currencies=["RUB"],
        allowed_methods=["sbp", "card"],
        created_at=created.created_at,
        branding=pb.Branding(
            colour="#1d5bb8",
            frame_origins=["https://shop.example"],
            logo=hashlib.sha256(PNG).hexdigest(),
        ),
        late_money="ask_credit",
    )
    assert uuid.UUID(created.merchant_id).version == 7
    assert created.HasField("created_at")
    assert stub.GetMerchant(pb.GetMerchantRequest(merchant_id=created.merchant_id)).merchant == created
    assert stub.ListMerchants(pb.ListMerchantsRequest(limit=1)).merchants[0] == created


@pytest.mark.parametrize(
    "branding", [{"colour": "red"}, {"frame_origins": ["shop.example"]}, {"logo": b"GIF89a"}]
)
def test_a_merchant_whose_branding_is_refused_is_not_made(
    stub: MerchantsServiceStub, new_email: str, branding: dict[str, Any]
) -> None:
    request = pb.CreateMerchantRequest(name="Shop", owner_email=new_email, **branding)
    [field] = branding
    refusal = refused(lambda: stub.CreateMerchant(request))
    assert (refusal.reason, refusal.metadata["field"]) == ("VALIDATION_ERROR", field)
    nobody = refused(lambda: stub.BlockOwner(pb.BlockOwnerRequest(email=new_email)))
    assert nobody.reason == "OWNER_NOT_FOUND"


def test_what_a_merchant_does_not_have_is_absent_and_not_empty(merchant: pb.Merchant) -> None:
    assert merchant.branding == pb.Branding()
    for field in ("category_code", "category_commission", "callback_url", "success_url", "fail_url"):
        assert not merchant.HasField(field)
    assert merchant.client_share == "0"
    assert merchant.status == pb.MERCHANT_STATUS_ACTIVE


def test_authenticate_tells_merchant_and_key(
    stub: MerchantsServiceStub, merchant: pb.Merchant, key: pb.CreateApiKeyResponse
) -> None:
    answer = stub.Authenticate(pb.AuthenticateRequest(api_key=key.api_key))
    assert answer == pb.AuthenticateResponse(merchant=merchant, key_id=key.key_id)


def test_an_act_without_time_for_the_end_of_a_lease_changes_nothing(
    deps: Deps,
    make_settings: Callable[..., IdentitySettings],
    merchant: pb.Merchant,
    key: pb.CreateApiKeyResponse,
) -> None:
    """Its caller would get no answer, and could not know from when on it holds."""
    longest = replace(deps, settings=make_settings(key_lease_milliseconds=2000))
    with serving(longest) as stub:
        answer = stub.Authenticate(pb.AuthenticateRequest(api_key=key.api_key))
        assert answer.lease_milliseconds == 2000
        acts: list[Callable[..., object]] = [
            partial(stub.DeactivateApiKey, pb.DeactivateApiKeyRequest(key_id=key.key_id)),
            partial(stub.BanMerchant, pb.BanMerchantRequest(merchant_id=merchant.merchant_id)),
            partial(stub.BlockOwner, pb.BlockOwnerRequest(email=merchant.owner_email)),
            partial(
                stub.ConfigureMerchant,
                pb.ConfigureMerchantRequest(merchant_id=merchant.merchant_id, name="Another"),
            ),
        ]
        for act in acts:
            assert refused(partial(act, timeout=1.9)).reason == "DB_UNAVAILABLE"
        assert stub.Authenticate(pb.AuthenticateRequest(api_key=key.api_key)).merchant == merchant


@pytest.mark.parametrize("suffix", [" ", "\0", "\n", "é", "x" * 100_000])
def test_a_strange_key_is_invalid_and_never_an_error(
    stub: MerchantsServiceStub, key: pb.CreateApiKeyResponse, suffix: str
) -> None:
    answer = refused(lambda: stub.Authenticate(pb.AuthenticateRequest(api_key=key.api_key + suffix)))
    assert answer.reason == "API_KEY_INVALID"


def test_a_deactivated_key_is_refused_from_the_very_next_call(
    stub: MerchantsServiceStub, key: pb.CreateApiKeyResponse
) -> None:
    stub.Authenticate(pb.AuthenticateRequest(api_key=key.api_key))
    deactivated = stub.DeactivateApiKey(pb.DeactivateApiKeyRequest(key_id=key.key_id)).key
    answer = refused(lambda: stub.Authenticate(pb.AuthenticateRequest(api_key=key.api_key)))
    assert answer.reason == "API_KEY_INVALID"
    assert not deactivated.active
    assert deactivated.HasField("deactivated_at")


def test_block_ban_and_activation_show_in_messages_and_reasons(
    stub: MerchantsServiceStub, merchant: pb.Merchant, key: pb.CreateApiKeyResponse
) -> None:
    def reason() -> str:
        return refused(lambda: stub.Authenticate(pb.AuthenticateRequest(api_key=key.api_key))).reason

    banned = stub.BanMerchant(pb.BanMerchantRequest(merchant_id=merchant.merchant_id)).merchant
    assert banned.status == pb.MERCHANT_STATUS_BANNED
    assert reason() == "MERCHANT_BLOCKED"
    activate = pb.ActivateMerchantRequest(merchant_id=merchant.merchant_id)
    conflict = refused(lambda: stub.ActivateMerchant(activate))
    assert (conflict.reason, conflict.metadata) == ("MERCHANT_STATE_CONFLICT", {"status": "banned"})
    blocked = stub.BlockOwner(pb.BlockOwnerRequest(email=merchant.owner_email.upper()))
    assert blocked == pb.BlockOwnerResponse(email=merchant.owner_email, blocked=True)
    assert reason() == "OWNER_BLOCKED"
    unblocked = stub.UnblockOwner(pb.UnblockOwnerRequest(email=merchant.owner_email))
    assert unblocked == pb.UnblockOwnerResponse(email=merchant.owner_email, blocked=False)
    assert stub.UnbanMerchant(pb.UnbanMerchantRequest(merchant_id=merchant.merchant_id)).merchant == merchant
    assert stub.ActivateMerchant(activate).merchant == merchant


def test_an_empty_list_of_codes_means_all_and_an_absent_one_no_change(
    stub: MerchantsServiceStub, merchant: pb.Merchant
) -> None:
    def configure(**options: object) -> pb.Merchant:
        request = pb.ConfigureMerchantRequest(merchant_id=merchant.merchant_id, **options)  # type: ignore[arg-type]
        return stub.ConfigureMerchant(request).merchant

    both = configure(
        allowed_currencies=pb.AllowedCodes(codes=["RUB"]), allowed_methods=pb.AllowedCodes(codes=["sbp"])
    )
    assert (list(both.allowed_currencies), list(both.allowed_methods)) == (["RUB"], ["sbp"])
    one = configure(name="Renamed", allowed_currencies=pb.AllowedCodes())
    assert (one.name, list(one.allowed_currencies), list(one.allowed_methods)) == ("Renamed", [], ["sbp"])


def test_keys_are_listed_without_themselves(
    stub: MerchantsServiceStub, merchant: pb.Merchant, key: pb.CreateApiKeyResponse
) -> None:
    listed = stub.ListApiKeys(pb.ListApiKeysRequest(merchant_id=merchant.merchant_id))
    (only,) = listed.keys
    assert (only.key_id, only.merchant_id, only.name) == (key.key_id, merchant.merchant_id, "till")
    assert only.active
    assert not only.HasField("deactivated_at")
    assert key.api_key.startswith(only.hint)
    assert key.secret not in str(listed)
    assert key.api_key not in str(listed)


def test_signing_secrets_come_with_the_question_they_answer(
    stub: MerchantsServiceStub, merchant: pb.Merchant, key: pb.CreateApiKeyResponse
) -> None:
    queries = [
        pb.SigningSecretQuery(merchant_id=merchant.merchant_id, preferred_key_id=key.key_id),
        pb.SigningSecretQuery(merchant_id=merchant.merchant_id),
        pb.SigningSecretQuery(merchant_id=str(uuid.uuid4()), preferred_key_id=key.key_id),
    ]
    answer = stub.GetSigningSecrets(pb.GetSigningSecretsRequest(queries=queries))
    answered = sorted(
        (each.merchant_id, each.preferred_key_id, each.key_id, each.secret) for each in answer.secrets
    )
    assert answered == [
        (merchant.merchant_id, "", key.key_id, key.secret),
        (merchant.merchant_id, key.key_id, key.key_id, key.secret),
    ]


def test_categories_are_listed_by_code(stub: MerchantsServiceStub) -> None:
    for code in ("zoo", "books"):
        stub.SetCategory(pb.SetCategoryRequest(code=code, commission="0.1"))
    listed = list(stub.ListCategories(pb.ListCategoriesRequest()).categories)
    assert pb.Category(code="books", commission="0.1") in listed
    assert [each.code for each in listed] == sorted(each.code for each in listed)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda stub: stub.CreateMerchant(pb.CreateMerchantRequest(owner_email="a@b.c")), "name"),
        (
            lambda stub: stub.CreateMerchant(pb.CreateMerchantRequest(name="x", owner_email="a")),
            "owner_email",
        ),
        (lambda stub: stub.SetCategory(pb.SetCategoryRequest(code="A", commission="0")), "code"),
        (lambda stub: stub.SetCategory(pb.SetCategoryRequest(code="a", commission="2")), "commission"),
        (lambda stub: stub.ListMerchants(pb.ListMerchantsRequest(limit=201)), "limit"),
        (lambda stub: stub.ListMerchants(pb.ListMerchantsRequest(limit=-1)), "limit"),
        (lambda stub: stub.BlockOwner(pb.BlockOwnerRequest(email="nobody")), "email"),
    ],
)
def test_a_bad_value_is_refused_by_its_field(
    stub: MerchantsServiceStub, call: Callable[[MerchantsServiceStub], object], field: str
) -> None:
    answer = refused(lambda: call(stub))
    assert (answer.reason, answer.metadata) == ("VALIDATION_ERROR", {"field": field})


def test_a_long_key_name_is_refused(stub: MerchantsServiceStub, merchant: pb.Merchant) -> None:
    request = pb.CreateApiKeyRequest(merchant_id=merchant.merchant_id, name="x" * 65)
    assert refused(lambda: stub.CreateApiKey(request)).metadata == {"field": "name"}


def test_neither_keys_nor_secrets_reach_the_log(deps: Deps, key: pb.CreateApiKeyResponse) -> None:
    with structlog.testing.capture_logs() as lines, serving(deps) as stub:
        stub.Authenticate(pb.AuthenticateRequest(api_key=key.api_key))
        refused(lambda: stub.Authenticate(pb.AuthenticateRequest(api_key=key.api_key + "x")))
        stub.GetSigningSecrets(
            pb.GetSigningSecretsRequest(queries=[pb.SigningSecretQuery(preferred_key_id=key.key_id)])
        )
    told = repr(lines)
    assert told.count("Authenticate") == 2
    assert key.api_key not in told
    assert key.secret not in told


def test_keys_that_are_looked_up_slowly_hold_up_no_page(
    database_url: Callable[[str], str],
    stub: MerchantsServiceStub,
    merchant: pb.Merchant,
    key: pb.CreateApiKeyResponse,
) -> None:
    asked = pb.AuthenticateRequest(api_key=key.api_key)
    stub.Authenticate(asked)
    with ThreadPoolExecutor(16) as threads:
        owner = psycopg2.connect(owner_url(database_url("identity")))
        with closing(owner), owner.cursor() as cursor:
            cursor.execute("LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE")
            lookups = [threads.submit(stub.Authenticate, asked) for _ in range(16)]
            wait_until(lambda: waiting_for_the_lock(cursor) >= 4, "the look-ups to wait", timeout_seconds=15)
            got = stub.GetMerchant(pb.GetMerchantRequest(merchant_id=merchant.merchant_id))
            assert got.merchant.merchant_id == merchant.merchant_id
            assert not any(each.done() for each in lookups), "the page did not wait for them"
        for each in lookups:
            each.exception(15)


def waiting_for_the_lock(cursor: Cursor) -> int:
    waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'api_keys'::regclass AND NOT granted"
    cursor.execute(waiting)
    (count,) = cursor.fetchone() or (0,)
    return int(count)

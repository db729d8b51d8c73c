"""The list of merchants with its filters; owners; pictures that may become logos; changes of two authors at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import psycopg2
import pytest
from sqlalchemy import event

from fiatgate.merchants.v1 import merchants_pb2 as pb
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from services.identity.domain.merchants import MerchantFilter, MerchantStatus
from services.identity.operations.logos import LOGOS_PER_DAY
from services.identity.store import merchants as merchant_rows
from services.identity.wiring import Deps
from tests.support.databases import owner_url
from tests.support.pictures import PNG, png

OWNER = "lists@example.com"


@pytest.fixture(scope="module")
def made(stub: MerchantsServiceStub) -> dict[str, str]:
    """The ids of three merchants of one owner, by their names."""
    stub.SetCategory(pb.SetCategoryRequest(code="listed", commission="0.1"))
    requests = (
        pb.CreateMerchantRequest(name="Lamp House", owner_email=OWNER),
        pb.CreateMerchantRequest(name="Lamp & Table", owner_email=OWNER, active=True, category_code="listed"),
        pb.CreateMerchantRequest(name="Garden", owner_email=OWNER, active=True),
    )
    ids = {each.name: stub.CreateMerchant(each).merchant.merchant_id for each in requests}
    stub.BanMerchant(pb.BanMerchantRequest(merchant_id=ids["Garden"]))
    return ids


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, ["Garden", "Lamp & Table", "Lamp House"]),
        ({"status": pb.MERCHANT_STATUS_INACTIVE}, ["Lamp House"]),
        ({"status": pb.MERCHANT_STATUS_ACTIVE}, ["Lamp & Table"]),
        ({"status": pb.MERCHANT_STATUS_BANNED}, ["Garden"]),
        ({"category_code": "listed"}, ["Lamp & Table"]),
        ({"name": "lamp"}, ["Lamp & Table", "Lamp House"]),
        ({"name": "HOU lam"}, ["Lamp House"]),
        ({"name": "&"}, []),
        ({"owner_blocked": True}, []),
    ],
)
def test_a_filter_leaves_its_merchants_newest_first(
    stub: MerchantsServiceStub, made: dict[str, str], filters: dict[str, object], names: list[str]
) -> None:
    request = pb.ListMerchantsRequest(owner_email=OWNER.upper(), **filters)  # type: ignore[arg-type]
    assert [each.name for each in stub.ListMerchants(request).merchants] == names


def test_a_page_continues_where_the_one_before_ended(
    stub: MerchantsServiceStub, made: dict[str, str]
) -> None:
    request = pb.ListMerchantsRequest(owner_email=OWNER, name="lamp", limit=1)
    (first,) = stub.ListMerchants(request).merchants
    request.older_than_merchant_id = first.merchant_id
    (second,) = stub.ListMerchants(request).merchants
    request.older_than_merchant_id = second.merchant_id
    assert [first.name, second.name] == ["Lamp & Table", "Lamp House"]
    assert not stub.ListMerchants(request).merchants


@pytest.mark.parametrize("field", ["owner_email", "category_code", "name"])
def test_a_filter_that_fits_nothing_is_refused_by_its_name(stub: MerchantsServiceStub, field: str) -> None:
    with pytest.raises(Refused) as refused:
        stub.ListMerchants(pb.ListMerchantsRequest(**{field: "\0"}))  # type: ignore[arg-type]
    assert (refused.value.reason, refused.value.metadata["field"]) == ("VALIDATION_ERROR", field)


# -- plans

MANY = """
    WITH owner AS (
        INSERT INTO owners (id, email, created_at, blocked_at)
        SELECT gen_random_uuid(), 'many' || n || '@example.com', now(), CASE WHEN n = 1 THEN now() END
        FROM generate_series(1, 2000) n RETURNING id, email
    )
    INSERT INTO merchants (id, owner_id, name, activated_at, banned_at, category_code, client_share, created_at)
    SELECT gen_random_uuid(), id, 'Shop ' || email, now(), CASE WHEN email LIKE 'many7_@%' THEN now() END,
           CASE WHEN email LIKE 'many9_@%' THEN 'rare' END, 0, now() - n * interval '1 day'
    FROM owner CROSS JOIN generate_series(1, 10) n
"""


@pytest.fixture(scope="module")
def many(made: dict[str, str], database_url: Callable[[str], str]) -> None:
    """Twenty thousand merchants, few of which have what a filter asks for."""
    with closing(psycopg2.connect(owner_url(database_url("identity")))) as owner:
        owner.autocommit = True
        with owner.cursor() as cursor:
            cursor.execute(MANY)
            cursor.execute("ANALYZE owners, merchants")


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        (MerchantFilter(), "pk_merchants"),
        (MerchantFilter(status=MerchantStatus.BANNED), "ix_merchants_banned"),
        (MerchantFilter(status=MerchantStatus.INACTIVE), "ix_merchants_inactive"),
        (MerchantFilter(category_code="rare"), "ix_merchants_category_code"),
        (MerchantFilter(owner_email="many3@example.com"), "ix_merchants_owner_id"),
        (MerchantFilter(owner_blocked=True), "ix_owners_blocked"),
        (MerchantFilter(name="many5@example.com"), "ix_merchants_words"),
        (MerchantFilter(created_before=datetime(2000, 1, 1, tzinfo=UTC)), "ix_merchants_created_at"),
    ],
)
def test_each_filter_of_the_list_reads_an_index(
    deps: Deps, many: None, filters: MerchantFilter, index: str
) -> None:
    plan = explained(deps, filters)
    assert index in plan
    assert "Seq Scan on merchants" not in plan


def explained(deps: Deps, filters: MerchantFilter) -> str:
    """Returns how PostgreSQL reads a page with the filters."""
    made: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, values: Any, context: Any, many: bool) -> None:
        made.append((statement, values))

    with deps.db.autocommit() as connection:
        event.listen(connection, "before_cursor_execute", note)
        merchant_rows.merchants_newest_first(connection, filters, older_than=None, limit=50)
        event.remove(connection, "before_cursor_execute", note)
        ((statement, values),) = made
        return "\n".join(connection.exec_driver_sql(f"EXPLAIN {statement}", values).scalars())


# -- owners


def test_an_owner_is_found_by_its_address_and_by_its_id(
    stub: MerchantsServiceStub, made: dict[str, str]
) -> None:
    owner = stub.GetOwner(pb.GetOwnerRequest(owner=OWNER.upper())).owner
    assert (owner.email, owner.merchants, owner.HasField("blocked_at")) == (OWNER, 3, False)
    stub.BlockOwner(pb.BlockOwnerRequest(email=OWNER))
    blocked = stub.GetOwner(pb.GetOwnerRequest(owner=owner.owner_id)).owner
    only = stub.ListMerchants(pb.ListMerchantsRequest(owner_email=OWNER, owner_blocked=True)).merchants
    stub.UnblockOwner(pb.UnblockOwnerRequest(email=OWNER))
    assert (blocked.owner_id, blocked.HasField("blocked_at"), len(only)) == (owner.owner_id, True, 3)


@pytest.mark.parametrize("owner", ["unknown@example.com", "019a0000-0000-7000-8000-000000000000"])
def test_an_unknown_owner_is_not_found(stub: MerchantsServiceStub, owner: str) -> None:
    with pytest.raises(Refused) as refused:
        stub.GetOwner(pb.GetOwnerRequest(owner=owner))
    assert refused.value.reason == "OWNER_NOT_FOUND"


# -- a picture before it is a logo


def test_a_kept_picture_is_shown_and_is_no_merchants_logo_yet(
    stub: MerchantsServiceStub, made: dict[str, str]
) -> None:
    kept = stub.KeepLogo(pb.KeepLogoRequest(logo=PNG)).logo
    shown = stub.GetLogo(pb.GetLogoRequest(logo=kept))
    assert (shown.content_type, shown.content) == ("image/png", PNG)
    merchant = stub.GetMerchant(pb.GetMerchantRequest(merchant_id=made["Garden"])).merchant
    assert not merchant.branding.HasField("logo")


@pytest.mark.parametrize("content", [b"", b"GIF89a"])
def test_bytes_that_are_no_picture_are_not_kept(stub: MerchantsServiceStub, content: bytes) -> None:
    with pytest.raises(Refused) as refused:
        stub.KeepLogo(pb.KeepLogoRequest(logo=content))
    assert (refused.value.reason, refused.value.metadata["field"]) == ("VALIDATION_ERROR", "logo")


def test_members_of_a_merchant_send_so_many_new_pictures_a_day(
    stub: MerchantsServiceStub, made: dict[str, str]
) -> None:
    """Pictures that no merchant uses stay for ever: nobody may fill the database with them."""
    id = made["Garden"]
    own = [
        pb.KeepLogoRequest(logo=png(line=bytes([1, each])), merchant_id=id) for each in range(LOGOS_PER_DAY)
    ]
    for each in own:
        stub.KeepLogo(each)
    further = png(line=bytes([2, 0]))
    for refused_call in (
        lambda: stub.KeepLogo(pb.KeepLogoRequest(logo=further, merchant_id=id)),
        lambda: stub.ConfigureOwnMerchant(pb.ConfigureOwnMerchantRequest(merchant_id=id, logo=further)),
    ):
        with pytest.raises(Refused, match="go on tomorrow") as refused:
            refused_call()
        assert (refused.value.reason, refused.value.metadata["field"]) == ("VALIDATION_ERROR", "logo")
    assert stub.KeepLogo(own[0]).logo, "one that is there already counts for nothing"
    assert stub.KeepLogo(pb.KeepLogoRequest(logo=further)).logo, "an operator is not counted"
    with pytest.raises(Refused) as refused:
        stub.KeepLogo(pb.KeepLogoRequest(logo=png(line=bytes([3, 0])), merchant_id=str(new_id())))
    assert refused.value.reason == "MERCHANT_NOT_FOUND"


# -- two authors


def configured(
    stub: MerchantsServiceStub, merchant_id: str, was: pb.MerchantOptions, **options: Any
) -> pb.Merchant:
    request = pb.ConfigureMerchantRequest(merchant_id=merchant_id, was=was, **options)
    return stub.ConfigureMerchant(request).merchant


def test_two_authors_of_different_options_do_not_undo_each_other(
    stub: MerchantsServiceStub, made: dict[str, str]
) -> None:
    id = made["Lamp House"]
    was = pb.MerchantOptions(name="Lamp House", colour="", client_share="0")
    configured(stub, id, was, colour="#112233")
    after = configured(stub, id, was, client_share="0.50")
    assert (after.branding.colour, after.client_share) == ("#112233", "0.5")


@pytest.mark.parametrize(
    ("option", "first", "second"),
    [
        ("name", "Lamp Hut", "Lamp Hall"),
        ("client_share", "0.25", "0.75"),
        ("callback_url", "https://a.example/hook", "https://b.example/hook"),
        ("allowed_currencies", pb.AllowedCodes(codes=["EUR", "USD"]), pb.AllowedCodes(codes=["EUR"])),
        (
            "frame_origins",
            pb.AllowedOrigins(origins=["https://a.example"]),
            pb.AllowedOrigins(origins=["https://b.example"]),
        ),
    ],
)
def test_an_option_that_another_author_has_changed_is_not_overwritten(
    stub: MerchantsServiceStub, new_email: str, option: str, first: Any, second: Any
) -> None:
    request = pb.CreateMerchantRequest(name="Lamp House", owner_email=new_email, client_share="0.1")
    id = stub.CreateMerchant(request).merchant.merchant_id
    before = pb.MerchantOptions(
        name="Lamp House",
        client_share="0.1",
        callback_url="",
        allowed_currencies=pb.AllowedCodes(),
        frame_origins=pb.AllowedOrigins(),
    )
    configured(stub, id, before, **{option: first})
    with pytest.raises(Refused) as refused:
        configured(stub, id, before, **{option: second})
    assert (refused.value.reason, refused.value.metadata["field"]) == ("EDIT_CONFLICT", option)
    configured(stub, id, before, **{option: first})  # both want the same
    newer = pb.MerchantOptions(**{option: first})
    configured(stub, id, newer, **{option: second})


def test_a_commission_that_another_author_has_set_is_not_overwritten(stub: MerchantsServiceStub) -> None:
    def put(commission: str, was: str) -> pb.Category:
        request = pb.SetCategoryRequest(code="edited", commission=commission, was_commission=was)
        return stub.SetCategory(request).category

    assert put("0.1", "").commission == "0.1"
    assert put("0.2", "0.1").commission == "0.2"
    for was in ("", "0.1"):
        with pytest.raises(Refused) as refused:
            put("0.3", was)
        assert (refused.value.reason, refused.value.metadata["now"]) == ("EDIT_CONFLICT", "0.2")
    assert put("0.20", "0.1").commission == "0.2"  # both want the same

"""Each operation on a real database."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial

import psycopg2
import psycopg2.extras
import pytest
from sqlalchemy import text

from deploy.local.waiting import wait_until
from kit.base.ids import new_id
from kit.db.books import check_page
from kit.rpc.errors import Refused
from services.identity.config import IdentitySettings
from services.identity.domain.merchants import Merchant, MerchantStatus
from services.identity.operations import api_keys, categories, merchants, owners
from services.identity.operations.api_keys import NewApiKey
from services.identity.operations.merchants import MerchantOptions
from services.identity.store import api_keys as keys
from services.identity.store.books import parts
from services.identity.store.uses import NOTED_EVERY, KeyUses
from services.identity.wiring import Deps
from tests.identity.merchants.conftest import Shop
from tests.support.clock import ManualClock
from tests.support.databases import past_all_rules

UNKNOWN_ID = "01890000-0000-7000-8000-000000000000"


def reason_of(call: Callable[[], object]) -> str:
    with pytest.raises(Refused) as refused:
        call()
    return refused.value.reason


def refused_field(call: Callable[[], object]) -> str:
    with pytest.raises(Refused) as refused:
        call()
    assert refused.value.reason == "VALIDATION_ERROR"
    return refused.value.metadata["field"]


def authenticated(deps: Deps, shop: Shop) -> Merchant:
    return api_keys.authenticate(deps, api_key=shop.key.api_key).merchant


# -- authenticate


def last_use(deps: Deps, shop: Shop) -> datetime | None:
    return api_keys.list_api_keys(deps, merchant_id=shop.merchant_id)[-1].last_used_at


def test_the_last_use_of_a_key_is_written_once_in_some_minutes(
    deps: Deps, shop: Shop, clock: ManualClock
) -> None:
    """Every request of a program authenticates: it must not write for each."""
    assert last_use(deps, shop) is None
    first = clock.now()
    authenticated(deps, shop)
    clock.advance(seconds=NOTED_EVERY.total_seconds() - 1)
    authenticated(deps, shop)
    another_process = replace(deps, uses=KeyUses())
    authenticated(another_process, shop)
    assert last_use(deps, shop) == first
    clock.advance(seconds=2)
    authenticated(another_process, shop)
    authenticated(deps, shop)
    assert last_use(deps, shop) == clock.now()


def test_a_use_is_forgotten_while_its_row_is_locked_and_no_call_waits(deps: Deps, shop: Shop) -> None:
    with deps.db.transaction() as tx:
        keys.api_key_to_change(tx, shop.key.key_id)
        authenticated(deps, shop)
    assert last_use(deps, shop) is None


def test_a_key_that_is_replaced_works_on_and_names_the_new_one(deps: Deps, shop: Shop) -> None:
    old = str(shop.key.key_id)
    new = api_keys.create_api_key(deps, merchant_id=shop.merchant_id, replaces_key_id=old)
    assert authenticated(deps, shop)
    listed = {each.id: each for each in api_keys.list_api_keys(deps, merchant_id=shop.merchant_id)}
    assert (listed[shop.key.key_id].replaced_by, listed[new.key_id].replaced_by) == (new.key_id, None)
    api_keys.deactivate_api_key(deps, key_id=old)
    for wrong in (old, str(new_id()), "x"):
        assert (
            reason_of(
                lambda wrong=wrong: api_keys.create_api_key(  # type: ignore[misc]  # mypy knows no defaults of lambdas
                    deps, merchant_id=shop.merchant_id, replaces_key_id=wrong
                )
            )
            == "API_KEY_NOT_FOUND"
        )


def test_a_key_tells_its_merchant_and_itself(deps: Deps, shop: Shop) -> None:
    holder = api_keys.authenticate(deps, api_key=shop.key.api_key)
    assert str(holder.merchant.merchant_id) == shop.merchant_id
    assert holder.merchant.owner_email == shop.email
    assert holder.key_id == shop.key.key_id


def test_what_authenticate_tells_is_what_get_tells(deps: Deps, shop: Shop) -> None:
    """The hot statement is prepared and read by other means than the rest: both have to say the same."""
    categories.set_category(deps, code="games", commission="0.123456")
    options = MerchantOptions(
        category_code="games",
        client_share="0.5",
        callback_url="https://shop.example/hook",
        success_url="http://shop.example/thanks",
        fail_url="https://shop.example/sorry",
        allowed_currencies=["RUB", "USD"],
        allowed_methods=["sbp"],
    )
    configured = merchants.configure_merchant(deps, merchant_id=shop.merchant_id, options=options)
    assert configured.category_commission == Decimal("0.123456")
    assert authenticated(deps, shop) == configured


@pytest.mark.parametrize(
    "spoil",
    [
        lambda key: "",
        lambda key: key + " ",
        lambda key: " " + key,
        lambda key: key + "\n",
        lambda key: key + "\0",
        lambda key: key.swapcase(),
        lambda key: key[:-1],
        lambda key: key[:-1] + ("a" if key[-1] != "a" else "b"),
        lambda key: key[3:],
        lambda key: key.replace(key[5], "é"),
        lambda key: "fg_" + "\ud800" * 33,
        lambda key: "fg_" + "٣" * 33,
        lambda key: "x" * 1_000_000,
        lambda key: "' OR 1=1 --",
    ],
)
def test_a_key_is_taken_to_the_letter(deps: Deps, shop: Shop, spoil: Callable[[str], str]) -> None:
    spoiled = spoil(shop.key.api_key)
    assert reason_of(lambda: api_keys.authenticate(deps, api_key=spoiled)) == "API_KEY_INVALID"


def test_scopes_are_of_the_key_and_of_the_one_that_replaces_it(deps: Deps, shop: Shop) -> None:
    def scopes_of(key: NewApiKey) -> Sequence[str]:
        return api_keys.authenticate(deps, api_key=key.api_key).scopes

    make = partial(api_keys.create_api_key, deps, merchant_id=shop.merchant_id)
    assert scopes_of(shop.key) == []
    old = make(scopes=["refunds:write", "read"])
    assert scopes_of(old) == ["read", "refunds:write"]
    assert scopes_of(make(replaces_key_id=str(old.key_id))) == ["read", "refunds:write"]
    assert refused_field(lambda: make(scopes=["read", "everything"])) == "scopes"


@pytest.mark.parametrize("column", ["scopes", "merchant_id"])
def test_a_key_whose_scopes_or_merchant_sql_changed_is_refused_and_named(
    deps: Deps, shop: Shop, column: str
) -> None:
    key = api_keys.create_api_key(deps, merchant_id=shop.merchant_id, scopes=["read"])
    email = f"{new_id().hex}@example.com"
    other = merchants.create_merchant(
        deps, owner_email=email, active=True, options=MerchantOptions(name="Other")
    )
    values = {"scopes": [], "merchant_id": other.merchant_id}
    with deps.db.transaction() as tx:
        before = tx.scalar(text(f"SELECT {column} FROM api_keys WHERE id = :id"), {"id": key.key_id})
    change = f"UPDATE api_keys SET {column} = %s WHERE id = %s"
    psycopg2.extras.register_uuid()  # type: ignore[no-untyped-call]  # typeshed's gap

    def set_to(value: object) -> None:
        url = past_all_rules(deps.settings.database_url)
        with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(change, (value, key.key_id))

    set_to(values[column])
    assert reason_of(partial(api_keys.authenticate, deps, api_key=key.api_key)) == "API_KEY_INVALID"
    problems = [
        each
        for part in parts(deps.key_vault)
        for each in check_page(deps.db, part, after="", limit=1000).problems
    ]
    assert (f"key {key.key_id}", column) in {(each.subject, each.field) for each in problems}
    set_to(before)
    assert api_keys.authenticate(deps, api_key=key.api_key).scopes == ["read"]


def test_the_secret_is_no_key(deps: Deps, shop: Shop) -> None:
    for text_ in (
        shop.key.secret,
        "fg_" + shop.key.secret,
        "fg_" + shop.key.secret[:33],
        str(shop.key.key_id),
    ):
        assert reason_of(partial(api_keys.authenticate, deps, api_key=text_)) == "API_KEY_INVALID"


def test_each_state_of_owner_and_merchant_has_its_reason_from_the_next_call_on(
    deps: Deps, shop: Shop
) -> None:
    def reason() -> str:
        return reason_of(lambda: authenticated(deps, shop))

    merchants.ban_merchant(deps, merchant_id=shop.merchant_id)
    assert reason() == "MERCHANT_BLOCKED"
    owners.block_owner(deps, email=shop.email)
    assert reason() == "OWNER_BLOCKED"
    owners.unblock_owner(deps, email=shop.email)
    assert reason() == "MERCHANT_BLOCKED"
    merchants.unban_merchant(deps, merchant_id=shop.merchant_id)
    assert authenticated(deps, shop).status is MerchantStatus.ACTIVE
    owners.block_owner(deps, email=shop.email)
    api_keys.deactivate_api_key(deps, key_id=str(shop.key.key_id))
    assert reason() == "API_KEY_INVALID"


def test_a_merchant_that_was_not_activated_is_not_let_in_until_it_is(deps: Deps, new_email: str) -> None:
    merchant = merchants.create_merchant(deps, owner_email=new_email, options=MerchantOptions(name="New"))
    merchant_id = str(merchant.merchant_id)
    key = api_keys.create_api_key(deps, merchant_id=merchant_id)
    assert reason_of(lambda: api_keys.authenticate(deps, api_key=key.api_key)) == "MERCHANT_NOT_ACTIVE"
    merchants.activate_merchant(deps, merchant_id=merchant_id)
    api_keys.authenticate(deps, api_key=key.api_key)


def test_one_of_several_keys_is_deactivated_alone(deps: Deps, shop: Shop) -> None:
    other = api_keys.create_api_key(deps, merchant_id=shop.merchant_id, name="till")
    api_keys.deactivate_api_key(deps, key_id=str(shop.key.key_id))
    assert reason_of(lambda: authenticated(deps, shop)) == "API_KEY_INVALID"
    assert api_keys.authenticate(deps, api_key=other.api_key).key_id == other.key_id


def test_authenticate_goes_on_after_its_connections_were_cut(deps: Deps, shop: Shop) -> None:
    """Prepared statements die with their connection: the next one has to prepare them anew."""
    authenticated(deps, shop)
    with deps.db.autocommit() as connection:
        others = "pid <> pg_backend_pid() AND datname = current_database() AND usename = current_user"
        connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"))
        left = text(f"SELECT count(*) FROM pg_stat_activity WHERE {others}")
        wait_until(lambda: connection.scalar(left) == 0, "the connections to be cut", timeout_seconds=10)
    authenticated(deps, shop)


# -- merchants and owners


def test_a_new_merchant_has_the_documented_defaults(deps: Deps, new_email: str, clock: ManualClock) -> None:
    merchant = merchants.create_merchant(deps, owner_email=new_email, options=MerchantOptions(name="Plain"))
    assert merchant == Merchant(
        merchant_id=merchant.merchant_id,
        name="Plain",
        owner_email=new_email,
        owner_blocked=False,
        activated_at=None,
        banned_at=None,
        category_code=None,
        category_commission=None,
        client_share=Decimal(0),
        callback_url=None,
        success_url=None,
        fail_url=None,
        allowed_currencies=[],
        allowed_methods=[],
        created_at=clock.now(),
    )


def test_a_known_address_in_any_case_adds_to_its_owner(deps: Deps, shop: Shop) -> None:
    second = merchants.create_merchant(
        deps, owner_email=shop.email.upper(), options=MerchantOptions(name="Second"), active=True
    )
    owners.block_owner(deps, email=f" {shop.email.title()} ")
    for merchant_id in (shop.merchant_id, str(second.merchant_id)):
        assert merchants.get_merchant(deps, merchant_id=merchant_id).owner_blocked


def test_merchants_made_at_once_for_one_new_address_share_one_owner(deps: Deps, new_email: str) -> None:
    def create(number: int) -> Merchant:
        options = MerchantOptions(name=f"Shop {number}")
        return merchants.create_merchant(deps, owner_email=new_email, options=options)

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(create, range(16)))
    assert len({merchant.merchant_id for merchant in made}) == 16
    with deps.db.autocommit() as connection:
        owners = connection.execute(
            text("SELECT count(*) FROM owners WHERE email = :email"), {"email": new_email}
        )
        assert owners.scalar_one() == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "a\0b"),
        ("category_code", "Upper"),
        ("client_share", "1.5"),
        ("client_share", ""),
        ("callback_url", "http://shop.example/hook"),
        ("callback_url", "https://10.0.0.1/hook"),
        ("callback_url", "https://user:pass@shop.example/"),
        ("callback_url", "https://shop.example/" + "a" * 2048),
        ("success_url", "javascript:alert(1)"),
        ("success_url", "//shop.example"),
        ("fail_url", "https://shop.example/a b"),
        ("fail_url", "https://@shop.example/"),
        ("allowed_currencies", ["RUBLE"]),
        ("allowed_methods", ["a b"]),
    ],
)
def test_a_bad_value_is_refused_by_its_field_and_nothing_is_written(
    deps: Deps, shop: Shop, new_email: str, field: str, value: str | Sequence[str]
) -> None:
    before = merchants.get_merchant(deps, merchant_id=shop.merchant_id)
    options = replace(MerchantOptions(name="Renamed"), **{field: value})  # type: ignore[arg-type]  # any field
    create = partial(merchants.create_merchant, deps, owner_email=new_email, options=options)
    change = partial(merchants.configure_merchant, deps, merchant_id=shop.merchant_id, options=options)
    assert refused_field(create) == refused_field(change) == field
    assert merchants.get_merchant(deps, merchant_id=shop.merchant_id) == before
    assert reason_of(lambda: owners.block_owner(deps, email=new_email)) == "OWNER_NOT_FOUND"


def test_a_local_stack_may_call_back_to_itself(
    deps: Deps, shop: Shop, make_settings: Callable[..., IdentitySettings]
) -> None:
    local = replace(deps, settings=make_settings(webhook_allow_private=True))
    options = MerchantOptions(callback_url="http://127.0.0.1:9000/hook")
    merchant = merchants.configure_merchant(local, merchant_id=shop.merchant_id, options=options)
    assert merchant.callback_url == "http://127.0.0.1:9000/hook"


def test_configuring_leaves_what_is_not_given_and_empties_what_is_empty(deps: Deps, shop: Shop) -> None:
    categories.set_category(deps, code="games", commission="0.05")
    full = MerchantOptions(
        category_code="games",
        client_share="0.25",
        callback_url="https://shop.example/hook",
        allowed_currencies=["RUB"],
        allowed_methods=["sbp"],
    )
    configured = merchants.configure_merchant(deps, merchant_id=shop.merchant_id, options=full)
    unchanged = merchants.configure_merchant(deps, merchant_id=shop.merchant_id, options=MerchantOptions())
    assert unchanged == configured
    empty = MerchantOptions(category_code="", callback_url="", allowed_currencies=[], allowed_methods=[])
    emptied = merchants.configure_merchant(deps, merchant_id=shop.merchant_id, options=empty)
    assert emptied == replace(
        configured,
        category_code=None,
        category_commission=None,
        callback_url=None,
        allowed_currencies=[],
        allowed_methods=[],
    )


def test_changes_of_different_options_at_once_all_stay(deps: Deps, shop: Shop) -> None:
    changes = [
        MerchantOptions(name="Both"),
        MerchantOptions(client_share="0.5"),
        MerchantOptions(success_url="https://shop.example/"),
        MerchantOptions(allowed_methods=["sbp"]),
    ]
    with ThreadPoolExecutor(4) as pool:
        for made in [
            pool.submit(merchants.configure_merchant, deps, merchant_id=shop.merchant_id, options=options)
            for options in changes
        ]:
            made.result()
    merchant = merchants.get_merchant(deps, merchant_id=shop.merchant_id)
    assert (merchant.name, merchant.client_share) == ("Both", Decimal("0.5"))
    assert (merchant.success_url, merchant.allowed_methods) == ("https://shop.example/", ["sbp"])


@pytest.mark.parametrize("active", [True, False])
def test_lifting_a_ban_finds_the_state_before_it(deps: Deps, new_email: str, active: bool) -> None:
    options = MerchantOptions(name="Banned")
    before = merchants.create_merchant(deps, owner_email=new_email, active=active, options=options)
    merchant_id = str(before.merchant_id)
    for _ in range(2):  # banning twice is banning once
        assert merchants.ban_merchant(deps, merchant_id=merchant_id).status is MerchantStatus.BANNED
    for _ in range(2):
        assert merchants.unban_merchant(deps, merchant_id=merchant_id) == before


def test_activating_twice_changes_nothing(deps: Deps, shop: Shop, clock: ManualClock) -> None:
    before = merchants.get_merchant(deps, merchant_id=shop.merchant_id)
    clock.advance(hours=1)
    assert merchants.activate_merchant(deps, merchant_id=shop.merchant_id) == before


def test_a_banned_merchant_is_not_activated(deps: Deps, shop: Shop) -> None:
    merchants.ban_merchant(deps, merchant_id=shop.merchant_id)
    with pytest.raises(Refused) as refused:
        merchants.activate_merchant(deps, merchant_id=shop.merchant_id)
    assert refused.value.reason == "MERCHANT_STATE_CONFLICT"
    assert refused.value.metadata == {"status": "banned"}


def test_merchants_are_listed_newest_first_page_by_page(deps: Deps, new_email: str) -> None:
    made = [
        merchants.create_merchant(deps, owner_email=new_email, options=MerchantOptions(name=str(number)))
        for number in range(5)
    ]
    listed: list[Merchant] = []
    while len(listed) < 5:
        last = str(listed[-1].merchant_id) if listed else ""
        listed += merchants.list_merchants(deps, older_than_merchant_id=last, limit=2)
    assert listed[:5] == made[::-1]


@pytest.mark.parametrize("merchant_id", [UNKNOWN_ID, "", "42", "\0", "{" + UNKNOWN_ID + "}"])
def test_no_operation_knows_a_merchant_that_nobody_made(deps: Deps, merchant_id: str) -> None:
    for operation in (
        merchants.get_merchant,
        merchants.activate_merchant,
        merchants.ban_merchant,
        merchants.unban_merchant,
        api_keys.create_api_key,
        api_keys.list_api_keys,
    ):
        assert reason_of(partial(operation, deps, merchant_id=merchant_id)) == "MERCHANT_NOT_FOUND"
    change = partial(merchants.configure_merchant, deps, options=MerchantOptions())
    assert reason_of(lambda: change(merchant_id=merchant_id)) == "MERCHANT_NOT_FOUND"


# -- keys and secrets


def test_neither_key_nor_secret_is_anywhere_in_the_database(deps: Deps, shop: Shop) -> None:
    with deps.db.autocommit() as connection:
        rows = connection.execute(
            text("SELECT k::text, convert_from(sealed_secret, 'UTF8') FROM api_keys k WHERE id = :id"),
            {"id": shop.key.key_id},
        ).one()
    kept = " ".join(rows)
    assert shop.key.api_key[:12] in kept  # the hint
    assert shop.key.api_key[:13] not in kept
    assert shop.key.api_key.encode().hex() not in kept
    assert shop.key.secret not in kept
    assert shop.key.secret.encode().hex() not in kept


def test_keys_are_listed_newest_first_with_the_deactivated_ones(
    deps: Deps, shop: Shop, clock: ManualClock
) -> None:
    second = api_keys.create_api_key(deps, merchant_id=shop.merchant_id, name=" till 2 ")
    clock.advance(minutes=5)
    api_keys.deactivate_api_key(deps, key_id=str(shop.key.key_id))
    deactivated_at = clock.now()
    clock.advance(minutes=5)
    again = api_keys.deactivate_api_key(deps, key_id=str(shop.key.key_id))
    assert again.deactivated_at == deactivated_at  # the first time counts
    keys = api_keys.list_api_keys(deps, merchant_id=shop.merchant_id)
    assert [(key.id, key.name, key.deactivated_at) for key in keys] == [
        (second.key_id, "till 2", None),
        (shop.key.key_id, "", deactivated_at),
    ]
    assert keys[0].hint == second.api_key[:12]


def test_active_keys_are_listed_before_newer_ones_that_were_deactivated(
    deps: Deps, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is in no list can't be deactivated from there, and goes on opening the merchant's money."""
    newer = [api_keys.create_api_key(deps, merchant_id=shop.merchant_id).key_id for _ in range(2)]
    for each in newer:
        api_keys.deactivate_api_key(deps, key_id=str(each))
    monkeypatch.setattr(api_keys, "API_KEYS_LISTED", 2)
    listed = api_keys.list_api_keys(deps, merchant_id=shop.merchant_id)
    assert [each.id for each in listed] == [shop.key.key_id, newer[-1]]


def test_a_merchant_has_a_bound_of_active_keys(deps: Deps, shop: Shop, new_email: str) -> None:
    for _ in range(api_keys.ACTIVE_KEYS_MOST - 2):  # the shop has one
        api_keys.create_api_key(deps, merchant_id=shop.merchant_id)

    def make(_number: int = 0, replaces: str | None = None) -> str:
        try:
            api_keys.create_api_key(deps, merchant_id=shop.merchant_id, replaces_key_id=replaces)
        except Refused as refused:
            assert refused.metadata == {"most": str(api_keys.ACTIVE_KEYS_MOST)}
            return refused.reason
        return "made"

    with ThreadPoolExecutor(5) as threads:
        assert sorted(threads.map(make, range(5))) == ["API_KEYS_LIMITED"] * 4 + ["made"]
    assert make(replaces=str(shop.key.key_id)) == "API_KEYS_LIMITED", "the replaced key works on"
    api_keys.deactivate_api_key(deps, key_id=str(shop.key.key_id))
    assert make() == "made"
    other = merchants.create_merchant(
        deps, owner_email=new_email, active=True, options=MerchantOptions(name="B")
    )
    assert api_keys.create_api_key(deps, merchant_id=str(other.merchant_id)).api_key


@pytest.mark.parametrize("key_id", [UNKNOWN_ID, "", "fg_abc", "\0"])
def test_a_key_that_nobody_made_is_not_deactivated(deps: Deps, key_id: str) -> None:
    assert reason_of(lambda: api_keys.deactivate_api_key(deps, key_id=key_id)) == "API_KEY_NOT_FOUND"


def test_the_preferred_key_signs_while_active_then_the_newest_active_one(deps: Deps, shop: Shop) -> None:
    first = shop.key
    second, third = (api_keys.create_api_key(deps, merchant_id=shop.merchant_id) for _ in range(2))

    def signing(preferred: str) -> str | None:
        asked = [(shop.merchant_id, preferred)]
        return next((each.secret for each in api_keys.get_signing_secrets(deps, queries=asked)), None)

    assert signing(str(first.key_id)) == first.secret
    assert signing("") == signing(str(new_id())) == signing("no uuid") == third.secret
    api_keys.deactivate_api_key(deps, key_id=str(first.key_id))
    assert signing(str(first.key_id)) == third.secret
    api_keys.deactivate_api_key(deps, key_id=str(third.key_id))
    assert signing(str(first.key_id)) == second.secret
    api_keys.deactivate_api_key(deps, key_id=str(second.key_id))
    assert signing(str(first.key_id)) is None


def test_a_key_of_another_merchant_never_signs(deps: Deps, shop: Shop, new_email: str) -> None:
    other = merchants.create_merchant(deps, owner_email=new_email, options=MerchantOptions(name="Other"))
    others = api_keys.create_api_key(deps, merchant_id=str(other.merchant_id))
    asked = [
        (shop.merchant_id, str(others.key_id)),
        (str(other.merchant_id), str(others.key_id)),
        (str(new_id()), str(others.key_id)),
        ("no uuid", ""),
    ]
    answered = api_keys.get_signing_secrets(deps, queries=asked)
    assert {str(each.merchant_id): each.secret for each in answered} == {
        shop.merchant_id: shop.key.secret,
        str(other.merchant_id): others.secret,
    }


def test_a_thousand_secrets_are_asked_for_at_once_and_no_more(deps: Deps, shop: Shop) -> None:
    asked = [(shop.merchant_id, str(shop.key.key_id))] * 1000
    assert len(api_keys.get_signing_secrets(deps, queries=asked)) == 1000
    assert api_keys.get_signing_secrets(deps, queries=[]) == []
    assert refused_field(lambda: api_keys.get_signing_secrets(deps, queries=[*asked, asked[0]])) == "queries"


# -- categories


def test_a_merchant_gets_only_a_category_that_exists_and_follows_its_commission(
    deps: Deps, shop: Shop
) -> None:
    options = MerchantOptions(category_code="later")
    for call in (
        partial(
            merchants.create_merchant, deps, owner_email=shop.email, options=replace(options, name="Lamps")
        ),
        partial(merchants.configure_merchant, deps, merchant_id=shop.merchant_id, options=options),
    ):
        with pytest.raises(Refused) as refused:
            call()
        assert refused.value.reason == "MERCHANT_CATEGORY_NOT_FOUND"
    categories.set_category(deps, code="later", commission="0.05")
    merchants.configure_merchant(deps, merchant_id=shop.merchant_id, options=options)
    assert authenticated(deps, shop).category_commission == Decimal("0.05")
    categories.set_category(deps, code="later", commission="0.06")
    assert authenticated(deps, shop).category_commission == Decimal("0.06")
    assert [
        (each.code, each.commission) for each in categories.list_categories(deps) if each.code == "later"
    ] == [("later", Decimal("0.06"))]


def test_a_category_keeps_its_rule_of_refunds_until_another_is_given(deps: Deps, shop: Shop) -> None:
    put = partial(categories.set_category, deps, code="refunded")
    put(commission="0.05")
    merchants.configure_merchant(
        deps, merchant_id=shop.merchant_id, options=MerchantOptions(category_code="refunded")
    )
    rules = []
    for given in (None, True, None, False):
        put(commission="0.06", refunds_return_commission=given)
        rules.append(authenticated(deps, shop).refunds_return_commission)
    assert rules == [False, True, True, False]
    with deps.db.transaction() as tx:
        tx.execute(text("UPDATE categories SET refunds_return_commission = true WHERE code = 'refunded'"))
    put(commission="0.07")
    assert _wrong(deps, "category refunded") == {"refunds_return_commission"}, "not blessed by another change"
    put(commission="0.07", refunds_return_commission=True)
    assert _wrong(deps, "category refunded") == set()


def test_a_merchant_is_asked_about_late_money_until_it_decides_otherwise(deps: Deps, shop: Shop) -> None:
    assert merchants.get_merchant(deps, merchant_id=shop.merchant_id).late_money == "ask_credit"
    put = partial(merchants.set_late_money, deps, merchant_id=shop.merchant_id)
    assert put(late_money="return", was={"late_money": "ask_credit"}).late_money == "return"
    with pytest.raises(Refused) as refused:
        put(late_money="credit", was={"late_money": "ask_credit"})
    assert refused.value.reason == "EDIT_CONFLICT"
    for wrong in ("", "ask", "RETURN"):
        assert refused_field(partial(put, late_money=wrong)) == "late_money"
    assert merchants.get_merchant(deps, merchant_id=shop.merchant_id).late_money == "return"
    assert _wrong(deps, f"merchant {shop.merchant_id}") == set()


@pytest.mark.parametrize("commission", ["-0.01", "1.000001", "", "five", "NaN", "1e-1"])
def test_a_commission_outside_zero_to_one_is_refused(deps: Deps, commission: str) -> None:
    set_category = partial(categories.set_category, deps, code="bad", commission=commission)
    assert refused_field(set_category) == "commission"
    assert all(each.code != "bad" for each in categories.list_categories(deps))


# -- SQL made the same change before


def test_a_ban_a_block_and_a_deactivation_hold_though_sql_made_and_undid_them(deps: Deps, shop: Shop) -> None:
    id, email, key = shop.merchant_id, shop.email, str(shop.key.key_id)
    for table, column, where, call in (
        ("merchants", "banned_at", {"id": id}, partial(merchants.ban_merchant, deps, merchant_id=id)),
        ("owners", "blocked_at", {"email": email}, partial(owners.block_owner, deps, email=email)),
        ("api_keys", "deactivated_at", {"id": key}, partial(api_keys.deactivate_api_key, deps, key_id=key)),
    ):
        ((name, value),) = where.items()

        def write(moment: str, of: str = f"UPDATE {table} SET {column} = %s WHERE {name} = :value") -> None:
            with deps.db.transaction() as tx:
                tx.execute(text(of % moment), {"value": value})  # noqa: B023

        write("now()")
        call()
        write("NULL")
    found = {
        (each.subject, each.field)
        for part in parts(deps.key_vault)
        for each in check_page(deps.db, part, after="", limit=1000).problems
    }
    assert found >= {
        (f"merchant {id}", "banned_at"),
        (f"owner {email}", "blocked_at"),
        (f"key {key}", "deactivated_at"),
    }


def test_another_change_does_not_bless_what_sql_wrote(deps: Deps, shop: Shop) -> None:
    """Nor does a form that shows the written value and sends it back."""
    id = shop.merchant_id
    categories.set_category(deps, code="cheap", commission="0")
    with deps.db.transaction() as tx:
        written = "UPDATE merchants SET category_code = 'cheap', callback_url = 'https://evil.example' WHERE id = :id"
        tx.execute(text(written), {"id": id})
    was = {"colour": "", "callback_url": "https://evil.example"}
    options = MerchantOptions(colour="#112233", callback_url="https://evil.example")
    merchants.configure_own_merchant(deps, merchant_id=id, options=options, was=was)
    merchants.ban_merchant(deps, merchant_id=id)
    with deps.db.transaction() as tx:
        tx.execute(text("UPDATE merchants SET banned_at = NULL WHERE id = :id"), {"id": id})
    merchants.activate_merchant(deps, merchant_id=id)
    assert _named(deps, id) == {"category_code", "callback_url", "banned_at"}
    merchants.configure_merchant(
        deps, merchant_id=id, options=MerchantOptions(category_code="cheap", callback_url="")
    )
    merchants.unban_merchant(deps, merchant_id=id)
    assert _named(deps, id) == set(), "who sets them decides them"


def _named(deps: Deps, merchant_id: str) -> set[str]:
    """Returns the fields of the merchant that `fiatgate verify` names."""
    return _wrong(deps, f"merchant {merchant_id}")


def _wrong(deps: Deps, subject: str) -> set[str]:
    return {
        each.field
        for part in parts(deps.key_vault)
        for each in check_page(deps.db, part, after="", limit=1000).problems
        if each.subject == subject
    }

"""Merchants on the desk: the list, the settings, keys, logo, members, states, owners, categories."""

import re
from html import unescape
from typing import Any

import pytest
import requests

from fiatgate.merchants.v1 import merchants_pb2 as pb
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from kit.rpc.client import channel
from tests.console.conftest import Open, Staff
from tests.console.house import HTTP_SECONDS, House, Person, new_email, text_of, title_of
from tests.console.looks import looks_right
from tests.support.pictures import PNG

MERCHANT = re.compile(r"/merchants/([0-9a-f-]{36})")


@pytest.fixture(scope="module")
def admin(staff: Staff) -> Person:
    return staff("admin")


@pytest.fixture(scope="module")
def merchants(house: House) -> Any:
    with channel(house.stack.addresses["identity"], name="identity") as connected:
        yield MerchantsServiceStub(connected)


def merchant_of(merchants: Any, id: str) -> pb.Merchant:
    merchant: pb.Merchant = merchants.GetMerchant(pb.GetMerchantRequest(merchant_id=id)).merchant
    return merchant


def made(admin: Person, name: str = "Lamp House", **fields: str) -> str:
    typed = {"name": name, "owner_email": new_email(), "client_share": "0"} | fields
    answer = admin.post("/merchants/new", typed)
    assert "The merchant is created." in answer.text, answer.text
    found = MERCHANT.search(answer.url)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def shop(admin: Person) -> str:
    return made(admin)


def fields_of(page: str, action: str) -> dict[str, str]:
    """The fields of a form as a browser sends them: the first one with this action and this group."""
    address, _, group = action.partition("#")
    for form in re.findall(rf'<form[^>]*action="{re.escape(address)}".*?</form>', page, re.DOTALL):
        inputs = re.findall(r"<input[^>]*>", form)
        found: dict[str, str] = {}
        for each in inputs:
            if 'type="checkbox"' in each and " checked" not in each:
                continue
            name, value = re.search(r'name="([^"]+)"', each), re.search(r'value="([^"]*)"', each)
            if name is not None and name[1] != "step_up_about":
                found[name[1]] = unescape(value[1]) if value else ""
        for name_, text in re.findall(
            r'<textarea[^>]*name="([^"]+)"[^>]*>\n?(.*?)</textarea>', form, re.DOTALL
        ):
            found[name_] = unescape(text)
        for name_, options in re.findall(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', form, re.DOTALL):
            chosen = re.search(r'value="([^"]*)" selected', options)
            found[name_] = chosen[1] if chosen else ""
        if not group or found.get("group") == group:
            return found
    raise AssertionError(f"no form {action}")


def invited_link(page: str) -> str:
    """The link of an invitation, as the desk's answer shows it."""
    (link,) = re.findall(r'<input id="link"[^>]* value="([^"]+)"', page)
    return unescape(link)


# -- making one


def test_a_new_merchant_lists_what_is_left_to_do_and_ticks_it(admin: Person, merchants: Any) -> None:
    merchants.SetCategory(pb.SetCategoryRequest(code="lamps", commission="0.05"))
    owner = new_email()
    id = made(admin, owner_email=owner)
    page = admin.get(f"/merchants/{id}").text
    left = ("Choose its category", "Activate it", "Make an API key", "Invite its owner", "Set the address")
    assert [words for words in left if f">{words}" in page] == list(left)
    admin.post(f"/merchants/{id}/activate")
    terms = fields_of(page, f"/merchants/{id}/settings#terms") | {"category_code": "lamps"}
    admin.post(f"/merchants/{id}/settings", terms)
    admin.post(f"/merchants/{id}/keys", {"name": "till", "scope:read": "on"})
    invited = admin.post(
        f"/merchants/{id}/people/invite", {"email": owner, "name": "Mary", "role:owner": "on"}
    )
    assert title_of(invited) == "The link for Mary"
    read = requests.get(invited_link(invited.text), timeout=HTTP_SECONDS).text
    for page in (invited.text, read):
        assert re.search("Merchant: <strong>(<[^>]+>)?Lamp House<", page), "the merchant's name"
        assert "<strong>owner</strong>" in page
        assert "<strong>developer</strong>" not in page
    page = admin.get(f"/merchants/{id}").text
    assert page.count('<li class="done">') == 4
    assert ">Set the address" in page
    addresses = fields_of(page, f"/merchants/{id}/settings#addresses")
    admin.post(f"/merchants/{id}/settings", addresses | {"callback_url": "https://shop.example/hook"})
    assert "Before it can take money" not in admin.get(f"/merchants/{id}").text


def test_only_the_first_invitation_of_a_merchant_offers_the_owner(admin: Person, house: House) -> None:
    owner = new_email()
    id = made(admin, owner_email=owner)
    form = f"/merchants/{id}/people/invite"
    offered = fields_of(admin.get(form).text, form)
    assert offered == {"email": owner, "name": "", "role:owner": "on"}
    admin.post(form, offered | {"name": "Mary"})
    assert fields_of(admin.get(form).text, form) == {"email": "", "name": ""}, "an invitation is open"
    present = made(admin)
    house.person("viewer", merchant=present)
    form = f"/merchants/{present}/people/invite"
    assert fields_of(admin.get(form).text, form) == {"email": "", "name": ""}, "a member is there"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("name", "x" * 129),
        ("owner_email", "no address"),
        ("client_share", "101"),
        ("callback_url", "ftp://shop.example"),
        ("category_code", "unheard-of"),
    ],
)
def test_a_form_with_a_fault_keeps_what_was_typed_and_names_the_field(
    admin: Person, field: str, text: str
) -> None:
    typed = {"name": "Typed name", "owner_email": "typed@example.com", "client_share": "12.5"} | {field: text}
    answer = admin.post("/merchants/new", typed)
    assert answer.status_code == 422
    assert f'id="{field}-error"' in answer.text
    assert {"Typed name", "typed@example.com", "12.5", text} - {"Typed name"} <= set(
        map(unescape, re.findall(r'value="([^"]*)"', answer.text))
    ) | {"typed@example.com", "12.5"} - {typed["owner_email"], typed["client_share"]}


# -- settings


def test_two_operators_who_change_one_merchant_do_not_undo_each_other(
    admin: Person, merchants: Any, shop: str
) -> None:
    path = f"/merchants/{shop}/settings"
    first = second = admin.get(f"/merchants/{shop}").text
    for url in ("callback_url", "success_url", "fail_url"):
        assert f"Without one each request has to carry {url}" in first
    done = admin.post(path, fields_of(first, f"{path}#shown") | {"colour": "#112233"})
    assert "The settings are saved." in done.text
    admin.post(path, fields_of(second, f"{path}#shown") | {"frame_origins": "https://shop.example"})
    now = merchant_of(merchants, shop).branding
    assert (now.colour, list(now.frame_origins)) == ("#112233", ["https://shop.example"])
    conflict = admin.post(path, fields_of(second, f"{path}#shown") | {"colour": "#445566"})
    assert conflict.status_code == 422
    assert "Another person changed this meanwhile, to “#112233”" in conflict.text
    again = fields_of(conflict.text, f"{path}#shown")
    assert again["colour"] == "#445566"
    admin.post(path, again)
    now = merchant_of(merchants, shop).branding
    assert (now.colour, list(now.frame_origins)) == ("#445566", ["https://shop.example"])


def test_a_form_without_a_change_writes_nothing(admin: Person, shop: str) -> None:
    path = f"/merchants/{shop}/settings"
    fields = fields_of(admin.get(f"/merchants/{shop}").text, f"{path}#terms")
    assert "Nothing was different" in admin.post(path, fields).text


def test_a_merchant_with_many_methods_is_changed_without_a_conflict(admin: Person, merchants: Any) -> None:
    id = made(admin)
    codes = [f"{number:064}" for number in range(200)]
    path = f"/merchants/{id}/settings"
    assert "The settings are saved." in admin.post(path, {"group": "limits", "allowed_methods": codes}).text
    form = fields_of(admin.get(f"/merchants/{id}").text, f"{path}#limits")
    done = admin.post(path, form | {"allowed_methods": codes[1:]})
    assert "The settings are saved." in done.text
    assert list(merchant_of(merchants, id).allowed_methods) == codes[1:]


def test_ticked_boxes_survive_a_step_up(house: House, staff: Staff, merchants: Any, shop: str) -> None:
    other = house.person("admin", name="Grace Hopper")
    other.add_factors()
    house.end_step_up(other.email)
    catalog = re.findall(
        r'name="allowed_currencies" value="([A-Z]{3})"', other.get(f"/merchants/{shop}").text
    )
    assert len(catalog) > 1
    ticked = {"group": "limits", "allowed_currencies": catalog[:2]}
    asked = other.post(f"/merchants/{shop}/settings", ticked)
    assert title_of(asked) == "Confirm that it is you"
    carried = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', asked.text)
    assert [code for name, code in carried if name == "allowed_currencies"] == catalog[:2]
    proof = {"step_up_code": other.code(1), "allowed_currencies": catalog[:2]}
    done = other.post(f"/step-up?to=/merchants/{shop}/settings", dict(carried) | proof)
    assert "The settings are saved." in done.text
    assert list(merchant_of(merchants, shop).allowed_currencies) == catalog[:2]


# -- states


def test_the_title_of_a_merchants_page_is_its_name_without_tags(admin: Person) -> None:
    id = made(admin, active="on", name="<b>Tom</b> & Co")
    for path in (f"/merchants/{id}", f"/merchants/{id}/logo"):
        title = re.search("<title>(.*?)</title>", admin.get(path).text)
        assert title is not None
        assert (
            unescape(title[1]).replace("\u2068", "").replace("\u2069", "")
            == "<b>Tom</b> & Co · Fiatgate desk"
        )


def test_a_ban_says_what_happens_and_can_be_ended(admin: Person, merchants: Any) -> None:
    id = made(admin, active="on")
    page = admin.get(f"/merchants/{id}").text
    assert "MERCHANT_BLOCKED" in page
    assert "0 deals are open" in page
    assert "The merchant is banned" in admin.post(f"/merchants/{id}/ban").text
    assert merchant_of(merchants, id).status == pb.MERCHANT_STATUS_BANNED
    refused = admin.post(f"/merchants/{id}/activate")
    assert "a banned one is unbanned first" in refused.text
    assert "No new payment can start: it is banned." in admin.get(f"/merchants/{id}/view").text
    assert "The ban has ended" in admin.post(f"/merchants/{id}/unban").text
    assert merchant_of(merchants, id).status == pb.MERCHANT_STATUS_ACTIVE


def test_an_owner_is_blocked_with_all_its_merchants(admin: Person, merchants: Any) -> None:
    email = new_email()
    id, other = made(admin, "First shop", owner_email=email), made(admin, "Second shop", owner_email=email)
    path = re.findall(r'href="(/owners/[0-9a-f-]{36})"', admin.get(f"/merchants/{id}").text)[0]
    page = admin.get(path).text
    assert {id, other} <= set(MERCHANT.findall(page))
    assert "The owner is blocked" in admin.post(f"{path}/block").text
    assert merchant_of(merchants, other).owner_blocked
    assert "owner blocked" in admin.get("/merchants?state=owner_blocked").text
    assert "The block has ended" in admin.post(f"{path}/unblock").text
    assert not merchant_of(merchants, other).owner_blocked


# -- keys


def test_a_key_and_its_secret_are_shown_once_and_nowhere_else(
    house: House, admin: Person, merchants: Any, shop: str
) -> None:
    form = fields_of(admin.get(f"/merchants/{shop}/keys").text, f"/merchants/{shop}/keys")
    none = admin.post(f"/merchants/{shop}/keys", {"name": "production", "newest_key_id": ""})
    assert (none.status_code, "Tick what its programs may do" in none.text) == (422, True)
    form = {name: form[name] for name in ("newest_key_id", "scope:read", "scope:refunds:write")}
    answer = admin.post(f"/merchants/{shop}/keys", form | {"name": "production"})
    key = re.findall(r'id="api-key"[^>]*value="(fg_test_[0-9A-Za-z]{33})"', answer.text)[0]
    secret = re.findall(r'id="secret"[^>]*value="([0-9A-Za-z]{43})"', answer.text)[0]
    assert answer.headers["Cache-Control"] == "no-store"
    listed = admin.get(f"/merchants/{shop}/keys").text
    assert "production" in listed and "read, refunds:write" in listed
    assert f"{key[:12]}…" in listed
    for text in (listed, house.log(), answer.url):
        assert key not in text
        assert secret not in text
    again = admin.post(f"/merchants/{shop}/keys", form | {"name": "production"})  # a reload of the answer
    assert again.status_code == 422
    assert "No key was made now" in again.text
    assert len(merchants.ListApiKeys(pb.ListApiKeysRequest(merchant_id=shop)).keys) == 1


def test_a_deactivated_key_is_refused(admin: Person, merchants: Any, shop: str) -> None:
    form = fields_of(admin.get(f"/merchants/{shop}/keys").text, f"/merchants/{shop}/keys")
    admin.post(f"/merchants/{shop}/keys", form | {"name": "old", "scope:read": "on"})
    page = admin.get(f"/merchants/{shop}/keys").text
    at = page.index(">old<") if ">old<" in page else page.index("old")
    path = re.findall(r'action="([^"]+/deactivate)"', page[at:])[0]
    assert "The key is deactivated" in admin.post(path).text
    (key,) = (
        each
        for each in merchants.ListApiKeys(pb.ListApiKeysRequest(merchant_id=shop)).keys
        if each.name == "old"
    )
    assert not key.active


# -- the logo


def test_a_picture_is_seen_before_it_is_the_logo(admin: Person, merchants: Any, shop: str) -> None:
    path = f"/merchants/{shop}/logo"
    sent = admin.post(path, files={"logo": ("shop.png", PNG, "text/html")})
    assert "As customers will see it" in sent.text
    assert not merchant_of(merchants, shop).branding.HasField("logo")
    use = fields_of(sent.text, f"{path}/use")
    picture = admin.get(f"/merchants/logos/{use['logo']}")
    assert (picture.content, picture.headers["Content-Type"]) == (PNG, "image/png")
    assert picture.headers["X-Content-Type-Options"] == "nosniff"
    assert picture.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert "The logo is in use." in admin.post(f"{path}/use", use).text
    assert merchant_of(merchants, shop).branding.logo == use["logo"]
    removed = admin.post(f"{path}/remove", {"was:logo": use["logo"]})
    assert "The logo is removed." in removed.text
    assert not merchant_of(merchants, shop).branding.HasField("logo")


@pytest.mark.parametrize("content", [b"", b"no picture", b"x" * 180_000])
def test_a_file_that_is_no_logo_is_refused_at_the_field(admin: Person, shop: str, content: bytes) -> None:
    answer = admin.post(f"/merchants/{shop}/logo", files={"logo": ("shop.png", content)})
    assert answer.status_code == 422
    assert 'id="logo-error"' in answer.text


# -- members


def test_members_get_roles_links_and_are_removed(house: House, admin: Person, shop: str) -> None:
    path = f"/merchants/{shop}/people"
    owner, member = house.person("owner", merchant=shop), house.person("finance", merchant=shop)
    page = admin.get(path).text
    assert {owner.email, member.email} <= set(re.findall(r"<bdi>([^<]*@[^<]*)</bdi>", page))
    at = page.rindex(f'href="{path}/', 0, page.index(member.email)) + 6
    one = page[at : page.index('"', at)]
    assert "The roles are set." in admin.post(f"{one}/roles", {"role:viewer": "on"}).text
    assert "Members" not in member.get("/").text
    assert title_of(admin.post(f"{one}/recover")) == "The link for Ada Lovelace"
    assert "The person is no longer a member." in admin.post(f"{one}/remove").text
    assert admin.get(one).status_code == 404
    at = page.rindex(f'href="{path}/', 0, page.index(owner.email)) + 6
    last = admin.post(f"{page[at : page.index(chr(34), at)]}/remove")
    assert (last.status_code, "last owner" in last.text) == (422, True)
    invited = admin.post(f"{path}/invite", {"email": new_email(), "name": "Emmy", "role:developer": "on"})
    assert f'href="{path}">Done' in invited.text
    withdraw = re.findall(rf'action="({path}/invitations/[^"]+)"', admin.get(path).text)[0]
    assert "The invitation is revoked" in admin.post(withdraw).text


# -- the list


def test_the_list_finds_merchants_and_its_file_has_all_of_them(admin: Person, merchants: Any) -> None:
    email = new_email()
    ids = {made(admin, f"Listed {name}", owner_email=email) for name in ("garden", "kitchen")}
    page = admin.get(f"/merchants?owner={email}").text
    assert ids <= set(MERCHANT.findall(page))
    one = admin.get("/merchants", params={"owner": email, "name": "gard"}).text
    assert "Listed garden" in one
    assert "Listed kitchen" not in one
    assert "Listed garden" not in admin.get("/merchants", params={"owner": email, "state": "active"}).text
    rows = admin.rows("/merchants.csv", owner=email)
    assert {row["merchant_id"] for row in rows} == ids
    assert {row["state"] for row in rows} == {"inactive"}
    fault = admin.get("/merchants?owner=nobody")
    assert (fault.status_code, 'id="owner-error"' in fault.text) == (422, True)


# -- categories


def test_a_category_is_made_and_changed_once(admin: Person, merchants: Any) -> None:
    fields = {"code": "desk-made", "commission": "3", "was": ""}
    assert "are set" in admin.post("/categories", fields).text
    edit = fields_of(admin.get("/categories?code=desk-made").text, "/categories")
    changed = {"commission": "4 %", "refunds": "returned"}
    assert "are set" in admin.post("/categories", edit | changed).text
    rows = merchants.ListCategories(pb.ListCategoriesRequest()).categories
    assert [each.refunds_return_commission for each in rows if each.code == "desk-made"] == [True]
    conflict = admin.post("/categories", edit | {"commission": "5"})
    assert (conflict.status_code, "to “4 %”" in conflict.text) == (422, True)
    both = text_of(admin.post("/categories", {"code": "Not a code", "commission": "500", "was": ""}))
    assert "Code: " in both and "Commission: expected 0 to 100 per cent" in both
    wrong = admin.post("/categories", {"code": "desk-made-too", "commission": "500", "was": ""})
    assert (wrong.status_code, 'value="desk-made-too"' in wrong.text) == (422, True)


# -- the other roles, and the look


def test_a_reader_sees_the_merchant_without_a_form(staff: Staff, shop: str) -> None:
    viewer = staff("viewer")
    for path in ("", "/keys", "/logo", "/view"):
        answer = viewer.get(f"/merchants/{shop}{path}")
        assert answer.status_code == 200
        assert re.findall(r'<form[^>]*action="/(?!sign-out|find)', answer.text) == []
    assert viewer.get(f"/merchants/{shop}/people").status_code == 403
    assert viewer.get("/merchants/new").status_code == 403
    assert viewer.post(f"/merchants/{shop}/ban").status_code == 403


def test_each_page_looks_right(staff: Staff, open_page: Open, merchants: Any, shop: str) -> None:
    page = staff.page(open_page, "admin")
    admin = staff("admin")
    kept = merchants.KeepLogo(pb.KeepLogoRequest(logo=PNG)).logo
    owner = re.findall(r'href="(/owners/[0-9a-f-]{36})"', admin.get(f"/merchants/{shop}").text)[0]
    addresses = {
        "merchants": "/merchants?limit=10",
        "merchant-new": "/merchants/new",
        "merchant": f"/merchants/{shop}",
        "merchant-keys": f"/merchants/{shop}/keys",
        "merchant-people": f"/merchants/{shop}/people",
        "merchant-view": f"/merchants/{shop}/view",
        "merchant-logo": f"/merchants/{shop}/logo?kept={kept}",
        "owner": owner,
        "categories": "/categories?code=lamps",
    }
    for name, address in addresses.items():
        page.goto(f"{admin.url}{address}")
        looks_right(page, name)
    page.goto(f"{admin.url}/merchants/{shop}/keys")
    page.get_by_role("button", name="Make a key").click()
    looks_right(page, "merchant-key")
    secret = page.locator("#secret")
    assert secret.input_value()
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    assert secret.input_value() == ""

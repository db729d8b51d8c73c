"""The settings of a merchant on the dashboard: changed by its own people, seen on the payment page before."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Final

import pytest
from playwright.sync_api import expect

from console.surfaces import DASHBOARD
from fiatgate.merchants.v1 import merchants_pb2 as pb
from gateway.pay import brand
from tests.console.conftest import Open, with_cookies
from tests.console.house import House, Person, text_of_html, title_of
from tests.console.looks import looks_right
from tests.gateway.desk import Desk, Shop
from tests.support.pictures import PNG
from tests.support.stack import Stack

HTTP_SECONDS: Final = 15
COLOUR: Final = "#8a2be2"


@dataclass(frozen=True)
class Business:
    """A merchant, its members by role, and the owner of another one."""

    desk: Desk
    shop: Shop
    members: dict[str, Person]
    stranger: Person

    @property
    def merchant(self) -> pb.Merchant:
        request = pb.GetMerchantRequest(merchant_id=self.shop.merchant_id)
        found: pb.Merchant = self.desk.merchants.GetMerchant(request).merchant
        return found


@pytest.fixture(scope="module")
def business(stack: Stack, house: House) -> Iterator[Business]:
    with Desk(stack) as desk:
        currency = desk.currency()
        desk.requisite(desk.method(currency))
        shop, other = desk.open_shop(currency, name="Lamps"), desk.open_shop(currency, name="Chairs")
        members = {
            role: house.person(role, merchant=shop.merchant_id, name=f"Mary {role}")
            for role in DASHBOARD.roles
        }
        yield Business(desk, shop, members, house.person("owner", merchant=other.merchant_id))


@pytest.fixture
def developer(business: Business, house: House) -> Person:
    house.step_up(business.members["developer"])
    return business.members["developer"]


def form_of(page: str, group: str) -> dict[str, str]:
    (form,) = re.findall(rf'<form class="card" id="{group}".*?</form>', page, re.DOTALL)
    fields = {
        name: unescape(value) for name, value in re.findall(r'name="([\w:]+)"[^>]*? value="(.*?)"', form)
    }
    areas = re.findall(r'<textarea[^>]* name="(\w+)"[^>]*>\n?(.*?)</textarea>', form, re.DOTALL)
    fields |= {name: unescape(text).strip("\n") for name, text in areas}
    fields.pop("preview", None)
    return fields


def test_owner_and_developer_change_and_the_others_read(business: Business, house: House) -> None:
    for role, person in business.members.items():
        house.step_up(person)
        page = person.get("/settings").text
        changes = role in ("owner", "developer")
        assert ('name="callback_url"' in page) == changes, role
        for url in ("callback_url", "success_url", "fail_url"):
            assert (f"Without one each request has to carry {url}" in page) == changes, role
        assert "Set by the operator" in page
        assert person.get("/settings/logo").status_code == (200 if changes else 403)
        field = f"https://{role}.example/hooks"
        posted = {
            "group": "addresses",
            "callback_url": field,
            "was:callback_url": business.merchant.callback_url,
        }
        answer = person.post("/settings", posted)
        assert answer.status_code == (200 if changes else 403), role
        assert (business.merchant.callback_url == field) == changes
    acts = business.members["owner"].get("/audit").text
    assert business.members["developer"].email in acts
    assert "developer.example" in acts


def test_owner_and_finance_say_what_is_done_with_late_money(business: Business, house: House) -> None:
    for role, choice in (("owner", "return"), ("finance", "credit"), ("developer", "x"), ("viewer", "x")):
        person, now = business.members[role], business.merchant.late_money
        house.step_up(person)
        page = person.get("/settings").text
        changes = role in ("owner", "finance")
        assert ('name="late_money"' in page) == changes, role
        assert "Ask the merchant; without an answer in time credit it" in page or now != "ask_credit"
        posted = {"late_money": choice, "was:late_money": now}
        assert person.post("/settings/late-money", posted).status_code == (200 if changes else 403), role
        assert business.merchant.late_money == (choice if changes else now)


def test_settings_of_the_operator_are_no_part_of_the_call(business: Business, developer: Person) -> None:
    before = business.merchant
    answer = developer.post("/settings", {"group": "terms", "client_share": "1", "was:client_share": "0"})
    assert (answer.status_code, title_of(answer)) == (404, "Not found")
    developer.post("/settings", {"group": "shown", "name": "Mine", "client_share": "1", "colour": ""})
    assert (business.merchant.name, business.merchant.client_share) == (before.name, before.client_share)
    assert not {"name", "category_code", "client_share", "allowed_methods"} & set(
        pb.ConfigureOwnMerchantRequest.DESCRIPTOR.fields_by_name
    )


def test_a_change_needs_a_step_up_and_goes_on_after_it(business: Business, house: House) -> None:
    person = house.person("developer", merchant=business.shop.merchant_id)
    person.add_factors()
    house.end_step_up(person.email)
    fields = form_of(person.get("/settings").text, "shown")
    wrong = person.post("/settings", fields | {"colour": "reddish"})
    assert wrong.status_code == 422, "no step-up for what would be refused after it"
    assert 'id="colour-error"' in wrong.text
    asked = person.post("/settings", fields | {"colour": COLOUR})
    assert 'name="step_up_code"' in asked.text
    assert COLOUR in asked.text, "the form is carried along"
    assert business.merchant.branding.colour != COLOUR
    shown = person.post("/settings", fields | {"colour": COLOUR, "preview": "on"})
    assert 'name="step_up_code"' not in shown.text, "a preview changes nothing"
    assert f"/settings/preview/{COLOUR[1:]}/none" in shown.text
    assert business.merchant.branding.colour != COLOUR


def test_the_preview_is_a_page_that_can_do_nothing(business: Business) -> None:
    viewer = business.members["viewer"]
    frame = viewer.get(f"/settings/preview/{COLOUR[1:]}/none", headers={"Accept-Language": "de"})
    policy = frame.headers["Content-Security-Policy"]
    assert "sandbox allow-same-origin" in policy
    assert "frame-ancestors 'self'" in policy
    assert frame.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert "<script" not in frame.text
    assert "Lamps" in frame.text
    assert 'lang="de"' in frame.text
    assert "http-equiv" not in frame.text
    (sheet,) = re.findall(r'href="(/settings/colours/[^"]+)"', frame.text)
    assert viewer.get(sheet).content == brand.stylesheet(f"{COLOUR[1:]}.css")
    (files,) = set(re.findall(r'href="(/settings/pay-static/[^"]+/pay\.css)"', frame.text))
    assert viewer.get(files).status_code == 200
    for wrong in ("/settings/preview/red/none", "/settings/preview/none/x", "/settings/colours/x.css"):
        assert viewer.get(wrong).status_code == 404, wrong
    # Pages that hold it may frame this surface only; all others frame nothing.
    assert "frame-src 'self'" in viewer.get("/settings").headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in viewer.get("/settings").headers["Content-Security-Policy"]
    assert "frame-src" not in viewer.get("/").headers["Content-Security-Policy"]


def test_the_preview_follows_the_colour_while_it_is_typed(
    business: Business, house: House, open_page: Open, developer: Person
) -> None:
    page = with_cookies(open_page(), developer)
    page.goto(house.dashboard + "/settings")
    frame = page.frame_locator("[data-preview]")
    button = frame.get_by_role("button", name="I have paid")
    own = button.evaluate("each => getComputedStyle(each).backgroundColor")
    page.get_by_label("Colour").fill("#8a2b0a")
    expect(button).not_to_have_css("background-color", own)
    expect(button).to_have_css("background-color", "rgb(138, 43, 10)")
    looks_right(page, "dashboard-settings")
    developer.post("/settings/logo", files={"logo": ("shop.png", PNG, "image/png")})
    page.goto(house.dashboard + "/settings/logo")
    looks_right(page, "dashboard-logo")
    # Without scripts a button shows it.
    plain = with_cookies(open_page(scripts=False), developer)
    plain.goto(house.dashboard + "/settings")
    plain.get_by_label("Colour").fill("#8a2b0a")
    plain.get_by_role("button", name="Preview").click()
    expect(plain.get_by_label("Colour")).to_have_value("#8a2b0a")
    assert "/settings/preview/8a2b0a/none" in plain.content()


def test_the_settings_name_the_commission_of_each_method(business: Business) -> None:
    (offer,) = business.shop.get("/api/v1/payment-methods").json()["data"]
    page = business.members["viewer"].get("/settings").text
    (row,) = re.findall(r"<tr data-row>.*?</tr>", page.partition("Commission by method")[2], re.DOTALL)
    parts = [f"{offer[each]} %" for each in ("max_commission", "client_commission", "merchant_commission")]
    assert text_of_html(row).split()[0] in offer["name"]
    assert re.findall(r">([\d.]+ %)<", row) == parts

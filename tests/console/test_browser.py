"""Both surfaces in a real browser: passkeys with Chromium's virtual authenticator, all else without scripts."""

import re
from typing import Final

import pyotp
import pytest
from playwright.sync_api import expect

from kit.base.clock import SystemClock
from tests.console.conftest import Open
from tests.console.house import PASSWORD, START_PAGES, House, new_email, new_merchant
from tests.console.passkeys import heading, press, with_passkey

START: Final = re.compile("|".join(START_PAGES))


# -- passkeys


@pytest.mark.parametrize("surface", ["desk", "dashboard"])
def test_an_invited_person_makes_a_passkey_and_comes_back_with_it_to_the_page_that_was_asked_for(
    house: House, open_page: Open, surface: str
) -> None:
    page = open_page()
    merchant = new_merchant() if surface == "dashboard" else ""
    with_passkey(page, house.invited("owner" if merchant else "admin", merchant=merchant))
    heading(page, "Ways to sign in")
    press(page, "Sign out")
    wanted = f"{house.dashboard if merchant else house.desk}/people?after=a"
    page.goto(wanted)
    heading(page, "Sign in")
    press(page, "Sign in with a passkey")
    heading(page, "Members" if merchant else "People")
    assert page.url == wanted
    page.get_by_role("link", name="Fiatgate").first.click()
    heading(page, START)
    page.goto(f"{house.dashboard if merchant else house.desk}/account/sessions")
    expect(page.get_by_text("began by passkey")).to_be_visible()


def test_a_passkey_whose_counter_went_back_is_refused(house: House, open_page: Open) -> None:
    """It was copied: two authenticators count apart. One without a proof of the person is refused, too."""
    page = open_page()
    key = with_passkey(page, house.invited("desk"))
    copied = key.credentials()[0]
    press(page, "Sign out")
    key.verifies(verified=False)
    press(page, "Sign in with a passkey")
    expect(page.get_by_text("The browser did not use a passkey.")).to_be_visible()
    heading(page, "Sign in")
    key.verifies(verified=True)
    press(page, "Sign in with a passkey")
    heading(page, START)
    press(page, "Sign out")
    key.cdp.send("WebAuthn.clearCredentials", {"authenticatorId": key.id})
    key.cdp.send("WebAuthn.addCredential", {"authenticatorId": key.id, "credential": copied})
    press(page, "Sign in with a passkey")
    expect(page.get_by_role("alert").filter(visible=True)).to_contain_text("That did not work.")


def test_a_form_and_a_new_passkey_need_the_step_up_and_the_form_goes_on(
    house: House, open_page: Open
) -> None:
    page = open_page()
    email = new_email()
    with_passkey(page, house.invited("admin", email=email))
    house.end_step_up(email)
    page.reload()
    press(page, "Add a passkey")
    heading(page, "Confirm that it is you")
    page.goto(f"{house.desk}/people/invite")
    page.get_by_label("E-mail address").fill(new_email())
    page.get_by_label("Name").fill("Grace Hopper")
    page.get_by_label("desk deals, cases, requisites").check()
    press(page, "Make the invitation")
    heading(page, "Confirm that it is you")
    press(page, "Use a passkey")
    heading(page, "The link for Grace Hopper")
    assert page.get_by_label("Link").input_value().startswith(f"{house.desk}/invitation?token=")


# -- without scripts


def test_without_scripts_a_person_gets_from_the_invitation_to_the_next_sign_in(
    house: House, open_page: Open
) -> None:
    page = open_page(scripts=False)
    email = new_email()
    page.goto(house.invited("desk", email=email))
    press(page, "Accept and sign in")
    heading(page, "How will you sign in?")
    expect(page.get_by_role("button", name="Add a passkey")).to_be_hidden()
    page.get_by_role("link", name="Set up an app").click()
    press(page, "Show the QR code")
    secret = (page.locator("code.secret").text_content() or "").replace(" ", "")
    totp = pyotp.TOTP(secret)
    now = totp.timecode(SystemClock().now()) * totp.interval
    page.get_by_label("Code that the app shows").fill(totp.at(now - totp.interval))
    press(page, "Finish")
    page.get_by_role("link", name="Set a password").click()
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("The same again").fill(PASSWORD)
    press(page, "Set the password")
    heading(page, "Ways to sign in")
    press(page, "Make ten codes")
    heading(page, "Your recovery codes")
    page.get_by_role("link", name="I have stored them").click()
    press(page, "Sign out")
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Code").fill(totp.at(now))
    press(page, "Sign in")
    heading(page, START)


def test_without_scripts_an_administrator_invites_changes_roles_and_disables(
    house: House, open_page: Open
) -> None:
    page = open_page(scripts=False)
    page.goto(house.invited("admin"))
    press(page, "Accept and sign in")
    page.get_by_role("link", name="People", exact=True).click()
    page.get_by_role("link", name="Invite a person").click()
    email = f"0-{new_email()}"  # the list is by e-mail address: on its first page, however many people a session made
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Name").fill("Grace Hopper")
    page.get_by_label("treasury withdrawals").check()
    press(page, "Make the invitation")
    link = page.get_by_label("Link").input_value()
    grace = open_page(scripts=False)
    grace.goto(link)
    press(grace, "Accept and sign in")
    heading(grace, "How will you sign in?")
    page.get_by_role("link", name="Done").click()
    page.get_by_role("row").filter(has_text=email).get_by_role("link").click()
    heading(page, "Grace Hopper")
    page.get_by_label("treasury withdrawals").uncheck()
    page.get_by_label("desk deals, cases, requisites").check()
    press(page, "Set the roles")
    expect(page.get_by_role("status")).to_contain_text("The roles are set.")
    grace.goto(house.desk)
    grace.get_by_text("You, your roles, this session").click()
    expect(grace.get_by_text("deals, cases, requisites")).to_be_visible()
    page.get_by_text("Disable the person").click()
    press(page, "Disable Grace Hopper")
    expect(page.get_by_role("status")).to_contain_text("The person is disabled")
    grace.reload()
    heading(grace, "Sign in")

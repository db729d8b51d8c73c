"""People with a passkey: Chromium's virtual authenticator."""

import re
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import CDPSession, Page, expect


def heading(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


@dataclass
class Authenticator:
    """A virtual authenticator, which confirms each question at once."""

    cdp: CDPSession
    id: str

    def credentials(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cdp.send("WebAuthn.getCredentials", {"authenticatorId": self.id})[
            "credentials"
        ]
        return found

    def verifies(self, *, verified: bool) -> None:
        """Whether the person proves to be there, by finger or PIN."""
        given = {"authenticatorId": self.id, "isUserVerified": verified}
        self.cdp.send("WebAuthn.setUserVerified", given)


def authenticator(page: Page) -> Authenticator:
    cdp = page.context.new_cdp_session(page)
    cdp.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    id = cdp.send("WebAuthn.addVirtualAuthenticator", {"options": options})["authenticatorId"]
    return Authenticator(cdp, id)


def with_passkey(page: Page, link: str) -> Authenticator:
    key = authenticator(page)
    page.goto(link)
    press(page, "Accept and sign in")
    heading(page, "How will you sign in?")
    page.get_by_label("Name of the passkey").fill("Laptop")
    press(page, "Add a passkey")
    expect(page.get_by_role("status")).to_have_text("The passkey is added.")
    return key

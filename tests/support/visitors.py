"""A browser without scripts at a surface of the console: signed in by a link, out by the button."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import requests

HTTP_SECONDS = 15
PAGES: Mapping[str, str] = {"desk": "/people", "dashboard": "/account"}
"""A page of each surface that needs a session; it asks identity."""


class NoAnswer(Exception):
    """The surface is away, or answered that it can't now."""


@dataclass
class Visitor:
    """One session. `url` is where the surface answers; its own address may be another one."""

    surface: str
    url: str
    cookies: dict[str, str]

    @classmethod
    def by_link(cls, surface: str, url: str, link: str) -> Visitor:
        """Signs in by an invitation. Raises NoAnswer, and AssertionError when the link is refused."""
        (token,) = parse_qs(urlsplit(link).query)["token"]
        visitor = cls(surface, url, {})
        answer = visitor._ask("POST", "/invitation", data={"token": token})
        assert answer.status_code == 303, f"{answer.status_code} {answer.text[:300]}"
        visitor.cookies = answer.cookies.get_dict()
        assert visitor.cookies
        return visitor

    def is_signed_in(self) -> bool:
        """Whether a page is shown, and not the way to the sign-in. Raises NoAnswer."""
        answer = self._ask("GET", PAGES[self.surface])
        if answer.status_code == 200:
            return True
        assert answer.status_code == 303, f"{answer.status_code} {answer.text[:300]}"
        assert answer.headers["Location"].startswith("/sign-in"), answer.headers["Location"]
        return False

    def set_password(self, password: str) -> None:
        """Raises NoAnswer."""
        form = {"password": password, "repeated": password}
        assert self._ask("POST", "/account/password", data=form).status_code == 303

    def sign_out(self) -> None:
        """Safe to repeat. Raises NoAnswer."""
        assert self._ask("POST", "/sign-out", data={"out": "1"}).status_code == 303

    def _ask(self, method: str, path: str, *, data: Mapping[str, str] | None = None) -> requests.Response:
        try:
            answer = requests.request(
                method,
                self.url + path,
                data=data,
                cookies=self.cookies,
                allow_redirects=False,
                timeout=HTTP_SECONDS,
            )
        except requests.RequestException as error:
            raise NoAnswer(type(error).__name__) from None
        if answer.status_code >= 500:
            raise NoAnswer(str(answer.status_code))
        return answer

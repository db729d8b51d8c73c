"""Both surfaces of the session's stack, and people who use them without a browser."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from itertools import count
from typing import Any, Final
from uuid import uuid4

import grpc
import psycopg2
import pyotp
import requests

from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1.accounts_pb2_grpc import PeopleServiceStub
from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.approvals.v1.approvals_pb2_grpc import ApprovalsServiceStub
from kit.base.clock import SystemClock
from kit.rpc import errors
from tests.support.stack import Stack

HTTP_SECONDS: Final = 15
OPERATOR: Final = (("fiatgate-cli-actor", "eve@laptop"),)
SECOND_OPERATOR: Final = (("fiatgate-cli-actor", "ben@laptop"),)
PASSWORD: Final = "a lamp beside the green table"

START_PAGES: Final = ("Now", "Hello, Ada Lovelace")
"""The headings of the start pages of the desk and of the dashboard."""

_numbers = count(1)


@dataclass(frozen=True)
class House:
    """desk, dashboard  base URLs"""

    desk: str
    dashboard: str
    stack: Stack
    channel: grpc.Channel

    @property
    def people(self) -> Any:
        """PeopleService for the command line; give `metadata=OPERATOR`."""
        return PeopleServiceStub(self.channel)

    def invited(self, *roles: str, merchant: str = "", email: str = "", name: str = "Ada Lovelace") -> str:
        """The link of an invitation: to the desk, or with a merchant to the dashboard."""
        request = pb.InvitePersonRequest(email=email or new_email(), name=name, merchant_id=merchant)
        (request.member_roles if merchant else request.roles).extend(roles)
        link: str
        try:
            link = self.people.InvitePerson(request, metadata=OPERATOR).link
        except grpc.RpcError as error:
            refused = errors.refused_from_rpc_error(error)
            if refused.reason != "APPROVAL_REQUIRED":
                raise
            approve = approvals_pb2.ApproveRequest(approval_id=refused.metadata["approval_id"])
            link = ApprovalsServiceStub(self.channel).Approve(approve, metadata=SECOND_OPERATOR).link
        return link

    def person(self, *roles: str, merchant: str = "", email: str = "", name: str = "Ada Lovelace") -> Person:
        """A person who has accepted an invitation and has set no factor yet."""
        email = email or new_email()
        found = Person(self.dashboard if merchant else self.desk, email, merchant=merchant)
        found.accept(self.invited(*roles, merchant=merchant, email=email, name=name))
        return found

    def step_up(self, person: Person) -> None:
        """Gives the person's sessions a proof of this moment, so that no form asks for another."""
        self.database(
            "UPDATE sessions SET stepped_up_at = now() WHERE person_id = "
            "(SELECT id FROM people WHERE email = %s)",
            person.email,
        )

    def end_step_up(self, email: str) -> None:
        """Makes the proof of the person's sessions older than the five minutes for which it counts."""
        self.database(
            "UPDATE sessions SET stepped_up_at = now() - interval '6 minutes' WHERE person_id = "
            "(SELECT id FROM people WHERE email = %s)",
            email,
        )

    def log(self) -> str:
        programs = self.stack.programs()
        names = ("identity", "console-desk", "console-dashboard")
        return "".join(programs[name].log.read_text() for name in names)

    def database(self, statement: str, *values: object) -> None:
        """Changes a row of identity: a time or a counter that a test would have to wait for."""
        connection = psycopg2.connect(self.stack.superuser_url("identity"))
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(statement, values)
        finally:
            connection.close()


@dataclass
class Person:
    """A person with a browser that runs no scripts.

    totp      the secret of the authenticator app, once it is there
    merchant  that the forms of this person are for, as each page of the dashboard has it in its forms
    """

    url: str
    email: str
    http: requests.Session = field(default_factory=requests.Session)
    totp: str = ""
    merchant: str = ""

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.http.get(self.url + path, timeout=HTTP_SECONDS, **options)

    def post(
        self, path: str, fields: Mapping[str, str | Sequence[str]] | None = None, **options: Any
    ) -> requests.Response:
        headers = {"Sec-Fetch-Site": "same-origin"} | options.pop("headers", {})
        shown_for = {"for_merchant": self.merchant} if self.merchant else {}
        return self.http.post(
            self.url + path,
            data=shown_for | dict(fields or {}),
            headers=headers,
            timeout=HTTP_SECONDS,
            **options,
        )

    def rows(self, path: str, **params: str) -> list[dict[str, str]]:
        """The lines of a file, by the names of its columns."""
        answer = self.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return list(csv.DictReader(io.StringIO(answer.content.decode())))

    def accept(self, link: str) -> requests.Response:
        return self.post("/invitation", {"token": link.partition("token=")[2]})

    def add_factors(self) -> None:
        page = self.post("/account/totp").text
        (self.totp,) = re.findall(r'name="secret" value="([A-Z2-7]+)"', page)
        (uri,) = re.findall(r'name="uri" value="([^"]+)"', page)
        fields = {"secret": self.totp, "uri": unescape(uri), "code": self.code(-1)}
        done = self.post("/account/totp/confirm", fields)
        assert "The authenticator app is set up." in done.text, done.text
        done = self.post("/account/password", {"password": PASSWORD, "repeated": PASSWORD})
        assert "The password is set." in done.text, done.text

    def code(self, step: int = 0) -> str:
        """A code of this moment, of the one before (-1) or after (1): each counts once, in this order."""
        totp = pyotp.TOTP(self.totp)
        return totp.at(totp.timecode(SystemClock().now()) * totp.interval + step * totp.interval)

    def sign_in(self, *, step: int = 0, **changes: str) -> requests.Response:
        fields = {"email": self.email, "password": PASSWORD, "code": self.code(step)} | changes
        return self.post("/sign-in", fields)


def new_email() -> str:
    return f"person{next(_numbers)}-{os.getpid()}@example.com"


def new_merchant() -> str:
    return str(uuid4())


def signed_out(answer: requests.Response) -> bool:
    """Whether the request led to the sign-in page."""
    return title_of(answer) == "Sign in"


def title_of(answer: requests.Response) -> str:
    found = re.search(r"<h1>(.*?)</h1>", answer.text, re.DOTALL)
    return unescape(re.sub("<[^>]+>", "", found[1])) if found else ""


def text_of(answer: requests.Response) -> str:
    return text_of_html(answer.text)


def text_of_html(html: str) -> str:
    return " ".join(unescape(re.sub("<[^>]+>", " ", html)).split())


def titles(page: str) -> list[str]:
    return [
        unescape(re.sub("<[^>]+>", "", each)) for each in re.findall(r"<div><strong>(.*?)</strong>", page)
    ]


def hidden(page: str, action: str) -> dict[str, str]:
    form = page[page.index(f'action="{action}"') :].partition("</form>")[0]
    found = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in found if name != "step_up_about"}

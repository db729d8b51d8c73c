"""Both surfaces with their accounts service, as processes of their own, and people who use them without a browser."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from html import unescape
from itertools import count
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import grpc
import psycopg2
import pyotp
import requests
from cryptography.fernet import Fernet

from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.accounts.v1.accounts_pb2_grpc import PeopleServiceStub
from kit.base.clock import SystemClock

ROOT: Final = Path(__file__).parents[2]
NOWHERE: Final = "127.0.0.1:1"
START_SECONDS: Final = 40
STOP_SECONDS: Final = 20
HTTP_SECONDS: Final = 15
OPERATOR: Final = (("fiatgate-cli-actor", "eve@laptop"),)
PASSWORD: Final = "a lamp beside the green table"
OTHERS: Final = ("merchants", "catalog", "invoices", "withdrawals", "webhooks")

_numbers = count(1)


@dataclass(frozen=True)
class House:
    """desk, dashboard  base URLs
    superuser_url    of the database of accounts
    logs             of the processes
    """

    desk: str
    dashboard: str
    accounts: str
    superuser_url: str
    logs: Mapping[str, Path]
    channel: grpc.Channel

    @property
    def people(self) -> Any:
        """PeopleService for the command line; give `metadata=OPERATOR`."""
        return PeopleServiceStub(self.channel)

    def invited(self, *roles: str, merchant: str = "", email: str = "", name: str = "Ada Lovelace") -> str:
        """The link of an invitation: to the desk, or with a merchant to the dashboard."""
        request = pb.InvitePersonRequest(email=email or new_email(), name=name, merchant_id=merchant)
        (request.member_roles if merchant else request.roles).extend(roles)
        link: str = self.people.InvitePerson(request, metadata=OPERATOR).link
        return link

    def person(self, *roles: str, merchant: str = "", email: str = "", name: str = "Ada Lovelace") -> Person:
        """A person who has accepted an invitation and has set no factor yet."""
        email = email or new_email()
        found = Person(self.dashboard if merchant else self.desk, email)
        found.accept(self.invited(*roles, merchant=merchant, email=email, name=name))
        return found

    def log(self) -> str:
        """All that the processes have logged."""
        return "".join(path.read_text() for path in self.logs.values())

    def database(self, statement: str, *values: object) -> None:
        """What nobody waits for in a test."""
        connection = psycopg2.connect(self.superuser_url)
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(statement, values)
        finally:
            connection.close()


@dataclass
class Person:
    """A person with a browser that runs no scripts. `totp` is the secret of the authenticator app, once it is there."""

    url: str
    email: str
    http: requests.Session = field(default_factory=requests.Session)
    totp: str = ""

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.http.get(self.url + path, timeout=HTTP_SECONDS, **options)

    def post(self, path: str, fields: Mapping[str, str] | None = None, **options: Any) -> requests.Response:
        headers = {"Sec-Fetch-Site": "same-origin"} | options.pop("headers", {})
        return self.http.post(
            self.url + path, data=dict(fields or {}), headers=headers, timeout=HTTP_SECONDS, **options
        )

    def accept(self, link: str) -> requests.Response:
        return self.post("/invitation", {"token": link.partition("token=")[2]})

    def add_factors(self) -> None:
        """A password and an authenticator app."""
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


@contextmanager
def built(database_url: str, superuser_url: str, folder: Path) -> Iterator[House]:
    """Runs accounts and both surfaces until the block ends. The other services are away."""
    accounts_port, desk_port, dashboard_port = free_ports(3)
    accounts = f"127.0.0.1:{accounts_port}"
    desk, dashboard = f"http://localhost:{desk_port}", f"http://localhost:{dashboard_port}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FIATGATE_")}
    environment |= {f"FIATGATE_{each.upper()}_ADDRESS": NOWHERE for each in OTHERS}
    environment |= {
        "FIATGATE_ACCOUNTS_ADDRESS": accounts,
        "FIATGATE_ACCOUNTS_DATABASE_URL": database_url,
        "FIATGATE_ACCOUNTS_MASTER_KEYS": Fernet.generate_key().decode(),
        "FIATGATE_DESK_BIND": f"127.0.0.1:{desk_port}",
        "FIATGATE_DESK_URL": desk,
        "FIATGATE_DESK_WORKERS": "1",
        "FIATGATE_DASHBOARD_BIND": f"127.0.0.1:{dashboard_port}",
        "FIATGATE_DASHBOARD_URL": dashboard,
        "FIATGATE_DASHBOARD_WORKERS": "1",
    }
    commands = {
        "accounts": ["services.accounts", "run"],
        "desk": ["console", "desk"],
        "dashboard": ["console", "dashboard"],
    }
    logs = {name: folder / f"{name}.log" for name in commands}
    with ExitStack() as running:
        for name, command in commands.items():
            running.enter_context(_process(command, environment, logs[name]))
        for url, name in ((desk, "desk"), (dashboard, "dashboard")):
            wait_until(
                lambda url=url: _is_ready(url),  # type: ignore[misc]
                f"the {name}: {logs[name]}",
                timeout_seconds=START_SECONDS,
            )
        channel = running.enter_context(grpc.insecure_channel(accounts))
        yield House(desk, dashboard, accounts, superuser_url, logs, channel)


@contextmanager
def _process(command: list[str], environment: Mapping[str, str], log: Path) -> Iterator[None]:
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=ROOT, env=dict(environment), stdout=out, stderr=out
        )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS)


def _is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/readyz", timeout=2).status_code == 200
    except requests.RequestException:
        return False

"""A day of a small shop, as its merchant, its customers and the operators live it (day.txt), each answer recorded."""

from __future__ import annotations

import json
import os
import pwd
import shlex
import socket
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from itertools import count, product
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import requests
import typer
from babel.dates import format_date

from cli.__main__ import app
from deploy.local.waiting import wait_until
from gateway.pay.languages import NAMES as LANGUAGES
from kit.base.clock import SystemClock
from tests.cli.command_line import run
from tests.referee import surfaces
from tests.referee.pages import headers_of, seen_on
from tests.referee.placeholders import Placeholders
from tests.support.pictures import PNG
from tests.support.receiver import Receiver
from tests.support.stack import Stack

SCRIPT: Final = Path(__file__).with_name("day.txt")
SECONDS: Final = 60
FILES: Final = {"png": ("receipt.png", PNG, "image/png"), "text": ("receipt.txt", b"text", "text/plain")}
ACCOUNTS: Final = "account,holder,bank,max_deals\n18,Ann Holder,,50\n19,Ben Holder\n"
NO_JSON: Final = ("fact-keys",)
KEY: Final = "FIATGATE_FACT_SIGNING_KEY=" + "A" * 43


class Day:
    """One recording: `parts` has the answers of each part in their order. A step is a line of day.txt; its first word
    is a method here. `names` has what the steps keep for later ones.
    """

    def __init__(self, stack: Stack, receiver: Receiver, folder: Path) -> None:
        self.stack = stack
        self.receiver = receiver
        self.parts: defaultdict[str, list[Any]] = defaultdict(list)
        self.names: dict[str, Any] = {
            "folder": folder,
            "hook": receiver.url(),
            "none": "",
            "nobody": "fg_nobody",
            "unknown": "01000000-0000-7000-8000-000000000000",
            "tron": "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
        }
        self.placeholders = Placeholders()
        self._fix_names(folder)
        self.ran: set[str] = set()
        self._orders = count(1)
        (folder / "logo.png").write_bytes(PNG)
        (folder / "accounts.csv").write_text(ACCOUNTS)

    def _fix_names(self, folder: Path) -> None:
        operator = f"{pwd.getpwuid(os.getuid()).pw_name}@{socket.gethostname()}"
        hook = self.receiver.url("")
        fixed = {
            self.stack.url: "gateway",
            hook: "shop/",
            hook[7:-1]: "shop",
            operator: "operator",
            str(folder): "folder",
        }
        fixed |= {url: name for name, url in self.stack.home.running_stack()["consoles"].items()}
        for number, language in product(range(2), LANGUAGES):
            day = SystemClock().now() + timedelta(days=number)
            fixed[" ".join(format_date(day, locale=language).split())] = "day"  # as the pages are recorded
        for value, name in fixed.items():
            self.placeholders.fix(value, name)

    def live(self) -> None:
        """Takes all steps."""
        for line in SCRIPT.read_text().splitlines():
            if line and not line.startswith("#"):
                self._step(line)

    def record(self, part: str, step: str, **answer: Any) -> None:
        """Adds an answer, with placeholders."""
        self.placeholders.enter(f"{part}{len(self.parts[part]) + 1}")
        self.parts[part].append({"step": step} | self.placeholders.of(answer))

    def commands_not_run(self) -> list[str]:
        """The commands of which no step is one."""
        return [name for name, _ in commands() if name not in self.ran]

    def _step(self, line: str) -> None:
        step, _, kept = line.partition(" -> ")
        verb, _, rest = step.partition(" ")
        answer = getattr(self, verb)(rest)
        for each in kept.split():
            name, _, path = each.partition("=")
            self.names[name] = _member(answer, path)

    # -- the verbs of day.txt

    def fiatgate(self, line: str) -> Any:
        """A command with --json."""
        words = [each.format_map(self.names) for each in shlex.split(line)]
        json_too = () if words[0] in NO_JSON else ("--json",)
        with patch.object(sys, "stdin", StringIO(KEY)):
            ended = run(*words, *json_too)
        self.ran |= {" ".join(words[:length]) for length in (1, 2)}
        out, err = _parsed(ended.out), _parsed(ended.err)
        self.record("commands", line, exit_code=ended.exit_code, out=out, err=err)
        return out or err

    def two(self, line: str) -> Any:
        """A command that one person requests and another approves."""
        self.names["approval"] = self.fiatgate(line)["error"]["details"]["approval_id"]
        return self.fiatgate("approvals approve {approval} --yes --as second@fiatgate.example")

    def until(self, line: str) -> Any:
        """A step again and again until its answer has the first word; only the last one is recorded."""
        text, _, step = line.partition(" ")
        verb, _, rest = step.partition(" ")
        if verb == "order":
            rest += f" number={next(self._orders)}"
        answers: list[Any] = []

        def done() -> bool:
            before = {name: len(part) for name, part in self.parts.items()}
            answers.append(getattr(self, verb)(rest))
            if text in str(answers[-1]):
                return True
            for name, part in self.parts.items():
                del part[before.get(name, 0) :]
            return False

        wait_until(done, line, timeout_seconds=SECONDS, every_seconds=0.1)
        return answers[-1]

    def order(self, line: str) -> Any:
        """create-invoice with a body that is good, but for the members given; an empty one is left out."""
        line, _, key = f" {line}".partition(" as ")
        changes = dict(each.split("=", 1) for each in shlex.split(line))
        number = int(changes.pop("number", None) or next(self._orders))
        body = {
            "amount": f"{100 + number}.{number % 100:02}",
            "currency_code": "QQC",
            "customer_id": f"customer-{number}",
            "external_id": f"order-{number}",
            "purpose": "Two lamps",
        } | changes
        body = {name: value for name, value in body.items() if value}
        return self._call("POST", "/api/v1/create-invoice", key or "api_key", step=f"order{line}", json=body)

    def raw(self, text: str) -> Any:
        """create-invoice with a body that is no JSON."""
        data = b"{" + b" " * 2**17 if text == "large" else text.encode()
        return self._call("POST", "/api/v1/create-invoice", "api_key", step=f"raw {text}", data=data)

    def api(self, line: str) -> Any:
        """A call of the API with the shop's key, or with another one."""
        call, _, key = line.partition(" as ")
        method, _, path = call.partition(" ")
        return self._call(method, path, key or "api_key", step=line)

    def _call(self, method: str, path: str, key: str, *, step: str, **options: Any) -> Any:
        url = self.stack.url + path.format_map(self.names)
        headers = {"X-Api-Key": self.names[key]} if self.names[key] else {}
        answer = requests.request(method, url, headers=headers, timeout=SECONDS, **options)
        body = _parsed(answer.text)
        self.record("api", step, status=answer.status_code, headers=headers_of(answer), body=body)
        return body

    def page(self, line: str, language: str = "") -> None:
        """A request of the customer's browser."""
        method, path, *pairs = (each.format_map(self.names) for each in shlex.split(line))
        fields = dict(each.split("=", 1) for each in pairs)
        file = FILES.get(fields.pop("picture", ""))
        headers = {"Accept-Language": language} if language else {}
        if method == "POST" and not file:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        answer = requests.request(
            method,
            self.stack.url + path,
            data=fields or None,
            files={"picture": file} if file else None,
            headers=headers,
            allow_redirects=False,
            timeout=SECONDS,
        )
        step = f"{line} {language}".strip()
        self.record("pay", step, status=answer.status_code, **seen_on(answer, words=True))

    def languages(self, path: str) -> None:
        """A page of the customer's in every language."""
        for language in LANGUAGES:
            self.page(f"GET {path}", language)

    def delivered(self, name: str) -> None:
        """The webhook of an invoice, once it has arrived and that is written down."""
        path = f"/api/v1/invoices/{self.names[name]}/webhooks"

        def done() -> bool:
            history = self.stack.request("GET", path, api_key=self.names["api_key"]).json()
            return [each["status"] for each in history.get("events", [])] == ["success"]

        wait_until(done, f"the webhook of {name}", timeout_seconds=SECONDS)
        for request in self.receiver.received():
            if self.names[name].encode() in request.body:
                headers, body = dict(sorted(request.headers.items())), request.body.decode()
                self.record("webhooks", name, headers=headers, body=body)

    def credited(self, _: str) -> None:
        """Waits until the books have all payments."""
        done = lambda: run("verify", "--grace-seconds", "0", "--json").exit_code == 0  # noqa: E731
        wait_until(done, "the credits", timeout_seconds=SECONDS, every_seconds=0.2)

    def visit(self, surface: str) -> None:
        """The desk or the dashboard."""
        surfaces.visit(self, surface)


def commands() -> Iterator[tuple[str, Any]]:
    """All commands of the command line, such as "deals list", with their typer objects."""

    def below(group: Any, words: str) -> Iterator[tuple[str, Any]]:
        for word in group.commands:
            command = group.commands[word]
            if hasattr(command, "commands"):
                if command.invoke_without_command:
                    yield f"{words}{word}", command
                yield from below(command, f"{words}{word} ")
            else:
                yield f"{words}{word}", command

    yield from below(typer.main.get_command(app), "")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.splitlines()


def _member(value: Any, path: str) -> Any:
    for word in path.split("."):
        value = value[int(word)] if isinstance(value, list) else value[word]
    return value

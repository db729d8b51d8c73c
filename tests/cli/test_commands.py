"""The command itself: every promised command exists, has a help text, and writes JSON."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.__main__ import app
from cli.author import OPTION, first
from cli.next_steps import NEXT_STEPS
from deploy.local.home import Home, write_private_json
from deploy.local.ports import free_ports
from fiatgate.errors.v1.error_reason_pb2 import ErrorReason
from kit.base.services import SERVICES
from tests.cli.command_line import run

ROOT = Path(__file__).resolve().parents[2]

PROMISED = """
merchants create|list|show|activate|ban|unban|set|methods
owners show|block|unblock
keys create|list|deactivate
categories set|list
currencies set|list
methods set|list
rates set|list|history|pull|accept
requisites add|add-list|show|list|disable|enable
invoices list|show|cancel
checkout select|mark-paid|cancel
deals list|show|confirm|reject|appeal|resolve|system
approvals list|show|approve|reject
people invite|recover|list|show|roles|disable|enable|sessions|end-session|invitations|withdraw
actor-keys rotate
withdrawals methods|set-method|create|list|show|process|complete|fail|cancel
balance
addresses
find
webhooks list|show|prune|resend
verify
status
demo
"""


def commands(group: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        else:
            yield (*path, name), command


TOO_LARGE = "99999999999999999999"
"""More than an int64 holds."""

CURRENCY = ("currencies", "set", "TST", "--name", "n", "--symbol", "s", "--min", "1", "--max", "2")
METHOD = ("methods", "set", "m", "--currency", "EUR", "--name", "n", "--min", "1", "--max", "2")

LINES = {"fact-keys"}
"""Groups whose commands write lines for the environment, and nothing else."""

ALL = dict(commands(typer.main.get_command(app)))


def test_every_promised_command_is_there() -> None:
    named: set[tuple[str, ...]] = set()
    for line in PROMISED.split("\n"):
        word, _, rest = line.partition(" ")
        named |= {(word, each) if each else (word,) for each in rest.split("|")} if word else set()
    assert len(named) > 40
    assert named <= set(ALL)


@pytest.mark.parametrize("path", sorted(ALL), ids=" ".join)
def test_a_command_explains_itself_and_knows_json(path: tuple[str, ...]) -> None:
    command = ALL[path]
    if path[0] not in LINES:
        assert any("--json" in parameter.opts for parameter in command.params), "no --json"
    assert command.help, "what does it do?"
    example = command.epilog or ""
    assert example.startswith(f"Example: fiatgate {' '.join(path)}"), f"no example: {example!r}"
    helped = run(*path, "--help")
    assert helped.exit_code == 0
    assert " ".join(example.split()[:4]) in " ".join(helped.out.split())


@pytest.mark.parametrize("path", sorted(ALL), ids=" ".join)
def test_every_number_has_bounds(path: tuple[str, ...]) -> None:
    """A field of a message raises ValueError for a number that it can't hold, which would end in a traceback."""
    numbers = [each for each in ALL[path].params if each.type_descriptor.annotation is int]
    assert not [each.name for each in numbers if None in (each.min, each.max)]


@pytest.mark.parametrize("path", sorted(ALL), ids=" ".join)
def test_its_example_is_valid_usage(path: tuple[str, ...]) -> None:
    words = shlex.split((ALL[path].epilog or "").removeprefix("Example: fiatgate "))
    assert tuple(words[: len(path)]) == path
    ALL[path].make_context(" ".join(path), words[len(path) :])  # raises UsageError when it is not


def test_groups_and_the_command_itself_show_what_there_is() -> None:
    for words in ([], ["deals"]):
        bare = run(*words)
        assert bare.exit_code == 2
        assert "Usage: fiatgate" in bare.out + bare.err
    assert "confirm" in run("deals", "--help").out


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("deals", "nonsense"),
        ("deals", "confirm"),
        ("deals", "list", "--status", "nonsense"),
        ("deals", "list", "--limit", "0"),
        ("deals", "resolve", "id"),
        ("deals", "resolve", "id", "--paid", "--reject"),
        ("deals", "system", "perhaps"),
        ("balance", "m", "--month", "2026-13"),
        ("balance", "m", "--month", "9999-12"),
        ("balance", "m", "--csv"),
        ("webhooks", "show", "one"),
        ("currencies", "set", "EUR"),
        ("verify", "--grace-seconds", "-1"),
        ("verify", "--grace-seconds", TOO_LARGE),
        ("verify", "--repair-seconds", TOO_LARGE),
        ("cases", "show", TOO_LARGE),
        ("cases", "resolve", TOO_LARGE, "--outcome", "done", "--ended-as", "return"),
        ("webhooks", "show", TOO_LARGE),
        ("webhooks", "prune", "--older-than-days", TOO_LARGE),
        (*CURRENCY, "--decimals", TOO_LARGE),
        (*CURRENCY, "--decimals", f"-{TOO_LARGE}"),
        (*METHOD, "--minutes", TOO_LARGE),
        (*METHOD, "--minutes", f"-{TOO_LARGE}"),
        ("withdrawals", "create", "m", "--address", "T", "--amount", "5", "--method", TOO_LARGE),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_told_with_exit_code_2(words: tuple[str, ...]) -> None:
    ended = run(*words)
    assert (ended.exit_code, ended.out) == (2, "")
    assert "Error" in ended.err


def test_without_a_stack_it_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIATGATE_HOME", str(tmp_path))
    for words in (("deals", "list"), ("status",), ("verify",), ("demo",), ("listen",)):
        ended = run(*words)
        assert (ended.exit_code, ended.out) == (1, "")
        assert ended.err.startswith("NO_STACK")
        assert "make run" in ended.err
    assert json.loads(run("deals", "list", "--json").err)["error"]["code"] == "NO_STACK"


def test_a_stack_that_starts_and_one_that_was_killed_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIATGATE_HOME", str(tmp_path))
    home = Home(tmp_path)
    held = home.lock()  # as the runner holds it, before it has chosen its ports
    assert run("deals", "list").err.startswith("STACK_STARTING  The stack in ")
    away = f"127.0.0.1:{free_ports(1)[0]}"
    described = {
        "ready": False,
        "url": f"http://{away}",
        "services": {name: {"address": away} for name in SERVICES},
    }
    write_private_json(home.stack_file, described)
    starting = run("deals", "list")
    assert starting.err.startswith("STACK_STARTING")
    assert "wait until it has printed its address" in starting.err
    os.close(held)  # as the kernel does for a runner that was killed
    killed = run("deals", "list")
    assert killed.err.startswith("NO_STACK  No stack runs in ")
    assert "make run" in killed.err


@pytest.mark.parametrize("reason", NEXT_STEPS)
def test_what_to_do_next_is_a_command_there_is(reason: str) -> None:
    assert ErrorReason.Value(reason)
    for command in NEXT_STEPS[reason].split("fiatgate ")[1:]:
        words = first(command.partition(". ")[0].split())
        if words[0] == OPTION:  # of the program itself, which takes it after any command
            words = words[2:]
        path = next(tuple(words[:length]) for length in (1, 2) if tuple(words[:length]) in ALL)
        ALL[path].make_context(" ".join(path), words[len(path) :])  # raises UsageError when it is no usage


NOT_FOR_A_LIST = (
    *("aiohttp", "alembic", "babel", "cryptography", "jwt", "opentelemetry", "requests", "sqlalchemy"),
    *("structlog", "pydantic_settings", "prometheus_client", "cli.commands.withdrawals"),
    "fiatgate.withdrawals.v1.withdrawals_pb2_grpc",
)


def test_a_command_imports_no_other_command_and_no_library_that_it_does_not_use() -> None:
    script = f"""
import sys
from cli.__main__ import main
sys.argv = ["fiatgate", "deals", "list"]
try:
    main()
finally:
    print([name for name in {NOT_FOR_A_LIST} if name in sys.modules])
"""
    addresses = {f"FIATGATE_{service.upper()}_ADDRESS": "127.0.0.1:1" for service in SERVICES}
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=addresses,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "[]\n")
    assert ended.stderr.startswith("SERVICE_DOWN")  # so the command came as far as its call


def test_services_that_are_away_are_told_and_status_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for service in SERVICES:
        monkeypatch.setenv(f"FIATGATE_{service.upper()}_ADDRESS", f"127.0.0.1:{free_ports(1)[0]}")
    monkeypatch.setenv("FIATGATE_PUBLIC_URL", f"http://127.0.0.1:{free_ports(1)[0]}")
    ended = run("deals", "list")
    assert (ended.exit_code, ended.out) == (1, "")
    assert ended.err.startswith("SERVICE_DOWN  invoices does not answer at 127.0.0.1:")
    assert "fiatgate status" in ended.err
    unknown = run("withdrawals", "create", "m", "--method", "1", "--address", "T", "--amount", "5")
    assert re.search(r"--request-key [0-9a-f-]{36}\n", unknown.err)
    status = run("status", "--json")
    assert status.exit_code == 1
    assert {each["service"]: each["healthy"] for each in json.loads(status.out)} == dict.fromkeys(
        ("gateway", *SERVICES), False
    )
    assert run("status").out.count("does not answer") == 1 + len(SERVICES)

"""The author of what the command does: the user and host that it runs as, and the person whom `--as` names.

No option and no variable changes the user and the host.
"""

import os
import pwd
import socket
from typing import Any

import typer
from typer.core import TyperGroup

from kit.base.emails import parse_email
from kit.rpc import actors

OPTION = "--as"


def carry(on_behalf_of: str) -> str:
    """Makes every call of this process carry the author. Returns the e-mail address, "" without one; raises ValueError
    when `on_behalf_of` is none.
    """
    named = parse_email(on_behalf_of) if on_behalf_of else ""
    actors.carry_cli(f"{_user()}@{socket.gethostname()}", on_behalf_of=named)
    return named


def named(context: typer.Context) -> str:
    """Returns the e-mail address that `--as` gave this command, "" without one."""
    given: str = context.find_root().params["on_behalf_of"]
    return parse_email(given) if given else ""


def _user() -> str:
    """Returns the name of the process's user. In a container the user may have a number only."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid-{number}"


class AsAnywhere(TyperGroup):
    """Takes `--as` after the command too: `fiatgate deals confirm ID --as eve@example.com`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, first(args))


def first(arguments: list[str]) -> list[str]:
    """Returns the arguments with `--as` and its value before the others."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    for at, each in enumerate(arguments[:end]):
        size = 2 if each == OPTION else 1 if each.startswith(f"{OPTION}=") else 0
        if size:
            return [*arguments[at : at + size], *arguments[:at], *arguments[at + size :]]
    return arguments

"""The words after `fiatgate`, and their commands. A command's file is imported when the command is used: all files
together, with the libraries that a few of them need, take longer than most commands.
"""

import importlib
from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from typing import Any, Final, cast

import typer

from cli.author import AsAnywhere

_PANELS: Final = {
    "Overview": ("status", "find", "verify", "reports", "balance", "demo", "listen"),
    "Every day": (
        *(
            "deals",
            "cases",
            "invoices",
            "links",
            "withdrawals",
            "corrections",
            "refunds",
            "bank",
            "addresses",
            "approvals",
            "audit",
            "webhooks",
        ),
        *("parked", "checkout"),
    ),
    "Merchants, methods and prices": (
        *("merchants", "people", "owners", "keys", "categories", "currencies", "methods", "rates"),
        *("requisites", "actor-keys", "fact-keys"),
    ),
}
"""The words in the order of the help, under its headings. The file of a word is cli/commands/<word>.py."""

_HEADINGS: Final = {word: heading for heading, words in _PANELS.items() for word in words}


class _Commands(Mapping[str, Any]):
    """The command of each word."""

    def __getitem__(self, word: str) -> Any:
        return _loaded(word, _HEADINGS[word])

    def __iter__(self) -> Iterator[str]:
        return iter(_HEADINGS)

    def __len__(self) -> int:
        return len(_HEADINGS)


@cache
def _loaded(word: str, heading: str) -> Any:
    """Returns the command: the group `app` of its file, else the function named as the word, with its `EXAMPLE`."""
    module = importlib.import_module(f"cli.commands.{word.replace('-', '_')}")
    around = typer.Typer()
    if hasattr(module, "app"):
        around.add_typer(module.app, name=word, rich_help_panel=heading)
    else:
        around.command(word, rich_help_panel=heading, epilog=f"Example: {module.EXAMPLE}")(
            getattr(module, word)
        )
    return typer.main.get_group(around).commands[word]


class Fiatgate(AsAnywhere):
    """The command `fiatgate`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = cast("MutableMapping[str, Any]", _Commands())
